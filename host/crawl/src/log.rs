//! Log of one crawl: its last lines, and a stream for readers that follow it.
//!
//! ```text
//! ring            the last lines, bounded; what is said of many pages is one line with a count
//! counted_pages   the pages that such lines have counted last
//! readers         positions of readers, and how many lines each has missed
//! report          what a call has logged, and why it was ended
//! ```
//!
//! Its memory is bounded in lines and in bytes, however much rules log and however many readers there are: a
//! reader has a position in the log and holds one line at a time. A reader that is too slow is told how many
//! lines it missed.
//!
//! While the frontier of the crawl is open it stores the lines ([`CrawlLog::attach`]), so that they survive the
//! process. What is logged without a frontier is stored by the next one that this process opens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::watch;
use tracing::field::{DisplayValue, display};

use crawler_frontier::{FrontierError, LogStore};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{Run, Shard};
use crawler_model::number;
use crawler_model::settings::CrawlSettings;
use crawler_model::status::LogLine;
use crawler_process::clock::Clock;
use readers::ReaderId;
use ring::{Ring, Subject, Unread};

mod counted_pages;
mod readers;
mod report;
mod ring;
#[cfg(test)]
mod tests;

pub(super) use report::{note_logs, said};

/// Maximum size in bytes of one line; a longer one is cut.
const LINE_BYTES: usize = 8 << 10;
/// Maximum size in bytes of the URL of a line, so that a long one leaves room for the message.
const URL_BYTES: usize = 2 << 10;
/// Maximum size in bytes of the rule's name in a line.
const RULE_BYTES: usize = 256;
/// Mark at the end of a text that was cut.
const CUT_MARK: &str = " … (cut here)";
/// Number of the line numbers for each millisecond of the clock, by which the numbers of a log are above those of
/// the log before it.
const NUMBERS_PER_MS: u64 = 1 << 10;

/// Bounds of a log: settings `max-log` and `max-log-size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// Maximum number of lines.
    pub lines: usize,
    /// Maximum size of their texts in bytes.
    pub bytes: usize,
}

impl LogBounds {
    /// Returns the bounds that these settings give each shard.
    pub fn of(settings: &CrawlSettings) -> Self {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Self {
            lines: size(settings.max_log()),
            bytes: size(settings.max_log_size()),
        }
    }
}

impl Default for LogBounds {
    fn default() -> Self {
        Self::of(&CrawlSettings::default())
    }
}

/// Log of a crawl; cheap to clone. Lines go to the process's own log too, as `debug`.
#[derive(Clone)]
pub struct CrawlLog {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    shard: Shard,
    run: Run,
    lines: Mutex<Lines>,
}

struct Lines {
    ring: Ring,
    /// True if the log was attached to a frontier before.
    was_attached: bool,
    /// Wakes readers that follow. `None` once the crawl is over.
    changed: Option<watch::Sender<()>>,
}

/// A reader. The log has its position.
struct Reader {
    shared: Arc<Shared>,
    id: ReaderId,
    /// True if the reader waits for lines to come until the crawl is over.
    follows: bool,
}

/// A message about a page.
pub(super) struct PageNote<'a> {
    pub(super) level: &'static str,
    pub(super) url: &'a str,
    pub(super) rule: &'a str,
    /// The message. If it was given of another page, that line counts this page.
    pub(super) said: String,
    /// Addition about this page alone.
    pub(super) detail: String,
    /// Place in the rule. The same message from another place is another line.
    pub(super) place: &'a str,
}

impl CrawlLog {
    /// Creates an empty log of the first run of a crawl that has one shard.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::of(clock, Shard(0), Run(1))
    }

    /// Creates an empty log of a run of a shard.
    pub fn of(clock: Arc<dyn Clock>, shard: Shard, run: Run) -> Self {
        let first = clock.unix_millis().saturating_mul(NUMBERS_PER_MS);
        let lines = Lines {
            ring: Ring::new(first),
            was_attached: false,
            changed: Some(watch::Sender::new(())),
        };
        Self {
            shared: Arc::new(Shared {
                clock,
                shard,
                run,
                lines: Mutex::new(lines),
            }),
        }
    }

    /// Returns the present time, by the clock of the log.
    pub fn now(&self) -> UnixMillis {
        self.shared.clock.unix_millis()
    }

    /// Sets the bounds of the log.
    pub fn set_bounds(&self, bounds: LogBounds) {
        self.shared.lines().ring.set_bounds(bounds);
    }

    /// Adds a line about the crawl as a whole.
    pub fn note(&self, level: &'static str, message: impl Into<String>) {
        self.add("", level, "", message.into(), None);
    }

    /// Adds a line about one page. A warning or an error that was given of another page too counts this one.
    pub fn on_page(&self, level: &'static str, url: &str, rule: &str, message: impl Into<String>) {
        self.on_page_with(PageNote {
            level,
            url,
            rule,
            said: message.into(),
            detail: String::new(),
            place: "",
        });
    }

    pub(super) fn on_page_with(&self, note: PageNote<'_>) {
        let PageNote {
            level, url, rule, ..
        } = note;
        let folds = matches!(level, "warn" | "error") && !url.is_empty();
        let subject = folds.then(|| {
            let lines = self.shared.lines();
            lines
                .ring
                .subject((level, rule, note.place), url, &note.said)
        });
        self.add(url, level, rule, note.said + &note.detail, subject);
    }

    fn add(
        &self,
        url: &str,
        level: &'static str,
        rule: &str,
        message: String,
        subject: Option<Subject>,
    ) {
        let url = cut(url.to_owned(), URL_BYTES);
        let rule = cut(rule.to_owned(), RULE_BYTES);
        let message = cut(message, LINE_BYTES - url.len() - rule.len());
        let line = LogLine {
            at: self.shared.clock.unix_millis(),
            level,
            url,
            rule,
            message,
            run: self.shared.run,
            shard: self.shared.shard,
            number: 0,
            more: 0,
        };
        let added = {
            let mut lines = self.shared.lines();
            let added = lines.ring.add(line, subject);
            if added.is_some() {
                lines.wake();
            }
            added
        };
        if let Some(line) = added {
            trace(&line);
        }
    }

    /// Puts counts at the end that no reader has seen yet, and ends the streams of readers that follow, once
    /// they have read all lines.
    pub fn close(&self) {
        self.tell_counts();
        self.shared.lines().changed = None;
    }

    /// Puts lines at the end whose counts have grown since they were put there.
    pub fn tell_counts(&self) {
        let told = {
            let mut lines = self.shared.lines();
            let told = lines.ring.tell_counts();
            if !told.is_empty() {
                lines.wake();
            }
            told
        };
        told.iter().for_each(|line| trace(line));
    }

    /// Goes on from the log that this frontier stores, and stores all lines in it until [`detach`](Self::detach).
    pub async fn attach(&self, store: Arc<dyn LogStore>) -> Result<(), FrontierError> {
        let stored = store.stored_lines().await?;
        let mut lines = self.shared.lines();
        let is_first = !std::mem::replace(&mut lines.was_attached, true);
        lines.ring.attach(store, stored, is_first);
        lines.wake();
        Ok(())
    }

    /// Lets the frontier go, which is about to be closed, with the counts as they are now.
    pub fn detach(&self) {
        self.tell_counts();
        self.shared.lines().ring.detach();
    }

    /// Returns the last `max` warnings and errors of the run, the latest last.
    pub fn last_errors(&self, max: usize) -> Vec<LogLine> {
        let lines = self.shared.lines();
        let wrong = lines.ring.latest_first();
        let wrong = wrong.filter(|line| line.is_wrong() && line.run == self.shared.run);
        let mut wrong: Vec<LogLine> = wrong.take(max).map(|line| (**line).clone()).collect();
        wrong.reverse();
        wrong
    }

    /// Returns the size in bytes of the lines that are kept, with their texts.
    pub fn n_bytes(&self) -> usize {
        self.shared.lines().ring.n_bytes()
    }

    /// Returns the lines that are kept; with `follow`, also those to come until the crawl is over.
    pub fn read(&self, follow: bool) -> BoxStream<'static, LogLine> {
        let reader = Reader {
            shared: self.shared.clone(),
            id: self.shared.lines().ring.add_reader(follow),
            follows: follow,
        };
        let lines = stream::unfold(reader, |reader| async move {
            let line = reader.read().await?;
            Some((line, reader))
        });
        lines.boxed()
    }
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn wake(&self) {
        if let Some(changed) = &self.changed {
            changed.send_replace(());
        }
    }
}

impl Reader {
    /// Returns the next line, or `None` at the end.
    async fn read(&self) -> Option<LogLine> {
        loop {
            let mut changed = {
                let mut lines = self.shared.lines();
                match lines.ring.read(self.id) {
                    Some(Unread::Line(line)) => return Some(Arc::unwrap_or_clone(line)),
                    Some(Unread::Missed { n_missed, number }) => {
                        return Some(self.missed(n_missed, number, lines.ring.bounds()));
                    }
                    None if self.follows => lines.changed.as_ref()?.subscribe(),
                    None => return None,
                }
            };
            // An error means that the crawl is over: the next look reads the remaining lines, and ends.
            let _is_over = changed.changed().await;
        }
    }

    /// Returns the line that stands for those that were dropped before they were read.
    fn missed(&self, n_missed: u64, last: u64, bounds: LogBounds) -> LogLine {
        let LogBounds { lines, bytes } = bounds;
        let gone = match n_missed {
            1 => "1 line is gone".to_owned(),
            n => format!("{n} lines are gone"),
        };
        let (lines, bytes) = (number(lines as u64, "line"), number(bytes as u64, "byte"));
        LogLine {
            at: self.shared.clock.unix_millis(),
            level: "info",
            url: String::new(),
            rule: String::new(),
            message: format!(
                "{gone}: the log keeps the last {lines} and {bytes}, the limits set by --max-log and --max-log-size"
            ),
            run: self.shared.run,
            shard: self.shared.shard,
            number: last,
            more: 0,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.lines().ring.remove_reader(self.id);
    }
}

/// Writes a line to the process's own log.
fn trace(line: &LogLine) {
    tracing::debug!(
        level = line.level,
        url = known(&line.url),
        rule = known(&line.rule),
        more = (line.more > 0).then_some(line.more),
        line = line.message,
        "crawl log"
    );
}

/// Returns the value of a field of the process's log. `None` if the text is empty, so that there is no field.
fn known(text: &str) -> Option<DisplayValue<&str>> {
    (!text.is_empty()).then(|| display(text))
}

/// Cuts the text to at most this many bytes, with the mark included if it was longer.
fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max.saturating_sub(CUT_MARK.len())));
        text.push_str(CUT_MARK);
        // Otherwise the memory of a long text would be held for as long as the line.
        text.shrink_to_fit();
    }
    text
}
