//! Result of one attempt at a page.

use super::claim::{Claim, NewRequest};
use crawler_model::crawl::{Done, ItemRecord, Request, UnixMillis};
use crawler_model::frontier::{DelaySource, KeptCookies, Validators};
use crawler_model::id::Shard;
use crawler_model::scope::GrowthBounds;
use crawler_model::statistics::{Attempt, End, Observed, Statistics};

/// End of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The page is done for good.
    Done(Done),
    /// The page is tried again, not before this moment.
    Retry {
        /// Time before which it is not tried.
        at: UnixMillis,
        /// Reason that would be recorded if the page were given up.
        reason: String,
    },
    /// The page is given up.
    Dead {
        /// Short word that counters are kept by: `timeout`, `status-500`, `out-of-fuel`, …
        reason: String,
    },
}

/// Result of one attempt at a page.
#[derive(Debug)]
pub struct PageResult {
    /// End of the attempt.
    pub ended: Ended,
    /// Details beyond the reason, for the record of a page that is given up; mostly empty.
    pub detail: String,
    /// Size of the body in bytes.
    pub bytes: u64,
    /// Number of bytes of the body that were kept as a file: all or 0.
    pub kept_bytes: u64,
    /// Links to follow; those already known are skipped.
    pub requests: Vec<NewRequest>,
    /// Links whose hosts belong to other shards, never to this one. Of the links that this run has had
    /// before, only reloads are sent again.
    pub for_peers: Vec<(Shard, NewRequest)>,
    /// Numbers of links that were refused, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Items for the outbox.
    pub items: Vec<ItemRecord>,
    /// Items that wait for a verdict before they go there.
    pub watched: Vec<ItemRecord>,
    /// Time before which the host gets no further request; 0 if nothing was asked of it, or this is unknown.
    pub host_ready_at: UnixMillis,
    /// Origin of the delay until `host_ready_at`.
    pub delay_by: DelaySource,
    /// True if the host has answered in any way: its failures so far do not count any more.
    pub host_answered: bool,
    /// Target of redirects within the host, which is known from here on like a URL that was stored.
    pub final_url: Option<Request>,
    /// Validators by which the next run can tell if the page has changed.
    pub validators: Option<Validators>,
    /// Facts for the statistics of the run, with those about the items.
    pub observed: Observed,
}

impl PageResult {
    /// Creates the result of an attempt that brought neither items nor links.
    pub fn new(ended: Ended, host_ready_at: UnixMillis) -> Self {
        Self {
            ended,
            detail: String::new(),
            bytes: 0,
            kept_bytes: 0,
            requests: Vec::new(),
            for_peers: Vec::new(),
            refused: Vec::new(),
            items: Vec::new(),
            watched: Vec::new(),
            host_ready_at,
            delay_by: DelaySource::default(),
            host_answered: false,
            final_url: None,
            validators: None,
            observed: Observed::default(),
        }
    }
}

/// End of a page's attempt, with everything that is stored with it: one atomic batch.
#[derive(Debug)]
pub struct Commit {
    /// Claim of the page.
    pub claim: Box<Claim>,
    /// Result of the attempt.
    pub result: PageResult,
    /// Limits on what the links may add to this run; a link beyond them is not stored.
    pub growth: GrowthBounds,
    /// Time when the host had answered, or failed to, or it was known that it is not asked; 0 if unknown. The
    /// difference to `host_ready_at` is the delay that the host gets after the frontier is reopened, however
    /// late this commit comes.
    pub answered_at: UnixMillis,
    /// Cookies of the crawl, if they are to be stored as they are now. Pages end in any order: a record older
    /// than the stored one is ignored.
    pub cookies: Option<KeptCookies>,
}

impl Commit {
    /// Adds the attempt to the statistics of the run.
    pub(crate) fn note_in(&self, statistics: &mut Statistics) {
        let end = match &self.result.ended {
            Ended::Done(done) => End::Done(*done),
            Ended::Dead { reason } => End::Dead(reason),
            Ended::Retry { .. } => End::Retry,
        };
        statistics.note(Attempt {
            url: &self.claim.request.url,
            root: (self.claim.depth == 0).then_some(self.claim.fingerprint),
            end,
            observed: &self.result.observed,
        });
    }
}

/// Result of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Committed {
    /// Number of URLs that were not known before.
    pub n_new: u64,
    /// Number of links that will be sent to other shards.
    pub n_sent: u64,
    /// Number of URLs not stored for lack of room: limit `frontier-urls`.
    pub n_over_capacity: u64,
    /// Number of URLs not stored because their pattern has as many as it may: setting `max-pattern-urls`.
    /// They are counted among the refused links as [`PATTERN_URLS`](crawler_model::scope::PATTERN_URLS).
    pub n_over_pattern: u64,
    /// Number of URLs not stored because there are as many hosts as there may be: setting `max-hosts`. They
    /// are counted among the refused links as [`HOSTS`](crawler_model::scope::HOSTS).
    pub n_over_hosts: u64,
}
