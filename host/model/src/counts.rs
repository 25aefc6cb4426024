//! Totals of a crawl.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::crawl::{Done, UnixMillis};

/// Reason of a dead letter whose rule the plugin does not have. Another version of the plugin may
/// have it.
pub const NO_RULE: &str = "no-rule";

/// Beginning of the reason of a run that has failed because all of its root requests were given up.
pub const LOST_ROOTS: &str = "every root request was given up";

/// Totals of one run of one shard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Pages that a rule has parsed.
    pub parsed: u64,
    /// Pages done in another way: skipped, not modified, not due, redirected, duplicate, gone, denied.
    pub other_done: u64,
    /// Pages of `other_done` by their outcome, as [`Done::as_str`] names it. Pages that ended before outcomes
    /// were kept are missing.
    pub outcomes: BTreeMap<String, u64>,
    /// Time at which the first attempt at a page was under way; 0 before that.
    pub began_at: UnixMillis,
    /// Time of the latest answer; 0 before the first attempt has ended.
    pub ended_at: UnixMillis,
    /// Pages given up.
    pub dead: u64,
    /// Attempts that failed and are tried again.
    pub retries: u64,
    /// Items stored.
    pub items: u64,
    /// Items that are held, of this run and of earlier ones.
    pub held: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Bytes of the bodies of `bytes` that were kept as files; one that was kept again counts again.
    pub kept_bytes: u64,
    /// URLs that are known and have not come to an end: they wait to be fetched, or are in flight.
    pub due: u64,
    /// Hosts that have, or had, a URL.
    pub hosts: u64,
    /// Refused links, and pages of content types that are not wanted, by reason.
    pub refused_links: BTreeMap<String, u64>,
    /// Pages given up, by reason.
    pub dead_by_reason: BTreeMap<String, u64>,
}

impl Counts {
    /// Pages that came to an end.
    pub fn pages(&self) -> u64 {
        self.parsed + self.other_done + self.dead
    }

    /// Pages that came to an end without those that are not due yet: the setting `max-pages` is about them.
    pub fn due_pages(&self) -> u64 {
        let not_due = self.outcomes.get(Done::NotDue.as_str());
        self.pages()
            .saturating_sub(not_due.copied().unwrap_or_default())
    }

    /// Counts a page that is done.
    pub fn end_done(&mut self, done: Done) {
        match done {
            Done::Parsed => self.parsed += 1,
            other => {
                self.other_done += 1;
                add_to(&mut self.outcomes, other.as_str(), 1);
            }
        }
    }

    /// Counts a page that is given up.
    pub fn end_dead(&mut self, reason: &str) {
        self.dead += 1;
        add_to(&mut self.dead_by_reason, reason, 1);
    }

    /// Removes a page from the count of those that were given up.
    pub fn forget_death(&mut self, reason: &str) {
        self.dead = self.dead.saturating_sub(1);
        if let Some(n) = self.dead_by_reason.get_mut(reason) {
            *n = n.saturating_sub(1);
        }
        self.dead_by_reason.retain(|_, n| *n > 0);
    }

    /// Counts links that were refused.
    pub fn refuse(&mut self, reason: &str, n: u64) {
        if n > 0 {
            add_to(&mut self.refused_links, reason, n);
        }
    }

    /// Records that an attempt at a page, which was under way at `now`, was answered at `answered_at`; 0 stands
    /// for a time that is not known.
    pub fn note_attempt(&mut self, now: UnixMillis, answered_at: UnixMillis) {
        if self.began_at == 0 {
            self.began_at = now;
        }
        self.ended_at = self.ended_at.max(now).max(answered_at);
    }

    /// Returns the milliseconds between the first attempt and the latest answer, with all pauses between them.
    pub fn took_ms(&self) -> u64 {
        self.ended_at.saturating_sub(self.began_at)
    }

    /// Returns the pages that came to an end in a second, without those that were not due. `None` if they took less than a
    /// second.
    pub fn rate(&self) -> Option<f64> {
        let took_ms = self.took_ms();
        (took_ms >= 1_000).then(|| self.due_pages() as f64 * 1_000.0 / took_ms as f64)
    }

    /// Returns a sentence with the reasons if every root request was given up. Because links come from pages
    /// alone, every end in a run without a page is that of a root request, or of what it was redirected to. A run
    /// that ended with URLs left, at a limit of its pages, may have root requests that were never tried. One with
    /// refused links may have root requests that were redirected to a place that is not followed.
    pub fn lost_roots(&self) -> Option<String> {
        let has_another_end = self.other_done > self.redirected() || !self.refused_links.is_empty();
        let are_lost = self.dead > 0 && self.due == 0 && !has_another_end && self.has_no_page();
        are_lost.then(|| {
            let reasons = self.dead_by_reason.iter();
            let reasons: Vec<_> = reasons.map(|(why, n)| format!("{why} {n}")).collect();
            format!("{LOST_ROOTS}: {}", reasons.join(", "))
        })
    }

    fn redirected(&self) -> u64 {
        let redirected = self.outcomes.get(Done::Redirected.as_str());
        redirected.copied().unwrap_or_default()
    }

    /// True if no page was parsed, and none is known to be unchanged. Pages whose outcomes an earlier version did
    /// not keep may have been.
    pub fn has_no_page(&self) -> bool {
        let are_outcomes_known = self.outcomes.values().sum::<u64>() == self.other_done;
        let known = [Done::NotModified, Done::NotDue].map(Done::as_str);
        let has_unchanged = known.iter().any(|done| self.outcomes.contains_key(*done));
        self.parsed == 0 && are_outcomes_known && !has_unchanged
    }

    /// Adds the totals of another shard.
    pub fn add(&mut self, other: &Counts) {
        self.parsed += other.parsed;
        self.other_done += other.other_done;
        self.began_at = match (self.began_at, other.began_at) {
            (0, began_at) | (began_at, 0) => began_at,
            (one, another) => one.min(another),
        };
        self.ended_at = self.ended_at.max(other.ended_at);
        self.dead += other.dead;
        self.retries += other.retries;
        self.items += other.items;
        self.held += other.held;
        self.bytes += other.bytes;
        self.kept_bytes += other.kept_bytes;
        self.due += other.due;
        self.hosts += other.hosts;
        let add = |sums: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>| {
            for (reason, n) in others {
                add_to(sums, reason, *n);
            }
        };
        add(&mut self.outcomes, &other.outcomes);
        add(&mut self.refused_links, &other.refused_links);
        add(&mut self.dead_by_reason, &other.dead_by_reason);
    }
}

/// Adds to the number of a word; a word that is known costs no allocation.
fn add_to(sums: &mut BTreeMap<String, u64>, word: &str, n: u64) {
    match sums.get_mut(word) {
        Some(sum) => *sum += n,
        None => {
            sums.insert(word.to_owned(), n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_their_outcomes() {
        let mut counts = Counts::default();
        for done in [Done::Parsed, Done::Gone, Done::Gone, Done::Skipped] {
            counts.end_done(done);
        }
        counts.end_dead("timeout");
        let mut sum = counts.clone();
        sum.add(&counts);
        let outcomes: Vec<_> = sum.outcomes.iter().map(|(k, n)| (k.as_str(), *n)).collect();
        assert_eq!(outcomes, [("gone", 4), ("skipped", 2)]);
        assert_eq!((sum.parsed, sum.other_done, sum.dead), (2, 6, 2));
        sum.forget_death("timeout");
        assert_eq!((sum.dead, &sum.dead_by_reason["timeout"]), (1, &1));
    }

    #[test]
    fn pages_that_are_not_due_use_up_no_limit() {
        let mut counts = Counts::default();
        for done in [Done::Parsed, Done::NotDue, Done::NotDue] {
            counts.end_done(done);
        }
        counts.end_dead("timeout");
        assert_eq!((counts.pages(), counts.due_pages()), (4, 2));
    }

    #[test]
    fn the_rate_is_that_of_all_shards_together() {
        let mut counts = Counts::default();
        assert_eq!(counts.rate(), None);
        counts.parsed = 30;
        counts.note_attempt(10_000, 10_500);
        assert_eq!(counts.rate(), None);
        counts.note_attempt(11_000, 12_000);
        let mut sum = Counts::default();
        sum.add(&counts);
        let mut other = Counts {
            parsed: 10,
            ..Counts::default()
        };
        other.note_attempt(13_000, 0);
        other.note_attempt(14_000, 0);
        sum.add(&other);
        sum.end_done(Done::NotDue);
        assert_eq!((sum.took_ms(), sum.rate()), (4_000, Some(10.0)));
    }

    /// Checks if no page was read, and if every root request was given up, after these ends.
    #[track_caller]
    fn check_roots(ends: &[Result<Done, &str>], has_no_page: bool, has_lost_all: bool) {
        let mut counts = Counts::default();
        for end in ends {
            match end {
                Ok(done) => counts.end_done(*done),
                Err(reason) => counts.end_dead(reason),
            }
        }
        let found = (counts.has_no_page(), counts.lost_roots().is_some());
        assert_eq!(found, (has_no_page, has_lost_all), "{counts:?}");
    }

    #[test]
    fn a_run_is_judged_by_the_ends_of_its_root_requests() {
        check_roots(&[], true, false);
        check_roots(&[Ok(Done::Parsed)], false, false);
        check_roots(&[Ok(Done::Parsed), Err("timeout")], false, false);
        check_roots(&[Ok(Done::NotModified), Err("timeout")], false, false);
        check_roots(&[Ok(Done::NotDue), Err("timeout")], false, false);
        check_roots(&[Ok(Done::Gone)], true, false);
        check_roots(&[Ok(Done::Redirected)], true, false);
        check_roots(&[Err("timeout"), Ok(Done::Gone)], true, false);
        check_roots(&[Err("timeout"), Err("resolve")], true, true);
        let [redirected, gone] = [Ok(Done::Redirected), Ok(Done::Gone)];
        check_roots(&[redirected, Err("timeout")], true, true);
        check_roots(&[redirected, gone, Err("timeout")], true, false);
    }

    #[test]
    fn a_root_request_that_was_never_tried_is_not_lost() {
        let mut counts = Counts {
            due: 1,
            ..Counts::default()
        };
        counts.end_dead("timeout");
        assert_eq!(counts.lost_roots(), None);
        counts.due = 0;
        let why = "every root request was given up: timeout 1";
        assert_eq!(counts.lost_roots().as_deref(), Some(why));
        // It is tried again.
        counts.forget_death("timeout");
        assert_eq!(counts.lost_roots(), None);
    }

    #[test]
    fn a_root_request_whose_redirect_was_refused_is_not_given_up() {
        let mut counts = Counts::default();
        counts.end_dead("timeout");
        counts.end_done(Done::Redirected);
        counts.refuse("out-of-scope", 1);
        assert_eq!((counts.lost_roots(), counts.has_no_page()), (None, true));
    }

    #[test]
    fn outcomes_that_were_not_kept_may_have_been_pages() {
        // The root request was unchanged before an upgrade, which kept no outcomes.
        let mut counts = Counts {
            other_done: 1,
            ..Counts::default()
        };
        counts.end_dead("timeout");
        assert_eq!((counts.lost_roots(), counts.has_no_page()), (None, false));
    }
}
