//! Options for the links of a page that are followed.

use std::ops::RangeInclusive;

use crate::{Crawl, Links, PageLinks, Result, Rule, accept_status, kept};

/// Rule and options of links that are followed. A [`Rule`] alone converts into it.
///
/// ```
/// use crawler_plugin_sdk::{Rule, prelude::*};
///
/// fn follow_next(next: &Links, crawl: &mut Crawl, list: Rule) -> Result {
///     crawl.follow_links(next, Follow::by(list).priority(10).state("poetry"))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Follow {
    /// Rule that parses the answers.
    pub rule: Rule,
    /// Priority among the ready pages of one host: higher comes first; 0 unless said otherwise.
    pub priority: i32,
    /// State handed back with each page, see [`Page::state`](crate::Page::state).
    pub state: Vec<u8>,
    /// True if pages are fetched even if this run has already seen them.
    pub reload: bool,
    /// Hints for abilities of later crawlers; keys that a crawler does not know are ignored.
    pub hints: Vec<(String, String)>,
}

impl Follow {
    /// Follows links by this rule, without other options.
    pub fn by(rule: Rule) -> Self {
        Self {
            rule,
            priority: 0,
            state: Vec::new(),
            reload: false,
            hints: Vec::new(),
        }
    }

    /// Takes the pages before those of a lower priority on the same host.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Hands up to 4 KiB to the rule that gets the pages.
    #[must_use]
    pub fn state(mut self, state: impl Into<Vec<u8>>) -> Self {
        self.state = state.into();
        self
    }

    /// Fetches the pages even if this run has already seen them.
    #[must_use]
    pub fn reload(mut self) -> Self {
        self.reload = true;
        self
    }

    /// Also hands pages with this status to the rule. May be called several times.
    ///
    /// By default a rule sees pages with status 200 to 299 only: 404 or 410 ends a page, 5xx is tried again, and so on.
    /// An accepted status is final: the crawler makes no other attempt, and [`Page::status`](crate::Page::status) tells
    /// which it was. A redirect whose status is accepted is not followed but handed over, with its header `location`.
    /// A status is a number from 200 to 999; another one is refused when the request is followed.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// fn check_links(page: &Page, crawl: &mut Crawl, check: Rule) -> Result {
    ///     crawl.follow_links(&page.links(), Follow::by(check).accept_any_status())
    /// }
    /// ```
    #[must_use]
    pub fn accept_status(mut self, status: u16) -> Self {
        accept_status::add(&mut self.hints, &status.to_string());
        self
    }

    /// Also hands pages with these statuses to the rule, like [`accept_status`](Self::accept_status).
    ///
    /// ```
    /// use crawler_plugin_sdk::{Follow, Rule};
    ///
    /// fn follow(check: Rule) -> Follow {
    ///     Follow::by(check).accept_statuses(500..=599)
    /// }
    /// ```
    #[must_use]
    pub fn accept_statuses(mut self, statuses: RangeInclusive<u16>) -> Self {
        accept_status::add_range(&mut self.hints, &statuses);
        self
    }

    /// Hands pages to the rule whatever their status is. Redirects are followed all the same, unless
    /// [`accept_status`](Self::accept_status) names theirs.
    ///
    /// Answers of a busy server are among them: status 429, and 502 to 504. A rule that wants the page itself has to
    /// return [`RuleError::blocked`](crate::RuleError::blocked) or [`retry`](crate::RuleError::retry) for them, a few
    /// times at most: [`Page::attempt`](crate::Page::attempt) counts them. The last attempt that setting `max-attempts`
    /// allows makes the page a dead letter instead.
    #[must_use]
    pub fn accept_any_status(mut self) -> Self {
        accept_status::add(&mut self.hints, "any");
        self
    }

    /// Also keeps the bodies of successful answers as files of the crawl, like
    /// [`Request::keep_body`](crate::Request::keep_body).
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// #[derive(Extract)]
    /// struct Album {
    ///     #[css("img", attr = "src")]
    ///     pictures: Links,
    /// }
    ///
    /// fn keep_pictures(album: &Album, crawl: &mut Crawl, picture: Rule) -> Result {
    ///     crawl.follow_links(&album.pictures, Follow::by(picture).keep_body())
    /// }
    /// ```
    #[must_use]
    pub fn keep_body(mut self) -> Self {
        kept::add(&mut self.hints);
        self
    }

    /// Adds a hint for abilities of later crawlers.
    #[must_use]
    pub fn hint(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.hints.push((key.into(), value.into()));
        self
    }
}

impl From<Rule> for Follow {
    fn from(rule: Rule) -> Self {
        Self::by(rule)
    }
}

/// Links that [`Crawl::follow_links`](crate::Crawl::follow_links) follows: the [`Links`] of a field, and the
/// [`PageLinks`] of a page.
///
/// ```
/// use crawler_plugin_sdk::{FollowLinks, Rule, prelude::*};
///
/// fn follow_each(all: &[&dyn FollowLinks], crawl: &mut Crawl, page: Rule) -> Result {
///     all.iter().try_for_each(|links| crawl.follow_links(*links, page))
/// }
/// ```
pub trait FollowLinks: sealed::Sealed {
    #[doc(hidden)]
    fn follow_by(&self, crawl: &mut Crawl, follow: Follow) -> Result;
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for crate::Links {}
    impl Sealed for crate::PageLinks<'_> {}
}

impl FollowLinks for Links {
    fn follow_by(&self, crawl: &mut Crawl, follow: Follow) -> Result {
        let chosen = self.chosen.as_deref();
        if chosen.is_some_and(<[u32]>::is_empty) {
            return Ok(());
        }
        let (outlet, reading) = (&mut crawl.outlet, &self.reading);
        outlet.follow_captures(reading.plan, reading, self.field, chosen, follow)
    }
}

impl FollowLinks for PageLinks<'_> {
    fn follow_by(&self, crawl: &mut Crawl, follow: Follow) -> Result {
        let chosen = self.chosen()?;
        if chosen.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        let outlet = &mut crawl.outlet;
        outlet.follow_page_links(self, chosen.as_deref(), follow)
    }
}
