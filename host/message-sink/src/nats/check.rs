//! Look at a server before a resource uses it: who takes the subjects, and for how long messages are recognised.
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
