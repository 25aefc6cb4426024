//! What one attempt at a page leads to.

use super::{Claim, NewRequest};
use crate::model::crawl::{Done, ItemRecord, Request, UnixMillis};
use crate::model::frontier::{DelayBy, KeptCookies, Validators};
use crate::model::id::Shard;
use crate::model::scope::GrowthBounds;

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// For good.
    Done(Done),
    /// It is tried again, not before this moment.
    Retry {
        /// Not before.
        at: UnixMillis,
        /// Why: as it would be given up for.
        reason: String,
    },
    /// It is given up, for this reason: a short word that counts are kept by.
    Dead {
        /// `timeout`, `status-500`, `out-of-fuel`, …
        reason: String,
    },
}

/// All that one attempt leads to: one atomic batch.
#[derive(Debug)]
pub struct Commit {
    /// What was taken.
    pub claim: Box<Claim>,
    /// What became of it.
    pub ended: Ended,
    /// What the record of a page that is given up tells beyond its reason; mostly nothing.
    pub detail: String,
    /// Bytes of the body.
    pub bytes: u64,
    /// Links to follow; those already known are passed over.
    pub requests: Vec<NewRequest>,
    /// Links whose hosts belong to other shards, which are never this one. Of those that this run has
    /// had before, only reloads are sent again.
    pub for_others: Vec<(Shard, NewRequest)>,
    /// Bounds on what the links may add to this run; a link beyond them is not stored.
    pub growth: GrowthBounds,
    /// Links not taken, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Items for the outbox.
    pub items: Vec<ItemRecord>,
    /// No request to this host before this moment; 0 where nothing was asked of it, or nobody knows.
    pub host_ready_at: UnixMillis,
    /// Origin of the delay until then.
    pub delay_by: DelayBy,
    /// True if the host has answered, with whatever: its failures so far do not count any more.
    pub host_answered: bool,
    /// When the host had answered, or failed to, or it was known that it is not asked; 0 where nobody
    /// knows. So much earlier than `host_ready_at` is what the host is given after an opening, however
    /// late this comes.
    pub answered_at: UnixMillis,
    /// Where redirects within the host led to: known from here on, like a URL that was stored.
    pub final_url: Option<Request>,
    /// What the next run can tell by whether the page has changed.
    pub validators: Option<Validators>,
    /// The cookies of the crawl, where they are to be kept as they are now. Pages end in any order: those
    /// that are older than what is kept are passed over.
    pub cookies: Option<KeptCookies>,
}

/// What a batch came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Committed {
    /// URLs that were not known before.
    pub n_new: u64,
    /// Links that will be sent to other shards.
    pub n_sent: u64,
    /// URLs not stored for want of room: limit `frontier-urls`.
    pub n_no_room: u64,
    /// URLs not stored because their pattern has as many as it may: setting `max-pattern-urls`.
    /// Counted among the refused links as [`PATTERN_URLS`](crate::model::scope::PATTERN_URLS).
    pub n_over_pattern: u64,
    /// URLs not stored because there are as many hosts as there may be: setting `max-hosts`.
    /// Counted among the refused links as [`HOSTS`](crate::model::scope::HOSTS).
    pub n_over_hosts: u64,
}
