//! Profile of the items of a run: shapes by kind and host.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::sample::Sample;
use super::shape::Shape;
use super::verdict::{Distances, distances};
use super::{BLOCK, MAX_BYTES, MAX_GROUPS, MAX_HOSTS, MAX_KINDS, MIN_PAGES};

/// Name of the host under which all hosts are counted that have no group of their own.
pub(super) const OTHER_HOSTS: &str = "";

/// Kind of items, and the host that they are from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupName {
    /// Kind of the items: the name of their schema.
    pub kind: String,
    /// Host, or empty for all hosts without a group of their own.
    pub host: String,
}

/// Profile of the items of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    groups: Vec<(GroupName, Group)>,
    /// Groups of which items of this run were dropped. What has passed may be a part of the site that is like no other.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) dropped: BTreeSet<GroupName>,
}

/// Items of one kind from one host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) shape: Shape,
    /// Largest distances of a field in a block of pages from the rest of a good run.
    #[serde(default)]
    pub(super) spread: BTreeMap<String, Distances>,
    /// First block of the run, which is compared with the whole run at its end: it may be a part of the site that does not
    /// come again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<Shape>,
    /// The block under way. It is not stored: the next opening begins another one.
    #[serde(skip)]
    block: Shape,
}

impl Profile {
    /// Returns the group of this kind and host: its own, or that of the hosts without one.
    pub(super) fn group(&self, kind: &str, host: &str) -> Option<(&GroupName, &Group)> {
        let found = |host: &str| self.place(kind, host).ok();
        let place = found(host).or_else(|| found(OTHER_HOSTS))?;
        self.groups.get(place).map(|(name, group)| (name, group))
    }

    /// Returns the name of the group by which items of this kind and host can be judged, if it has enough pages.
    pub fn judges(&self, kind: &str, host: &str) -> Option<&GroupName> {
        let (name, group) = self.group(kind, host)?;
        (group.shape.n >= MIN_PAGES).then_some(name)
    }

    /// Counts the item of a page that is looked at.
    pub fn add(&mut self, kind: &str, host: &str, sample: &Sample) {
        let Some(group) = self.open(kind, host, MAX_GROUPS) else {
            return;
        };
        group.shape.add(sample);
        group.block.add(sample);
        if group.block.n >= BLOCK {
            let block = std::mem::take(&mut group.block);
            match group.first {
                None => group.first = Some(block),
                Some(_) => group.widen_by(&block),
            }
        }
    }

    /// Returns what the next run is judged by: this profile, with the hosts of most pages, and with the unevenness that
    /// earlier runs had. A group of which this run has seen too little is joined with what was known of it.
    #[must_use]
    pub fn after(&self, earlier: &Self) -> Self {
        let mut next = self.clone();
        next.compare_firsts();
        for (name, group) in &earlier.groups {
            match next.place(&name.kind, &name.host) {
                Ok(place) => {
                    let own = &mut next.groups[place].1;
                    match own.shape.n < MIN_PAGES {
                        true => own.merge(group),
                        false => own.keep_spread(group),
                    }
                }
                Err(place) if next.groups.len() < MAX_GROUPS || group.shape.n == 0 => {
                    next.groups.insert(place, (name.clone(), group.clone()));
                }
                Err(_) => {}
            }
        }
        next.keep_largest();
        next
    }

    /// Returns the name of the group with which items of this kind and host are held.
    fn judged_as<'a>(&'a self, own: &'a GroupName) -> &'a GroupName {
        self.judges(&own.kind, &own.host).unwrap_or(own)
    }

    /// Forgets a group whose held items are released, and what a run with this baseline has learned of the items that are
    /// judged as this group: they have another look from now on.
    pub fn note_released(&mut self, run: &mut Self, name: &GroupName) {
        run.groups.retain(|(own, _)| self.judged_as(own) != name);
        run.dropped.remove(name);
        run.forget(name);
        self.forget(name);
    }

    /// Notes that held items of a group of this run were dropped: the next run is not judged by what this one learns of it.
    pub fn note_dropped(&mut self, name: &GroupName) {
        self.dropped.insert(name.clone());
    }

    /// Forgets what is known of a group: its items are not judged by this profile any more. An empty group stays, so that
    /// they are not judged by the other hosts of their kind either.
    pub(super) fn forget(&mut self, name: &GroupName) {
        if let Some(group) = self.open(&name.kind, &name.host, usize::MAX) {
            *group = Group::default();
        }
    }

    /// Returns what the next run is judged by, after a run with this profile that has stored all that it could, and that was
    /// judged by `earlier`. Of the kinds and hosts whose items it holds, or of which items were dropped, what was known before
    /// stays. It is what [`stored`](Self::stored) has room for: another opening judges by the same.
    #[must_use]
    pub fn after_run<'a>(
        mut self,
        earlier: &Self,
        held: impl Iterator<Item = &'a GroupName>,
    ) -> Self {
        let dropped = std::mem::take(&mut self.dropped);
        let mut left_out: BTreeSet<&GroupName> = held.collect();
        left_out.extend(&dropped);
        self.groups
            .retain(|(own, _)| !left_out.contains(earlier.judged_as(own)));
        let mut next = self.after(earlier);
        next.keep_room();
        next
    }

    /// Reads a stored profile. One that cannot be read is that of another version: the next run learns anew.
    pub fn read(stored: &[u8]) -> Option<Self> {
        serde_json::from_slice(stored).ok()
    }

    /// Returns the profile as it is stored, of [`MAX_BYTES`] at most. Groups without room are left out, those of fewest
    /// pages first, and are not judged.
    pub fn stored(&self) -> Vec<u8> {
        let mut kept = self.clone();
        kept.keep_room();
        serde_json::to_vec(&kept).expect("counts are JSON")
    }

    fn keep_room(&mut self) {
        let n_bytes = serde_json::to_vec(&self.groups).map_or(0, |json| json.len());
        if n_bytes <= MAX_BYTES {
            return;
        }
        self.compare_firsts();
        // Empty groups are those that were forgotten. They are small, and lost they would be judged by other hosts.
        self.groups
            .sort_by_key(|(_, group)| (group.shape.n > 0, std::cmp::Reverse(group.shape.n)));
        let mut n_bytes = 0;
        self.groups.retain(|group| {
            let size = serde_json::to_vec(group).map_or(MAX_BYTES, |json| json.len());
            n_bytes += size;
            n_bytes <= MAX_BYTES
        });
        self.groups.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    /// Compares the first block of each group with all that the run has seen, and forgets it.
    fn compare_firsts(&mut self) {
        for (_, group) in &mut self.groups {
            if let Some(first) = group.first.take() {
                group.widen_by(&first);
            }
        }
    }

    /// Returns all groups.
    #[cfg(test)]
    pub(super) fn groups(&self) -> &[(GroupName, Group)] {
        &self.groups
    }

    fn place(&self, kind: &str, host: &str) -> Result<usize, usize> {
        let sought = (kind, host);
        self.groups
            .binary_search_by(|(name, _)| (name.kind.as_str(), name.host.as_str()).cmp(&sought))
    }

    /// Returns the group to count in. Beyond `max` groups, a new host goes to the other hosts of its kind, and beyond the
    /// largest number of kinds, a new kind is not counted.
    fn open(&mut self, kind: &str, host: &str, max: usize) -> Option<&mut Group> {
        let place = match self.place(kind, host) {
            Ok(place) => place,
            Err(_) if !self.has_kind(kind) && self.n_kinds() >= MAX_KINDS => return None,
            Err(place) if host == OTHER_HOSTS || self.groups.len() < max => {
                self.begin(place, kind, host)
            }
            Err(_) => match self.place(kind, OTHER_HOSTS) {
                Ok(place) => place,
                Err(place) => self.begin(place, kind, OTHER_HOSTS),
            },
        };
        self.groups.get_mut(place).map(|(_, group)| group)
    }

    fn begin(&mut self, place: usize, kind: &str, host: &str) -> usize {
        let name = GroupName {
            kind: kind.to_owned(),
            host: host.to_owned(),
        };
        self.groups.insert(place, (name, Group::default()));
        place
    }

    fn has_kind(&self, kind: &str) -> bool {
        self.groups.iter().any(|(name, _)| name.kind == kind)
    }

    fn n_kinds(&self) -> usize {
        let kinds = self
            .groups
            .chunk_by(|(one, _), (other, _)| one.kind == other.kind);
        kinds.count()
    }

    /// Keeps the hosts of each kind that have most pages, and counts the rest together.
    fn keep_largest(&mut self) {
        let mut by_kind: BTreeMap<String, Vec<(GroupName, Group)>> = BTreeMap::new();
        for (name, group) in std::mem::take(&mut self.groups) {
            by_kind
                .entry(name.kind.clone())
                .or_default()
                .push((name, group));
        }
        for (kind, mut hosts) in by_kind {
            // Empty groups come first: without them, their hosts would be judged by the others.
            hosts.sort_by_key(|(name, group)| {
                let n = group.shape.n;
                (name.host == OTHER_HOSTS, n > 0, std::cmp::Reverse(n))
            });
            let rest = hosts.split_off(hosts.len().min(MAX_HOSTS));
            self.groups.extend(hosts);
            self.groups.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (_, group) in rest {
                // There is a place for it, however many groups there are.
                if let Some(others) = self.open(&kind, OTHER_HOSTS, usize::MAX) {
                    others.merge(&group);
                }
            }
        }
    }
}

impl Group {
    fn merge(&mut self, other: &Self) {
        self.shape.merge(&other.shape);
        self.keep_spread(other);
    }

    fn keep_spread(&mut self, other: &Self) {
        for (name, distances) in &other.spread {
            if let Some(own) = self.spread.get_mut(name) {
                own.widen(distances);
            } else if self.spread.len() < super::MAX_FIELDS {
                self.spread.insert(name.clone(), distances.clone());
            }
        }
    }

    fn widen_by(&mut self, block: &Shape) {
        for name in self.shape.fields.keys() {
            let found = distances(&self.shape, block, name);
            match self.spread.get_mut(name) {
                Some(spread) => spread.widen(&found),
                None => drop(self.spread.insert(name.clone(), found)),
            }
        }
    }
}
