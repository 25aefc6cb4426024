//! Connection to a server: messages that a stream acknowledges, and requests to its interface.
//!
//! A connection that was lost is not used again. Its client tries once to make it anew, and may then send messages that
//! nobody waits for any more; they come again under the same ids. A subject that the user may not publish to is the trouble
//! of its own messages: the others go on over the same connection.
//!
//! The first message of a subject is published alone, and those behind it once it is answered. So a server that denies a
//! subject says so once for each write, not once for each message: the client drops errors if there are more at a time than
//! it has room for, and nobody would know then which messages wait in vain.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::client::{Request, RequestErrorKind};
use async_nats::{Client, Event, HeaderMap, HeaderValue, Message as Answer};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::ID;
use super::faults::{Faults, Told, lost};
use super::target::NatsTarget;
use super::trouble::{Cause, Trouble};

/// Error of a stream for a message that is larger than its limit.
const TOO_LARGE: u64 = 10_054;
/// Errors of a stream that has no room, or whose server has none: limits of the account, of the server and of the stream.
const FULL: [u64; 5] = [10_002, 10_023, 10_028, 10_047, 10_077];

/// Largest number of subjects that are tried at a time. The client has room for 128 errors.
const MAX_TRIED: usize = 64;
/// Largest number of subjects that a connection knows to be let through. With one more, all are tried again.
const MAX_KNOWN: usize = 1_000;

/// Open connection, which several shards may use at a time.
pub(crate) struct Connection {
    client: Client,
    faults: watch::Receiver<Faults>,
    opened_at: Instant,
    /// True once further batches are to use another connection.
    is_given_up: AtomicBool,
    /// Subjects under which the server lets messages through.
    known: Mutex<HashSet<String>>,
    /// Room for subjects that are tried.
    tried: Semaphore,
}

/// Message on its way to a stream.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) subject: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Message {
    /// Id by which a stream recognises the message.
    pub(crate) fn id(&self) -> &str {
        self.headers.get(ID).map_or("", HeaderValue::as_str)
    }
}

/// Fate of a message that will not come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The stream has it.
    Stored,
    /// It is larger than the server or the stream takes, as these words say.
    TooLarge(String),
}

/// Result of a batch.
pub(crate) struct Published {
    /// Outcome of each message. `None` if the message has to come again.
    pub(crate) outcomes: Vec<Option<Outcome>>,
    /// Reason why not all messages have one: that of the connection, or else that of the first message without one.
    pub(crate) trouble: Option<Trouble>,
}

/// Answer of a stream, or of the interface of JetStream.
#[derive(Deserialize)]
struct Reply<T> {
    error: Option<ApiError>,
    #[serde(flatten)]
    content: Option<T>,
}

#[derive(Debug, Deserialize)]
struct ApiError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

/// Acknowledgement of a message.
#[derive(Deserialize)]
struct Stored {
    #[serde(rename = "stream")]
    _stream: String,
}

impl Connection {
    /// Opens a connection.
    pub(crate) async fn open(target: &NatsTarget, timeout: Duration) -> Result<Self, Trouble> {
        let (known, faults) = watch::channel(Faults::default());
        let options = target.options(timeout);
        let options = options.map_err(|error| Trouble::told(Cause::Denied, error.to_string()))?;
        let options = options.event_callback(move |event| {
            known.send_if_modified(|faults| match event {
                Event::Disconnected | Event::Closed => {
                    !std::mem::replace(&mut faults.is_lost, true)
                }
                Event::ServerError(error) => faults.add(Told::of(&error)),
                Event::Connected
                | Event::LameDuckMode
                | Event::Draining
                | Event::SlowConsumer(_)
                | Event::ClientError(_) => false,
            });
            std::future::ready(())
        });
        // The future is large, and each address of a name has a time of its own.
        let connected = Box::pin(options.connect(target.address()));
        let client = match tokio::time::timeout(timeout, connected).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(Trouble::of_connect(&error)),
            Err(_elapsed) => {
                let said = format!("no connection within {timeout:?}");
                return Err(Trouble::told(Cause::Away, said));
            }
        };
        Ok(Self {
            client,
            faults,
            opened_at: Instant::now(),
            is_given_up: AtomicBool::new(false),
            known: Mutex::default(),
            tried: Semaphore::new(MAX_TRIED),
        })
    }

    /// Returns true if further batches may use the connection.
    pub(crate) fn is_usable(&self) -> bool {
        let age = self.opened_at.elapsed();
        !self.is_given_up.load(Ordering::Relaxed) && self.faults.borrow().are_bearable(age)
    }

    /// Largest size of a message with its headers, in bytes.
    pub(crate) fn max_payload(&self) -> usize {
        self.client.max_payload()
    }

    /// Publishes messages one after the other, and waits for the acknowledgements until `end`. There is no wait in between,
    /// except for the answer to the first message of a subject. If that one fails, those behind it under the same subject are
    /// not published.
    pub(crate) async fn publish(&self, messages: &[&Message], end: Instant) -> Published {
        let n_told = self.faults.borrow().n_told;
        let mut outcomes = vec![None; messages.len()];
        let mut refused: HashSet<&str> = HashSet::new();
        let mut first_refusal: Option<(usize, Trouble)> = None;
        let mut coming = FuturesUnordered::new();
        let mut rest = messages.iter().enumerate();
        // Place of the message whose answer the next one waits for.
        let mut trying = None;
        let end = tokio::time::sleep_until(end);
        tokio::pin!(end);
        let cut = loop {
            while trying.is_none()
                && let Some((place, message)) = rest.next()
            {
                if refused.contains(message.subject.as_str()) {
                    continue;
                }
                let is_known = self.known().contains(&message.subject);
                if !is_known {
                    trying = Some(place);
                }
                coming.push(self.publish_one(place, message, n_told, is_known));
            }
            let (place, result) = tokio::select! {
                biased;
                answered = coming.next() => match answered {
                    Some(answered) => answered,
                    None => break None,
                },
                () = &mut end => break Some(Trouble::of(Cause::Slow)),
            };
            if trying == Some(place) {
                trying = None;
            }
            match result {
                Ok(outcome) => outcomes[place] = Some(outcome),
                Err(trouble) if trouble.cause.is_of_connection() => break Some(trouble),
                Err(trouble) => {
                    refused.insert(&messages[place].subject);
                    let is_first = first_refusal
                        .as_ref()
                        .is_none_or(|(first, _)| place < *first);
                    if is_first {
                        first_refusal = Some((place, trouble));
                    }
                }
            }
        };
        if cut.is_some() {
            self.is_given_up.store(true, Ordering::Relaxed);
        }
        let trouble = cut.or(first_refusal.map(|(_place, trouble)| trouble));
        Published { outcomes, trouble }
    }

    /// Publishes the message at this place of a batch, which began when the server had reported `n_told` errors.
    async fn publish_one(
        &self,
        place: usize,
        message: &Message,
        n_told: u64,
        is_known: bool,
    ) -> (usize, Result<Outcome, Trouble>) {
        let mut faults = self.faults.clone();
        let is_own = |subject: &str| subject == message.subject;
        let answered = async {
            let _turn = match is_known {
                true => None,
                false => self.tried.acquire().await.ok(),
            };
            self.send(message).await
        };
        let result = tokio::select! {
            biased;
            result = answered => result,
            trouble = lost(&mut faults, n_told, is_own) => {
                if trouble.cause == Cause::Denied {
                    self.known().remove(&message.subject);
                }
                Err(trouble)
            }
        };
        (place, result)
    }

    /// Sends a message, and waits for the answer without a limit.
    async fn send(&self, message: &Message) -> Result<Outcome, Trouble> {
        let request = Request::new()
            .headers(message.headers.clone())
            .payload(message.body.clone())
            .timeout(None);
        let subject = message.subject.clone();
        let answer = match self.client.send_request(subject, request).await {
            Ok(answer) => answer,
            Err(error) if error.kind() == RequestErrorKind::MaxPayloadExceeded => {
                let max = self.max_payload();
                return Ok(Outcome::TooLarge(format!(
                    "the message is larger than {max} bytes, the max_payload of the server"
                )));
            }
            Err(error) => return Err(Trouble::of_request(&error, &message.subject)),
        };
        let stored = parse::<Stored>(&answer)?;
        // Whatever a stream has answered, the server has let the message through.
        self.let_through(&message.subject);
        match stored {
            Ok(_stored) => Ok(Outcome::Stored),
            Err(error) if error.err_code == TOO_LARGE => Ok(Outcome::TooLarge(
                "the message is larger than max_msg_size of the stream".to_owned(),
            )),
            Err(error) => Err(error.into_trouble()),
        }
    }

    /// Takes note that the server lets messages through under a subject.
    fn let_through(&self, subject: &str) {
        let mut known = self.known();
        if known.contains(subject) {
            return;
        }
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(subject.to_owned());
    }

    fn known(&self) -> MutexGuard<'_, HashSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the interface of JetStream.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        subject: String,
        body: Bytes,
        timeout: Duration,
    ) -> Result<T, Trouble> {
        let mut faults = self.faults.clone();
        let n_told = faults.borrow().n_told;
        let is_own = |denied: &str| denied == subject.as_str();
        let request = Request::new().payload(body).timeout(None);
        let answer = tokio::select! {
            biased;
            answer = self.client.send_request(subject.clone(), request) => answer,
            trouble = lost(&mut faults, n_told, is_own) => return Err(trouble),
            () = tokio::time::sleep(timeout) => return Err(Trouble::of(Cause::Slow)),
        };
        let answer = answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => {
                Trouble::told(Cause::NoStream, "JetStream is not enabled for this user")
            }
            _ => Trouble::of_request(&error, &subject),
        })?;
        parse::<T>(&answer)?.map_err(ApiError::into_trouble)
    }
}

/// Parses an answer, which tells of an error or has a content.
fn parse<T: DeserializeOwned>(answer: &Answer) -> Result<Result<T, ApiError>, Trouble> {
    let reply: Option<Reply<T>> = serde_json::from_slice(&answer.payload).ok();
    match reply {
        Some(Reply {
            error: Some(error), ..
        }) => Ok(Err(error)),
        Some(Reply {
            content: Some(content),
            ..
        }) => Ok(Ok(content)),
        Some(_) | None => Err(Trouble::told(
            Cause::Refused,
            "a program that is no stream has answered",
        )),
    }
}

impl ApiError {
    fn into_trouble(self) -> Trouble {
        let cause = match FULL.contains(&self.err_code) {
            true => Cause::Full,
            false => Cause::Refused,
        };
        let description: String = self.description.replace(char::is_control, " ");
        Trouble::told(cause, description)
    }
}

#[cfg(test)]
mod tests;
