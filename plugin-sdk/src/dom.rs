//! HTML with CSS selectors: what a typical rule needs, on top of [`scraper`], which stays visible.

use scraper::{ElementRef, Html, Node, Selector};

use crate::{Form, Page, Require, Result};

impl Page {
    /// The page as an HTML document.
    ///
    /// Parses anew at each call: keep the result. Time and memory count towards the call's limits.
    pub fn dom(&self) -> Html {
        Html::parse_document(self.text())
    }
}

/// Short methods for CSS selectors on a document or an element.
///
/// A selector that does not parse is a mistake in the rule: the method panics and names the place in the source.
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
///
/// let page = Page::from_html(
///     "http://shop.test/",
///     r#"<article><h3><a href="7.html">The
///          W<b>aves</b></a></h3><p class="price">£12.34</p></article>"#,
/// );
/// let dom = page.dom();
/// let article = dom.one("article")?;
/// assert_eq!(article.text_at("h3")?, "The Waves");
/// assert_eq!(article.attr_at("h3 a", "href")?, "7.html");
/// assert_eq!(dom.all("article p.price").len(), 1);
/// assert!(dom.first("li.next a").is_none());
/// let error = article.text_at("p.author").unwrap_err();
/// assert_eq!(error.to_string(), "error: the page lacks an element `p.author`");
/// # Ok::<(), RuleError>(())
/// ```
pub trait Select {
    /// Every element that matches, in document order.
    #[track_caller]
    fn all(&self, css: &str) -> Vec<ElementRef<'_>>;

    /// The first element that matches.
    #[track_caller]
    fn first(&self, css: &str) -> Option<ElementRef<'_>>;

    /// The first element that matches; it is an error if there is none.
    #[track_caller]
    fn one(&self, css: &str) -> Result<ElementRef<'_>> {
        self.first(css).require(&format!("an element `{css}`"))
    }

    /// The text of the first element that matches, white space folded.
    #[track_caller]
    fn text_at(&self, css: &str) -> Result<String> {
        Ok(folded_text(self.one(css)?))
    }

    /// The text of every element that matches, white space folded.
    #[track_caller]
    fn texts_at(&self, css: &str) -> Vec<String> {
        self.all(css).into_iter().map(folded_text).collect()
    }

    /// An attribute of the first element that matches.
    #[track_caller]
    fn attr_at(&self, css: &str, name: &str) -> Result<&str> {
        self.one(css)?
            .attr(name)
            .require(&format!("an attribute `{name}` of `{css}`"))
    }

    /// The form that matches, with what its page puts into it.
    #[track_caller]
    fn form_at(&self, css: &str) -> Result<Form> {
        self.one(css).map(Form::of)
    }

    /// An attribute of every element that matches and has it.
    #[track_caller]
    fn attrs_at(&self, css: &str, name: &str) -> Vec<&str> {
        self.all(css)
            .into_iter()
            .filter_map(|element| element.attr(name))
            .collect()
    }
}

impl Select for Html {
    fn all(&self, css: &str) -> Vec<ElementRef<'_>> {
        self.select(&selector(css)).collect()
    }

    fn first(&self, css: &str) -> Option<ElementRef<'_>> {
        self.select(&selector(css)).next()
    }
}

impl Select for ElementRef<'_> {
    fn all(&self, css: &str) -> Vec<ElementRef<'_>> {
        self.select(&selector(css)).collect()
    }

    fn first(&self, css: &str) -> Option<ElementRef<'_>> {
        self.select(&selector(css)).next()
    }
}

#[track_caller]
fn selector(css: &str) -> Selector {
    match Selector::parse(css) {
        Ok(selector) => selector,
        Err(e) => panic!("selector `{css}` does not parse: {e}"),
    }
}

/// The namespace of HTML's own elements.
const HTML: &str = "http://www.w3.org/1999/xhtml";
/// Elements whose content is not shown.
const HIDDEN: [&str; 8] = [
    "script", "style", "noscript", "iframe", "xmp", "noembed", "noframes", "template",
];

/// Returns the same text as a plan reads: `br` counts as white space, a non-breaking space stays.
fn folded_text(element: ElementRef<'_>) -> String {
    // White space is folded only after joining, because the border of an element inside a word is no space.
    let mut text = String::new();
    let mut nodes = element.descendants();
    while let Some(node) = nodes.next() {
        match node.value() {
            Node::Text(part) => text.push_str(part),
            Node::Element(inner) if inner.name.ns != *HTML => {}
            Node::Element(inner) if HIDDEN.contains(&inner.name()) => {
                let n_within = node.descendants().count() - 1;
                if n_within > 0 {
                    nodes.nth(n_within - 1);
                }
            }
            Node::Element(inner) if inner.name() == "br" => text.push(' '),
            _ => {}
        }
    }
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_same_as_a_plan_reads_it() {
        let page = Page::from_html(
            "http://shop.test/",
            "<p>one<br>two\u{a0} <b>th</b>ree<script>four</script><template><i>five</i> six</template>\
             <svg><style>se</style></svg>ven</p>",
        );
        let dom = page.dom();
        let text = dom.text_at("p").ok();
        assert_eq!(text.as_deref(), Some("one two\u{a0} threeseven"));
        assert_eq!(dom.text_at("script").ok().as_deref(), Some(""));
    }
}
