//! How links of a page are followed.

use crate::Rule;

/// What goes along with links that are followed. A [`Rule`] alone is one.
///
/// ```
/// use crawler_plugin_sdk::{Follow, Links, Rule, prelude::*};
///
/// fn follow_next(next: &Links, crawl: &mut Crawl, list: Rule) -> Result {
///     crawl.follow_links(next, Follow::by(list).priority(10).state("poetry"))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Follow {
    /// The rule that parses the answers.
    pub rule: Rule,
    /// Higher comes first among the ready pages of one host; 0 unless said otherwise.
    pub priority: i32,
    /// Handed back with each page, see [`Page::state`](crate::Page::state).
    pub state: Vec<u8>,
    /// Fetch even what this run has already seen.
    pub reload: bool,
    /// For abilities of later crawlers; keys that one does not know are ignored.
    pub hints: Vec<(String, String)>,
}

impl Follow {
    /// For this rule, and nothing else.
    pub fn by(rule: Rule) -> Self {
        Self {
            rule,
            priority: 0,
            state: Vec::new(),
            reload: false,
            hints: Vec::new(),
        }
    }

    /// Takes them before those of a lower priority on the same host.
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

    /// Fetches them even if this run has already seen them.
    #[must_use]
    pub fn reload(mut self) -> Self {
        self.reload = true;
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
