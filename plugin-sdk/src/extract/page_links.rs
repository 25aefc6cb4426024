//! Links of a page without a declared struct, read by a plan that every plugin has.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use url::Url;

use super::Link;
use super::reading::{PAGE, Reading};
use super::shape::{Part, Shape, Take};
use crate::{Page, Plan, Result};

/// Largest length of a link's address in bytes; the crawler has the same.
const ADDRESS_MAX: usize = 8 << 10;

/// Fields that are read of each link.
const LINK: &Shape = &Shape::new(
    "PageLink",
    &[
        Part::value("href", "", Take::Attr("href"), true),
        Part::value("text", "", Take::Text, true),
    ],
    None,
);
const PAGE_LINKS: &Shape = &Shape::new(
    "PageLinks",
    &[Part::rows("links", "a[href], area[href]", LINK)],
    None,
);
/// The plan that every plugin has, behind those that its author declares. The macro keeps the name for it, and the
/// crawler leaves it out where plugins are compared.
pub(crate) const PLAN: Plan = Plan {
    name: "page.links",
    shape: PAGE_LINKS,
};
/// The numbers of its only group and of its fields.
const LINKS: u32 = 0;
pub(crate) const HREF: u32 = 0;
const TEXT: u32 = 1;

/// Links of a page, or those of them that meet the conditions: every `a` and `area` with a `href`.
///
/// They are made by [`Page::links`], followed by [`Crawl::follow_links`](crate::Crawl::follow_links), and looked
/// at by [`read`](PageLinks::read). They need no declaration, and nothing is read before they are used.
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
/// use crawler_plugin_sdk::testing::Trial;
///
/// pub struct Docs;
///
/// #[plugin]
/// impl Docs {
///     fn root(crawl: &mut Crawl) -> Result {
///         crawl.follow("http://docs.test/", Self::PAGE)
///     }
///
///     #[rule]
///     fn page(page: &Page, crawl: &mut Crawl) -> Result {
///         let links = page.links().within_host().not_matching(r"\.(zip|pdf)$");
///         crawl.follow_links(&links, Self::PAGE)
///     }
/// }
///
/// let html = "<a href=guide/>Guide</a> <a href=all.zip>All</a> <a href=http://a.test/>else</a> <a href='guide/#top'>x</a>";
/// let outcome = Trial::new().parse(Docs::page, &Page::from_html("http://docs.test/", html))?;
/// assert_eq!(outcome.urls(), ["http://docs.test/guide/"]);
/// # Ok::<(), RuleError>(())
/// ```
///
/// Links do not enter the sandbox, unless [`filter`](Self::filter) or `read` looks at them: the crawler judges
/// their addresses, each of them once. Links that are followed without a condition are all handed over, and the
/// crawler leaves out what it does not fetch. With a condition, only those of `http` and `https` are followed, and each
/// address once.
///
/// An expression has the syntax of the crate [`regex_lite`](https://docs.rs/regex-lite). There are at most 32 of them,
/// each of at most 4 KiB.
///
/// Limit `requests` counts all links of the page if they are followed without a condition, also those that are not
/// fetched; with a condition it counts only those that fit. Limits `captures` and `capture-bytes` hold for them as
/// for everything that is read. Links that these cut off are left out, and the log says so.
pub struct PageLinks<'p> {
    page: &'p Page,
    filter: LinkFilter,
    /// Conditions that look at each link, in the sandbox.
    conditions: Vec<Condition<'p>>,
    /// Finds the links that fit, once there is such a condition: other guests carry no code for addresses.
    choose: Option<Choose<'p>>,
}

/// Conditions on addresses, which the crawler judges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LinkFilter {
    pub(crate) within_host: bool,
    pub(crate) matching: Vec<String>,
    pub(crate) not_matching: Vec<String>,
    /// True if each address is chosen once.
    pub(crate) distinct: bool,
}

type Condition<'p> = Box<dyn Fn(&PageLink<'_>) -> bool + 'p>;
type Choose<'p> = fn(&PageLinks<'p>) -> Result<Vec<u32>>;

/// One of the [`PageLinks`].
///
/// ```
/// use crawler_plugin_sdk::Page;
///
/// let page = Page::from_html("http://docs.test/a/", "<a href='b#top'> The <b>guide</b> </a>");
/// let links = page.links().read()?;
/// assert_eq!(links[0].url.as_str(), "http://docs.test/a/b");
/// assert_eq!(links[0].text, "The guide");
/// # Ok::<(), crawler_plugin_sdk::RuleError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PageLink<'p> {
    /// Absolute address, without its fragment.
    pub url: Url,
    /// Text between the tags of the link: white space folded, ends trimmed.
    pub text: &'p str,
    /// The link itself, to be followed by [`Crawl::follow_link`](crate::Crawl::follow_link).
    pub link: Link,
}

impl Page {
    /// Returns all links of the page, to be followed or looked at, see [`PageLinks`].
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// fn follow_all(page: &Page, crawl: &mut Crawl, next: Rule) -> Result {
    ///     crawl.follow_links(&page.links(), next)
    /// }
    /// ```
    pub fn links(&self) -> PageLinks<'_> {
        PageLinks {
            page: self,
            filter: LinkFilter::default(),
            conditions: Vec::new(),
            choose: None,
        }
    }
}

impl<'p> PageLinks<'p> {
    /// Keeps only links to the host that the page came from: same name, any scheme and port. Subdomains are other
    /// hosts.
    ///
    /// ```
    /// use crawler_plugin_sdk::Page;
    ///
    /// let page = Page::from_html("http://a.test/", "<a href=/x></a><a href=http://www.a.test/></a>");
    /// assert_eq!(page.links().within_host().read()?.len(), 1);
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    #[must_use]
    pub fn within_host(mut self) -> Self {
        self.filter.within_host = true;
        self
    }

    /// Keeps only links in whose absolute address this regular expression is found. If it is called several times,
    /// all expressions have to be found.
    ///
    /// ```
    /// use crawler_plugin_sdk::Page;
    ///
    /// let page = Page::from_html("http://a.test/", "<a href=/books/7></a><a href=/about></a>");
    /// let books = page.links().matching(r"/books/\d+$").read()?;
    /// assert_eq!(books[0].url.path(), "/books/7");
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    #[must_use]
    pub fn matching(mut self, pattern: &str) -> Self {
        self.filter.matching.push(pattern.to_owned());
        self
    }

    /// Keeps only links in whose absolute address this regular expression is not found.
    #[must_use]
    pub fn not_matching(mut self, pattern: &str) -> Self {
        self.filter.not_matching.push(pattern.to_owned());
        self
    }

    /// Keeps only links for which a function returns true. All links that fit otherwise enter the sandbox for it, so
    /// [`matching`](Self::matching) costs less on long pages.
    ///
    /// ```
    /// use crawler_plugin_sdk::Page;
    ///
    /// let page = Page::from_html("http://a.test/", "<a href=?p=2>next</a><a href=/>home</a>");
    /// let next = page.links().filter(|link| link.text == "next").read()?;
    /// assert_eq!(next[0].url.as_str(), "http://a.test/?p=2");
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    #[must_use]
    pub fn filter(mut self, fits: impl Fn(&PageLink<'_>) -> bool + 'p) -> Self {
        self.conditions.push(Box::new(fits));
        self.choose = Some(Self::choose);
        self
    }

    /// Reads the links, in the order of the page: those of `http` and `https`, each address once.
    ///
    /// ```
    /// use crawler_plugin_sdk::Page;
    ///
    /// let html = "<a href=/a>A</a><a href=mailto:me@a.test>B</a><map><area href=/a#x></map>";
    /// let page = Page::from_html("http://a.test/", html);
    /// let texts: Vec<&str> = page.links().read()?.iter().map(|link| link.text).collect();
    /// assert_eq!(texts, ["A"]);
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub fn read(&self) -> Result<Vec<PageLink<'p>>> {
        let reading = self.reading()?;
        // Two links to one address may differ in their texts, so conditions are checked before duplicates are
        // dropped.
        let fitting = match self.filter == LinkFilter::default() {
            true => None,
            false => Some(self.fitting(self.conditions.is_empty())?),
        };
        let mut seen = BTreeSet::new();
        let links = reading.rows(LINKS, PAGE);
        let links = links.filter_map(|row| link(reading, row, fitting.as_deref()));
        let links = links.filter(|link| self.fits(link));
        Ok(links.filter(|link| seen.insert(link.url.clone())).collect())
    }

    /// Positions of the links to follow. `None` if there is no condition.
    pub(crate) fn chosen(&self) -> Result<Option<Vec<u32>>> {
        match self.choose {
            Some(choose) => choose(self).map(Some),
            None if self.filter == LinkFilter::default() => Ok(None),
            None => self.fitting(true).map(Some),
        }
    }

    /// Positions of the links whose addresses fit, in rising order.
    fn fitting(&self, distinct: bool) -> Result<Vec<u32>> {
        let filter = LinkFilter {
            distinct,
            ..self.filter.clone()
        };
        let answer = &self.page.answer;
        answer.choose_links(self.number(), &PLAN, HREF, filter)
    }

    fn choose(&self) -> Result<Vec<u32>> {
        let links = self.read()?.into_iter();
        Ok(links.map(|link| link.link.position).collect())
    }

    /// Returns all links of the page, read at the first call.
    pub(crate) fn reading(&self) -> Result<&'p Rc<Reading>> {
        let (page, number) = (self.page, self.number());
        page.readings
            .get_or_read(TypeId::of::<PageLinks<'static>>(), || {
                page.read_by(number, &PLAN)
            })
    }

    /// Number of the plan.
    pub(crate) fn number(&self) -> u32 {
        self.page.answer.links_plan()
    }

    fn fits(&self, link: &PageLink<'_>) -> bool {
        self.conditions.iter().all(|fits| fits(link))
    }
}

/// Returns the link of a row to a page, if it is among those that fit. If `fitting` is `None`, all do.
fn link<'p>(reading: &'p Rc<Reading>, row: u32, fitting: Option<&[u32]>) -> Option<PageLink<'p>> {
    let position = reading.captures(HREF, row).next()?;
    if let Some(fitting) = fitting {
        fitting.binary_search(&position).ok()?;
    }
    let text = reading.captures(TEXT, row).next();
    let mut url = reading.join(reading.text(HREF, position)).ok()?;
    url.set_fragment(None);
    // Conditions are judged for these links only, so those without conditions are the same.
    if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > ADDRESS_MAX {
        return None;
    }
    Some(PageLink {
        url,
        text: text.map_or("", |position| reading.text(TEXT, position)),
        link: Link {
            reading: Rc::clone(reading),
            field: HREF,
            position,
        },
    })
}

impl fmt::Debug for PageLinks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.conditions.len();
        f.debug_struct("PageLinks")
            .field("filter", &self.filter)
            .field("conditions", &n)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_are_as_long_as_where_conditions_are_judged() {
        assert_eq!(super::ADDRESS_MAX, crawler_extract::ADDRESS_MAX);
    }
}
