//! Look at a server before a resource uses it: who takes the subjects, and for how long messages are recognised. A stream that
//! cannot take each item once is refused.
//!
//! Nothing is published: a stream would keep it.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::connection::Connection;
use super::settings::NatsSettings;
use super::subject::SubjectTemplate;
use super::target::NatsTarget;
use super::trouble::{Cause, Trouble};

/// Names of streams.
#[derive(Deserialize)]
struct Names {
    /// `None` if there are no streams at all.
    streams: Option<Vec<String>>,
    #[serde(rename = "total")]
    _total: u64,
}

/// State of a stream, as far as it is told.
#[derive(Deserialize)]
struct Info {
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    /// Time in nanoseconds.
    #[serde(default)]
    duplicate_window: u64,
    /// True if the stream acknowledges no messages.
    #[serde(default)]
    no_ack: bool,
    /// True if the stream takes no messages any more.
    #[serde(default)]
    sealed: bool,
}

impl Config {
    /// Returns the reason why a stream cannot take each item once.
    fn fault(&self) -> Option<&'static str> {
        if self.no_ack {
            return Some("it acknowledges no messages: set no_ack to false");
        }
        if self.sealed {
            return Some("it is sealed: choose another stream");
        }
        let is_blind = self.duplicate_window == 0;
        is_blind.then_some("it recognises no messages that come again: set duplicate_window")
    }
}

/// Looks for the streams of items and of rejected items. Returns what a delivery would create.
pub(super) async fn look(
    target: &NatsTarget,
    settings: &NatsSettings,
) -> Result<Vec<String>, Trouble> {
    let connection = Connection::open(target, settings.timeout).await?;
    let mut would_create = Vec::new();
    for (what, template) in [
        ("items", &settings.subject),
        ("items that are too large", &settings.reject_subject),
    ] {
        for stream in streams(&connection, template, settings.timeout).await? {
            let subject = format!("$JS.API.STREAM.INFO.{stream}");
            let body = bytes::Bytes::new();
            let info: Info = connection.ask(subject, body, settings.timeout).await?;
            if let Some(fault) = info.config.fault() {
                let said = format!("stream {stream} of {what}: {fault}");
                return Err(Trouble::told(Cause::Refused, said));
            }
            let window = Duration::from_nanos(info.config.duplicate_window);
            let window = humantime::format_duration(window);
            would_create.push(format!(
                "messages of {what} in stream {stream}, {template}, each recognised for {window}"
            ));
        }
    }
    Ok(would_create)
}

/// Returns the streams that take subjects of a template.
async fn streams(
    connection: &Connection,
    template: &SubjectTemplate,
    timeout: Duration,
) -> Result<Vec<String>, Trouble> {
    let pattern = template.pattern();
    let body = json!({ "subject": pattern }).to_string().into();
    let subject = "$JS.API.STREAM.NAMES".to_owned();
    let names: Names = connection.ask(subject, body, timeout).await?;
    let streams = names.streams.unwrap_or_default();
    match streams.is_empty() {
        true => Err(Trouble::told(
            Cause::NoStream,
            format!("{pattern}; make one with: nats stream add --subjects '{pattern}' NAME"),
        )),
        false => Ok(streams),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_cannot_take_each_item_once_is_refused() {
        for (json, expected) in [
            (r#"{"duplicate_window":120000000000}"#, None),
            (
                r#"{"duplicate_window":1,"no_ack":false,"sealed":false}"#,
                None,
            ),
            (r#"{"duplicate_window":1,"no_ack":true}"#, Some("no_ack")),
            (r#"{"duplicate_window":1,"sealed":true}"#, Some("sealed")),
            (r#"{"duplicate_window":0}"#, Some("duplicate_window")),
            ("{}", Some("duplicate_window")),
        ] {
            let config: Config = serde_json::from_str(json).unwrap();
            let fault = config.fault();
            let is_expected = match expected {
                Some(word) => fault.is_some_and(|fault| fault.contains(word)),
                None => fault.is_none(),
            };
            assert!(is_expected, "{json}: {fault:?}");
        }
    }
}
