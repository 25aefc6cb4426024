//! Values of a frontier's database: protobuf messages, to which fields can be added.
//!
//! Numbers and meanings of fields never change. A change that is impossible under this rule raises [`FORMAT`].

use bytes::Bytes;
use prost::Message;

use crawler_model::crawl::Fingerprint;

mod changes;
mod convert;
mod format;
mod item;
mod log;
mod quarantine;
mod robots;
mod totals;

pub(super) use changes::{ChangeCounts, Comparison, ItemChange, Known, KnownItem};
pub(super) use format::{
    FORMAT, FORMAT_WITH_REMOVALS, FORMAT_WITH_SINKS, LATEST_FORMAT, has_positions, is_known_format,
};
pub(super) use item::Item;
pub(super) use log::Line;
pub(super) use quarantine::{KeptItem, Quarantine, StoredProfile};
pub(super) use robots::Robots;
pub(super) use totals::Totals;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Head {
    #[prost(uint32, tag = "1")]
    pub(super) format: u32,
    /// Id of the cluster that the frontier belongs to.
    #[prost(string, tag = "2")]
    pub(super) cluster: String,
    /// Shard of the frontier.
    #[prost(string, tag = "3")]
    pub(super) shard: String,
    /// Epoch of the assignment under which it was opened last.
    #[prost(uint64, tag = "4")]
    pub(super) epoch: u64,
    #[prost(uint64, tag = "5")]
    pub(super) run: u64,
    /// True if `root` ran in this run.
    #[prost(bool, tag = "6")]
    pub(super) is_seeded: bool,
    /// URLs of the root requests.
    #[prost(string, repeated, tag = "7")]
    pub(super) roots: Vec<String>,
    /// True if the frontier was closed with nothing in flight.
    #[prost(bool, tag = "8")]
    pub(super) is_clean: bool,
    /// Number of consecutive ends without closing.
    #[prost(uint32, tag = "9")]
    pub(super) n_unclean_stops: u32,
    /// Digests of plugins; other records name a plugin by its place here.
    #[prost(bytes = "bytes", repeated, tag = "10")]
    pub(super) plugins: Vec<Bytes>,
    /// True if a request of this run asked to be reloaded.
    #[prost(bool, tag = "11")]
    pub(super) has_reloads: bool,
    /// Run before which the records of all runs have been removed.
    #[prost(uint64, tag = "12")]
    pub(super) swept_before: u64,
    /// True if URLs of earlier runs are still to be made due in this one.
    #[prost(bool, tag = "13")]
    pub(super) is_carrying: bool,
    /// First of the runs whose URLs are due again in this one; 0 for none.
    #[prost(uint64, tag = "14")]
    pub(super) carry_from: u64,
    /// True if the frontier was closed after every request had ended: no host was asked after its clock.
    #[prost(bool, tag = "15")]
    pub(super) has_exact_clocks: bool,
    /// Time until which hosts still waited because of an earlier opening when it was closed; 0 if none did.
    #[prost(uint64, tag = "16")]
    pub(super) held_until: u64,
    /// Process that called `root`, which has not returned; 0 if it has.
    #[prost(fixed64, tag = "17")]
    pub(super) in_root: u64,
    /// True if nothing but that call is to blame if the process ends.
    #[prost(bool, tag = "20")]
    pub(super) in_root_alone: bool,
    /// Number of consecutive ends of a process within such calls.
    #[prost(uint32, tag = "18")]
    pub(super) n_root_ends: u32,
    /// Plugin whose `root` was called, by its number in `plugins`.
    #[prost(uint32, tag = "19")]
    pub(super) root_plugin: u32,
    /// Time (the frontier's own) before which no page is taken, because hosts came from other shards; 0 if none.
    #[prost(uint64, tag = "21")]
    pub(super) rests_until: u64,
}

/// Record that every batch rewrites: its number, counters and the bounds of the outbox.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Batch {
    #[prost(uint64, tag = "1")]
    pub(super) n: u64,
    /// Latest moment known, in the frontier's own time.
    #[prost(uint64, tag = "2")]
    pub(super) latest: u64,
    /// Number of the next stored URL.
    #[prost(uint64, tag = "3")]
    pub(super) next_entry: u64,
    /// Number below which all items are at their sink.
    #[prost(uint64, tag = "4")]
    pub(super) outbox_first: u64,
    #[prost(uint64, tag = "5")]
    pub(super) outbox_next: u64,
    #[prost(uint64, tag = "6")]
    pub(super) outbox_bytes: u64,
    /// Time when the batch was made, by the clock of the database.
    #[prost(uint64, tag = "7")]
    pub(super) made_at: u64,
    /// Version of the stored cookies; 0 for those that an earlier version of the program has stored.
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
    /// Method of the request; empty for GET.
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
    /// Statuses that are handed to the rule, as text; empty for 200 to 299.
    #[prost(string, tag = "9")]
    pub(super) accept_status: String,
    /// Number of bytes that the referrer has in common with the beginning of `url`.
    #[prost(uint32, tag = "10")]
    pub(super) referrer_shared: u32,
    /// Rest of the referrer. A request without a referrer has neither.
    #[prost(string, tag = "11")]
    pub(super) referrer: String,
    /// True if the body is kept as a file.
    #[prost(bool, tag = "12")]
    pub(super) keep_body: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValidatorsRecord {
    #[prost(string, optional, tag = "1")]
    pub(super) etag: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) last_modified: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(super) content: Option<Bytes>,
    /// Hash of the plugin, params and settings that the page was parsed by.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) parsed_by: Option<Bytes>,
    /// Time of the last answer of its server; 0 if it is not known.
    #[prost(uint64, tag = "5")]
    pub(super) visited_at: u64,
    /// Milliseconds from that time to the next visit.
    #[prost(uint64, tag = "6")]
    pub(super) interval: u64,
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
    /// Reason why the last attempt failed.
    #[prost(string, tag = "6")]
    pub(super) failure: String,
    #[prost(uint32, tag = "7")]
    pub(super) plugin: u32,
    #[prost(message, optional, tag = "8")]
    pub(super) validators: Option<ValidatorsRecord>,
}

/// Stage of a URL.
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

/// State of a URL: where its ready record is, or how it ended.
#[derive(Clone, PartialEq, Message)]
pub(super) struct State {
    #[prost(uint64, tag = "1")]
    pub(super) run: u64,
    #[prost(enumeration = "Stage", tag = "2")]
    pub(super) stage: i32,
    /// Reason for which a dead URL was given up.
    #[prost(string, tag = "3")]
    pub(super) reason: String,
    /// Due time; together with `entry` and `priority` it names the ready record of a due URL.
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
    /// Time when the URL ended.
    #[prost(uint64, tag = "9")]
    pub(super) since: u64,
    #[prost(uint32, tag = "10")]
    pub(super) plugin: u32,
    /// Request of a URL that has ended.
    #[prost(message, optional, tag = "11")]
    pub(super) request: Option<RequestRecord>,
    #[prost(message, optional, tag = "12")]
    pub(super) validators: Option<ValidatorsRecord>,
    /// True if the page was not due. Its stage is `NotModified`, which earlier versions know.
    #[prost(bool, tag = "13")]
    pub(super) is_not_due: bool,
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
    /// Details beyond the reason.
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
    /// Run that the lanes belong to.
    #[prost(uint64, tag = "1")]
    pub(super) run: u64,
    /// Time before which the host is not asked, in the frontier's own time.
    #[prost(uint64, tag = "2")]
    pub(super) clock: u64,
    /// Milliseconds between the host's last answer and `clock`.
    #[prost(uint64, tag = "3")]
    pub(super) delay: u64,
    #[prost(message, repeated, tag = "4")]
    pub(super) lanes: Vec<LaneCursor>,
    /// True if the host has answered in that run.
    #[prost(bool, tag = "5")]
    pub(super) has_answered: bool,
    #[prost(message, optional, tag = "6")]
    pub(super) trouble: Option<Trouble>,
    /// Origin of `delay`, as an index into `DelaySource::ALL`.
    #[prost(uint32, tag = "7")]
    pub(super) delay_by: u32,
}

/// Name of a host, written once in a run. The host's record is written with every page of the host.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HostName {
    /// Last run that has met the host.
    #[prost(uint64, tag = "1")]
    pub(super) run: u64,
    /// Name and port of the host.
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// Consecutive failures to reach a host, in the run of its record.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Trouble {
    #[prost(uint32, tag = "1")]
    pub(super) n: u32,
    /// Word by which the last failure is counted.
    #[prost(string, tag = "2")]
    pub(super) reason: String,
    /// True if its URLs are given up until its clock.
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
    /// Number of times that the page entered its rule with nothing else in flight, and did not return.
    #[prost(uint32, tag = "5")]
    pub(super) n_alone: u32,
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

/// Progress of the links for another shard.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Peer {
    /// Run of the links. If it is not the present one, the record is void.
    #[prost(uint64, tag = "1")]
    pub(super) run: u64,
    /// First number that the shard does not have yet.
    #[prost(uint64, tag = "2")]
    pub(super) first: u64,
    /// Number of the next link stored for it.
    #[prost(uint64, tag = "3")]
    pub(super) next: u64,
}

/// Value of a key in the seen-set; empty for a URL of this shard.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Seen {
    /// Shard that the link was for.
    #[prost(uint32, optional, tag = "1")]
    pub(super) to: Option<u32>,
}

/// Decodes the fingerprint in a ready record.
pub(super) fn fingerprint(bytes: &[u8]) -> Option<Fingerprint> {
    bytes.try_into().ok().map(Fingerprint)
}
