//! The log of one crawl: the last lines, and a stream for whoever follows.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::model::status::LogLine;
use crate::plugin::{CallFailure, CallReport, KillReport};

/// Lines kept per crawl.
const KEPT_LINES: usize = 1_000;
/// Lines that a slow follower may lag behind before it misses some.
const FOLLOW_BUFFER: usize = 1_024;

/// A crawl's log; cheap to clone. Lines go to the process's own log too, as `debug`.
#[derive(Clone)]
pub struct CrawlLog {
    shared: Arc<Shared>,
}

struct Shared {
    resource: String,
    clock: Arc<dyn Clock>,
    lines: Mutex<Lines>,
}

struct Lines {
    kept: VecDeque<LogLine>,
    /// None once the crawl is over.
    follow: Option<broadcast::Sender<LogLine>>,
}

impl CrawlLog {
    /// An empty log.
    pub fn new(resource: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        let lines = Lines {
            kept: VecDeque::new(),
            follow: Some(broadcast::Sender::new(FOLLOW_BUFFER)),
        };
        Self {
            shared: Arc::new(Shared {
                resource: resource.into(),
                clock,
                lines: Mutex::new(lines),
            }),
        }
    }

    /// Adds a line that regards the crawl as a whole.
    pub fn note(&self, level: &'static str, message: impl Into<String>) {
        self.add(level, "", "", message.into());
    }

    /// Adds a line that regards one page.
    pub fn on_page(&self, level: &'static str, url: &str, rule: &str, message: impl Into<String>) {
        self.add(level, url, rule, message.into());
    }

    fn add(&self, level: &'static str, url: &str, rule: &str, message: String) {
        tracing::debug!(
            resource = self.shared.resource,
            level,
            url,
            rule,
            message,
            "crawl log"
        );
        let at = self.shared.clock.unix_millis();
        let line = LogLine {
            at,
            level,
            url: url.to_owned(),
            rule: rule.to_owned(),
            message,
        };
        let mut lines = self
            .shared
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if lines.kept.len() == KEPT_LINES {
            lines.kept.pop_front();
        }
        if let Some(follow) = &lines.follow {
            // Nobody follows: nobody misses anything.
            let _n_followers = follow.send(line.clone());
        }
        lines.kept.push_back(line);
    }

    /// Ends the streams of those who follow, once they have read what is there.
    pub fn close(&self) {
        self.shared
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .follow = None;
    }

    /// The last lines that tell what went wrong, the latest last.
    pub fn last_errors(&self, max: usize) -> Vec<LogLine> {
        let lines = self
            .shared
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let wrong = lines.kept.iter().rev();
        let wrong = wrong.filter(|line| matches!(line.level, "warn" | "error"));
        let mut wrong: Vec<LogLine> = wrong.take(max).cloned().collect();
        wrong.reverse();
        wrong
    }

    /// The lines kept; with `follow`, those to come until the crawl is over.
    pub fn read(&self, follow: bool) -> BoxStream<'static, LogLine> {
        let (kept, receiver) = {
            let lines = self
                .shared
                .lines
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let receiver = lines
                .follow
                .as_ref()
                .filter(|_| follow)
                .map(broadcast::Sender::subscribe);
            (lines.kept.clone(), receiver)
        };
        let clock = self.shared.clock.clone();
        let coming = stream::unfold((receiver, clock), |(receiver, clock)| async move {
            let mut receiver = receiver?;
            let line = match receiver.recv().await {
                Ok(line) => line,
                Err(broadcast::error::RecvError::Lagged(n)) => LogLine {
                    at: clock.unix_millis(),
                    level: "warn",
                    url: String::new(),
                    rule: String::new(),
                    message: format!("{n} lines were too many to follow and are not shown"),
                },
                Err(broadcast::error::RecvError::Closed) => return None,
            };
            Some((line, (Some(receiver), clock)))
        });
        stream::iter(kept).chain(coming).boxed()
    }
}

/// Writes what a call logged, and why it was ended, into the crawl's log.
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
    use crate::clock::SystemClock;

    #[tokio::test]
    async fn a_follower_gets_what_is_kept_then_what_comes_then_the_end() {
        let log = CrawlLog::new("books", Arc::new(SystemClock));
        log.note("info", "first");
        let follower = log.read(true);
        log.note("info", "second");
        log.close();
        let messages: Vec<String> = follower.map(|line| line.message).collect().await;
        assert_eq!(messages, ["first", "second"]);
    }

    #[tokio::test]
    async fn the_last_errors_are_told_without_what_went_well() {
        let log = CrawlLog::new("books", Arc::new(SystemClock));
        for (level, message) in [("error", "a"), ("info", "b"), ("warn", "c"), ("error", "d")] {
            log.note(level, message);
        }
        let last: Vec<String> = log.last_errors(2).into_iter().map(|l| l.message).collect();
        assert_eq!(last, ["c", "d"]);
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let log = CrawlLog::new("books", Arc::new(SystemClock));
        for n in 0..KEPT_LINES + 5 {
            log.note("info", n.to_string());
        }
        let lines: Vec<LogLine> = log.read(false).collect().await;
        assert_eq!((lines.len(), lines[0].message.as_str()), (KEPT_LINES, "5"));
    }
}
