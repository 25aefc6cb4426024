//! The frontier: all URLs of one shard with their state, its seen-set, host clocks and outbox.
//!
//! The contract of every backend:
//!
//! - A page is *taken* in memory only. It stays due until its batch is committed, so a crash costs at most
//!   fetching it again.
//! - The result of a page is one atomic [`Commit`]: its end, the new URLs, the items, the host's clock.
//!   Batches become durable in the order of their commits, a moment after [`Frontier::commit`] has returned.
//!   The number of pages that wait for that is bounded.
//! - A URL is stored once per run, by its fingerprint, unless it asks to be reloaded. A reload of a URL that
//!   still waits is ignored, because it will be fetched anyway.
//! - The outbox returns an item only once it is durable, and keeps it until every sink says that it is durable
//!   there. While the outbox is above its bound, [`Frontier::take`] returns no page.
//! - A link for another shard of the resource is kept, from the batch of its page on, until that shard has
//!   stored it. Its numbers there have no gaps from 1 in each run, and by them that shard skips what it has
//!   stored already. A link is therefore stored once, however often it is sent.
//! - If items are compared from run to run, the batch of a page has the changes of its items, and what is known of them
//!   from then on. Only a frontier that outlives its process compares items. With a sink beside the one in the data root, its
//!   outbox has the changes too.
//! - Items that are to be judged wait in no outbox, and are in one place at any moment: they wait, are in the outbox, or are
//!   held ([`Quarantine`]).
//! - If nothing is left to do or to send, nothing is in flight and everything is durable, the answer is
//!   [`Take::Empty`]: the run is over, unless another shard has links for this one.
//!
//! Backends: [`durable`], on an object store, which survives any crash, and [`memory`], which is bounded and
//! gone with the process.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use object_store::path::Path as ObjectPath;
use tokio_util::sync::CancellationToken;
use url::Url;

use crawler_model::changes::ChangeTotals;
use crawler_model::crawl::{Counts, Request, UnixMillis};
use crawler_model::frontier::KeptCookies;
use crawler_model::id::ResourceId;
use crawler_model::resource::ShardId;
use crawler_model::robots::KeptRobots;
use crawler_model::statistics::Statistics;
use crawler_model::status::PresentHosts;

mod claim;
mod commit;
pub mod durable;
mod error;
mod exchange;
mod keys;
#[cfg(feature = "testing")]
pub mod known_links;
mod log;
pub mod memory;
mod monotonic_time;
mod opening;
mod outbox;
mod quarantine;
pub mod reader;
mod records;
mod seen;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod suite;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod twin;
mod workbench;

pub use claim::{Claim, NewRequest, Take};
pub use commit::{Commit, Committed, Ended, PageResult};
pub use error::FrontierError;
pub use exchange::{LinkBatch, LinkBounds, LinkExchange, LinkPolicy};
pub use log::LogStore;
pub use opening::{ItemComparison, OpenFrontier, OpenFrontiers, OpenOptions};
pub use outbox::{ItemOutbox, OutboxBatch, Undelivered};
pub use quarantine::{Judgement, KeptBack, Profiles, Quarantine, WaitingPage};
pub use workbench::{HostFailure, HostStanding, HostUpdate, RestingHost, TakeLimits};

/// Approximate size in bytes of a waiting URL in memory.
const URL_BYTES: usize = 512;

/// Returns the path of a shard's frontier in the data root.
pub fn path_of(shard: ShardId) -> ObjectPath {
    let folder = folder_of(shard.resource);
    folder
        .parts()
        .chain([shard.shard.to_string().into()])
        .collect()
}

/// Returns the folder of the frontiers of all shards of a resource.
fn folder_of(resource: ResourceId) -> ObjectPath {
    ObjectPath::from_iter(["frontiers".to_owned(), resource.to_string()])
}

/// Frontier of one shard: its pages, its settings, its log and its end. It is shared by the tasks of one crawl; every
/// call is safe to make at any time.
#[async_trait]
pub trait Frontier: ItemOutbox + LinkExchange + LogStore + Quarantine {
    /// Stores the root requests together with the mark that `root` ran. It is called once per run; a second
    /// call changes nothing.
    async fn seed(&self, requests: Vec<NewRequest>) -> Result<Committed, FrontierError> {
        let roots = requests.iter().map(|new| new.request.url.clone()).collect();
        self.seed_shard(roots, requests).await
    }

    /// Stores those of the root requests that belong to this shard, like [`seed`](Self::seed); `roots` are
    /// the URLs of all that `root` returned.
    async fn seed_shard(
        &self,
        roots: Vec<Url>,
        requests: Vec<NewRequest>,
    ) -> Result<Committed, FrontierError>;

    /// Returns the URLs that `root` returned in this run, for all shards together, or `None` if it has not
    /// run yet.
    fn roots(&self) -> Option<Vec<Url>>;

    /// Returns the number of times that the process has ended while this run's `root` was being called and
    /// nothing else was to blame. It is 0 where nothing survives the process.
    fn root_ends(&self) -> u32;

    /// Waits, if `root` is suspected of ending the process, until no other suspect is being tried alone. This
    /// call is cancel-safe, unlike those that follow it.
    async fn acquire_root_permit(&self);

    /// Records durably that `root` is about to be called, so that one that ends the process can be told from
    /// one that fails. The record is cleared by [`leave_root`](Self::leave_root), and by closing.
    async fn enter_root(&self) -> Result<(), FrontierError>;

    /// Records durably that `root` has returned, with any result.
    async fn leave_root(&self) -> Result<(), FrontierError>;

    /// Returns the next URL, by host clock, priority and age, of the hosts that are wanted. Ready hosts come first. Of the
    /// others, those that have answered and have not failed since come first, but at least each eighth is one of the rest.
    /// The number of URLs of one host in flight is bounded by `limits`. The call uses memory only.
    fn take_within(&self, now: UnixMillis, limits: TakeLimits) -> Result<Take, FrontierError>;

    /// Calls [`take_within`](Self::take_within) for all hosts alike.
    fn take(&self, now: UnixMillis, per_host: u32) -> Result<Take, FrontierError> {
        self.take_within(now, TakeLimits::all(per_host.max(1)))
    }

    /// Returns the number of hosts that are ready and have URLs waiting in memory.
    fn n_ready_hosts(&self) -> usize;

    /// Returns hosts that were resting when the frontier was opened, because they had asked for it or failed; the next call
    /// returns none. The frontier itself keeps the pause of each of them. Other hosts, and other frontiers, may have the same
    /// [clock](crawler_model::crawl::clock_of).
    fn take_resting_hosts(&self) -> Vec<RestingHost> {
        Vec::new()
    }

    /// Returns how long the call of a page's rule may take before the page has to be recorded by
    /// [`suspect`](Self::suspect). At zero, it is recorded before the call. If `None`, no record would survive the
    /// process, so none is needed.
    fn suspect_after(&self) -> Option<Duration>;

    /// Records that the rule of this page is being called, so that a page that ends the process can be told from
    /// those that do not. The record is cleared by the page's commit, and by giving the page back.
    async fn suspect(&self, claim: &Claim) -> Result<(), FrontierError>;

    /// Returns the cookies of the crawl as they were stored last, in any run.
    fn cookies(&self) -> Option<KeptCookies>;

    /// Returns the robots.txt that was kept for the host of a URL. `None` if there is none, and if none of any host was kept
    /// before this opening. An error breaks nothing.
    async fn kept_robots(&self, url: &Url) -> Result<Option<KeptRobots>, FrontierError>;

    /// Keeps a robots.txt for the host of a URL, with the next batch, if the frontier outlives its process. It is lost in a crash
    /// before that, and if very many wait for that batch.
    fn keep_robots(&self, url: &Url, robots: KeptRobots);

    /// Commits one atomic batch. Its new URLs can be taken when this returns.
    async fn commit(&self, commit: Commit) -> Result<Committed, FrontierError>;

    /// Puts a claim back unchanged, with what was learned about its host. A claim that is not in flight is
    /// ignored, with a warning.
    fn give_back(&self, claim: Box<Claim>, update: HostUpdate);

    /// Puts a claim back unchanged, and puts its host off with all of its URLs, because it could not be
    /// reached. The failure is counted once for all claims that were taken before it was known, and the count
    /// ends with a page or other answer of the host. A claim that is not in flight is ignored, with a
    /// warning.
    async fn put_off(&self, claim: Box<Claim>, failure: HostFailure) -> Result<(), FrontierError>;

    /// Returns true if this run has stored the request, was redirected to it, or has sent it to another shard.
    async fn knows(&self, request: &Request) -> Result<bool, FrontierError>;

    /// Returns the size in bytes on disk, measured some seconds ago; 0 before the first measurement and for
    /// frontiers in memory.
    fn disk_bytes(&self) -> u64;

    /// Returns the totals of this run.
    fn counts(&self) -> Counts;

    /// Returns the statistics of this run. Those of the last second may be lost in a crash, unlike counts.
    fn statistics(&self) -> Statistics;

    /// Returns the attempts that ended a page in this run, by the status of the answer, as the statistics have them.
    fn statuses(&self) -> BTreeMap<u16, u64> {
        self.statistics().statuses
    }

    /// Returns the numbers of the changes of this run's items, or `None` if they are not compared with earlier ones.
    fn change_totals(&self) -> Option<ChangeTotals> {
        None
    }

    /// Tells the items that this run has not seen as removed. The caller calls this only once the run has seen all that
    /// there is. Each item is told once, however often the call is cut off and made again, and all are durable when it
    /// returns true. It returns false if `stop` was cancelled before the last one. If the outbox has no room, the call waits
    /// for the sinks, so the caller delivers items meanwhile.
    async fn tell_removed(&self, _stop: &CancellationToken) -> Result<bool, FrontierError> {
        Ok(true)
    }

    /// Returns the number of pages that are taken and neither committed nor given back.
    fn in_flight(&self) -> usize;

    /// Returns the number of hosts in each state at `now`, and the pages in flight of each host if hosts are stored. The
    /// numbers by state of many hosts may be some seconds old.
    fn present_hosts(&self, now: UnixMillis) -> PresentHosts;

    /// Waits until [`Frontier::take`] may answer differently although no page has changed anything: URLs were
    /// read in, a batch has become durable, or links of other shards have come. For one task at a time.
    async fn take_changed(&self);

    /// Waits until everything that was committed is durable.
    async fn settle(&self) -> Result<(), FrontierError>;

    /// Searches every queue from its head and returns an error if anything is left.
    async fn check_empty(&self) -> Result<(), FrontierError>;

    /// Returns the approximate size in bytes of its memory, to tell a frontier that takes much from others.
    fn held_bytes(&self) -> u64;

    /// Returns the reason why nothing becomes durable at present, or `None` if there is no problem.
    fn stalled(&self) -> Option<String>;

    /// Ends the use of this frontier. Everything that was committed is durable when this returns; pages in
    /// flight stay due.
    async fn close(&self) -> Result<(), FrontierError>;
}
