//! Items that are held until somebody decides what becomes of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Departure, GroupName};
use crate::crawl::UnixMillis;
use crate::id::{Digest, Run};

/// Items of one kind and host that a run holds, in one shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Number of the hold in its shard, from 1. It is never given again.
    pub number: u64,
    /// Run that the items are of.
    pub run: Run,
    /// Kind and host of the items.
    pub group: GroupName,
    /// Reason why they are held.
    pub departure: Departure,
    /// Plugin that has made them.
    pub plugin: Digest,
    /// Time at which the first of them was held.
    pub since: UnixMillis,
    /// Number of the items.
    pub n_items: u64,
    /// Their size in bytes.
    pub n_bytes: u64,
    /// Number after that of the last item. A decision is about the items before it: what comes later is held on.
    pub end: u64,
    /// True if somebody has decided about a part of the items. The rest stays, and items that come are judged anew.
    #[serde(default)]
    pub is_decided: bool,
}

/// Fate of held items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// They go to the sinks, and their kind and host are not judged until a run has learned them anew.
    Release,
    /// They are removed.
    Drop,
}

impl Action {
    /// Returns the word that every interface uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Drop => "drop",
        }
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "release" => Ok(Self::Release),
            "drop" => Ok(Self::Drop),
            other => Err(format!("takes release or drop, not {other:?}")),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Decision about held items of one shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Fate of the items.
    pub action: Action,
    /// Holds that are meant, by number, each with the number before which its items are. Items that were held since are
    /// not meant.
    pub holds: BTreeMap<u64, u64>,
}

impl Decision {
    /// Decides about all items that these holds have.
    pub fn of<'a>(action: Action, holds: impl IntoIterator<Item = &'a Hold>) -> Self {
        let holds = holds.into_iter().map(|hold| (hold.number, hold.end));
        Self {
            action,
            holds: holds.collect(),
        }
    }
}
