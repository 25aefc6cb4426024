//! Logs to stderr or to a file: for people by default, as JSON lines with `--log-format json`.
//!
//! A line in either format has the fields of the spans around it, so that a line of a crawl tells which crawl
//! it is of although its call site does not.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::Dispatch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

mod fields;
mod file;
mod json;
mod lines;
mod panics;
pub mod profile;
mod rotation;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod testing;

pub use self::rotation::FileSettings;

use self::file::{FileWriter, LostLine};
use self::rotation::RotatingFile;
use crate::clock::SystemClock;

/// Settings of the log of this process.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Filter in the syntax of tracing-subscriber: `info`, `crawler=debug`.
    pub filter: Option<String>,
    /// Format as the user writes it: `text`, or `json` for one JSON object a line. If `None`, it is text.
    pub format: Option<String>,
    /// Choice of colours.
    pub colors: Colors,
    /// File of the log. If `None`, lines go to stderr.
    pub file: Option<FileSettings>,
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
    /// The format is not known.
    #[error("there is no log format {format:?}; write text or json")]
    Format {
        /// Format as given.
        format: String,
    },
    /// The file cannot be used.
    #[error("cannot log to {}; name a file in a folder that exists with --log-file", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The thread that writes the file cannot be started.
    #[error("cannot start the thread of the log")]
    Thread(#[source] io::Error),
    /// The log was started before.
    #[error("the log was started before: {why}")]
    Started {
        /// Error of the library.
        why: String,
    },
}

/// Log of this process. Dropping it writes what waits for its file.
pub struct Log {
    writer: Option<FileWriter>,
}

impl Log {
    /// Returns the folder of the file, which the process has to reach; `None` if the log has no file.
    pub fn folder(&self) -> Option<&Path> {
        self.writer.as_ref().and_then(FileWriter::folder)
    }

    /// Starts the thread that writes the file. It has the rights that its caller has left.
    pub fn start(&mut self) -> Result<(), LogError> {
        match &mut self.writer {
            Some(writer) => writer.start().map_err(LogError::Thread),
            None => Ok(()),
        }
    }
}

/// Starts logging. It is called once, by main. Lines for a file wait until [`Log::start`]. The file gets the panics of the
/// process too, which are told on stderr in any case.
pub fn init(settings: &Settings, default_filter: &str) -> Result<Log, LogError> {
    let filter = settings.filter.as_deref().unwrap_or(default_filter);
    let filter = EnvFilter::try_new(filter).map_err(|e| LogError::Filter {
        filter: filter.to_owned(),
        why: e.to_string(),
    })?;
    let json = is_json(settings.format.as_deref())?;
    // Lines of all modules tell the crawl that they belong to, also where a filter names one module alone.
    let (dispatch, writer) = match &settings.file {
        None => {
            let has_colors = settings.colors.are_on(io::stderr().is_terminal());
            (dispatch(filter, json, io::stderr, has_colors), None)
        }
        Some(file) => {
            let clock = Arc::new(SystemClock);
            let opened = RotatingFile::open(file.clone(), clock.clone(), Box::new(io::stderr()));
            let opened = opened.map_err(|source| LogError::File {
                path: file.path.clone(),
                source,
            })?;
            let (writer, queue) = FileWriter::new(opened, LostLine { json, clock });
            let has_colors = settings.colors.are_on(false);
            (dispatch(filter, json, queue, has_colors), Some(writer))
        }
    };
    let started = dispatch.try_init();
    started.map_err(|e| LogError::Started { why: e.to_string() })?;
    if writer.is_some() {
        panics::log_panics();
    }
    Ok(Log { writer })
}

fn is_json(format: Option<&str>) -> Result<bool, LogError> {
    match format {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(format) => Err(LogError::Format {
            format: format.to_owned(),
        }),
    }
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
    fn a_format_that_is_not_known_is_refused() {
        let formats = [None, Some("text"), Some("json")];
        let known = formats.map(|format| is_json(format).unwrap());
        assert_eq!(known, [false, false, true]);
        let refused = is_json(Some("JSON")).unwrap_err().to_string();
        assert_eq!(
            refused,
            "there is no log format \"JSON\"; write text or json"
        );
    }

    #[test]
    fn a_file_that_cannot_be_used_is_told_with_the_setting() {
        let settings = Settings {
            file: Some(FileSettings {
                path: "/missing/log".into(),
                size: 1_000,
                age: std::time::Duration::from_secs(60),
                files: 2,
            }),
            ..Settings::default()
        };
        let refused = init(&settings, "info").err().expect("it is refused");
        assert_eq!(
            chain(&refused),
            "cannot log to /missing/log; name a file in a folder that exists with --log-file: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn colours_follow_the_terminal_only_if_nobody_has_chosen() {
        let choices = [Colors::Auto, Colors::Always, Colors::Never];
        let on = choices.map(|colors| (colors.are_on(false), colors.are_on(true)));
        assert_eq!(on, [(false, true), (true, true), (false, false)]);
    }
}
