//! The last lines of a log, bounded in lines and in bytes. Lines that say the same of many pages are one.
//!
//! A warning or error about a page that says what one about another page has said is not a line of its own: the
//! line before counts it. With the 10th page, the 100th, the 1000th and so on, that line is put at the end again, with
//! the count and what was said of that page, so that readers that follow see it. Closing the log puts all lines at the
//! end whose counts have grown since. A page that is retried counts once.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use super::LogBounds;
use super::counted_pages::CountedPages;
use super::readers::{Position, ReaderId, Readers};
use crawler_frontier::LogStore;
use crawler_model::crawl::UnixMillis;
use crawler_model::status::LogLine;

/// Hash of what a line says of any page. Its keys are random, so that no guest can make two of them equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Subject(u64);

/// Pages that were counted since a line was put at the end.
struct Fold {
    /// Number that the first of its lines got. No other fold has it.
    begun: u64,
    /// Number of the line that counts.
    number: u64,
    /// Count that the line had when it was put at the end.
    told: u64,
    /// Time at which the same was logged last.
    latest_at: UnixMillis,
}

/// Next of what a reader has not read yet.
pub(super) enum Unread {
    /// The next line.
    Line(Arc<LogLine>),
    /// Lines that were dropped for lack of room.
    Missed {
        /// Number of these lines.
        n_missed: u64,
        /// A number below those of the lines that are left.
        number: u64,
    },
}

/// The last lines of a log.
pub(super) struct Ring {
    lines: BTreeMap<u64, Arc<LogLine>>,
    /// Size in bytes of the texts of the lines.
    n_bytes: usize,
    bounds: LogBounds,
    /// Number of the first line that was added here.
    first: u64,
    /// Number of the next line.
    next: u64,
    /// Number of lines that were added here and dropped for lack of room.
    n_dropped: u64,
    readers: Readers,
    /// Lines that count pages, by what they say.
    folds: HashMap<Subject, Fold>,
    counted_pages: CountedPages,
    /// Subjects of the lines that count pages, by their numbers.
    subjects: HashMap<u64, Subject>,
    hasher: RandomState,
    /// Frontier that stores the lines, while it is open.
    store: Option<Arc<dyn LogStore>>,
}

impl Ring {
    /// Creates an empty ring whose first line has this number.
    pub(super) fn new(first: u64) -> Self {
        Self {
            lines: BTreeMap::new(),
            n_bytes: 0,
            bounds: LogBounds::default(),
            first,
            next: first,
            n_dropped: 0,
            readers: Readers::default(),
            folds: HashMap::new(),
            counted_pages: CountedPages::default(),
            subjects: HashMap::new(),
            hasher: RandomState::new(),
            store: None,
        }
    }

    pub(super) fn bounds(&self) -> LogBounds {
        self.bounds
    }

    /// Returns the size in bytes of the lines, with their texts.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes + self.lines.len() * size_of::<LogLine>()
    }

    pub(super) fn set_bounds(&mut self, bounds: LogBounds) {
        self.bounds = bounds;
        self.trim();
    }

    /// Returns the subject of what is said about the page of this URL, at a level, by a rule, at a place in it.
    pub(super) fn subject(&self, by: (&str, &str, &str), url: &str, said: &str) -> Subject {
        let said = said.replace(url, "");
        Subject(self.hasher.hash_one((by, said)))
    }

    /// Adds a line, or counts its page. Returns the line that was put at the end.
    pub(super) fn add(&mut self, line: LogLine, subject: Option<Subject>) -> Option<Arc<LogLine>> {
        let Some(subject) = subject else {
            return Some(self.push(line));
        };
        let begun = self.folds.get(&subject).map(|fold| fold.begun);
        let page = (subject, begun.unwrap_or(self.next), line.url.as_str());
        let is_new = self.counted_pages.insert(self.hasher.hash_one(page));
        let Some(fold) = self.folds.get_mut(&subject) else {
            let fold = Fold {
                begun: self.next,
                number: self.next,
                told: 0,
                latest_at: line.at,
            };
            self.folds.insert(subject, fold);
            self.subjects.insert(self.next, subject);
            return Some(self.push(line));
        };
        fold.latest_at = line.at;
        if !is_new {
            return None;
        }
        let counting = self.lines.get_mut(&fold.number)?;
        let more = counting.more + 1;
        Arc::make_mut(counting).more = more;
        if is_power_of_ten(more.saturating_add(1)) {
            return self.put_at_end(subject, Some(line));
        }
        if let Some(store) = &self.store {
            store.store_line(counting.clone());
        }
        None
    }

    /// Puts a line at the end again, with the page and the texts of `latest` if it is given.
    fn put_at_end(&mut self, subject: Subject, latest: Option<LogLine>) -> Option<Arc<LogLine>> {
        let fold = self.folds.get_mut(&subject)?;
        let line = self.lines.get(&fold.number)?;
        fold.told = line.more;
        let before = std::mem::replace(&mut fold.number, self.next);
        let line = LogLine {
            at: fold.latest_at,
            more: line.more,
            ..latest.unwrap_or_else(|| LogLine::clone(line))
        };
        self.subjects.remove(&before);
        self.subjects.insert(self.next, subject);
        self.remove(before);
        Some(self.push(line))
    }

    /// Puts all lines at the end whose counts have grown since they were put there, and returns them.
    pub(super) fn tell_counts(&mut self) -> Vec<Arc<LogLine>> {
        let grown = self.folds.iter().filter(|(_, fold)| {
            let line = self.lines.get(&fold.number);
            line.is_some_and(|line| line.more > fold.told)
        });
        let mut grown: Vec<(u64, Subject)> = grown.map(|(s, fold)| (fold.number, *s)).collect();
        grown.sort_unstable_by_key(|(number, _)| *number);
        let put = |(_, subject)| self.put_at_end(subject, None);
        grown.into_iter().filter_map(put).collect()
    }

    fn push(&mut self, line: LogLine) -> Arc<LogLine> {
        let line = Arc::new(LogLine {
            number: self.next,
            ..line
        });
        self.next += 1;
        self.insert(line.clone());
        if let Some(store) = &self.store {
            store.store_line(line.clone());
        }
        self.trim();
        line
    }

    fn insert(&mut self, line: Arc<LogLine>) {
        self.n_bytes += size(&line);
        self.lines.insert(line.number, line);
    }

    fn remove(&mut self, number: u64) {
        if let Some(line) = self.lines.remove(&number) {
            self.n_bytes -= size(&line);
        }
        if let Some(store) = &self.store {
            store.remove_line(number);
        }
    }

    fn trim(&mut self) {
        while (self.lines.len() > self.bounds.lines || self.n_bytes > self.bounds.bytes)
            && let Some((&oldest, _)) = self.lines.first_key_value()
        {
            self.remove(oldest);
            if let Some(subject) = self.subjects.remove(&oldest) {
                self.folds.remove(&subject);
            }
            self.n_dropped += u64::from(oldest >= self.first);
            self.readers.count_dropped(oldest);
        }
    }

    /// Goes on from the lines of a frontier, and stores all lines in it from here on. The lines of the first
    /// frontier come before those that were added here; a later one is the same frontier, opened again.
    pub(super) fn attach(
        &mut self,
        store: Arc<dyn LogStore>,
        stored: Vec<Arc<LogLine>>,
        is_first: bool,
    ) {
        if is_first && let Some(last) = stored.last().map(|line| line.number) {
            // The clock of the process that stored them may have been ahead.
            self.renumber_from(last + 1);
        }
        for line in &stored {
            match (self.lines.contains_key(&line.number), is_first) {
                (true, _) => {}
                (false, true) => self.insert(line.clone()),
                (false, false) => store.remove_line(line.number),
            }
        }
        for line in self.lines.values() {
            let place = stored.binary_search_by_key(&line.number, |stored| stored.number);
            if place.ok().is_none_or(|place| stored[place] != *line) {
                store.store_line(line.clone());
            }
        }
        self.store = Some(store);
        self.trim();
    }

    pub(super) fn detach(&mut self) {
        self.store = None;
    }

    /// Makes sure that the numbers of the lines that were added here are not below `first`.
    fn renumber_from(&mut self, first: u64) {
        let Some(shift) = first.checked_sub(self.first).filter(|shift| *shift > 0) else {
            return;
        };
        let shifted = |line: Arc<LogLine>| {
            let mut line = line;
            Arc::make_mut(&mut line).number += shift;
            (line.number, line)
        };
        let lines = std::mem::take(&mut self.lines);
        self.lines = lines.into_values().map(shifted).collect();
        let subjects = std::mem::take(&mut self.subjects);
        self.subjects = subjects.into_iter().map(|(n, s)| (n + shift, s)).collect();
        for fold in self.folds.values_mut() {
            fold.number += shift;
        }
        self.readers.shift(self.first, shift);
        (self.first, self.next) = (first, self.next + shift);
    }

    /// Adds a reader of all lines that are kept and, if it follows, of those to come. Lines that were added here and
    /// dropped count as missed.
    pub(super) fn add_reader(&mut self, follows: bool) -> ReaderId {
        let oldest = self.lines.first_key_value().map(|(number, _)| *number);
        self.readers.add(Position {
            next: oldest.unwrap_or(self.next),
            end: (!follows).then_some(self.next),
            n_missed: self.n_dropped,
        })
    }

    pub(super) fn remove_reader(&mut self, reader: ReaderId) {
        self.readers.remove(reader);
    }

    /// Returns what a reader reads next. `None` if it has read everything that there is.
    pub(super) fn read(&mut self, reader: ReaderId) -> Option<Unread> {
        let position = self.readers.position(reader)?;
        let n_missed = std::mem::take(&mut position.n_missed);
        if n_missed > 0 {
            let number = position.next.saturating_sub(1);
            return Some(Unread::Missed { n_missed, number });
        }
        let (number, line) = self.lines.range(position.next..).next()?;
        if !position.expects(*number) {
            return None;
        }
        position.next = number + 1;
        Some(Unread::Line(line.clone()))
    }

    /// Returns the lines, the latest first.
    pub(super) fn latest_first(&self) -> impl Iterator<Item = &Arc<LogLine>> {
        self.lines.values().rev()
    }
}

fn is_power_of_ten(n: u64) -> bool {
    n.checked_ilog10()
        .is_some_and(|log| n >= 10 && 10_u64.pow(log) == n)
}

/// Returns the size in bytes of the texts of a line.
pub(super) fn size(line: &LogLine) -> usize {
    line.url.len() + line.rule.len() + line.message.len()
}
