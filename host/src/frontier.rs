//! The frontier: all URLs of one shard with their state, its seen-set, host clocks and outbox.
//!
//! The contract, whatever keeps it:
//!
//! - a page is *taken* in memory only; it stays due until its batch is committed, so a crash costs
//!   at most fetching it again;
//! - what a page leads to is one atomic [`Commit`]: its end, the new URLs, the items, the host's clock;
//! - a URL is stored once per run, by its fingerprint, unless it asks to be reloaded; a reload of one
//!   that still waits is passed over, because it will be fetched anyway;
//! - items wait in the outbox until the sink says they are durable there; above its bound
//!   [`Frontier::take`] gives nothing;
//! - nothing left to do and nothing in flight means [`Take::Empty`], and the run is over.
//!
//! Present backend: [`memory`], bounded, gone with the process.

use async_trait::async_trait;

use crate::model::crawl::{Counts, Done, Fingerprint, ItemRecord, Request, UnixMillis};

pub mod memory;
#[cfg(test)]
pub(crate) mod suite;
mod workbench;

/// A request on its way into the frontier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// What is to be fetched.
    pub request: Request,
    /// Links between the root requests (0) and this one.
    pub depth: u32,
}

/// A URL that was taken: it is in flight until it is committed or given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What is to be fetched.
    pub request: Request,
    /// Of the request that first stored the URL.
    pub depth: u32,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Grows each time a URL is stored anew by a reload: part of item keys.
    pub visit: u32,
    /// What the URL is known by.
    pub fingerprint: Fingerprint,
    /// The backend's own name for the entry.
    pub entry: u64,
}

/// What the frontier has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// Fetch this.
    Ready(Box<Claim>),
    /// Nothing is ready before this moment; a commit may make something ready earlier.
    WaitUntil(UnixMillis),
    /// Nothing is ready until a page in flight is committed, the outbox has room, or the root
    /// requests are stored.
    Blocked,
    /// Nothing is left and nothing in flight.
    Empty,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// For good.
    Done(Done),
    /// It is tried again, not before this moment.
    Retry {
        /// Not before.
        at: UnixMillis,
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
    /// Bytes of the body.
    pub bytes: u64,
    /// Links to follow; those already known are passed over.
    pub requests: Vec<NewRequest>,
    /// Links not taken, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// Items for the outbox.
    pub items: Vec<ItemRecord>,
    /// No request to this host before this moment.
    pub host_ready_at: UnixMillis,
    /// Where redirects within the host led to: known from here on, like a URL that was stored.
    pub final_url: Option<Fingerprint>,
}

/// What a batch came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Committed {
    /// URLs that were not known before.
    pub n_new: u64,
    /// URLs not stored for want of room: limit `frontier-urls`.
    pub n_no_room: u64,
}

/// Items in the order they were committed; the first has this number.
#[derive(Debug, Clone, Default)]
pub struct OutboxBatch {
    /// The number after the last item: what [`Frontier::clear_outbox`] takes.
    pub end: u64,
    /// At most as many as asked for.
    pub items: Vec<ItemRecord>,
}

/// One shard's frontier. Shared by the tasks of one crawl; every call is safe to make at any time.
#[async_trait]
pub trait Frontier: Send + Sync + 'static {
    /// Stores the root requests together with the mark that `root` ran. Called once per run; a
    /// second call changes nothing.
    async fn seed(&self, requests: Vec<NewRequest>) -> Result<Committed, FrontierError>;

    /// `root` ran in this run.
    fn is_seeded(&self) -> bool;

    /// The next URL, by host clock, priority and age. At most `per_host` URLs of one host are in
    /// flight. Touches memory only.
    fn take(&self, now: UnixMillis, per_host: u32) -> Take;

    /// One atomic batch; durable, as far as the backend is, when answered.
    async fn commit(&self, commit: Commit) -> Result<Committed, FrontierError>;

    /// Puts a claim back as it was. One that is not in flight is ignored, with a warning.
    fn give_back(&self, claim: Box<Claim>);

    /// The oldest items of the outbox, at most `max`; they stay there.
    async fn outbox(&self, max: usize) -> Result<OutboxBatch, FrontierError>;

    /// Forgets all items before `end`: the sink has them.
    async fn clear_outbox(&self, end: u64) -> Result<(), FrontierError>;

    /// Whether this run has stored it, or was led to it.
    fn knows(&self, fingerprint: Fingerprint) -> bool;

    /// Totals of this run.
    fn counts(&self) -> Counts;

    /// Pages taken and not yet committed or given back.
    fn in_flight(&self) -> usize;
}

/// What can go wrong with a frontier.
#[derive(Debug, thiserror::Error)]
pub enum FrontierError {
    /// The claim is not in flight: it was committed or given back already.
    #[error("{url} is not in flight")]
    NotInFlight {
        /// Of the claim.
        url: String,
    },
}
