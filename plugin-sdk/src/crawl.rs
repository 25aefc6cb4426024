//! The crawl as a call sees it: where results go, and what the user set.

use crate::{Config, Follow, FollowLinks, Link, PluginItem, Request, Result, Rule};

#[cfg(target_family = "wasm")]
pub(crate) use crate::guest::Outlet;
#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::Outlet;

/// The crawl that a call belongs to: takes its items and requests.
///
/// All of it is kept if the call returns `Ok`, and nothing of it otherwise.
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
    /// One item, of a type that the plugin names in `#[plugin(items(…))]`.
    pub fn emit<T: PluginItem>(&mut self, item: &T) -> Result {
        self.outlet.emit::<T>(serde_json::to_string(item)?)
    }

    /// Items of one type, in order, up to the first that is not taken.
    pub fn emit_all<'i, T: PluginItem + 'i>(
        &mut self,
        items: impl IntoIterator<Item = &'i T>,
    ) -> Result {
        items.into_iter().try_for_each(|item| self.emit(item))
    }

    /// One page to fetch next, absolute or relative to the page of this call.
    pub fn follow(&mut self, url: impl Into<String>, rule: Rule) -> Result {
        self.request(Request::get(url, rule))
    }

    /// Pages to fetch next: all of them are taken, or none.
    pub fn follow_all<U>(&mut self, urls: impl IntoIterator<Item = U>, rule: Rule) -> Result
    where
        U: Into<String>,
    {
        let requests = urls.into_iter().map(|url| Request::get(url, rule));
        self.outlet.follow(requests.collect())
    }

    /// Links of the page that stay with the crawler, see [`Links`](crate::Links), or all of them, see
    /// [`PageLinks`](crate::PageLinks). With a [`Rule`], or with a [`Follow`] for
    /// more than that.
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

    /// One link of the page, see [`Link`]. The crawler makes it absolute: that costs less than
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

    /// One request with more to it than address and rule.
    pub fn request(&mut self, request: Request) -> Result {
        self.outlet.follow(vec![request])
    }

    /// What the user set for this crawl.
    pub fn config(&self) -> Config<'_> {
        Config {
            outlet: &self.outlet,
        }
    }
}
