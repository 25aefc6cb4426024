//! The frontier: all URLs of one shard with their state, its seen-set, host clocks and outbox.
//!
//! The contract, whatever keeps it:
//!
//! - a page is *taken* in memory only; it stays due until its batch is committed, so a crash costs
//!   at most fetching it again;
//! - what a page leads to is one atomic [`Commit`]: its end, the new URLs, the items, the host's clock.
//!   Batches become durable in the order of their commits, a moment after [`Frontier::commit`] has
//!   answered; at most so many pages wait for that;
//! - a URL is stored once per run, by its fingerprint, unless it asks to be reloaded; a reload of one
//!   that still waits is passed over, because it will be fetched anyway;
//! - the outbox gives an item only once it is durable, and keeps it until the sink says that it is
//!   durable there; above its bound [`Frontier::take`] gives nothing;
//! - a link for another shard of the resource is kept, as of its page's batch, until that shard has
//!   stored it. It has a number there, without gaps from 1 in each run, by which that shard passes over
//!   what it has stored already: so it is stored once, however often it is sent;
//! - nothing left to do or to send, nothing in flight and nothing that is not durable means
//!   [`Take::Empty`]: the run is over, unless another shard has links for this one.
//!
//! Backends: [`durable`], on an object store, which survives any crash; [`memory`], bounded, gone with
//! the process.

use async_trait::async_trait;
use object_store::path::Path as ObjectPath;
use url::Url;

use crate::model::crawl::{Counts, Fingerprint, Request, UnixMillis};
use crate::model::frontier::{DelayBy, KeptCookies, SinkMark, Validators};
use crate::model::id::{ResourceId, Shard};
use crate::model::resource::{FRONTIER_MISSING, LinkTotals, ShardId};

mod commit;
pub mod durable;
mod keys;
pub mod memory;
mod opening;
mod out;
pub mod reader;
mod records;
mod seen;
mod steady;
#[cfg(test)]
pub(crate) mod suite;
#[cfg(test)]
pub(crate) mod twin;
mod workbench;

pub use commit::{Commit, Committed, Ended};
pub use opening::{OpenAs, OpenFrontier, OpenFrontiers};
pub use out::{LinkBatch, LinkBounds, LinkPolicy, OutboxBatch};
pub use workbench::{HostFailure, HostStanding, TakeFrom};

/// What a URL takes in memory while it waits, roughly.
const URL_BYTES: usize = 512;

/// Where a shard's frontier lies in the data root.
pub fn path_of(shard: ShardId) -> ObjectPath {
    let folder = folder_of(shard.resource);
    folder
        .parts()
        .chain([shard.shard.to_string().into()])
        .collect()
}

/// Folder of the frontiers of all shards of a resource.
fn folder_of(resource: ResourceId) -> ObjectPath {
    ObjectPath::from_iter(["frontiers".to_owned(), resource.to_string()])
}

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
    /// The process may have ended because of it: nothing else is in flight beside it.
    pub alone: bool,
    /// Of the page as an earlier run saw it.
    pub validators: Option<Box<Validators>>,
    /// Standing of its host.
    pub host: HostStanding,
}

/// News of its host that a claim brings when it is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostNews {
    /// Nothing: it may or may not have been asked.
    None,
    /// Nothing was asked of it, and it is not asked before this moment.
    NotBefore(UnixMillis),
    /// Everything is known that comes before its pages.
    Ready {
        /// It is not asked before this moment; 0 where nothing was asked of it.
        not_before: UnixMillis,
        /// Origin of the delay until then.
        delay_by: DelayBy,
        /// True if it has answered.
        has_answered: bool,
    },
    /// Something that comes before its pages is not known any more.
    Unready,
}

/// What the frontier has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// Fetch this.
    Ready(Box<Claim>),
    /// Nothing is ready before this moment; a commit may make something ready earlier.
    WaitUntil(UnixMillis),
    /// Nothing is ready until a page in flight is committed, the outbox has room, other shards have
    /// got their links, or the root requests are stored.
    Blocked,
    /// Nothing is left and nothing in flight. Links of other shards may still come.
    Empty,
}

/// One shard's frontier. Shared by the tasks of one crawl; every call is safe to make at any time.
#[async_trait]
pub trait Frontier: Send + Sync + 'static {
    /// Stores the root requests together with the mark that `root` ran. Called once per run; a
    /// second call changes nothing.
    async fn seed(&self, requests: Vec<NewRequest>) -> Result<Committed, FrontierError> {
        let roots = requests.iter().map(|new| new.request.url.clone()).collect();
        self.seed_part(roots, requests).await
    }

    /// [`seed`](Self::seed) of a shard: of what `root` gave, these requests are its own.
    async fn seed_part(
        &self,
        roots: Vec<Url>,
        requests: Vec<NewRequest>,
    ) -> Result<Committed, FrontierError>;

    /// `root` ran in this run, and gave these requests to all shards together; none before.
    fn roots(&self) -> Option<Vec<Url>>;

    /// Number of times that the process has ended while this run's `root` was being called and
    /// nothing else was to blame. 0 where nothing survives the process.
    fn root_ends(&self) -> u32;

    /// Waits, where `root` is suspected of ending the process, until nothing else is that is tried alone.
    /// Cancel-safe, unlike what follows it.
    async fn root_turn(&self);

    /// Notes durably that `root` is about to be called, so that one that ends the process can be told
    /// from one that fails. Cleared by [`leave_root`](Self::leave_root), and by closing.
    async fn enter_root(&self) -> Result<(), FrontierError>;

    /// Notes durably that `root` has come back, whatever it said.
    async fn leave_root(&self) -> Result<(), FrontierError>;

    /// The next URL, by host clock, priority and age, of the hosts that are wanted; those that are ready
    /// come first. At most so many URLs of one host are in flight. Touches memory only.
    fn take_from(&self, now: UnixMillis, may: TakeFrom) -> Result<Take, FrontierError>;

    /// [`take_from`](Self::take_from) all hosts alike.
    fn take(&self, now: UnixMillis, per_host: u32) -> Result<Take, FrontierError> {
        self.take_from(now, TakeFrom::all(per_host.max(1)))
    }

    /// Number of hosts that are ready and have URLs that wait in memory.
    fn n_ready_hosts(&self) -> usize;

    /// Notes that this page is about to enter its rule, so that one that ends the process can be told
    /// from those that do not. Cleared by the page's commit, and by giving it back.
    async fn suspect(&self, claim: &Claim) -> Result<(), FrontierError>;

    /// The cookies of the crawl as they were kept last, in whatever run.
    fn cookies(&self) -> Option<KeptCookies>;

    /// One atomic batch. What it leads to can be taken when this returns.
    async fn commit(&self, commit: Commit) -> Result<Committed, FrontierError>;

    /// Puts a claim back as it was, with what it has shown of its host. One that is not in flight is
    /// ignored, with a warning.
    fn give_back(&self, claim: Box<Claim>, news: HostNews);

    /// Puts a claim back as it was, and its host off with all URLs: it could not be reached. That is
    /// counted once for claims that were taken before it was known, and ends with a page or other answer
    /// of the host. One that is not in flight is ignored, with a warning.
    async fn put_off(&self, claim: Box<Claim>, failure: HostFailure) -> Result<(), FrontierError>;

    /// The oldest items of the outbox that are durable, at most `max`; they stay there.
    async fn outbox(&self, max: usize) -> Result<OutboxBatch, FrontierError>;

    /// Forgets all items before `end`, because the sink has them, and keeps in the same batch what
    /// the sink says of its file.
    async fn clear_outbox(&self, end: u64, mark: Option<SinkMark>) -> Result<(), FrontierError>;

    /// Other shards for which there are links that are durable.
    fn peers(&self) -> Vec<Shard>;

    /// The oldest links for another shard that are durable; they stay there.
    async fn links_for(&self, peer: Shard, bounds: LinkBounds) -> Result<LinkBatch, FrontierError>;

    /// Forgets all links for another shard before `end`, because they are durable there.
    async fn delivered(&self, peer: Shard, end: u64) -> Result<(), FrontierError>;

    /// Stores links of another shard in one batch as those of a page are stored, in the depths that
    /// they have, and passes over those that were stored already and those that `policy` leaves out. Answers the number of the last that
    /// is stored, which may be one before the last of these where another call brings links of the same
    /// shard at the same time: durable once [`settle`](Self::settle) has answered after this.
    ///
    /// Not cancel-safe: a call that is cut off may end the use of the frontier.
    async fn apply(
        &self,
        from: Shard,
        batch: LinkBatch,
        policy: LinkPolicy<'_>,
    ) -> Result<u64, FrontierError>;

    /// Links to and from other shards in this run.
    fn link_totals(&self) -> LinkTotals;

    /// Whether this run has stored the request, was led to it, or has sent it to another shard.
    async fn knows(&self, request: &Request) -> Result<bool, FrontierError>;

    /// Bytes on disk, as of a look some seconds ago; 0 before the first, and for what is in memory alone.
    fn disk_bytes(&self) -> u64;

    /// Bytes of items that wait for their sink.
    fn undelivered_bytes(&self) -> u64;

    /// Totals of this run.
    fn counts(&self) -> Counts;

    /// Pages taken and not yet committed or given back.
    fn in_flight(&self) -> usize;

    /// Waits until [`Frontier::take`] may answer differently though no page has changed anything: URLs
    /// were read in, a batch has become durable, or links of other shards have come. For one task at a
    /// time.
    async fn take_changed(&self);

    /// Waits until [`Frontier::outbox`] may have more, because a batch has become durable. For one
    /// task at a time.
    async fn outbox_changed(&self);

    /// Waits until [`Frontier::links_for`] may have more, because a batch has become durable. For one
    /// task at a time.
    async fn links_changed(&self);

    /// Waits until everything that was committed is durable.
    async fn settle(&self) -> Result<(), FrontierError>;

    /// Looks from the head of every queue whether really nothing is left; an error tells what is.
    async fn check_empty(&self) -> Result<(), FrontierError>;

    /// Bytes of memory that it takes, roughly: enough to tell a frontier that takes much from others.
    fn held_bytes(&self) -> u64;

    /// Why nothing becomes durable at present; none while it does.
    fn stalled(&self) -> Option<String>;

    /// Ends the use of this frontier. What was committed is durable when this answers; what is in
    /// flight stays due.
    async fn close(&self) -> Result<(), FrontierError>;
}

/// What can go wrong with a frontier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontierError {
    /// The claim is not in flight: it was committed or given back already.
    #[error("{url} is not in flight")]
    NotInFlight {
        /// Of the claim.
        url: String,
    },
    /// Links of another shard were left out.
    #[error("links from shard {from} go on at {first}, and {expected} is next")]
    LinkGap {
        /// Whose links.
        from: Shard,
        /// The first that was given.
        first: u64,
        /// The one after the last that is stored.
        expected: u64,
    },
    /// `root` has not run here yet: its requests come before links of other shards.
    #[error("the frontier {shard} has no root requests yet")]
    Unseeded {
        /// Whose.
        shard: ShardId,
    },
    /// A frontier that was there is gone.
    #[error(
        "the frontier {shard} was there and is gone from the data root; restore it from a copy, or crawl anew with `crawler resource restart`"
    )]
    Missing {
        /// Whose.
        shard: ShardId,
    },
    /// It is not what was written.
    #[error(
        "the frontier {shard} is damaged: {why}; restore it from a copy, or delete the resource and add it again"
    )]
    Damaged {
        /// Whose.
        shard: ShardId,
        /// What was found.
        why: String,
    },
    /// It was written by another version.
    #[error(
        "the frontier {shard} has format {found} and this version knows {known}; use the version that wrote it, or delete the resource and add it again"
    )]
    Format {
        /// Whose.
        shard: ShardId,
        /// The format it has.
        found: u32,
        /// The one known here.
        known: u32,
    },
    /// It belongs to somebody else.
    #[error(
        "the frontier {shard} in the data root belongs to {found}, not to {expected}; was the folder copied?"
    )]
    Foreign {
        /// Whose it should be.
        shard: ShardId,
        /// Whose it is.
        found: String,
        /// Who asked.
        expected: String,
    },
    /// Another process has opened it; nothing more can be written here.
    #[error("another process has opened the frontier {shard}")]
    Fenced {
        /// Whose.
        shard: ShardId,
    },
    /// The object store does not answer, or refuses.
    #[error("cannot {doing} the frontier {shard}: {why}")]
    Unavailable {
        /// A verb: "open", "write", "read".
        doing: &'static str,
        /// Whose.
        shard: ShardId,
        /// What was seen.
        why: String,
    },
    /// It was closed here.
    #[error("the frontier {shard} is closed")]
    Closed {
        /// Whose.
        shard: ShardId,
    },
}

impl FrontierError {
    /// The name of the state that a resource is in because of this.
    pub fn condition(&self) -> &'static str {
        match self {
            FrontierError::Missing { .. } => FRONTIER_MISSING,
            FrontierError::Damaged { .. } => "FrontierDamaged",
            FrontierError::Format { .. } => "FrontierFormat",
            FrontierError::Foreign { .. } => "FrontierForeign",
            FrontierError::Fenced { .. } => "FrontierFenced",
            FrontierError::Unavailable { .. } => "StorageUnavailable",
            FrontierError::NotInFlight { .. }
            | FrontierError::LinkGap { .. }
            | FrontierError::Unseeded { .. }
            | FrontierError::Closed { .. } => "FrontierClosed",
        }
    }
}
