//! Whether a history keeps the promises of the design. Pure: a history in, what breaks a promise out.
//!
//! Each promise is looked at alone, and by what cannot be late: revisions, epochs and sequence numbers,
//! not the times of log lines. Times are compared where one clock has taken them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::history::{Answered, Change, History, Life, Told};

/// Clocks of a loaded machine: an answer counts as ended a moment before whoever asked has it.
const SLACK: Duration = Duration::from_millis(5);

/// What the run was made with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Between an answer and the next request of a crawl that keeps a distance.
    pub(crate) delay: Duration,
    /// After the answer to a deletion, how long something of it may be asked for.
    pub(crate) after_delete: Duration,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Of design section 10.
    pub(crate) invariant: u8,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: {}", self.invariant, self.what)
    }
}

/// All that is wrong with a history.
pub(crate) fn check(history: &History, terms: Terms) -> Vec<Violation> {
    let mut found = Found::default();
    leaders(history, &mut found);
    records(&history.store, &mut found);
    frontiers(&history.told, &mut found);
    crawls(history, &mut found);
    rests(history, &mut found);
    distances(history, terms, &mut found);
    lives(history, &mut found);
    after_deletions(history, terms, &mut found);
    found.0
}

#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, invariant: u8, what: String) {
        self.0.push(Violation { invariant, what });
    }
}

/// 1: each write of a leader was made while its key was the oldest of the election.
fn leaders(history: &History, found: &mut Found) {
    // By the revision that the key was created at: the one that it was removed at.
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
        let Told::Wrote { term, revision } = told else {
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

/// 2 and 11: epochs of a shard only grow, an epoch belongs to one process, and neither a shard nor an
/// id comes back once it has gone.
fn records(store: &[Change], found: &mut Found) {
    let mut shards: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut gone: BTreeSet<&str> = BTreeSet::new();
    // By name: the present id, and all so far. Of two masters that lead in turn each has reserved ids
    // of its own, so that a later one may be smaller.
    let mut ids: BTreeMap<&str, (u64, BTreeSet<u64>)> = BTreeMap::new();
    let mut ended: BTreeSet<u64> = BTreeSet::new();
    for change in store {
        let Change { revision, key, .. } = change;
        if let Some(id) = key.strip_prefix("deleting/") {
            ended.extend(id.parse::<u64>());
        }
        if let (Some(name), Some(value)) = (key.strip_prefix("resources/"), &change.value) {
            let id = value["id"].as_u64().unwrap_or_default();
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

/// 2: nothing became durable in a frontier under an earlier opening than the last.
fn frontiers(told: &[(Life, Told)], found: &mut Found) {
    type Openings<'a> = BTreeMap<u64, (&'a Life, u64)>;
    let mut opened: BTreeMap<&str, Openings<'_>> = BTreeMap::new();
    // By opening: the first and the last number that became durable.
    let mut durable: BTreeMap<&str, BTreeMap<u64, (u64, u64)>> = BTreeMap::new();
    for (life, told) in told {
        match told {
            Told::Opened {
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
            Told::Durable {
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
            Told::Wrote { .. } | Told::Starts { .. } | Told::Ends { .. } => {}
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

/// 3 and 4: every page was asked for and is at rest, every item is there, and none twice.
fn crawls(history: &History, found: &mut Found) {
    for crawl in &history.crawls {
        let name = &crawl.name;
        let some = |set: Vec<&String>| format!("{} like {:?}", set.len(), &set[..set.len().min(3)]);
        let missing: Vec<&String> = crawl.pages.difference(&crawl.asked).collect();
        if !missing.is_empty() {
            let what = format!("{name}: pages were never asked for: {}", some(missing));
            found.add(3, what);
        }
        if crawl.n_due + crawl.n_dead > 0 {
            let (n_due, n_dead) = (crawl.n_due, crawl.n_dead);
            found.add(3, format!("{name}: {n_due} URLs are due and {n_dead} dead"));
        }
        let mut items = BTreeSet::new();
        let twice = crawl.items.iter().filter(|item| !items.insert(*item));
        let twice: Vec<&String> = twice.collect();
        if !twice.is_empty() {
            found.add(4, format!("{name}: items are there twice: {}", some(twice)));
        }
        let missing = crawl.known_items.iter().filter(|i| !items.contains(i));
        let missing: Vec<&String> = missing.collect();
        if !missing.is_empty() {
            found.add(4, format!("{name}: items are missing: {}", some(missing)));
        }
        let surplus = items
            .into_iter()
            .filter(|i| !crawl.known_items.contains(*i));
        let surplus: Vec<&String> = surplus.collect();
        if !surplus.is_empty() {
            found.add(4, format!("{name}: no page has these: {}", some(surplus)));
        }
    }
}

/// 5: every shard runs on one live worker soon after the faults have stopped.
fn rests(history: &History, found: &mut Found) {
    for (n, rest) in history.rests.iter().enumerate() {
        let n = n + 1;
        match &rest.took {
            Ok(took) if *took > rest.bound => {
                found.add(5, format!("rest {n} took {took:?}, not {:?}", rest.bound));
            }
            Ok(_) => {}
            Err(unsettled) => found.add(5, format!("rest {n} never came: {unsettled:?}")),
        }
    }
}

/// 8: a host is given time; one request for each opening of the frontier but the first may be early.
fn distances(history: &History, terms: Terms, found: &mut Found) {
    let openings = openings_by_life(&history.store);
    let mut by_life: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for request in &history.requests {
        by_life.entry(&request.life).or_default().push(request);
    }
    for (life, mut requests) in by_life {
        requests.sort_by_key(|request| request.start);
        let mut early = Vec::new();
        let mut last: Option<&crate::history::Request> = None;
        for request in requests {
            let due = last.map(|last| last.end.map(|end| end + terms.delay));
            let is_early = match due {
                None => false,
                // An answer that never came: whoever waited for it is gone.
                Some(None) => false,
                Some(Some(due)) => request.start + SLACK < due,
            };
            match is_early {
                true => early.push(request.start),
                false => last = Some(request),
            }
        }
        let n_openings = openings.get(life).copied().unwrap_or(1);
        if early.len() >= n_openings.max(1) {
            let what = format!(
                "{life}: {} requests came early with {n_openings} openings, at {:?}",
                early.len(),
                &early[..early.len().min(5)]
            );
            found.add(8, what);
        }
    }
}

/// How often the frontier of each life of a name was opened.
fn openings_by_life(store: &[Change]) -> BTreeMap<String, usize> {
    let mut lives: BTreeMap<u64, String> = BTreeMap::new();
    // Each opening but one that failed finds another writer epoch, and records it.
    let mut openings: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for change in store {
        let Some(value) = &change.value else { continue };
        let number = |field: &str| value[field].as_u64().unwrap_or_default();
        if change.key.starts_with("resources/") {
            let start = value["params"]["start"].as_str().unwrap_or_default();
            if let Some(life) = life_of(start) {
                lives.insert(number("id"), life.to_owned());
            }
        } else if let Some(id) = change.key.strip_prefix("shards/") {
            let id = id.split('/').next().and_then(|id| id.parse().ok());
            let found = number("storage_epoch");
            openings.entry(id.unwrap_or(0)).or_default().insert(found);
        }
    }
    let by_life = openings
        .into_iter()
        .filter_map(|(id, openings)| Some((lives.get(&id)?.clone(), openings.len())));
    by_life.collect()
}

/// The life that a page of a chain belongs to: `a-3` of `http://127.0.1.1:4000/a-3/17`.
pub(crate) fn life_of(url: &str) -> Option<&str> {
    url.split("://").nth(1)?.split('/').nth(1)
}

/// 11: a name shows one id from its addition to its deletion, another one each time, and no items of
/// another life.
fn lives(history: &History, found: &mut Found) {
    #[derive(Default)]
    struct Name<'a> {
        /// The life that was added and not deleted.
        life: Option<&'a str>,
        id: Option<u64>,
        /// All that it ever had.
        ids: BTreeSet<u64>,
    }
    let mut names: BTreeMap<&str, Name<'_>> = BTreeMap::new();
    for call in &history.calls {
        let name = names.entry(&call.name).or_default();
        let at = format!("{} at {:?}", call.name, call.begun);
        match &call.what {
            Answered::Added { life } => (name.life, name.id) = (Some(life.as_str()), None),
            Answered::Deleted => (name.life, name.id) = (None, None),
            Answered::Read { id } => match (name.life, id) {
                (None, None) => {}
                (None, Some(id)) => {
                    found.add(11, format!("{at} shows id {id} after its deletion"));
                }
                (Some(life), None) => {
                    found.add(11, format!("{at} is not there, though {life} was added"));
                }
                (Some(life), Some(id)) => {
                    let is_new = name.ids.insert(*id);
                    let is_right = match name.id {
                        Some(present) => present == *id,
                        None => is_new,
                    };
                    if !is_right {
                        found.add(11, format!("{at} shows id {id} as {life}"));
                    }
                    name.id = Some(*id);
                }
            },
            Answered::Items { lives } => {
                let others = lives.iter().filter(|life| name.life != Some(life.as_str()));
                let others: Vec<&String> = others.collect();
                if !others.is_empty() {
                    let what = format!("{at} shows items of {others:?} as {:?}", name.life);
                    found.add(11, what);
                }
            }
            Answered::Refused { why } => found.add(11, format!("{at} was refused: {why}")),
        }
    }
}

/// 11: what was deleted is not crawled any more.
fn after_deletions(history: &History, terms: Terms, found: &mut Found) {
    let mut present: BTreeMap<&str, &str> = BTreeMap::new();
    let mut over: BTreeMap<&str, Duration> = BTreeMap::new();
    for call in &history.calls {
        match &call.what {
            Answered::Added { life } => _ = present.insert(&call.name, life),
            Answered::Deleted => {
                if let Some(life) = present.remove(call.name.as_str()) {
                    over.insert(life, call.ended);
                }
            }
            Answered::Read { .. } | Answered::Items { .. } | Answered::Refused { .. } => {}
        }
    }
    for request in &history.requests {
        let Some(deleted) = over.get(request.life.as_str()) else {
            continue;
        };
        if request.start > *deleted + terms.after_delete {
            let what = format!(
                "{} was asked for {:?} after its deletion",
                request.life,
                request.start.saturating_sub(*deleted)
            );
            found.add(11, what);
        }
    }
}

#[cfg(test)]
mod tests;
