//! Statistics of a run beyond its [`Counts`](super::crawl::Counts): statuses, hosts of refused links, fields that items lack.
//!
//! Each shard adds up its own, and [`Statistics::add`] merges them. Every part is bounded in entries and in
//! bytes of their texts, so that the whole stays below 64 KiB whatever sites and rules do; what is beyond a
//! bound is counted under one word, or not at all. A page whose texts are known costs no allocation here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use url::Url;

pub use hosts::{HostLinks, RefusedHosts, TopHosts};
pub use kinds::Kind;
pub use plans::{Matched, PlanMatches, PlanNames, PlanRead};
pub use run::{RunStatistics, why_ended};

use super::crawl::{Done, Fingerprint};
use super::plugin::Description;

mod hosts;
mod kinds;
mod plans;
mod run;
#[cfg(test)]
mod tests;

/// Key under which everything beyond a bound is counted.
pub const OTHERS: &str = "others";
/// Key under which pages are counted whose statuses are beyond the bound.
pub const OTHER_STATUSES: u16 = 0;

/// Mark at the end of a URL that is cut.
pub const CUT: char = '…';

/// Largest number of statuses that are told apart.
const MAX_STATUSES: usize = 32;
/// Largest number of reasons whose hosts are kept.
const MAX_REASONS: usize = 6;
/// Largest number of reasons with an example of a page that was given up.
const MAX_EXAMPLES: usize = 16;
/// Largest number of root requests that are told to have given no page.
const MAX_LOST_ROOTS: usize = 5;
/// Bytes of a reason or an outcome.
const REASON_BYTES: usize = 40;
/// Bytes of a URL, with the mark of one that is cut.
const URL_BYTES: usize = 200;

/// Statistics of one run of one shard, or of all shards together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Statistics {
    /// Attempts that ended a page, by the status of the answer. A page that was given up and tried again counts
    /// once for each end.
    pub statuses: BTreeMap<u16, u64>,
    /// Hosts of refused links, by the reason of the refusal.
    pub refused_hosts: BTreeMap<String, TopHosts>,
    /// URL of a page that was given up, by reason.
    pub dead_examples: BTreeMap<String, String>,
    /// Root requests that gave no page: some of them.
    pub lost_roots: Vec<LostRoot>,
    /// Items by their kind, which is the name of their schema.
    pub kinds: BTreeMap<String, Kind>,
    /// Matches of selectors, by the name of their plan.
    pub plans: BTreeMap<String, PlanMatches>,
}

/// Root request that gave no page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LostRoot {
    /// Beginning of the request's fingerprint: several requests may have one URL. 0 if it is not known.
    pub request: u64,
    /// URL of the request.
    pub url: String,
    /// Outcome, as [`Done::as_str`] names it, or the reason for which it was given up.
    pub end: String,
    /// Status of its answer; 0 if there was none, or if it is not known.
    pub status: u16,
    /// Target of its redirect, if that is not followed; otherwise empty.
    pub target: String,
    /// Reason why the target is not followed; otherwise empty.
    pub refusal: String,
}

/// Facts about one attempt at a page, as a crawl sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// Status of the answer; 0 if there was none, or if it is not known.
    pub status: u16,
    /// Hosts of refused links.
    pub refused_hosts: RefusedHosts,
    /// Target of a redirect that is not followed, and the reason.
    pub refused_target: Option<(Url, &'static str)>,
    /// Plans by which the page was read.
    pub plans: Vec<PlanRead>,
    /// Items of the page by their kind, from [`Kind::of_items`].
    pub kinds: BTreeMap<String, Kind>,
}

/// End of an attempt at a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End<'a> {
    /// The page is done.
    Done(Done),
    /// The page is given up, for this reason.
    Dead(&'a str),
    /// The page is tried again.
    Retry,
}

/// An attempt at a page, to be added to the statistics.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// URL of the request.
    pub url: &'a Url,
    /// Fingerprint of the request, if it is a root request.
    pub root: Option<Fingerprint>,
    /// End of the attempt.
    pub end: End<'a>,
    /// Facts that the crawl has seen.
    pub observed: &'a Observed,
}

impl Statistics {
    /// Adds an attempt at a page.
    pub fn note(&mut self, attempt: Attempt<'_>) {
        let Attempt {
            url,
            root,
            end,
            observed,
        } = attempt;
        for read in &observed.plans {
            plans::note(&mut self.plans, read);
        }
        for refused in observed.refused_hosts.iter() {
            if let Some(hosts) = entry(
                &mut self.refused_hosts,
                refused.reason,
                REASON_BYTES,
                MAX_REASONS,
            ) {
                hosts.add(&refused.host, refused.n);
            }
        }
        kinds::merge(&mut self.kinds, &observed.kinds);
        if end == End::Retry {
            return;
        }
        if observed.status > 0 {
            self.note_status(observed.status, 1);
        }
        if let End::Dead(reason) = end {
            self.note_example(reason, url.as_str());
        }
        if let Some(fingerprint) = root {
            self.note_root(fingerprint, url, end, observed);
        }
    }

    /// Forgets the example of pages that were given up for a reason, because some of them are tried again. Returns
    /// true if there was one.
    pub fn forget_example(&mut self, reason: &str) -> bool {
        let reason = plain(reason, REASON_BYTES);
        self.dead_examples.remove(&*reason).is_some()
    }

    /// Makes sure that fields are known that no item has, from what a plugin declares of its items.
    pub fn declare(&mut self, plugin: &Description) {
        kinds::declare(&mut self.kinds, &plugin.schemas);
    }

    /// Returns kind and name of each field that was empty, or absent, in every item of the kind.
    pub fn empty_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let kinds = self.kinds.iter();
        kinds.flat_map(|(kind, known)| known.empty_fields().map(|field| (kind.as_str(), field)))
    }

    /// True if an item of any kind has the field, or the schema of a kind that has items declares it.
    pub fn has_field(&self, field: &str) -> bool {
        let mut kinds = self.kinds.values();
        kinds.any(|kind| kind.has_field(field))
    }

    /// True if there may be items of a kind. The kinds beyond the bound are not told apart.
    pub fn may_have_kind(&self, kind: &str) -> bool {
        kinds::may_have(&self.kinds, kind)
    }

    /// Returns the number of items that are known by their kind.
    pub fn items(&self) -> u64 {
        self.kinds.values().map(|kind| kind.items).sum()
    }

    /// Returns plan and name of each selector that was tried and never matched anything.
    pub fn unmatched(&self) -> impl Iterator<Item = (&str, &str)> {
        let plans = self.plans.iter();
        plans.flat_map(|(plan, known)| known.unmatched().map(|name| (plan.as_str(), name)))
    }

    /// Adds the statistics of another shard.
    pub fn add(&mut self, other: &Self) {
        for (status, n) in &other.statuses {
            self.note_status(*status, *n);
        }
        for (reason, hosts) in &other.refused_hosts {
            let own = entry(&mut self.refused_hosts, reason, REASON_BYTES, MAX_REASONS);
            if let Some(own) = own {
                own.merge(hosts);
            }
        }
        for (reason, url) in &other.dead_examples {
            self.note_example(reason, url);
        }
        for root in &other.lost_roots {
            if self.lost_roots.len() < MAX_LOST_ROOTS && !self.lost_roots.contains(root) {
                self.lost_roots.push(root.clone());
            }
        }
        kinds::merge(&mut self.kinds, &other.kinds);
        plans::merge(&mut self.plans, &other.plans);
    }

    fn note_status(&mut self, status: u16, n: u64) {
        let is_known = self.statuses.contains_key(&status) || self.statuses.len() < MAX_STATUSES;
        let key = if is_known { status } else { OTHER_STATUSES };
        let sum = self.statuses.entry(key).or_default();
        *sum = sum.saturating_add(n);
    }

    fn note_example(&mut self, reason: &str, url: &str) {
        let example = entry(&mut self.dead_examples, reason, REASON_BYTES, MAX_EXAMPLES);
        if let Some(example) = example.filter(|example| example.is_empty()) {
            *example = shown(url).into_owned();
        }
    }

    fn note_root(
        &mut self,
        fingerprint: Fingerprint,
        url: &Url,
        end: End<'_>,
        observed: &Observed,
    ) {
        let [a, b, c, d, e, f, g, h, ..] = fingerprint.0;
        let request = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        // A root request that was given up may have been tried again.
        self.lost_roots.retain(|root| root.request != request);
        let target = observed.refused_target.as_ref();
        let end = match end {
            End::Retry
            | End::Done(Done::Parsed | Done::NotModified | Done::NotDue | Done::Duplicate) => {
                return;
            }
            // Its target is followed and tells more.
            End::Done(Done::Redirected) if target.is_none() => return,
            End::Done(done) => done.as_str(),
            End::Dead(reason) => reason,
        };
        if self.lost_roots.len() < MAX_LOST_ROOTS {
            self.lost_roots.push(LostRoot {
                request,
                url: shown(url.as_str()).into_owned(),
                end: plain(end, REASON_BYTES).into_owned(),
                status: observed.status,
                target: target
                    .map_or_else(String::new, |(url, _)| shown(url.as_str()).into_owned()),
                refusal: target.map_or_else(String::new, |(_, reason)| (*reason).to_owned()),
            });
        }
    }
}

/// Returns the value of a name, which is made if there is room for it. A known name costs no allocation.
fn entry<'a, V: Default>(
    map: &'a mut BTreeMap<String, V>,
    name: &str,
    max_bytes: usize,
    max: usize,
) -> Option<&'a mut V> {
    let name = plain(name, max_bytes);
    if map.contains_key(&*name) {
        return map.get_mut(&*name);
    }
    (map.len() < max).then(|| map.entry(name.into_owned()).or_default())
}

/// Returns a URL as it is shown: one that is too long is cut, with a mark.
fn shown(url: &str) -> Cow<'_, str> {
    if url.len() <= URL_BYTES {
        return plain(url, URL_BYTES);
    }
    Cow::Owned(format!("{}{CUT}", plain(url, URL_BYTES - CUT.len_utf8())))
}

/// Returns the beginning of a text from elsewhere, with nothing in it that a terminal would take for a command, or
/// that is longer in JSON.
fn plain(text: &str, max_bytes: usize) -> Cow<'_, str> {
    let text = &text[..text.floor_char_boundary(max_bytes)];
    let is_special = |c: char| c.is_control() || matches!(c, '"' | '\\');
    match text.contains(is_special) {
        true => Cow::Owned(text.replace(is_special, "?")),
        false => Cow::Borrowed(text),
    }
}
