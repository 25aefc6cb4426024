//! Logs to stderr: for people by default, as JSON lines if `CRAWLER_LOG_FORMAT=json`.
//!
//! A line in either format has the fields of the spans around it, so that a line of a crawl tells which crawl
//! it is of although its call site does not.

use std::io::IsTerminal as _;

use tracing::Dispatch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

mod fields;
mod json;
mod lines;
pub mod profile;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod testing;

/// Settings of the log of this process.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Filter in the syntax of tracing-subscriber: `info`, `crawler=debug`.
    pub filter: Option<String>,
    /// True for one JSON object a line.
    pub json: bool,
    /// Choice of colours.
    pub colors: Colors,
}

/// Choice of colours in lines for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colors {
    /// Colours only if the lines go to a terminal.
    #[default]
    Auto,
    /// Colours always.
    Always,
    /// No colours.
    Never,
}

impl Colors {
    fn are_on(self, is_terminal: bool) -> bool {
        match self {
            Self::Auto => is_terminal,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Error of a log that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error(
        "the log filter {filter:?} does not parse: {why}; write CRAWLER_LOG=info or CRAWLER_LOG=crawler=debug"
    )]
    Filter {
        /// Filter as given.
        filter: String,
        /// Error of the parser.
        why: String,
    },
    /// The log was started before.
    #[error("the log was started before: {why}")]
    Started {
        /// Error of the library.
        why: String,
    },
}

/// Starts logging. It is called once, by main.
pub fn init(settings: &Settings, default_filter: &str) -> Result<(), LogError> {
    let filter = settings.filter.as_deref().unwrap_or(default_filter);
    let filter = EnvFilter::try_new(filter).map_err(|e| LogError::Filter {
        filter: filter.to_owned(),
        why: e.to_string(),
    })?;
    // Lines of all modules tell the crawl that they belong to, also where a filter names one module alone.
    let has_colors = settings.colors.are_on(std::io::stderr().is_terminal());
    let done = dispatch(filter, settings.json, std::io::stderr, has_colors).try_init();
    done.map_err(|e| LogError::Started { why: e.to_string() })
}

/// Returns the directive that lets the spans of crawls pass.
fn spans() -> Directive {
    "spans=error".parse().expect("it is a directive")
}

/// Returns a subscriber that writes lines.
fn dispatch<W>(filter: EnvFilter, json: bool, writer: W, has_colors: bool) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let spans = tracing_subscriber::registry()
        .with(filter.add_directive(spans()))
        .with(fields::SpanFields);
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(has_colors)
        .with_writer(writer);
    match json {
        true => spans.with(log.event_format(json::JsonLines)).into(),
        false => spans.with(log.event_format(lines::TextLines)).into(),
    }
}

/// Returns an error with all its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // The message of some errors already ends with that of their cause.
        let told = error.to_string();
        if !text.ends_with(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_terminal_only_if_nobody_has_chosen() {
        let choices = [Colors::Auto, Colors::Always, Colors::Never];
        let on = choices.map(|colors| (colors.are_on(false), colors.are_on(true)));
        assert_eq!(on, [(false, true), (true, true), (false, false)]);
    }
}
