//! The elements and the text of a page as a tree that can be compared: as html5ever builds it, and as it
//! follows from the tags that lol_html sees.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use htmlize::unescape;
use lol_html::html_content::TextType;
use lol_html::{HtmlRewriter, Settings, doc_text, element, end_tag};
use scraper::Html;

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Text(String),
    Element(String, Vec<Node>),
}

/// `ul(li(a) li(b))`, for messages.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Text(text) => write!(f, "{text:?}"),
            Node::Element(name, children) => {
                f.write_str(name)?;
                f.debug_list().entries(children).finish()
            }
        }
    }
}

/// A tree, or what is wrong with the page.
pub(crate) type Tree = Result<Vec<Node>, String>;

/// Adds a node, and joins texts that meet.
pub(crate) fn add(nodes: &mut Vec<Node>, node: Node) {
    match (nodes.last_mut(), node) {
        (Some(Node::Text(before)), Node::Text(text)) => before.push_str(&text),
        (_, Node::Text(text)) if text.is_empty() => {}
        (_, node) => nodes.push(node),
    }
}

/// The nodes with some elements replaced by what is in them.
pub(crate) fn unwrap(nodes: Vec<Node>, gone: &dyn Fn(&str, &str) -> bool) -> Vec<Node> {
    fn into(
        out: &mut Vec<Node>,
        parent: &str,
        nodes: Vec<Node>,
        gone: &dyn Fn(&str, &str) -> bool,
    ) {
        for node in nodes {
            match node {
                Node::Element(name, children) if gone(parent, &name) => {
                    into(out, parent, children, gone);
                }
                Node::Element(name, children) => {
                    let mut inside = Vec::new();
                    into(&mut inside, &name, children, gone);
                    add(out, Node::Element(name, inside));
                }
                text => add(out, text),
            }
        }
    }
    let mut out = Vec::new();
    into(&mut out, "", nodes, gone);
    out
}

/// What is in `html`, `head` and `body`, which the repair does not make up, without what templates hold, of
/// which nothing is matched.
fn content(nodes: Vec<Node>) -> Vec<Node> {
    let nodes = unwrap(nodes, &|_, name| matches!(name, "html" | "head" | "body"));
    without_templates(nodes)
}

fn without_templates(nodes: Vec<Node>) -> Vec<Node> {
    let inside = |node| match node {
        Node::Element(name, _) if name == "template" => Node::Element(name, Vec::new()),
        Node::Element(name, children) => Node::Element(name, without_templates(children)),
        text => text,
    };
    nodes.into_iter().map(inside).collect()
}

/// The tree of html5ever.
pub(crate) fn browser(page: &str) -> Vec<Node> {
    let page = Html::parse_document(page);
    let mut nodes = Vec::new();
    // Each with its depth and the nodes before it.
    let mut open: Vec<(usize, String, Vec<Node>)> = Vec::new();
    let close = |nodes: &mut Vec<Node>, (_, name, outside): (usize, String, Vec<Node>)| {
        let children = std::mem::replace(nodes, outside);
        add(nodes, Node::Element(name, children));
    };
    for node in page.tree.root().descendants() {
        let depth = node.ancestors().count();
        while let Some(done) = open.pop_if(|(open, ..)| *open >= depth) {
            close(&mut nodes, done);
        }
        match node.value() {
            scraper::Node::Text(text) => add(&mut nodes, Node::Text(text.to_string())),
            scraper::Node::Element(element) => {
                let name = element.name().to_ascii_lowercase();
                open.push((depth, name, std::mem::take(&mut nodes)));
            }
            // What a template holds is in a fragment, which is left out.
            _ => {}
        }
    }
    while let Some(done) = open.pop() {
        close(&mut nodes, done);
    }
    content(nodes)
}

/// The tree that the tags of a page say, as lol_html sees them. An error where an end tag does not close the
/// innermost open element, or where an element is never closed.
pub(crate) fn tags(page: &str) -> Tree {
    let builder = Rc::new(RefCell::new(Builder::default()));
    let (on_element, on_text) = (Rc::clone(&builder), Rc::clone(&builder));
    let settings = Settings::new()
        .with_strict(false)
        .append_element_content_handler(element!("*", move |element| {
            let name = element.tag_name();
            on_element.borrow_mut().start(&name);
            if !element.can_have_content() {
                on_element.borrow_mut().end(&name, &name);
                return Ok(());
            }
            let on_end = Rc::clone(&on_element);
            element.on_end_tag(end_tag!(move |end| {
                on_end.borrow_mut().end(&name, &end.name());
                Ok(())
            }))
        }))
        .append_document_content_handler(doc_text!(move |chunk| {
            let decoded = matches!(chunk.text_type(), TextType::Data | TextType::RCData);
            on_text.borrow_mut().text(chunk.as_str(), decoded);
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter
        .write(page.as_bytes())
        .map_err(|error| error.to_string())?;
    rewriter.end().map_err(|error| error.to_string())?;
    builder.take().finish()
}

/// The same tree from the text of a page that holds nothing but tags without attributes and text. It is ten
/// times as fast as a rewriter.
pub(crate) fn written(page: &str) -> Tree {
    let mut builder = Builder::default();
    let page = page.strip_prefix("<!doctype html>").unwrap_or(page);
    for piece in page.split('<') {
        let (tag, text) = piece.split_once('>').unwrap_or_default();
        match tag.strip_prefix('/') {
            Some(name) => builder.end(name, name),
            None if tag.is_empty() => {}
            None if matches!(tag, "col" | "br" | "hr" | "input") => {
                add(
                    &mut builder.nodes,
                    Node::Element(tag.to_owned(), Vec::new()),
                );
            }
            None => builder.start(tag),
        }
        add(&mut builder.nodes, Node::Text(text.to_owned()));
    }
    builder.finish()
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    /// Each with the children of the element around it.
    open: Vec<(String, Vec<Node>)>,
    text: String,
    encoded: bool,
    faults: Vec<String>,
}

impl Builder {
    fn start(&mut self, name: &str) {
        self.flush();
        self.open
            .push((name.to_owned(), std::mem::take(&mut self.nodes)));
    }

    fn end(&mut self, name: &str, tag: &str) {
        self.flush();
        match self.open.pop() {
            Some((open, outside)) if open == name && name == tag => {
                let children = std::mem::replace(&mut self.nodes, outside);
                add(&mut self.nodes, Node::Element(open, children));
            }
            _ => self.faults.push(format!("</{tag}> closes {name}")),
        }
    }

    fn text(&mut self, text: &str, encoded: bool) {
        if self.encoded != encoded {
            self.flush();
        }
        self.encoded = encoded;
        self.text.push_str(text);
    }

    fn finish(mut self) -> Tree {
        self.flush();
        if let Some((name, _)) = self.open.last() {
            self.faults.push(format!("{name} is never closed"));
        }
        match self.faults.pop() {
            Some(fault) => Err(fault),
            None => Ok(content(self.nodes)),
        }
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = if self.encoded {
            unescape(&text).into_owned()
        } else {
            text
        };
        add(&mut self.nodes, Node::Text(text));
    }
}
