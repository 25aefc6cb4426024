//! The values of a frontier's database: protobuf messages, whose fields can be added to.
//!
//! A number is never given to another field, and a field never changes its meaning; a change that
//! cannot be made so raises [`FORMAT`].

use bytes::Bytes;
use prost::Message;

use crate::model::crawl::Fingerprint;

mod convert;

/// The format of the database. Another one is refused.
pub(super) const FORMAT: u32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Head {
    #[prost(uint32, tag = "1")]
    pub(super) format: u32,
    /// Whose cluster it belongs to.
    #[prost(string, tag = "2")]
    pub(super) cluster: String,
    /// Whose frontier it is.
    #[prost(string, tag = "3")]
    pub(super) shard: String,
    /// The assignment under which it was opened last.
    #[prost(uint64, tag = "4")]
    pub(super) epoch: u64,
    #[prost(uint64, tag = "5")]
    pub(super) run: u64,
    /// `root` ran in this run.
    #[prost(bool, tag = "6")]
    pub(super) is_seeded: bool,
    /// URLs of the root requests.
    #[prost(string, repeated, tag = "7")]
    pub(super) roots: Vec<String>,
    /// It was closed, and nothing was in flight.
    #[prost(bool, tag = "8")]
    pub(super) is_clean: bool,
    /// Ends without closing, in a row.
    #[prost(uint32, tag = "9")]
    pub(super) n_unclean_stops: u32,
    /// Digests of plugins, by the number that other records name them by.
    #[prost(bytes = "bytes", repeated, tag = "10")]
    pub(super) plugins: Vec<Bytes>,
    /// A request of this run asked to be reloaded.
    #[prost(bool, tag = "11")]
    pub(super) has_reloads: bool,
    /// What earlier runs have left is removed up to before this run.
    #[prost(uint64, tag = "12")]
    pub(super) swept_before: u64,
    /// URLs of earlier runs are still to be made due in this one.
    #[prost(bool, tag = "13")]
    pub(super) is_carrying: bool,
    /// The first of the runs whose URLs are due again in this one; 0: none.
    #[prost(uint64, tag = "14")]
    pub(super) carry_from: u64,
    /// It was closed, and every request that was sent had come to its end: nobody was asked later
    /// than the clocks of the hosts say.
    #[prost(bool, tag = "15")]
    pub(super) has_exact_clocks: bool,
    /// When it was closed, hosts waited still because of an opening before: until then. 0: they did not.
    #[prost(uint64, tag = "16")]
    pub(super) held_until: u64,
    /// The process that called `root`, which has not come back; 0: it has.
    #[prost(fixed64, tag = "17")]
    pub(super) in_root: u64,
    /// That call has nothing to blame beside it if the process ends.
    #[prost(bool, tag = "20")]
    pub(super) in_root_alone: bool,
    /// Ends of a process, in a row, within such calls.
    #[prost(uint32, tag = "18")]
    pub(super) n_root_ends: u32,
    /// The plugin whose `root` these were, by its number in `plugins`.
    #[prost(uint32, tag = "19")]
    pub(super) root_plugin: u32,
    /// Nothing is taken before this moment of the frontier's own time: hosts have come from other shards, which
    /// may have asked them until the opening. 0: none have.
    #[prost(uint64, tag = "21")]
    pub(super) rests_until: u64,
}

/// What every batch changes.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Batch {
    #[prost(uint64, tag = "1")]
    pub(super) n: u64,
    /// The latest moment heard of, in the frontier's own time.
    #[prost(uint64, tag = "2")]
    pub(super) latest: u64,
    /// The next URL stored gets this number.
    #[prost(uint64, tag = "3")]
    pub(super) next_entry: u64,
    /// Items before this one are at their sink.
    #[prost(uint64, tag = "4")]
    pub(super) outbox_first: u64,
    #[prost(uint64, tag = "5")]
    pub(super) outbox_next: u64,
    #[prost(uint64, tag = "6")]
    pub(super) outbox_bytes: u64,
    /// When it was made, by the clock of the database.
    #[prost(uint64, tag = "7")]
    pub(super) made_at: u64,
    /// Version of the cookies that are kept. 0 for those that an earlier program has kept.
    #[prost(uint64, tag = "8")]
    pub(super) cookies_version: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Header {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestRecord {
    #[prost(string, tag = "1")]
    pub(super) url: String,
    /// Empty: GET.
    #[prost(string, tag = "2")]
    pub(super) method: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) headers: Vec<Header>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) body: Option<Bytes>,
    #[prost(string, tag = "5")]
    pub(super) rule: String,
    #[prost(sint32, tag = "6")]
    pub(super) priority: i32,
    #[prost(bytes = "bytes", tag = "7")]
    pub(super) state: Bytes,
    #[prost(bool, tag = "8")]
    pub(super) reload: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValidatorsRecord {
    #[prost(string, optional, tag = "1")]
    pub(super) etag: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) last_modified: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) content: Option<Bytes>,
}

/// A URL that is ready or in flight.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Ready {
    #[prost(message, required, tag = "1")]
    pub(super) request: RequestRecord,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) fingerprint: Bytes,
    #[prost(uint32, tag = "3")]
    pub(super) depth: u32,
    #[prost(uint32, tag = "4")]
    pub(super) attempt: u32,
    #[prost(uint32, tag = "5")]
    pub(super) visit: u32,
    /// Why the last attempt failed.
    #[prost(string, tag = "6")]
    pub(super) failure: String,
    #[prost(uint32, tag = "7")]
    pub(super) plugin: u32,
    #[prost(message, optional, tag = "8")]
    pub(super) validators: Option<ValidatorsRecord>,
}

/// How far a URL has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Stage {
    Due = 0,
    Parsed = 1,
    Skipped = 2,
    NotModified = 3,
    Redirected = 4,
    Duplicate = 5,
    Gone = 6,
    Denied = 7,
    Dead = 8,
}

/// The state of a URL: where its ready record is, or how it ended.
#[derive(Clone, PartialEq, Message)]
pub(super) struct State {
    #[prost(uint64, tag = "1")]
    pub(super) run: u64,
    #[prost(enumeration = "Stage", tag = "2")]
    pub(super) stage: i32,
    /// Of a dead one.
    #[prost(string, tag = "3")]
    pub(super) reason: String,
    /// With `entry` and `priority`, the ready record of one that is due.
    #[prost(uint64, tag = "4")]
    pub(super) due: u64,
    #[prost(uint64, tag = "5")]
    pub(super) entry: u64,
    #[prost(sint32, tag = "6")]
    pub(super) priority: i32,
    #[prost(uint32, tag = "7")]
    pub(super) visit: u32,
    #[prost(uint32, tag = "8")]
    pub(super) depth: u32,
    /// When it ended.
    #[prost(uint64, tag = "9")]
    pub(super) since: u64,
    #[prost(uint32, tag = "10")]
    pub(super) plugin: u32,
    /// Of one that ended.
    #[prost(message, optional, tag = "11")]
    pub(super) request: Option<RequestRecord>,
    #[prost(message, optional, tag = "12")]
    pub(super) validators: Option<ValidatorsRecord>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeadLetter {
    #[prost(message, required, tag = "1")]
    pub(super) request: RequestRecord,
    #[prost(uint32, tag = "2")]
    pub(super) depth: u32,
    #[prost(uint32, tag = "3")]
    pub(super) visit: u32,
    #[prost(uint32, tag = "4")]
    pub(super) attempts: u32,
    #[prost(string, tag = "5")]
    pub(super) reason: String,
    #[prost(uint64, tag = "6")]
    pub(super) since: u64,
    #[prost(uint32, tag = "7")]
    pub(super) plugin: u32,
    /// Beyond the reason.
    #[prost(string, tag = "8")]
    pub(super) detail: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct LaneCursor {
    #[prost(sint32, tag = "1")]
    pub(super) priority: i32,
    #[prost(uint64, tag = "2")]
    pub(super) due: u64,
    #[prost(uint64, tag = "3")]
    pub(super) entry: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Host {
    /// The run that the lanes are of.
    #[prost(uint64, tag = "1")]
    pub(super) run: u64,
    /// Not asked before, in the frontier's own time.
    #[prost(uint64, tag = "2")]
    pub(super) clock: u64,
    /// Between its last answer and `clock`, in milliseconds.
    #[prost(uint64, tag = "3")]
    pub(super) delay: u64,
    #[prost(message, repeated, tag = "4")]
    pub(super) lanes: Vec<LaneCursor>,
    /// In that run.
    #[prost(bool, tag = "5")]
    pub(super) has_answered: bool,
    #[prost(message, optional, tag = "6")]
    pub(super) trouble: Option<Trouble>,
    /// Origin of `delay`, by its place in `DelayBy::ALL`.
    #[prost(uint32, tag = "7")]
    pub(super) delay_by: u32,
}

/// The name of a host, beside its record: that is written with every page of the host, this once in a run.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HostName {
    /// The last run that has met it.
    #[prost(uint64, tag = "1")]
    pub(super) run: u64,
    /// Name and port.
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// Times on end, in the run of its host's record, that the host could not be reached.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Trouble {
    #[prost(uint32, tag = "1")]
    pub(super) n: u32,
    /// The word by which the last one is counted.
    #[prost(string, tag = "2")]
    pub(super) reason: String,
    /// Its URLs are given up until its clock.
    #[prost(bool, tag = "3")]
    pub(super) is_given_up: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Suspect {
    #[prost(uint64, tag = "1")]
    pub(super) host: u64,
    #[prost(sint32, tag = "2")]
    pub(super) priority: i32,
    #[prost(uint64, tag = "3")]
    pub(super) due: u64,
    #[prost(uint64, tag = "4")]
    pub(super) entry: u64,
    /// Times that it entered its rule with nothing else in flight, and did not come back.
    #[prost(uint32, tag = "5")]
    pub(super) n_alone: u32,
}

/// An item that no sink has yet.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Item {
    /// The item record, as JSON.
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) json: Bytes,
    #[prost(uint32, tag = "2")]
    pub(super) plugin: u32,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Mark {
    #[prost(uint64, tag = "1")]
    pub(super) length: u64,
    #[prost(uint64, tag = "2")]
    pub(super) first_run: u64,
    #[prost(uint64, tag = "3")]
    pub(super) last_run: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReasonCount {
    #[prost(string, tag = "1")]
    pub(super) reason: String,
    #[prost(uint64, tag = "2")]
    pub(super) n: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Totals {
    #[prost(uint64, tag = "1")]
    pub(super) parsed: u64,
    #[prost(uint64, tag = "2")]
    pub(super) other_done: u64,
    #[prost(uint64, tag = "3")]
    pub(super) dead: u64,
    #[prost(uint64, tag = "4")]
    pub(super) retries: u64,
    #[prost(uint64, tag = "5")]
    pub(super) items: u64,
    #[prost(uint64, tag = "6")]
    pub(super) bytes: u64,
    #[prost(uint64, tag = "7")]
    pub(super) due: u64,
    #[prost(message, repeated, tag = "8")]
    pub(super) refused_links: Vec<ReasonCount>,
    #[prost(message, repeated, tag = "9")]
    pub(super) dead_by_reason: Vec<ReasonCount>,
    #[prost(uint64, tag = "10")]
    pub(super) hosts: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Number {
    #[prost(uint64, tag = "1")]
    pub(super) n: u64,
}

/// A link for another shard.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Link {
    #[prost(message, required, tag = "1")]
    pub(super) request: RequestRecord,
    #[prost(uint32, tag = "2")]
    pub(super) depth: u32,
}

/// What another shard has got of the links for it, and what there is.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Peer {
    /// Of another run, nothing of it counts.
    #[prost(uint64, tag = "1")]
    pub(super) run: u64,
    /// It has those before this one.
    #[prost(uint64, tag = "2")]
    pub(super) first: u64,
    /// The next link stored for it gets this number.
    #[prost(uint64, tag = "3")]
    pub(super) next: u64,
}

/// The value of a key of what was seen: empty for what is this shard's own.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Seen {
    /// The shard that the link was for.
    #[prost(uint32, optional, tag = "1")]
    pub(super) to: Option<u32>,
}

/// The fingerprint in a ready record.
pub(super) fn fingerprint(bytes: &[u8]) -> Option<Fingerprint> {
    bytes.try_into().ok().map(Fingerprint)
}
