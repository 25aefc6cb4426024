//! History of a run, as it was seen from outside: the changes of the store, the logs of the processes, the calls
//! of clients, the requests that the fake web received, and the results of crawls.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

/// Time since the beginning of the run, by one clock of this machine.
pub(crate) type Moment = Duration;

/// Everything that the checker uses.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// Changes of the store, in the order of their revisions.
    pub(crate) store: Vec<Change>,
    /// Log lines of each life of a process, in order.
    pub(crate) told: Vec<(Life, LogEvent)>,
    /// Calls of clients. Those of one name are in order: one client has the name, and makes one call after the
    /// other.
    pub(crate) calls: Vec<Call>,
    /// Requests of the crawls that keep a distance.
    pub(crate) requests: Vec<Request>,
    /// Crawls of a closure that have finished.
    pub(crate) crawls: Vec<Crawl>,
    /// Times until everything was at rest again, after faults.
    pub(crate) convergences: Vec<Convergence>,
}

/// A process from its start to its end: its node id, and the number of earlier starts of that id.
pub(crate) type Life = (String, usize);

/// A change of one key of the store.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    /// Key below `/crawler/`.
    pub(crate) key: String,
    /// Revision at which the key was created; 0 if it was removed.
    pub(crate) created: u64,
    /// New value. If `None`, the key was removed.
    pub(crate) value: Option<Value>,
}

/// A log line that the checker uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogEvent {
    /// The leader whose key was created at `term` has written at a revision.
    Wrote { term: u64, revision: u64 },
    /// A frontier was opened.
    Opened {
        shard: String,
        epoch: u64,
        storage_epoch: u64,
    },
    /// Writes to a frontier up to this number are durable.
    Durable {
        shard: String,
        storage_epoch: u64,
        sequence: u64,
    },
    /// A shard's crawl begins.
    Starts { shard: String, epoch: u64 },
    /// A shard's crawl has ended, and its frontier is closed.
    Ends { shard: String, epoch: u64 },
}

/// A call of a client and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) begun: Moment,
    pub(crate) ended: Moment,
    pub(crate) what: Answered,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The name was added. `life` is the life of the name that the client counts, and its pages are named after
    /// it.
    Added { life: String },
    /// The name was deleted.
    Deleted,
    /// The resource was changed; the fields are those of the answer.
    Updated { concurrency: u64, generation: u64 },
    /// The resource was read. `None` if there is no such resource.
    Read { shown: Option<Shown> },
    /// The items were read; `lives` are the lives of the name that they belong to.
    Items { lives: BTreeSet<String> },
    /// The call was refused, although no other client has this name, and the client knows whether it exists.
    Refused { why: String },
}

/// A resource, as a read shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) id: u64,
    pub(crate) generation: u64,
    /// Concurrency. If `None`, nobody has set it.
    pub(crate) concurrency: Option<u64>,
}

/// A request that the fake web received.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The life of the name that the page belongs to. Each name has a host of its own.
    pub(crate) life: String,
    pub(crate) start: Moment,
    /// End of the answer. If `None`, the answer was never ready.
    pub(crate) end: Option<Moment>,
}

/// A crawl that has finished, with the facts that were known of it before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crawl {
    pub(crate) name: String,
    pub(crate) pages: BTreeSet<String>,
    pub(crate) asked: BTreeSet<String>,
    pub(crate) known_items: BTreeSet<String>,
    /// Items as they were read, in order.
    pub(crate) items: Vec<String>,
    /// Number of URLs that are neither done nor dead.
    pub(crate) n_due: u64,
    pub(crate) n_dead: u64,
}

/// The time from the end of the faults until all shards were where they should be.
#[derive(Debug, Clone)]
pub(crate) struct Convergence {
    pub(crate) bound: Duration,
    /// Time that it took, or the deviations if it never came to rest.
    pub(crate) took: Result<Duration, Vec<String>>,
}
