//! Lines of a call: what its rule has logged, and why the host has ended it.

use super::{CrawlLog, PageNote};
use crawler_model::guest_text::GuestText;
use crawler_plugin::{CallFailure, CallReport, KillReport};

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
        let innermost = kill.backtrace.first();
        log.on_page_with(PageNote {
            level: "error",
            url,
            rule,
            said: format!("ended by the host ({}): {}", kill.kill, kill.message),
            detail: kill_detail(kill, report),
            place: innermost.map(GuestText::as_str).unwrap_or_default(),
        });
    }
}

/// Returns the cost of a call that was ended, and the functions that were open.
fn kill_detail(kill: &KillReport, report: &CallReport) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "; fuel {}, peak memory {} bytes, {} ms",
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
