//! Counts of what this process has crawled, by resource, for its metrics.
//!
//! A frontier has the totals of its run, which go on with the next owner of the shard and begin anew with the next run.
//! Metrics are about one process and only grow. So what a frontier's totals have grown by since they were seen last is
//! added to the counts of its resource: at each reading, and when the frontier is closed. A page costs nothing here.
//!
//! At most so many resources are told apart as `--metrics-resources` says; all others share one row. A resource keeps its
//! row after its crawls have left, until another needs the place. If there is no free place, one of which more than twice
//! as many pages are known gets the place of the smallest. What was counted in the row of the others stays there, and a
//! row that has gone starts again at zero: no row ever shrinks while it is there. What a row has grown by since the last
//! reading goes to the others with it, so that the growth of all rows together is always that of the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crawler_frontier::Frontier;
use crawler_model::crawl::Counts;
use crawler_model::id::ResourceName;
use crawler_model::statistics::OTHER_STATUSES;
use crawler_model::status::ProcessTotals;
use crawler_process::metrics::{Count, Durations, OTHERS, WordCounts, add_word};

/// Default number of resources that are told apart; `--metrics-resources` shows it.
pub const DEFAULT_RESOURCES: usize = 1_000;
/// Number of times that a resource has to be larger than another to get its place.
const LARGER: u64 = 2;
/// Outcome of pages whose outcomes an earlier version did not keep.
const UNKNOWN: &str = "unknown";

/// Counts of a resource, as of this process. They only grow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Pages that came to an end, by their outcome: `parsed`, `dead`, or the word of another one.
    pub pages: BTreeMap<String, u64>,
    /// Attempts that ended a page, by the status of the answer.
    pub statuses: BTreeMap<String, u64>,
    /// Links that were refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Pages given up, by reason.
    pub dead: BTreeMap<String, u64>,
    /// Attempts that failed and are tried again.
    pub retries: u64,
    /// Items stored.
    pub items: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Bytes of bodies that were kept as files.
    pub kept_bytes: u64,
}

/// Crawls of a resource at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    /// Number of crawls that are assigned.
    pub crawls: u64,
    /// Number of those that cannot go on.
    pub waiting: u64,
    /// Pages in flight.
    pub in_flight: u64,
    /// URLs that wait to be fetched.
    pub due: u64,
    /// Hosts that may be asked once their clocks allow it, and have URLs in memory.
    pub ready_hosts: u64,
    /// Items that wait for their sink.
    pub undelivered_items: u64,
    /// Bytes of these items.
    pub undelivered_bytes: u64,
    /// Bytes of frontiers on disk.
    pub disk_bytes: u64,
    /// Pages of the present runs, whoever crawled them.
    pages: u64,
}

/// Row of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    /// Name of the resource. `None` for all that have no row of their own.
    pub name: Option<ResourceName>,
    /// Counts of this process.
    pub tally: Tally,
    /// Present crawls.
    pub load: Load,
}

/// Counts of the deliveries of items to sinks.
#[derive(Debug)]
pub struct SinkCounts {
    /// Writes by their result: `ok`, `retry`, `permanent` or `closed`.
    pub writes: WordCounts,
    /// Items that the sinks have taken.
    pub items: Count,
    /// Items that did not fit their destination, and are kept as rejected ones.
    pub rejected: Count,
    /// Durations of writes.
    pub durations: Durations,
}

/// Totals of an open frontier, as they were seen last.
#[derive(Debug, Default)]
pub(super) struct Seen {
    counts: Counts,
    statuses: BTreeMap<u16, u64>,
}

/// Counts of all resources of this process.
#[derive(Debug)]
pub(super) struct Meters {
    /// Number of resources that are told apart.
    max: usize,
    rows: Mutex<Rows>,
    pub(super) sinks: SinkCounts,
}

#[derive(Debug, Default)]
struct Rows {
    by_name: BTreeMap<ResourceName, Row>,
    others: Tally,
    /// Growth of all rows, those that have gone too.
    totals: ProcessTotals,
}

/// Counts of a resource that is told apart.
#[derive(Debug, Default)]
struct Row {
    tally: Tally,
    /// Counts at the last reading.
    told: Tally,
}

impl Default for SinkCounts {
    fn default() -> Self {
        Self {
            writes: WordCounts::starting_with(["ok", "retry", "permanent", "closed"]),
            items: Count::default(),
            rejected: Count::default(),
            durations: Durations::default(),
        }
    }
}

impl Default for Meters {
    fn default() -> Self {
        Self::telling_apart(DEFAULT_RESOURCES)
    }
}

impl Meters {
    /// Creates counts that tell so many resources apart.
    pub(super) fn telling_apart(max: usize) -> Self {
        Self {
            max,
            rows: Mutex::default(),
            sinks: SinkCounts::default(),
        }
    }

    /// Adds what the totals of a frontier have grown by.
    pub(super) fn add(&self, name: &ResourceName, before: &Seen, now: &Seen) {
        let mut rows = self.rows();
        if rows.by_name.len() < self.max && !rows.by_name.contains_key(name) {
            rows.by_name.insert(name.clone(), Row::default());
        }
        let rows = &mut *rows;
        let tally = rows.by_name.get_mut(name).map(|row| &mut row.tally);
        let tally = tally.unwrap_or(&mut rows.others);
        let (n_pages, n_items) = (tally.n_pages(), tally.items);
        tally.add_since(before, now);
        rows.totals.pages += tally.n_pages() - n_pages;
        rows.totals.items += tally.items - n_items;
    }

    /// Returns what the process has done since its start, as far as it was added.
    pub(super) fn totals(&self) -> ProcessTotals {
        self.rows().totals
    }

    /// Returns the rows, given the crawls that are here now. Places go to the largest resources.
    pub(super) fn read(&self, mut loads: BTreeMap<ResourceName, Load>) -> Vec<ResourceRow> {
        let mut rows = self.rows();
        rows.give_places(&loads, self.max);
        let own = rows.by_name.iter_mut().map(|(name, row)| {
            row.told.clone_from(&row.tally);
            ResourceRow {
                name: Some(name.clone()),
                tally: row.tally.clone(),
                load: loads.remove(name).unwrap_or_default(),
            }
        });
        let mut read: Vec<_> = own.collect();
        let mut rest = Load::default();
        loads.values().for_each(|load| rest.add(load));
        read.push(ResourceRow {
            name: None,
            tally: rows.others.clone(),
            load: rest,
        });
        read
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    /// Gives free places, and those of resources that have left or are small, to the largest resources without one.
    fn give_places(&mut self, loads: &BTreeMap<ResourceName, Load>, max: usize) {
        let without = loads.iter().filter(|(n, _)| !self.by_name.contains_key(*n));
        let mut without: Vec<_> = without.map(|(name, load)| (load.pages, name)).collect();
        if without.is_empty() {
            return;
        }
        without.sort_unstable_by(|one, other| other.cmp(one));
        // `None` is smaller than any number: resources that have left go first. A new run begins with no pages, and does
        // not make a large resource small.
        let with = self.by_name.iter().map(|(name, row)| {
            let load = loads.get(name);
            let size = load.map(|load| load.pages.max(row.tally.n_pages()));
            (size, name.clone())
        });
        let mut with: Vec<_> = with.collect();
        with.sort_unstable();
        let mut smallest = with.into_iter();
        for (pages, name) in without {
            if self.by_name.len() >= max {
                let goes = smallest.next().filter(|(size, _)| {
                    size.is_none_or(|size| pages > size.saturating_mul(LARGER))
                });
                let Some((_, goes)) = goes else {
                    return;
                };
                if let Some(row) = self.by_name.remove(&goes) {
                    self.others.add_grown(&row.told, &row.tally);
                }
            }
            self.by_name.insert(name.clone(), Row::default());
        }
    }
}

impl Seen {
    /// Reads the totals of a frontier.
    pub(super) fn of(frontier: &dyn Frontier) -> Self {
        Self {
            counts: frontier.counts(),
            statuses: frontier.statuses(),
        }
    }
}

impl Tally {
    /// Adds what the totals of a frontier have grown by. What has become less, as by a redrive, is passed over.
    fn add_since(&mut self, before: &Seen, now: &Seen) {
        let (old, new) = (&before.counts, &now.counts);
        add_grown(&mut self.pages, &old.outcomes, &new.outcomes);
        let told = |counts: &Counts| counts.outcomes.values().sum::<u64>();
        let untold = |counts: &Counts| counts.other_done.saturating_sub(told(counts));
        for (outcome, old, new) in [
            ("parsed", old.parsed, new.parsed),
            ("dead", old.dead, new.dead),
            (UNKNOWN, untold(old), untold(new)),
        ] {
            add_word_unless_zero(&mut self.pages, outcome, new.saturating_sub(old));
        }
        for (status, n) in &now.statuses {
            let n_before = before.statuses.get(status).copied().unwrap_or_default();
            let grown = n.saturating_sub(n_before);
            match *status {
                OTHER_STATUSES => add_word_unless_zero(&mut self.statuses, OTHERS, grown),
                status => add_word_unless_zero(&mut self.statuses, &status.to_string(), grown),
            }
        }
        add_grown(&mut self.refused, &old.refused_links, &new.refused_links);
        add_grown(&mut self.dead, &old.dead_by_reason, &new.dead_by_reason);
        self.retries += new.retries.saturating_sub(old.retries);
        self.items += new.items.saturating_sub(old.items);
        self.bytes += new.bytes.saturating_sub(old.bytes);
        self.kept_bytes += new.kept_bytes.saturating_sub(old.kept_bytes);
    }

    /// Adds what another tally has grown by.
    fn add_grown(&mut self, before: &Self, now: &Self) {
        add_grown(&mut self.pages, &before.pages, &now.pages);
        add_grown(&mut self.statuses, &before.statuses, &now.statuses);
        add_grown(&mut self.refused, &before.refused, &now.refused);
        add_grown(&mut self.dead, &before.dead, &now.dead);
        self.retries += now.retries.saturating_sub(before.retries);
        self.items += now.items.saturating_sub(before.items);
        self.bytes += now.bytes.saturating_sub(before.bytes);
        self.kept_bytes += now.kept_bytes.saturating_sub(before.kept_bytes);
    }

    fn n_pages(&self) -> u64 {
        self.pages.values().sum()
    }
}

impl Load {
    /// Returns the load of one crawl, whose frontier is given if it is open.
    pub(super) fn of(frontier: Option<&dyn Frontier>, counts: &Counts, is_waiting: bool) -> Self {
        let closed = Self {
            crawls: 1,
            waiting: is_waiting.into(),
            due: counts.due,
            pages: counts.pages(),
            ..Self::default()
        };
        match frontier {
            None => closed,
            Some(frontier) => Self {
                in_flight: frontier.in_flight() as u64,
                ready_hosts: frontier.n_ready_hosts() as u64,
                undelivered_items: frontier.n_undelivered(),
                undelivered_bytes: frontier.undelivered_bytes(),
                disk_bytes: frontier.disk_bytes(),
                ..closed
            },
        }
    }

    /// Adds the load of another crawl.
    pub(super) fn add(&mut self, other: &Self) {
        self.crawls += other.crawls;
        self.waiting += other.waiting;
        self.in_flight += other.in_flight;
        self.due += other.due;
        self.ready_hosts += other.ready_hosts;
        self.undelivered_items += other.undelivered_items;
        self.undelivered_bytes += other.undelivered_bytes;
        self.disk_bytes += other.disk_bytes;
        self.pages += other.pages;
    }
}

fn add_grown(
    sums: &mut BTreeMap<String, u64>,
    old: &BTreeMap<String, u64>,
    new: &BTreeMap<String, u64>,
) {
    for (word, n) in new {
        let n_before = old.get(word).copied().unwrap_or_default();
        add_word_unless_zero(sums, word, n.saturating_sub(n_before));
    }
}

fn add_word_unless_zero(sums: &mut BTreeMap<String, u64>, word: &str, n: u64) {
    if n > 0 {
        add_word(sums, word, n);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crawler_model::crawl::Done;

    fn name(name: &str) -> ResourceName {
        name.parse().unwrap()
    }

    fn seen(parsed: u64, items: u64) -> Seen {
        let counts = Counts {
            parsed,
            items,
            ..Counts::default()
        };
        Seen {
            counts,
            statuses: [(200, parsed)].into(),
        }
    }

    fn load(pages: u64) -> Load {
        Load {
            crawls: 1,
            pages,
            ..Load::default()
        }
    }

    /// Returns the items of each row; that of the others has no name.
    fn items(meters: &Meters, loads: &[(&str, u64)]) -> Vec<(String, u64)> {
        let loads = loads.iter().map(|(n, pages)| (name(n), load(*pages)));
        let rows = meters.read(loads.collect()).into_iter();
        let rows = rows.map(|row| {
            let name = row.name.map(|name| name.to_string());
            (name.unwrap_or_default(), row.tally.items)
        });
        rows.collect()
    }

    fn row(name: &str, items: u64) -> (String, u64) {
        (name.to_owned(), items)
    }

    #[test]
    fn growth_is_counted_and_what_an_owner_before_did_is_not() {
        let meters = Meters::default();
        let (mut before, mut now) = (seen(1_000, 5), seen(1_003, 7));
        before.counts.end_dead("timeout");
        now.counts.end_dead("timeout");
        now.counts.end_dead("timeout");
        now.counts.end_done(Done::Gone);
        now.counts.refuse("out-of-scope", 4);
        meters.add(&name("books"), &before, &now);
        // A redrive has taken dead letters back.
        let mut after = seen(1_003, 7);
        after.counts.end_done(Done::Gone);
        meters.add(&name("books"), &now, &after);
        let rows = meters.read(BTreeMap::new());
        let tally = &rows[0].tally;
        let words = |pairs: &[(&str, u64)]| {
            let pairs = pairs.iter().map(|(word, n)| ((*word).to_owned(), *n));
            pairs.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(
            tally.pages,
            words(&[("dead", 1), ("gone", 1), ("parsed", 3)])
        );
        assert_eq!(tally.statuses, words(&[("200", 3)]));
        assert_eq!(tally.dead, words(&[("timeout", 1)]));
        assert_eq!(tally.refused, words(&[("out-of-scope", 4)]));
        assert_eq!(tally.items, 2);
    }

    /// Reader that adds up what the rows have grown by from one reading to the next. A row that was not there at the
    /// reading before has grown from zero.
    #[derive(Default)]
    struct Reader {
        last: BTreeMap<String, u64>,
        sum: u64,
    }

    impl Reader {
        fn read(&mut self, meters: &Meters, loads: &[(&str, u64)]) -> Vec<(String, u64)> {
            let rows = items(meters, loads);
            for (name, items) in &rows {
                let before = self.last.get(name).copied().unwrap_or_default();
                assert!(*items >= before, "row {name:?} has shrunk");
                self.sum += items - before;
            }
            self.last = rows.iter().cloned().collect();
            rows
        }
    }

    #[test]
    fn rows_never_shrink_and_their_sum_is_that_of_the_process() {
        let meters = Meters::telling_apart(2);
        let mut reader = Reader::default();
        let n_grown = Cell::new(0);
        let grow = |name: &str| {
            meters.add(&self::name(name), &seen(0, 0), &seen(1, 1));
            n_grown.set(n_grown.get() + 1);
        };
        for name in ["a", "b", "c"] {
            grow(name);
        }
        let all = [("a", 10), ("b", 10), ("c", 20)];
        let expected = [row("a", 1), row("b", 1), row("", 1)];
        let read = reader.read(&meters, &all);
        assert_eq!(read, expected, "twice as many is not more");
        grow("c");
        assert_eq!(reader.read(&meters, &all)[2], row("", 2));
        // One that is much larger gets a place, and starts at zero. What nobody has read of the row before goes to the
        // others.
        grow("a");
        let large = [("a", 10), ("b", 11), ("c", 30)];
        let expected = [row("b", 1), row("c", 0), row("", 3)];
        assert_eq!(reader.read(&meters, &large), expected);
        grow("a");
        grow("c");
        let expected = [row("b", 1), row("c", 1), row("", 4)];
        assert_eq!(reader.read(&meters, &large), expected);
        assert_eq!(reader.sum, n_grown.get());
    }

    #[test]
    fn totals_of_the_process_outlive_rows_runs_and_redrives() {
        let meters = Meters::telling_apart(1);
        meters.add(&name("a"), &seen(1_000, 500), &seen(1_009, 507));
        // The row is read, and its place goes to another resource.
        assert_eq!(items(&meters, &[("a", 9)]), [row("a", 7), row("", 0)]);
        assert_eq!(items(&meters, &[("b", 1)]), [row("b", 0), row("", 0)]);
        // The next run begins, and a redrive takes pages back.
        meters.add(&name("a"), &seen(0, 0), &seen(1, 2));
        meters.add(&name("b"), &seen(7, 3), &seen(5, 3));
        let expected = ProcessTotals {
            pages: 10,
            items: 9,
        };
        assert_eq!(meters.totals(), expected);
    }

    #[test]
    fn a_row_that_comes_and_goes_unread_is_one_of_the_others() {
        let meters = Meters::telling_apart(1);
        let (mut before, mut now) = (seen(5, 0), seen(7, 3));
        before.counts.retries = 1;
        now.counts.retries = 5;
        (now.counts.bytes, now.counts.kept_bytes) = (100, 10);
        now.counts.refuse("out-of-scope", 4);
        now.counts.end_dead("timeout");
        let mut expected = Tally::default();
        expected.add_since(&before, &now);
        meters.add(&name("a"), &before, &now);
        let rows = meters.read([(name("b"), load(1))].into());
        assert_eq!(rows[0].tally, Tally::default(), "row of b");
        assert_eq!(rows[1].tally, expected, "row of the others");
    }

    #[test]
    fn a_new_run_does_not_take_the_row_of_a_large_resource() {
        let meters = Meters::telling_apart(1);
        meters.add(&name("a"), &seen(0, 0), &seen(100, 100));
        let begun_anew = [("a", 0), ("b", 200)];
        assert_eq!(items(&meters, &begun_anew), [row("a", 100), row("", 0)]);
        let larger = [("a", 0), ("b", 201)];
        assert_eq!(items(&meters, &larger), [row("b", 0), row("", 0)]);
    }

    #[test]
    fn a_resource_that_has_left_keeps_its_row_until_it_is_needed() {
        let meters = Meters::telling_apart(1);
        meters.add(&name("a"), &seen(0, 0), &seen(9, 9));
        assert_eq!(items(&meters, &[]), [row("a", 9), row("", 0)]);
        meters.add(&name("b"), &seen(0, 0), &seen(1, 1));
        assert_eq!(items(&meters, &[("b", 1)]), [row("b", 0), row("", 1)]);
    }

    #[test]
    fn crawls_without_a_row_are_added_up() {
        let meters = Meters::telling_apart(1);
        meters.add(&name("a"), &seen(0, 0), &seen(9, 9));
        let loads = ["a", "b", "c"].map(|n| (name(n), load(1)));
        let rows = meters.read(loads.into());
        assert_eq!((rows[0].load.crawls, rows[1].load.crawls), (1, 2));
    }

    #[test]
    fn no_resource_at_all_may_be_told_apart() {
        let meters = Meters::telling_apart(0);
        meters.add(&name("a"), &seen(0, 0), &seen(1, 1));
        assert_eq!(items(&meters, &[("a", 5)]), [row("", 1)]);
    }
}
