//! What is known of URLs: where each stands, what tells whether a page has changed, and what a sink
//! says of the items it has.

use serde::{Deserialize, Serialize};

use super::crawl::{Counts, Done, Request, UnixMillis};
use super::id::Run;

/// Where a URL stands in its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlState {
    /// It waits, or is in flight.
    Due {
        /// Not before.
        at: UnixMillis,
        /// Of the next attempt, from 1.
        attempt: u32,
        /// Why the last attempt failed; empty before the first.
        failure: String,
    },
    /// It came to its end.
    Done(Done),
    /// It was given up.
    Dead {
        /// `timeout`, `status-500`, `poison`, …
        reason: String,
    },
}

impl UrlState {
    /// `due`, `done` or `dead`.
    pub fn as_str(&self) -> &'static str {
        match self {
            UrlState::Due { .. } => "due",
            UrlState::Done(_) => "done",
            UrlState::Dead { .. } => "dead",
        }
    }
}

/// A URL that a frontier has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlEntry {
    /// What is, or was, to be fetched.
    pub request: Request,
    /// Of the request that first stored it.
    pub depth: u32,
    /// The run that this state is of.
    pub run: Run,
    /// Where it stands.
    pub state: UrlState,
    /// When it came to stand there. 0 for one that was never tried.
    pub since: UnixMillis,
}

/// Which URLs are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlFilter {
    /// Those that wait.
    Due,
    /// Those that came to their end.
    Done,
    /// Those given up.
    Dead,
}

/// Totals of a frontier.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontierStats {
    /// The present run.
    pub run: Run,
    /// `root` ran in it.
    pub seeded: bool,
    /// Of the root requests.
    pub root_hosts: Vec<String>,
    /// Hosts with a URL that waits.
    pub n_hosts: u64,
    /// Items that no sink has yet.
    pub n_undelivered: u64,
    /// Dead letters: URLs that `redrive` would try again.
    pub n_dead_letters: u64,
    /// Pages that may have ended the process, and are tried alone.
    pub n_suspects: u64,
    /// How often the process ended without closing the frontier, in a row.
    pub n_unclean_stops: u32,
    /// Totals of the run.
    pub counts: Counts,
}

/// What tells whether a page has changed since it was last fetched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    /// Header `etag`, as received.
    pub etag: Option<String>,
    /// Header `last-modified`, as received.
    pub last_modified: Option<String>,
    /// Of the body.
    pub content: Option<ContentHash>,
}

/// A body, hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(pub [u8; 16]);

/// How much of one file of items counts: the rest of it was never delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkMark {
    /// The file's name in its folder.
    pub file: String,
    /// Its committed bytes.
    pub length: u64,
    /// The runs of the items in it: the first and the last.
    pub runs: (Run, Run),
}
