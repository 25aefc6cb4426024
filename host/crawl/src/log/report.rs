//! Lines of a call: what its rule has logged, and why the host has ended it.

use super::{CrawlLog, PageNote};
use crawler_model::crawl::RuleError;
use crawler_model::guest_text::GuestText;
use crawler_plugin::{CallFailure, CallReport};

/// Writes the log lines of a call, and why it was ended, into the crawl's log.
pub(in super::super) fn note_logs(log: &CrawlLog, url: &str, rule: &str, report: &CallReport) {
    for line in &report.logs {
        log.on_page(line.level.as_str(), url, rule, line.message.clone());
    }
    if report.n_logs_dropped > 0 {
        let detail = format!(" ({} more lines)", report.n_logs_dropped);
        log.on_page_with(PageNote {
            level: "warn",
            url,
            rule,
            said: "lines are missing, beyond the limit set by --limit log-lines".to_owned(),
            detail,
            place: "",
        });
    }
    if let Err(CallFailure::Killed(kill)) = &report.result {
        let frames = kill.own_frames();
        let innermost = frames.first().map(String::as_str).unwrap_or_default();
        log.on_page_with(PageNote {
            level: "error",
            url,
            rule,
            said: format!("ended by the host ({}): {}", kill.kill, kill.message),
            detail: kill_detail(&frames, report),
            place: innermost,
        });
    }
}

/// Returns how a rule gave up, for the log, and its message alone. The place in the rule stands first in both; without
/// one, the log has the kind of the error.
pub(in super::super) fn said(error: &RuleError, place: Option<&GuestText>) -> (String, GuestText) {
    let why = error.why();
    match place {
        Some(place) => {
            let said = GuestText::of(format_args!("{place}: {why}"));
            (said.to_string(), said)
        }
        None => (error.to_string(), why.clone()),
    }
}

/// Returns the cost of a call that was ended, and the functions of the rule's author that were open.
fn kill_detail(frames: &[String], report: &CallReport) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "; fuel {}, peak memory {} bytes, {} ms",
        report.usage.fuel,
        report.usage.peak_memory,
        report.usage.elapsed.as_millis(),
    );
    for frame in frames {
        let _infallible = write!(text, "\n    at {frame}");
    }
    text
}
