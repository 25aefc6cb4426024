//! Settings that take one of a few words.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Treatment of a page that has not changed since the last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unchanged {
    /// The page is fetched and handed to its rule like any other: every run gives all items.
    #[default]
    Parse,
    /// The page is requested on the condition that it has changed. If not, it ends as `not-modified`,
    /// without items and links. A new run then begins with all URLs that the last one knew. A run with
    /// another number of shards begins with its root requests all the same, and parses every page.
    Skip,
}

/// Treatment of the robots.txt of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Robots {
    /// Forbidden URLs are not fetched, and `crawl-delay` is kept.
    #[default]
    Obey,
    /// The robots.txt is not even requested. The log says so.
    Ignore,
}

impl Unchanged {
    /// Returns the word that every interface uses.
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
    /// Returns the word that every interface uses.
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

/// Treatment of cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cookies {
    /// Cookies that a site sets are sent back to it, also after a restart and in later runs.
    #[default]
    Keep,
    /// Cookies are neither sent nor stored.
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

/// Form in which the pages of a crawl are archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveForm {
    /// Pages are not archived.
    #[default]
    Off,
    /// Requests and answers are written to WARC files.
    Warc,
}

impl ArchiveForm {
    /// Returns the word that every interface uses.
    pub fn as_str(self) -> &'static str {
        match self {
            ArchiveForm::Off => "off",
            ArchiveForm::Warc => "warc",
        }
    }
}

impl FromStr for ArchiveForm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(ArchiveForm::Off),
            "warc" => Ok(ArchiveForm::Warc),
            other => Err(format!("takes off or warc, not {other:?}")),
        }
    }
}

impl fmt::Display for ArchiveForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
