//! End of a run whose items are compared with those of earlier runs: what the run has not seen is told as removed, if it has
//! seen all that there is.
//!
//! Pages that robots.txt forbids, and links beyond the scope and the depth of a crawl, are no part of it: a run is complete
//! without them. What is given up otherwise, and what a limit of the run has cut off, may have items.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::log::CrawlLog;
use crawler_frontier::{Frontier, FrontierError, KeptBack};
use crawler_model::changes::ChangeTotals;
use crawler_model::crawl::Counts;
use crawler_model::number;
use crawler_model::scope::{DISK, HOSTS, PATTERN_URLS};

/// Reason of pages that are given up because robots.txt forbids them.
const ROBOTS: &str = "robots";

/// Tells what the run has not seen as removed, unless it is incomplete, and logs the changes of the run. Returns false if
/// it was stopped before that.
pub(super) async fn finish(
    frontier: &Arc<dyn Frontier>,
    log: &CrawlLog,
    stop: &CancellationToken,
) -> Result<bool, FrontierError> {
    let Some(totals) = frontier.change_totals() else {
        return Ok(true);
    };
    if let Some(missing) = missing(&frontier.counts(), totals, frontier.kept_back()) {
        log.note(
            "warn",
            format!("items that this run has not seen are not told as removed: {missing}"),
        );
    } else if !frontier.tell_removed(stop).await? {
        return Ok(false);
    }
    for (level, line) in frontier.change_totals().map(told).unwrap_or_default() {
        log.note(level, line);
    }
    Ok(true)
}

/// Returns why a run has not seen all that there is, or `None` if it has.
fn missing(counts: &Counts, totals: ChangeTotals, kept_back: KeptBack) -> Option<String> {
    if totals.is_torn {
        let why = "some of its items were stored by a worker of an earlier version";
        return Some(why.to_owned());
    }
    if kept_back.n_held > 0 {
        let held = number(kept_back.n_held, "item");
        return Some(format!(
            "{held} in quarantine, which nobody has decided about"
        ));
    }
    if kept_back.has_dropped {
        return Some("items of this run were dropped".to_owned());
    }
    if counts.due > 0 {
        let due = number(counts.due, "URL");
        return Some(format!("a limit of the run has left {due} unfetched"));
    }
    if let Some(why) = counts.lost_roots() {
        return Some(why);
    }
    // The root request was redirected out of the scope, is gone, or was skipped by its rule, for instance. The items of
    // such a run are none, whatever the site has.
    if counts.has_no_page() {
        return Some("no request gave a page".to_owned());
    }
    let forbidden = counts.dead_by_reason.get(ROBOTS).copied();
    match counts.dead.saturating_sub(forbidden.unwrap_or_default()) {
        0 => {}
        1 => return Some("1 page was given up".to_owned()),
        n => return Some(format!("{n} pages were given up")),
    }
    [PATTERN_URLS, HOSTS, DISK].into_iter().find_map(|limit| {
        let n = counts.refused_links.get(limit).copied()?;
        let links = number(n, "link");
        Some(format!("setting {limit} has refused {links}"))
    })
}

/// Returns lines of the log about the changes of a run.
fn told(totals: ChangeTotals) -> Vec<(&'static str, String)> {
    let ChangeTotals {
        added,
        changed,
        unchanged,
        removed,
        ..
    } = totals;
    let mut lines = vec![(
        "info",
        format!(
            "items: {added} added, {changed} changed, {unchanged} unchanged, {removed} removed"
        ),
    )];
    if totals.repeated > 0 {
        lines.push((
            "warn",
            format!(
                "{} had the key of an earlier item of the run, with which each was compared",
                number(totals.repeated, "item")
            ),
        ));
    }
    if totals.lacking_key > 0 {
        lines.push((
            "warn",
            format!(
                "{} had no value in the field that is the key of the kind; the page stands for it",
                number(totals.lacking_key, "item")
            ),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::Done;

    /// Checks why a run with one page is not complete; empty if it is.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Counts, &mut ChangeTotals), expected: &str) {
        let (mut counts, mut totals) = (Counts::default(), ChangeTotals::default());
        counts.end_done(Done::Parsed);
        change(&mut counts, &mut totals);
        let found = missing(&counts, totals, KeptBack::default()).unwrap_or_default();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_run_is_complete_if_nothing_that_may_have_items_is_missing() {
        check(|_, _| {}, "");
        check(|counts, _| counts.refuse("out-of-scope", 3), "");
        check(|counts, _| counts.refuse("max-depth", 3), "");
        check(|counts, _| counts.end_done(Done::Skipped), "");
        check(|counts, _| counts.end_dead("robots"), "");
        check(
            |counts, _| {
                counts.end_dead("robots");
                counts.end_dead("timeout");
            },
            "1 page was given up",
        );
        check(
            |counts, _| {
                counts.end_dead("robots-unavailable");
                counts.end_dead("status-500");
            },
            "2 pages were given up",
        );
        check(
            |counts, _| counts.due = 1,
            "a limit of the run has left 1 URL unfetched",
        );
        check(
            |counts, _| counts.refuse("max-hosts", 2),
            "setting max-hosts has refused 2 links",
        );
        check(
            |_, totals| totals.is_torn = true,
            "some of its items were stored by a worker of an earlier version",
        );
    }

    #[test]
    fn a_run_with_held_or_dropped_items_is_not_complete() {
        let mut counts = Counts::default();
        counts.end_done(Done::Parsed);
        let check = |n_held, has_dropped, expected: &str| {
            let kept_back = KeptBack {
                n_held,
                has_dropped,
                ..KeptBack::default()
            };
            let found = missing(&counts, ChangeTotals::default(), kept_back);
            assert_eq!(found.as_deref(), Some(expected));
        };
        let held = "2 items in quarantine, which nobody has decided about";
        check(2, false, held);
        check(2, true, held);
        check(0, true, "items of this run were dropped");
    }

    #[test]
    fn a_run_without_a_page_is_not_complete() {
        let check = |change: fn(&mut Counts), expected: &str| {
            let mut counts = Counts::default();
            change(&mut counts);
            let found = missing(&counts, ChangeTotals::default(), KeptBack::default());
            assert_eq!(found.as_deref(), Some(expected));
        };
        // The site has shut the crawl out.
        check(
            |counts| counts.end_dead("robots"),
            "every root request was given up: robots 1",
        );
        check(
            |counts| {
                counts.end_done(Done::Redirected);
                counts.refuse("out-of-scope", 1);
            },
            "no request gave a page",
        );
        check(
            |counts| counts.end_done(Done::Skipped),
            "no request gave a page",
        );
        check(|_| {}, "no request gave a page");
    }

    #[test]
    fn doubtful_keys_are_told() {
        let totals = ChangeTotals {
            added: 1,
            unchanged: 2,
            repeated: 1,
            lacking_key: 2,
            ..ChangeTotals::default()
        };
        let lines = told(totals);
        assert_eq!(
            lines[0].1,
            "items: 1 added, 0 changed, 2 unchanged, 0 removed"
        );
        assert!(lines[1].1.starts_with("1 item had the key"), "{lines:?}");
        assert!(lines[2].1.starts_with("2 items had no value"), "{lines:?}");
        assert_eq!(told(ChangeTotals::default()).len(), 1);
    }
}
