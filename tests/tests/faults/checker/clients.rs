//! Observations of clients and sites: pages and items, the distance between requests, and names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Found, Terms, id_of};
use crate::history::{Answered, Change, History, Shown};

/// Tolerance for clocks of a loaded machine: an answer counts as ended a moment before the client has it.
const SLACK: Duration = Duration::from_millis(5);

/// Invariants 3 and 4: every page was asked for and is at rest, every item is there, and none twice.
pub(super) fn crawls(history: &History, found: &mut Found) {
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

/// Invariant 8: a host is given time; one request may be early for each opening of the frontier but the first.
pub(super) fn distances(history: &History, terms: Terms, found: &mut Found) {
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
                // The answer never came: the process that waited for it is gone.
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

/// Number of times that the frontier of each life of a name was opened.
fn openings_by_life(store: &[Change]) -> BTreeMap<String, usize> {
    let mut lives: BTreeMap<u64, String> = BTreeMap::new();
    // Each opening that succeeds finds another writer epoch, and records it.
    let mut openings: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for change in store {
        let Some(value) = &change.value else { continue };
        let number = |field: &str| value[field].as_u64().unwrap_or_default();
        if change.key.starts_with("resources/") {
            let start = value["params"]["start"].as_str().unwrap_or_default();
            if let Some(life) = life_of(start) {
                lives.insert(id_of(value), life.to_owned());
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

/// Returns the life that a page of a chain belongs to: `a-3` for `http://127.0.1.1:4000/a-3/17`.
pub(crate) fn life_of(url: &str) -> Option<&str> {
    url.split("://").nth(1)?.split('/').nth(1)
}

/// State of a name, by the answers to its client.
#[derive(Default)]
struct Name<'a> {
    /// Life that was added and not deleted.
    life: Option<&'a str>,
    id: Option<u64>,
    /// Ids that the name ever had.
    ids: BTreeSet<u64>,
    /// Generation of the present life: 1, and one more for each update that was answered.
    generation: u64,
    /// Concurrency that the last update of this life has set.
    concurrency: Option<u64>,
}

/// Invariant 11: a name shows one id from its addition to its deletion, another one each time, and no items of
/// another life. A change that was answered is there, and was carried out once.
pub(super) fn lives(history: &History, found: &mut Found) {
    let mut names: BTreeMap<&str, Name<'_>> = BTreeMap::new();
    for call in &history.calls {
        let name = names.entry(&call.name).or_default();
        let at = format!("{} at {:?}", call.name, call.begun);
        match &call.what {
            Answered::Added { life } => {
                (name.life, name.id) = (Some(life.as_str()), None);
                (name.generation, name.concurrency) = (1, None);
            }
            Answered::Deleted => (name.life, name.id) = (None, None),
            Answered::Updated {
                concurrency,
                generation,
            } => {
                (name.generation, name.concurrency) = (name.generation + 1, Some(*concurrency));
                if name.generation != *generation {
                    let expected = name.generation;
                    let what =
                        format!("{at} is updated to generation {generation}, not {expected}");
                    found.add(11, what);
                }
            }
            Answered::Read { shown } => match (name.life, shown) {
                (None, None) => {}
                (None, Some(shown)) => {
                    let id = shown.id;
                    found.add(11, format!("{at} shows id {id} after its deletion"));
                }
                (Some(life), None) => {
                    found.add(11, format!("{at} is not there, though {life} was added"));
                }
                (Some(life), Some(shown)) => name.is_shown(&at, life, shown, found),
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

impl Name<'_> {
    fn is_shown(&mut self, at: &str, life: &str, shown: &Shown, found: &mut Found) {
        let id = shown.id;
        let is_new = self.ids.insert(id);
        let is_right = match self.id {
            Some(present) => present == id,
            None => is_new,
        };
        if !is_right {
            found.add(11, format!("{at} shows id {id} as {life}"));
        }
        self.id = Some(id);
        let expected = (self.generation, self.concurrency);
        let (generation, concurrency) = (shown.generation, shown.concurrency);
        if (generation, concurrency) != expected {
            let what = format!(
                "{at} shows generation {generation} with concurrency {concurrency:?}, not {expected:?}"
            );
            found.add(11, what);
        }
    }
}

/// Invariant 11: a deleted resource is not crawled any more.
pub(super) fn after_deletions(history: &History, terms: Terms, found: &mut Found) {
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
            Answered::Updated { .. }
            | Answered::Read { .. }
            | Answered::Items { .. }
            | Answered::Refused { .. } => {}
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
