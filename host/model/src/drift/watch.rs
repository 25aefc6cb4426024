//! Pages that wait for the verdict on their window, by kind and host.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::profile::{GroupName, OTHER_HOSTS, Profile};
use super::sample::Sample;
use super::shape::Shape;
use super::verdict::{Departure, departure};
use super::{MAX_WAIT, MIN_WINDOW, STEP, Sensitivity, WINDOW};
use crate::plugin::Schema;

/// Pages of a run that wait for their verdict. `P` is what the caller knows a page by.
#[derive(Debug)]
pub struct Watch<P> {
    /// Profile of the last good run.
    baseline: Profile,
    /// Profile of the items of this run that have passed.
    run: Profile,
    sensitivity: Sensitivity,
    /// Fields that the schemas list, by kind. Kinds whose schemas list none are not here.
    declared: BTreeMap<String, BTreeSet<String>>,
    groups: BTreeMap<GroupName, Waiting<P>>,
}

/// Pages of one kind and host.
#[derive(Debug)]
struct Waiting<P> {
    pages: VecDeque<WaitingPage<P>>,
    /// Latest pages that have passed, at most [`WINDOW`].
    passed: VecDeque<Sample>,
    /// Reason why the items of this run are held; `None` as long as none departs.
    departure: Option<Departure>,
}

impl<P> Waiting<P> {
    fn new(departure: Option<Departure>) -> Self {
        Self {
            pages: VecDeque::new(),
            passed: VecDeque::new(),
            departure,
        }
    }
}

/// A page, with the item of it that is looked at.
#[derive(Debug)]
struct WaitingPage<P> {
    page: P,
    host: String,
    sample: Sample,
    /// Time since when it waits, in milliseconds.
    since: u64,
}

/// Verdict on pages that have waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<P> {
    /// Kind and host of the items.
    pub group: GroupName,
    /// Pages whose items of this kind are meant, oldest first.
    pub pages: Vec<P>,
    /// Reason why they are held. `None` if they pass.
    pub departure: Option<Departure>,
}

impl<P> Watch<P> {
    /// Begins with the profile of the last good run, and with that of the items of this run that have passed already.
    pub fn new(
        baseline: Profile,
        run: Profile,
        sensitivity: Sensitivity,
        schemas: &[Schema],
    ) -> Self {
        let declared = schemas.iter().filter_map(|schema| {
            let fields = schema.properties()?;
            Some((schema.name.clone(), fields))
        });
        Self {
            baseline,
            run,
            sensitivity,
            declared: declared.collect(),
            groups: BTreeMap::new(),
        }
    }

    /// Returns a watch for pages of another run or plugin, which are judged in the same way. This run neither learns from
    /// them, nor is it held because of them.
    #[must_use]
    pub fn for_earlier(&self) -> Self {
        Self {
            baseline: self.baseline.clone(),
            run: Profile::default(),
            sensitivity: self.sensitivity,
            declared: self.declared.clone(),
            groups: BTreeMap::new(),
        }
    }

    /// Returns the profile of the items of this run that have passed.
    pub fn run(&self) -> &Profile {
        &self.run
    }

    /// Sets what counts from now on.
    pub fn set_sensitivity(&mut self, sensitivity: Sensitivity) {
        self.sensitivity = sensitivity;
    }

    /// Returns true if items of this kind and host wait for a verdict. Others are not judged: nothing is known of them, or
    /// too little, and none are held, or nothing is to be held.
    pub fn is_judged(&self, kind: &str, host: &str) -> bool {
        self.sensitivity.min_distance().is_some() && self.group_of(kind, host).is_some()
    }

    /// Returns the name of the group with which items of this kind and host are judged or held.
    fn group_of(&self, kind: &str, host: &str) -> Option<GroupName> {
        let judges = self.baseline.judges(kind, host).cloned();
        // What is held stays held, also if it has no profile any more.
        judges.or_else(|| {
            // A host with a group of its own is not judged by the others, however little the group knows.
            let own = self.baseline.group(kind, host);
            let has_own = own.is_some_and(|(name, _)| name.host == host);
            let others = (!has_own).then_some(OTHER_HOSTS);
            let mut names = std::iter::once(host).chain(others).map(|host| GroupName {
                kind: kind.to_owned(),
                host: host.to_owned(),
            });
            let is_held = |name: &GroupName| {
                let waiting = self.groups.get(name);
                waiting.is_some_and(|waiting| waiting.departure.is_some())
            };
            names.find(is_held)
        })
    }

    /// Counts a page that is not judged, by the item of a kind that is looked at.
    pub fn learn(&mut self, kind: &str, host: &str, sample: &Sample) {
        self.run.add(kind, host, sample);
    }

    /// Adds a page to those that wait from `now` on, by the item of a kind that is looked at. Times are in milliseconds of a
    /// clock that does not go back.
    pub fn add(&mut self, page: P, kind: &str, host: &str, sample: Sample, now: u64) {
        let name = self.group_of(kind, host).unwrap_or_else(|| GroupName {
            kind: kind.to_owned(),
            host: host.to_owned(),
        });
        let waiting = self.groups.entry(name);
        let waiting = waiting.or_insert_with(|| Waiting::new(None));
        waiting.pages.push_back(WaitingPage {
            page,
            host: host.to_owned(),
            sample,
            since: now,
        });
    }

    /// Holds a group from now on, because an earlier opening did.
    pub fn hold(&mut self, group: GroupName, departure: Departure) {
        self.groups.insert(group, Waiting::new(Some(departure)));
    }

    /// Returns the number of pages that wait, each counted once for each of its kinds.
    #[cfg(test)]
    pub(super) fn n_waiting(&self) -> usize {
        self.groups
            .values()
            .map(|waiting| waiting.pages.len())
            .sum()
    }

    /// Returns the time at which the oldest page has waited for [`MAX_WAIT`]. `None` if none waits.
    pub fn due_at(&self) -> Option<u64> {
        let oldest = self
            .groups
            .values()
            .filter_map(|waiting| waiting.pages.front());
        oldest
            .map(|page| page.since.saturating_add(max_wait()))
            .min()
    }

    /// Returns the next verdict, if there is one. Windows that are not full are judged if `is_end`, and if a page has waited
    /// for [`MAX_WAIT`].
    pub fn next(&mut self, now: u64, is_end: bool) -> Option<Verdict<P>> {
        let due = self
            .groups
            .iter()
            .find(|(_, waiting)| waiting.is_due(now, is_end));
        let name = due.map(|(name, _)| name.clone())?;
        let waiting = self.groups.get_mut(&name)?;
        let is_end = is_end || waiting.is_old(now);
        let min_distance = self.sensitivity.min_distance();
        if min_distance.is_none() {
            waiting.departure = None;
        }
        if waiting.departure.is_none()
            && let Some(min_distance) = min_distance
            && let Some((_, baseline)) = self.baseline.group(&name.kind, &name.host)
        {
            let declared = self.declared.get(&name.kind);
            let is_declared = |field: &str| {
                let outer = field.split('.').next().unwrap_or(field);
                declared.is_none_or(|fields| fields.contains(outer) || fields.contains(field))
            };
            let departs = |window: Shape| departure(baseline, &window, min_distance, is_declared);
            let found = waiting.windows(is_end).find_map(departs);
            waiting.departure = found;
        }
        let n = match is_end || waiting.departure.is_some() {
            true => waiting.pages.len(),
            false => STEP,
        };
        let departure = waiting.departure.clone();
        let judged = waiting.pages.drain(..n.min(waiting.pages.len()));
        let (mut pages, mut samples) = (Vec::with_capacity(n), Vec::new());
        for judged in judged {
            if departure.is_none() {
                self.run.add(&name.kind, &judged.host, &judged.sample);
                samples.push(judged.sample);
            }
            pages.push(judged.page);
        }
        waiting.passed.extend(samples);
        let n_beyond = waiting.passed.len().saturating_sub(WINDOW);
        waiting.passed.drain(..n_beyond);
        Some(Verdict {
            group: name,
            pages,
            departure,
        })
    }
}

impl<P> Waiting<P> {
    fn is_due(&self, now: u64, is_end: bool) -> bool {
        let n = self.pages.len();
        n >= WINDOW || (n > 0 && (is_end || self.departure.is_some() || self.is_old(now)))
    }

    fn is_old(&self, now: u64) -> bool {
        let oldest = self.pages.front();
        oldest.is_some_and(|page| page.since.saturating_add(max_wait()) <= now)
    }

    /// Returns the windows to judge: the oldest full one, or at the end all pages, then the latest half of them, and so on:
    /// a change in the last few pages is a small part of the whole. At the end, pages that have passed fill the window up, so
    /// that a crawl that ends its windows early is judged by more than a few pages at a time.
    fn windows(&self, is_end: bool) -> impl Iterator<Item = Shape> {
        let waiting = self.pages.iter().map(|page| &page.sample);
        let samples: Vec<&Sample> = match is_end {
            true => {
                let n_before = WINDOW.saturating_sub(self.pages.len());
                let before = self.passed.len().saturating_sub(n_before);
                self.passed.iter().skip(before).chain(waiting).collect()
            }
            false => waiting.take(WINDOW).collect(),
        };
        let n = samples.len();
        let halves = std::iter::successors(Some(0), move |start| {
            let next = start + (n - start).div_ceil(2);
            (is_end && n - next >= MIN_WINDOW).then_some(next)
        });
        halves.map(move |start| {
            let mut shape = Shape::default();
            let window = samples.iter().skip(start);
            window.for_each(|sample| shape.add_whole(sample));
            shape
        })
    }
}

/// Returns [`MAX_WAIT`] in milliseconds.
fn max_wait() -> u64 {
    MAX_WAIT.as_millis() as u64
}
