//! Calls of webhooks, by the Standard Webhooks specification (<https://www.standardwebhooks.com>, 1.0.0).
//!
//! Each call is a POST with three headers: `webhook-id`, by which a receiver recognizes what it has already,
//! `webhook-timestamp`, the time of the call in seconds since 1970, and `webhook-signature`, which has a signature of each
//! key. Every status from 200 to 299 means that the receiver has taken the body. Redirects are not followed. `Retry-After` of
//! an answer asks for a wait before the next call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::http::post::{PostAnswer, PostClient, PostError};
use crate::http::retry_after;
use crawler_process::clock::Clock;

mod signature;

pub use signature::{SigningKey, SigningKeyError};

/// Caller of one receiver.
pub struct WebhookClient {
    /// Client that posts to the URL of the receiver.
    pub client: PostClient,
    /// Keys that the receiver may verify calls with: each call has a signature of every one.
    pub keys: Vec<SigningKey>,
    /// Longest time for an answer: setting `timeout` of the table.
    pub timeout: Duration,
    /// Kind of the table that has the settings, as messages name it: `webhook` or `sink`.
    pub table: &'static str,
    /// Clock of the times of calls.
    pub clock: Arc<dyn Clock>,
}

/// Failure of one call. The receiver may have taken the body, whatever the status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct CallError {
    /// Fault that was observed; it has no secrets.
    pub why: String,
    /// Status of the answer, if there was one.
    pub status: Option<u16>,
    /// Wait before the next call that the receiver asks for.
    pub retry_after: Option<Duration>,
}

impl WebhookClient {
    /// Posts a body under this id, with further headers.
    ///
    /// # Errors
    ///
    /// The answer is no success, or there is none.
    pub async fn call(
        &self,
        id: &str,
        mut headers: Vec<(&'static str, String)>,
        body: Bytes,
    ) -> Result<(), CallError> {
        let timestamp = self.clock.unix_millis() / 1_000;
        let signatures = self.keys.iter().map(|key| key.sign(id, timestamp, &body));
        let signatures: Vec<String> = signatures.collect();
        headers.extend([
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", signatures.join(" ")),
        ]);
        let table = self.table;
        let answer = self.client.post(headers, body, self.timeout).await;
        let why = match &answer {
            Ok(PostAnswer { status, .. }) => match status {
                200..=299 => return Ok(()),
                300..=399 => format!("status {status}, and redirects are not followed"),
                status => format!("status {status}"),
            },
            Err(error @ PostError::Address { .. }) => {
                format!("{error}; allow-networks of the {table} can allow it")
            }
            Err(error @ PostError::Timeout { .. }) => {
                format!("{error}, which is timeout of the {table}")
            }
            Err(error @ PostError::Failed(_)) => error.to_string(),
        };
        let answer = answer.ok();
        let asked = answer.as_ref();
        let asked = asked.and_then(|answer| answer.retry_after.as_deref());
        let now = self.clock.unix_millis();
        Err(CallError {
            why,
            status: answer.as_ref().map(|answer| answer.status),
            retry_after: asked.and_then(|text| retry_after(text, now)),
        })
    }
}
