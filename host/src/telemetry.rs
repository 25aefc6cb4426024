//! Logs to stderr: for people by default, as JSON lines if `CRAWLER_LOG_FORMAT=json`.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

mod json;
pub mod profile;

/// Settings of the log of this process.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Filter in the syntax of tracing-subscriber: `info`, `crawler=debug`.
    pub filter: Option<String>,
    /// True for one JSON object a line.
    pub json: bool,
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
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let done = if settings.json {
        builder.event_format(json::JsonLines).try_init()
    } else {
        builder
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .try_init()
    };
    done.map_err(|e| LogError::Started { why: e.to_string() })
}

/// Returns an error with all its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
