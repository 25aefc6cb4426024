//! Records of the store and the frontiers: the leaders, the owners of shards, and durable data.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Found, id_of};
use crate::history::{Change, History, Life, LogEvent};

/// Invariant 1: each write of a leader was made while its key was the oldest of the election.
pub(super) fn leaders(history: &History, found: &mut Found) {
    // Revision at which each key was removed, by the revision at which it was created.
    let mut terms: BTreeMap<u64, u64> = BTreeMap::new();
    let mut present: BTreeMap<&str, u64> = BTreeMap::new();
    for change in &history.store {
        if !change.key.starts_with("election/") {
            continue;
        }
        match change.value {
            Some(_) => {
                present.insert(&change.key, change.created);
                terms.insert(change.created, u64::MAX);
            }
            None => {
                if let Some(created) = present.remove(change.key.as_str()) {
                    terms.insert(created, change.revision);
                }
            }
        }
    }
    let mut writers: BTreeMap<u64, &Life> = BTreeMap::new();
    for (life, told) in &history.told {
        let LogEvent::Wrote { term, revision } = told else {
            continue;
        };
        let (id, nth) = life;
        let who = format!("{id} in its life {nth} wrote at revision {revision} in term {term}");
        let writer = writers.entry(*term).or_insert(life);
        if *writer != life {
            found.add(1, format!("{who}, and so did {} before", writer.0));
        }
        match terms.get(term) {
            None => found.add(1, format!("{who}, and no such key was in the election")),
            Some(ended) if ended < revision => {
                found.add(1, format!("{who}, which was over at {ended}"));
            }
            Some(_) => {}
        }
        let older = terms.range(..term);
        for (other, _) in older.filter(|(_, ended)| *ended > revision) {
            found.add(1, format!("{who} while {other} led"));
        }
    }
}

/// Invariants 2 and 11: epochs of a shard only grow, an epoch belongs to one process, and neither a shard nor an
/// id comes back once it has gone.
pub(super) fn records(store: &[Change], found: &mut Found) {
    let mut shards: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut gone: BTreeSet<&str> = BTreeSet::new();
    // The present id and all ids so far, by name. Two masters that lead in turn have each reserved ids of their
    // own, so a later one may be smaller.
    let mut ids: BTreeMap<&str, (u64, BTreeSet<u64>)> = BTreeMap::new();
    let mut ended: BTreeSet<u64> = BTreeSet::new();
    for change in store {
        let Change { revision, key, .. } = change;
        if let Some(id) = key.strip_prefix("deleting/") {
            ended.extend(id.parse::<u64>());
        }
        if let (Some(name), Some(value)) = (key.strip_prefix("resources/"), &change.value) {
            let id = id_of(value);
            let (present, all) = ids.entry(name).or_default();
            let is_back = *present != id && !all.insert(id);
            if is_back || ended.contains(&id) {
                found.add(
                    11,
                    format!("{name} has id {id} again at revision {revision}"),
                );
            }
            *present = id;
        }
        if !key.starts_with("shards/") {
            continue;
        }
        let Some(value) = &change.value else {
            shards.remove(key.as_str());
            gone.insert(key);
            continue;
        };
        if gone.contains(key.as_str()) {
            found.add(11, format!("{key} is there again at revision {revision}"));
        }
        let Some(before) = shards.insert(key, value) else {
            continue;
        };
        let number = |value: &Value, field: &str| value[field].as_u64().unwrap_or_default();
        for field in ["epoch", "storage_epoch"] {
            let (was, is) = (number(before, field), number(value, field));
            if is < was {
                let what = format!("{field} of {key} falls from {was} to {is} at {revision}");
                found.add(2, what);
            }
        }
        let (was, is) = (&before["owner"], &value["owner"]);
        let is_same_epoch = number(before, "epoch") == number(value, "epoch");
        if was != is && !is.is_null() && is_same_epoch {
            let what = format!("{key} goes from {was} to {is} within an epoch at {revision}");
            found.add(2, what);
        }
    }
}

/// Invariant 2: nothing became durable in a frontier under an earlier opening than the last.
pub(super) fn frontiers(told: &[(Life, LogEvent)], found: &mut Found) {
    type Openings<'a> = BTreeMap<u64, (&'a Life, u64)>;
    let mut opened: BTreeMap<&str, Openings<'_>> = BTreeMap::new();
    // First and last number that became durable, by opening.
    let mut durable: BTreeMap<&str, BTreeMap<u64, (u64, u64)>> = BTreeMap::new();
    for (life, told) in told {
        match told {
            LogEvent::Opened {
                shard,
                epoch,
                storage_epoch,
            } => {
                let openings = opened.entry(shard).or_default();
                if let Some((other, _)) = openings.insert(*storage_epoch, (life, *epoch)) {
                    let what =
                        format!("{shard} was opened as {storage_epoch} by {other:?} and {life:?}");
                    found.add(2, what);
                }
            }
            LogEvent::Durable {
                shard,
                storage_epoch,
                sequence,
            } => {
                let openings = durable.entry(shard).or_default();
                let span = openings
                    .entry(*storage_epoch)
                    .or_insert((*sequence, *sequence));
                *span = (span.0.min(*sequence), span.1.max(*sequence));
            }
            LogEvent::Wrote { .. } | LogEvent::Starts { .. } | LogEvent::Ends { .. } => {}
        }
    }
    for (shard, openings) in opened {
        let openings: Vec<_> = openings.into_iter().collect();
        for pair in openings.windows(2) {
            let [(earlier, (_, was)), (later, (life, is))] = pair else {
                continue;
            };
            if is < was {
                let what = format!(
                    "{shard} was opened as {later} under epoch {is} by {life:?} after {earlier} under epoch {was}"
                );
                found.add(2, what);
            }
        }
    }
    for (shard, openings) in durable {
        let mut last = (0, 0);
        for (opening, (first, newest)) in openings {
            if first <= last.1 {
                let what = format!(
                    "{shard}: {} became durable under opening {}, and {first} under {opening}",
                    last.1, last.0
                );
                found.add(2, what);
            }
            last = (opening, newest);
        }
    }
}
