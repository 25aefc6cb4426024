//! Logs: to stderr, for people by default, as JSON lines where `CRAWLER_LOG_FORMAT=json`.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

mod json;
pub mod profile;

/// How the log of this process looks.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// A filter as of tracing-subscriber: `info`, `crawler=debug`.
    pub filter: Option<String>,
    /// One JSON object a line.
    pub json: bool,
}

/// The log cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not one.
    #[error(
        "the log filter {filter:?} does not parse: {why}; write CRAWLER_LOG=info or CRAWLER_LOG=crawler=debug"
    )]
    Filter {
        /// As given.
        filter: String,
        /// What the parser said.
        why: String,
    },
    /// It was started before.
    #[error("the log was started before: {why}")]
    Started {
        /// What the library said.
        why: String,
    },
}

/// Starts logging. Called once, by main.
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

/// An error with all its causes, in one line.
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
