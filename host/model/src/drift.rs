//! Drift of items: pages whose items no longer look like those of the last good run.
//!
//! Pure rules:
//!
//! ```text
//! sample     features of one item: type shape, length, number and hash of each field
//! histogram  counts in buckets of powers of two; the distance between two of them
//! shape      running counts of samples: what a field looks like
//! profile    shapes by kind and host, and how much they differ from page to page within a run
//! verdict    the field of a window of pages that departs most from a profile, if one does
//! watch      pages that wait for the verdict on their window
//! hold       items that are held, and decisions about them
//! ```
//!
//! # Reasoning
//!
//! A page is the unit of chance: the items of one page resemble each other. One item of each kind is looked at on each page,
//! and a hash of the page chooses it. Rules that count items would take one odd page for many odd items.
//!
//! A field departs if three things come together. The difference is larger than [`Sensitivity::min_distance`]. It is larger
//! than any difference within the good runs, of [`BLOCK`] pages from the run up to them, or of the first from the whole
//! run: sites have parts that differ, and a crawl visits one part after the other. And it is no chance: the number of pages
//! makes it as improbable as one in 100 million.
//!
//! The oldest pages of a window pass, [`STEP`] of [`WINDOW`], if the window does not depart. So a change that begins with
//! one of them has at least `WINDOW - STEP` pages in the window that is judged: bad items are most of it when their first
//! page could pass.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod histogram;
mod hold;
mod profile;
mod sample;
mod shape;
#[cfg(test)]
mod tests;
mod verdict;
mod watch;

pub use hold::{Action, Decision, Hold};
pub use profile::{GroupName, Profile};
pub use sample::{Sample, sampled};
pub use verdict::{Departs, Departure};
pub use watch::{Verdict, Watch};

/// Number of pages that are judged together.
pub const WINDOW: usize = 40;
/// Number of the oldest pages of a window that pass if it does not depart.
pub const STEP: usize = 10;
/// Number of pages of a block, by whose distance from the run the unevenness of a site is known.
pub const BLOCK: u64 = 20;
/// Number of pages below which a profile is too small to judge by.
pub const MIN_PAGES: u64 = 20;
/// Smallest number of pages that are judged, at the end of a run.
pub const MIN_WINDOW: usize = 5;
/// Longest time for which a page waits until its window is full.
pub const MAX_WAIT: Duration = Duration::from_secs(300);
/// Largest number of kinds in a profile. Items of further kinds are not judged.
pub const MAX_KINDS: usize = 16;
/// Largest number of hosts of a kind in a stored profile. The rest are one group together.
pub const MAX_HOSTS: usize = 16;
/// Largest number of kinds and hosts in a profile of a run under way.
pub const MAX_GROUPS: usize = 64;
/// Largest number of fields of a kind. Further ones are not judged.
pub const MAX_FIELDS: usize = 64;
/// Largest number of bytes of the name of a field, with those of the objects around it. Longer ones are not judged.
pub const MAX_FIELD_NAME: usize = 128;

/// Largest number of bytes of a stored profile, without a comma between groups.
pub const MAX_BYTES: usize = 1 << 20;

/// Difference from which on items are held: setting `drift`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sensitivity {
    /// Items are neither judged nor learned from, and none are held.
    #[default]
    Off,
    /// A field departs if at least 60 % of its values are different.
    Loose,
    /// A field departs if at least 40 % of its values are different.
    Normal,
    /// A field departs if at least 25 % of its values are different.
    Tight,
}

impl Sensitivity {
    /// All cases, in the order of the book.
    pub const ALL: [Self; 4] = [Self::Off, Self::Loose, Self::Normal, Self::Tight];

    /// Returns the word that every interface uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Loose => "loose",
            Self::Normal => "normal",
            Self::Tight => "tight",
        }
    }

    /// Returns the share of a field's values that have to be different, from 0 to 1, or `None` if nothing is judged.
    pub fn min_distance(self) -> Option<f64> {
        match self {
            Self::Off => None,
            Self::Loose => Some(0.6),
            Self::Normal => Some(0.4),
            Self::Tight => Some(0.25),
        }
    }
}

impl std::str::FromStr for Sensitivity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|case| case.as_str() == text);
        found.ok_or_else(|| format!("takes off, loose, normal or tight, not {text:?}"))
    }
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
