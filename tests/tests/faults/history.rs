//! What has happened, as it was seen from outside: the changes of the store, what the processes told,
//! the calls of clients, the requests that the fake web got, and what crawls came to.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

/// Since the beginning of the run, by one clock of this machine.
pub(crate) type Moment = Duration;

/// Everything that the checker goes by.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// In the order of their revisions.
    pub(crate) store: Vec<Change>,
    /// What each life of a process told, in its order.
    pub(crate) told: Vec<(Life, Told)>,
    /// Calls by name, each name's in their order: one client has it, and calls one after the other.
    pub(crate) calls: Vec<Call>,
    /// Requests of the crawls that keep a distance.
    pub(crate) requests: Vec<Request>,
    /// Crawls of a closure that have finished.
    pub(crate) crawls: Vec<Crawl>,
    /// Ends of faults.
    pub(crate) rests: Vec<Rest>,
}

/// A process from its start to its end: its node id, and how often that was started before.
pub(crate) type Life = (String, usize);

/// A change of one key of the store.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    /// Below `/crawler/`.
    pub(crate) key: String,
    /// The revision that the key was created at; 0 where it was removed.
    pub(crate) created: u64,
    /// None: removed.
    pub(crate) value: Option<Value>,
}

/// A line of a log that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// The leader whose key was created at `term` has written at a revision.
    Wrote { term: u64, revision: u64 },
    /// A frontier was opened.
    Opened {
        shard: String,
        epoch: u64,
        storage_epoch: u64,
    },
    /// What was written to a frontier up to this number is durable.
    Durable {
        shard: String,
        storage_epoch: u64,
        sequence: u64,
    },
    /// A shard's crawl begins.
    Starts { shard: String, epoch: u64 },
    /// It is over, and its frontier is closed.
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
    /// It was added; the life of the name that the client counts, which its pages are called by.
    Added { life: String },
    /// It was deleted.
    Deleted,
    /// It was changed; what the answer shows.
    Updated { concurrency: u64, generation: u64 },
    /// What is there; none where there is no such resource.
    Read { shown: Option<Shown> },
    /// The lives of the name whose items were shown.
    Items { lives: BTreeSet<String> },
    /// Nobody else has this name, and the client knows whether it is there: there is nothing to refuse.
    Refused { why: String },
}

/// A resource, as a read shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) id: u64,
    pub(crate) generation: u64,
    /// None: nobody has set it.
    pub(crate) concurrency: Option<u64>,
}

/// A request that the fake web got.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The life of the name whose page it is. Each has a host of its own.
    pub(crate) life: String,
    pub(crate) start: Moment,
    /// None: the answer was never ready.
    pub(crate) end: Option<Moment>,
}

/// A crawl that has finished, and what was known of it before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crawl {
    pub(crate) name: String,
    pub(crate) pages: BTreeSet<String>,
    pub(crate) asked: BTreeSet<String>,
    pub(crate) known_items: BTreeSet<String>,
    /// As they were read, in their order.
    pub(crate) items: Vec<String>,
    /// Neither done nor dead.
    pub(crate) n_due: u64,
    pub(crate) n_dead: u64,
}

/// The faults have stopped; how long it took until all shards were where they should be.
#[derive(Debug, Clone)]
pub(crate) struct Rest {
    pub(crate) bound: Duration,
    /// None: not at all, with what was not as it should be.
    pub(crate) took: Result<Duration, Vec<String>>,
}
