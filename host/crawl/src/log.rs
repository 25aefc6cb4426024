//! Log of one crawl: its last lines, and a stream for readers that follow it.
//!
//! Its memory is bounded in lines and in bytes, however much rules log and however many readers there are: a
//! reader has a position in the log and holds one line at a time. A reader that is too slow is told how many
//! lines it missed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::watch;
use tracing::field::{DisplayValue, display};

use crawler_model::status::LogLine;
use crawler_plugin::{CallFailure, CallReport, KillReport};
use crawler_process::clock::Clock;

/// Maximum number of lines kept per crawl.
const KEPT_LINES: usize = 1_000;
/// Maximum size in bytes of the lines kept per crawl.
const KEPT_BYTES: usize = 1 << 20;
/// Maximum size in bytes of one line; a longer one is cut.
const LINE_BYTES: usize = 8 << 10;
/// Maximum size in bytes of the URL of a line, so that a long one leaves room for the message.
const URL_BYTES: usize = 2 << 10;
/// Maximum size in bytes of the rule's name in a line.
const RULE_BYTES: usize = 256;
/// Mark at the end of a text that was cut.
const CUT_MARK: &str = " … (cut here)";

/// Log of a crawl; cheap to clone. Lines go to the process's own log too, as `debug`.
#[derive(Clone)]
pub struct CrawlLog {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    lines: Mutex<Lines>,
}

struct Lines {
    kept: VecDeque<Arc<LogLine>>,
    /// Size in bytes of the lines that are kept.
    n_bytes: usize,
    /// Number of the next line; the first of a crawl is 0.
    next: u64,
    /// Wakes readers that follow. `None` once the crawl is over.
    changed: Option<watch::Sender<()>>,
}

/// Position of a reader.
struct Reader {
    shared: Arc<Shared>,
    /// Number of the next line to read.
    next: u64,
    /// Number of the line to stop before. If `None`, the reader follows until the crawl is over.
    end: Option<u64>,
}

impl CrawlLog {
    /// Creates an empty log.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let lines = Lines {
            kept: VecDeque::new(),
            n_bytes: 0,
            next: 0,
            changed: Some(watch::Sender::new(())),
        };
        Self {
            shared: Arc::new(Shared {
                clock,
                lines: Mutex::new(lines),
            }),
        }
    }

    /// Adds a line about the crawl as a whole.
    pub fn note(&self, level: &'static str, message: impl Into<String>) {
        self.add(level, "", "", message.into());
    }

    /// Adds a line about one page.
    pub fn on_page(&self, level: &'static str, url: &str, rule: &str, message: impl Into<String>) {
        self.add(level, url, rule, message.into());
    }

    fn add(&self, level: &'static str, url: &str, rule: &str, message: String) {
        let url = cut(url.to_owned(), URL_BYTES);
        let rule = cut(rule.to_owned(), RULE_BYTES);
        let message = cut(message, LINE_BYTES - url.len() - rule.len());
        tracing::debug!(
            level,
            url = known(&url),
            rule = known(&rule),
            line = message,
            "crawl log"
        );
        let line = LogLine {
            at: self.shared.clock.unix_millis(),
            level,
            url,
            rule,
            message,
        };
        self.shared.lines().push(line);
    }

    /// Ends the streams of readers that follow, once they have read all lines.
    pub fn close(&self) {
        self.shared.lines().changed = None;
    }

    /// Returns the last `max` warnings and errors, the latest last.
    pub fn last_errors(&self, max: usize) -> Vec<LogLine> {
        let lines = self.shared.lines();
        let wrong = lines.kept.iter().rev();
        let wrong = wrong.filter(|line| matches!(line.level, "warn" | "error"));
        let mut wrong: Vec<LogLine> = wrong.take(max).map(|line| (**line).clone()).collect();
        wrong.reverse();
        wrong
    }

    /// Returns the lines that are kept; with `follow`, also those to come until the crawl is over.
    pub fn read(&self, follow: bool) -> BoxStream<'static, LogLine> {
        let reader = {
            let lines = self.shared.lines();
            Reader {
                shared: self.shared.clone(),
                next: lines.first(),
                end: (!follow).then_some(lines.next),
            }
        };
        let lines = stream::unfold(reader, |mut reader| async move {
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
    /// Returns the number of the oldest line that is kept.
    fn first(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    fn push(&mut self, line: LogLine) {
        self.n_bytes += size(&line);
        self.kept.push_back(Arc::new(line));
        self.next += 1;
        while (self.kept.len() > KEPT_LINES || self.n_bytes > KEPT_BYTES)
            && let Some(oldest) = self.kept.pop_front()
        {
            self.n_bytes -= size(&oldest);
        }
        if let Some(changed) = &self.changed {
            changed.send_replace(());
        }
    }
}

impl Reader {
    /// Returns the next line, or `None` at the end.
    async fn read(&mut self) -> Option<LogLine> {
        loop {
            let mut changed = {
                let lines = self.shared.lines();
                if self.end.is_some_and(|end| self.next >= end) {
                    return None;
                }
                let n_missed = lines.first().saturating_sub(self.next);
                if n_missed > 0 {
                    self.next += n_missed;
                    return Some(LogLine {
                        at: self.shared.clock.unix_millis(),
                        level: "warn",
                        url: String::new(),
                        rule: String::new(),
                        message: format!(
                            "{n_missed} lines were too many to follow and are not shown"
                        ),
                    });
                }
                let place = (self.next - lines.first()) as usize;
                if let Some(line) = lines.kept.get(place) {
                    self.next += 1;
                    return Some((**line).clone());
                }
                lines.changed.as_ref()?.subscribe()
            };
            // An error means that the crawl is over: the next look reads the remaining lines, and ends.
            let _is_over = changed.changed().await;
        }
    }
}

/// Returns the size in bytes of the texts of a line.
fn size(line: &LogLine) -> usize {
    line.url.len() + line.rule.len() + line.message.len()
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

/// Writes the log lines of a call, and why it was ended, into the crawl's log.
pub(super) fn note_logs(log: &CrawlLog, url: &str, rule: &str, report: &CallReport) {
    for line in &report.logs {
        log.on_page(line.level.as_str(), url, rule, line.message.clone());
    }
    if report.n_logs_dropped > 0 {
        let message = format!(
            "{} more lines, beyond the limit set by --limit log-lines",
            report.n_logs_dropped
        );
        log.on_page("warn", url, rule, message);
    }
    if let Err(CallFailure::Killed(kill)) = &report.result {
        log.on_page("error", url, rule, kill_text(kill, report));
    }
}

fn kill_text(kill: &KillReport, report: &CallReport) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "ended by the host ({}): {}; fuel {}, peak memory {} bytes, {} ms",
        kill.kill,
        kill.message,
        report.usage.fuel,
        report.usage.peak_memory,
        report.usage.elapsed.as_millis(),
    );
    if let Some((message, place)) = &kill.panic {
        let _infallible = write!(text, "; panicked at {place}: {message}");
    }
    for frame in &kill.backtrace {
        let _infallible = write!(text, "\n    at {frame}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_process::clock::SystemClock;

    #[tokio::test]
    async fn a_follower_gets_what_is_kept_then_what_comes_then_the_end() {
        let log = CrawlLog::new(Arc::new(SystemClock));
        log.note("info", "first");
        let follower = log.read(true);
        log.note("info", "second");
        log.close();
        let messages: Vec<String> = follower.map(|line| line.message).collect().await;
        assert_eq!(messages, ["first", "second"]);
    }

    #[tokio::test]
    async fn the_last_errors_are_told_without_what_went_well() {
        let log = CrawlLog::new(Arc::new(SystemClock));
        for (level, message) in [("error", "a"), ("info", "b"), ("warn", "c"), ("error", "d")] {
            log.note(level, message);
        }
        let last: Vec<String> = log.last_errors(2).into_iter().map(|l| l.message).collect();
        assert_eq!(last, ["c", "d"]);
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let log = CrawlLog::new(Arc::new(SystemClock));
        for n in 0..KEPT_LINES + 5 {
            log.note("info", n.to_string());
        }
        let lines: Vec<LogLine> = log.read(false).collect().await;
        assert_eq!((lines.len(), lines[0].message.as_str()), (KEPT_LINES, "5"));
    }

    #[tokio::test]
    async fn r05_a_long_line_is_cut_between_characters_and_marked() {
        let log = CrawlLog::new(Arc::new(SystemClock));
        let url = format!("http://a.test/{}", "ü".repeat(4_000));
        for shift in 0..4 {
            let message = format!("{}{}", "x".repeat(shift), "🦀".repeat(22 << 10));
            log.on_page("info", &url, &"r".repeat(300), message);
        }
        log.on_page("info", "http://a.test/", "page", "as it is");
        let lines: Vec<LogLine> = log.read(false).collect().await;
        for line in &lines[..4] {
            assert!(size(line) <= LINE_BYTES && size(line) > LINE_BYTES - 8);
            for text in [&line.url, &line.rule, &line.message] {
                assert!(text.ends_with(CUT_MARK), "{text}");
            }
        }
        let last = &lines[4];
        assert_eq!((&*last.url, &*last.message), ("http://a.test/", "as it is"));
    }

    #[tokio::test]
    async fn r05_the_log_of_a_crawl_is_bounded_in_bytes() {
        let log = CrawlLog::new(Arc::new(SystemClock));
        let slow = log.read(true);
        for n in 0..KEPT_LINES {
            log.note("info", format!("{n} {}", "x".repeat(88 << 10)));
        }
        let n_kept = log.shared.lines().kept.len();
        assert!(log.shared.lines().n_bytes <= KEPT_BYTES);
        assert_eq!(n_kept, KEPT_BYTES / LINE_BYTES);
        log.close();
        // A reader that follows holds nothing beyond that, and is told of lines that are gone.
        let heard: Vec<LogLine> = slow.collect().await;
        assert_eq!(heard.len(), n_kept + 1);
        let n_missed = KEPT_LINES - n_kept;
        assert!(heard[0].message.starts_with(&format!("{n_missed} lines")));
        assert!(heard[n_kept].message.starts_with("999 x"));
    }
}
