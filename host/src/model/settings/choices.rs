//! Settings that take one of a few words.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What happens to a page that is as the last run saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unchanged {
    /// It is fetched and handed to its rule like any other: every run gives all items.
    #[default]
    Parse,
    /// It is asked for with the condition that it has changed, and ends as `not-modified`, without
    /// items and without links. A new run then begins with all URLs that the last one knew; one with
    /// another number of shards begins with its root requests all the same, and parses every page.
    Skip,
}

/// Whether the robots.txt of a site counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Robots {
    /// What it forbids is not fetched, and its `crawl-delay` is kept.
    #[default]
    Obey,
    /// It is not even asked for. The log tells.
    Ignore,
}

impl Unchanged {
    /// As every door names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Unchanged::Parse => "parse",
            Unchanged::Skip => "skip",
        }
    }
}

impl FromStr for Unchanged {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "parse" => Ok(Unchanged::Parse),
            "skip" => Ok(Unchanged::Skip),
            other => Err(format!("takes parse or skip, not {other:?}")),
        }
    }
}

impl fmt::Display for Unchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Robots {
    /// As every door names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Robots::Obey => "obey",
            Robots::Ignore => "ignore",
        }
    }
}

impl FromStr for Robots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "obey" => Ok(Robots::Obey),
            "ignore" => Ok(Robots::Ignore),
            other => Err(format!("takes obey or ignore, not {other:?}")),
        }
    }
}

impl fmt::Display for Robots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether cookies are sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cookies {
    /// What a site sets is sent back to it, also after a restart and in later runs.
    #[default]
    Keep,
    /// None are sent, nor taken.
    Ignore,
}

impl FromStr for Cookies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "keep" => Ok(Cookies::Keep),
            "ignore" => Ok(Cookies::Ignore),
            other => Err(format!("takes keep or ignore, not {other:?}")),
        }
    }
}

impl fmt::Display for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cookies::Keep => "keep",
            Cookies::Ignore => "ignore",
        })
    }
}
