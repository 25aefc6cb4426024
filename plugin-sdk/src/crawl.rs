//! The crawl as a call sees it: where results go, and what the user set.

use crate::{Config, Follow, FollowLinks, Link, PluginItem, Request, Result, Rule};

#[cfg(target_family = "wasm")]
pub(crate) use crate::guest::Outlet;
#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::Outlet;

/// The crawl that a call belongs to; it takes the call's items and requests.
///
/// Either all of them are kept, if the call returns `Ok`, or none is.
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
/// use crawler_plugin_sdk::testing::Trial;
///
/// #[derive(Item, serde::Serialize)]
/// struct Heading { text: String }
///
/// pub struct Notes;
///
/// #[plugin(items(Heading))]
/// impl Notes {
///     fn root(crawl: &mut Crawl) -> Result {
///         crawl.follow("http://notes.test/", Self::NOTE)
///     }
///
///     #[rule]
///     fn note(page: &Page, crawl: &mut Crawl) -> Result {
///         crawl.emit(&Heading { text: page.text().lines().next().require("a line")?.to_owned() })?;
///         crawl.follow("next.txt", Self::NOTE)
///     }
/// }
///
/// let page = Page::from_html("http://notes.test/1.txt", "Milk\nand bread");
/// let outcome = Trial::new().parse(Notes::note, &page).unwrap();
/// assert_eq!(outcome.items[0].value["text"], "Milk");
/// assert_eq!(outcome.urls(), ["http://notes.test/next.txt"]);
/// ```
#[derive(Debug)]
pub struct Crawl {
    pub(crate) outlet: Outlet,
}

impl Crawl {
    /// Emits one item of a type that the plugin names in `#[plugin(items(…))]`.
    pub fn emit<T: PluginItem>(&mut self, item: &T) -> Result {
        self.outlet.emit::<T>(serde_json::to_string(item)?)
    }

    /// Emits items of one type, in order, up to the first that is not taken.
    pub fn emit_all<'i, T: PluginItem + 'i>(
        &mut self,
        items: impl IntoIterator<Item = &'i T>,
    ) -> Result {
        items.into_iter().try_for_each(|item| self.emit(item))
    }

    /// Adds one page to fetch; its URL is absolute or relative to the page of this call.
    pub fn follow(&mut self, url: impl Into<String>, rule: Rule) -> Result {
        self.request(Request::get(url, rule))
    }

    /// Adds pages to fetch: either all of them are taken, or none.
    pub fn follow_all<U>(&mut self, urls: impl IntoIterator<Item = U>, rule: Rule) -> Result
    where
        U: Into<String>,
    {
        let requests = urls.into_iter().map(|url| Request::get(url, rule));
        self.outlet.follow(requests.collect())
    }

    /// Follows the links of a field, which stay with the crawler, see [`Links`](crate::Links), or all links of a
    /// page, see [`PageLinks`](crate::PageLinks). They are followed by a [`Rule`], or by a [`Follow`], which can
    /// say more.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// #[derive(Extract)]
    /// struct Listing {
    ///     #[css("li.next a", attr = "href")]
    ///     next: Links,
    /// }
    ///
    /// fn follow_next(listing: &Listing, crawl: &mut Crawl, list: Rule) -> Result {
    ///     crawl.follow_links(&listing.next, list)
    /// }
    /// ```
    pub fn follow_links(
        &mut self,
        links: &(impl FollowLinks + ?Sized),
        follow: impl Into<Follow>,
    ) -> Result {
        links.follow_by(self, follow.into())
    }

    /// Follows one link of the page, see [`Link`]. The crawler makes it absolute, which costs less than
    /// [`Link::absolute`].
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// fn follow_one(link: &Link, crawl: &mut Crawl, detail: Rule) -> Result {
    ///     crawl.follow_link(link, Follow::by(detail).priority(1))
    /// }
    /// ```
    pub fn follow_link(&mut self, link: &Link, follow: impl Into<Follow>) -> Result {
        let (plan, chosen) = (link.reading.plan, [link.position]);
        self.outlet.follow_captures(
            plan,
            &link.reading,
            link.field,
            Some(&chosen),
            follow.into(),
        )
    }

    /// Adds one request that has more than an address and a rule.
    pub fn request(&mut self, request: Request) -> Result {
        self.outlet.follow(vec![request])
    }

    /// Returns the params of this crawl.
    pub fn config(&self) -> Config<'_> {
        Config {
            outlet: &self.outlet,
        }
    }
}
