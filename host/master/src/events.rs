//! Events of resources and nodes in the store: written in the transaction of the change that they tell, and bounded
//! afterwards.
//!
//! ```text
//! keeper        removes what is beyond the bounds, and what was of resources and nodes that are gone
//! ring          pure: what is beyond the bounds of one resource or node
//! teller        tells what becomes of nodes, and what workers alone know of crawls
//! node_changes  pure: what there is to tell of a node
//! shard_counts  pure: shards that came to workers and left them
//! ```
//!
//! A change and its event are one write, so neither is there without the other, whoever leads and whatever answer is lost.
//! Writing an event reads nothing and adds no transaction. The order of events is that of the revisions of their writes:
//! clocks of leaders may differ. Workers write no events, because their users of etcd may not; what they have recorded is
//! told by the leader, in the transaction that follows from it. For what has no transaction of a leader, such as the end of
//! a process, the leader keeps a record of what it has told of each node, and writes it together with the event.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crawler_model::crawl::UnixMillis;
use crawler_model::event::{Event, EventRecord};
use crawler_model::id::{NodeId, ResourceId};
use crawler_process::clock::Clock;
use crawler_store::catalog::encode;
use crawler_store::keys::Keys;
use crawler_store::{Entry, Guard, Txn};

mod keeper;
mod node_changes;
mod ring;
mod shard_counts;
mod teller;
mod told_nodes;

pub(super) use keeper::keep;
pub(super) use teller::{Teller, tell};

/// Default number of writes of each resource, and of each node, whose events are kept; `--keep-events` shows it.
pub const DEFAULT_KEPT: usize = 50;
/// Number of bytes that the events of a resource or a node may have, however few writes are kept.
const MIN_BYTES: usize = 16 << 10;
/// Number of bytes that they may have for each write that is kept, if that is more.
const BYTES_OF_WRITE: usize = 320;

/// Bounds of the events of one resource, and of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventBounds {
    /// Number of writes whose events are kept: setting `--keep-events`.
    pub max: usize,
    /// Number of bytes of these events.
    pub max_bytes: usize,
}

impl EventBounds {
    /// Creates bounds with this number of writes.
    pub fn of(max: usize) -> Self {
        Self {
            max,
            max_bytes: max.saturating_mul(BYTES_OF_WRITE).max(MIN_BYTES),
        }
    }
}

impl Default for EventBounds {
    fn default() -> Self {
        Self::of(DEFAULT_KEPT)
    }
}

/// Adds events of a resource to the transaction that makes them true. Without events, the transaction stays as it is.
///
/// The guard keeps a transaction that may be repeated after a lost answer one that may.
pub(super) fn told(
    txn: Txn,
    keys: &Keys,
    clock: &dyn Clock,
    id: ResourceId,
    events: Vec<Event>,
) -> Txn {
    add(txn, clock, events, |at, number| keys.event(id, at, number))
}

/// Adds events of a node to the transaction that makes them true, in the same way.
pub(super) fn told_of_node(
    txn: Txn,
    keys: &Keys,
    clock: &dyn Clock,
    node: &NodeId,
    events: Vec<Event>,
) -> Txn {
    add(txn, clock, events, |at, number| {
        keys.node_event(node, at, number)
    })
}

fn add(
    txn: Txn,
    clock: &dyn Clock,
    events: Vec<Event>,
    key: impl FnOnce(UnixMillis, u64) -> String,
) -> Txn {
    if events.is_empty() {
        return txn;
    }
    let at = clock.unix_millis();
    let record = EventRecord { at, events };
    let key = key(at, number_of(&txn, &record));
    txn.guard(Guard::Absent(key.clone()))
        .put(key, encode(&record))
}

/// Returns the number by which the events of a write differ from those of others of the same millisecond. It follows from
/// what the write is guarded by, which holds for one write only, so a simulated history is the same each time.
fn number_of(txn: &Txn, record: &EventRecord) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?} {record:?}", txn.guards).hash(&mut hasher);
    hasher.finish()
}

/// Brings records of events into the order in which they were written. Those of one write, as a restored backup has them,
/// are in the order of their times.
fn sort(entries: &mut [Entry]) {
    entries.sort_by(|one, other| (one.revision, &one.key).cmp(&(other.revision, &other.key)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_ten_thousand_resources_fit_in_the_store() {
        let EventBounds { max, max_bytes } = EventBounds::default();
        assert_eq!((max, max_bytes), (50, 16 << 10));
        // There may be a quarter more.
        assert!(10_000 * max_bytes / 4 * 5 < 210_000_000);
    }

    #[test]
    fn who_keeps_more_writes_has_room_for_them() {
        assert_eq!(EventBounds::of(1).max_bytes, 16 << 10);
        assert_eq!(EventBounds::of(1_000).max_bytes, 320_000);
    }
}
