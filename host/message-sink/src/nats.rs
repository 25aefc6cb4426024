//! Sink of items in streams of NATS JetStream: a message for each item.
//!
//! A message has the item with its envelope as JSON. Its id (`Nats-Msg-Id`) is a digest of the cluster, the sink, the subject
//! and the key of the item, so it is the same however often the item is published, and a stream drops a message whose id it
//! has seen within its duplicate window. A write counts the items that are acknowledged without a gap. Those behind a message
//! that failed come again, and are not published again by the same sink: it remembers what the stream has of them. So a
//! subject that is denied for longer than the duplicate window doubles nothing. The sink of another life of the frontier
//! does not remember; it publishes them once more, under the same ids.
//!
//! An item that is too large for a message goes to the subject of rejected items, in pieces, with the reason. All other
//! errors keep the items: the caller of a write tries again, and they go on as soon as their cause is gone. If the stream is
//! too slow for a write, the next one has half of its items. Shards use one connection at the same time, and wait only for
//! room in the bytes that all of them have on their way.
//!
//! ```text
//! settings    settings of a stream, and their ranges
//! target      URL of a server, and the login
//! subject     subjects of items
//! connection  messages that are acknowledged, and requests
//! faults      loss of a connection, and errors that a server reports
//! rejects     items that are too large for a message
//! check       what is looked at before a resource uses a stream
//! trouble     causes of errors, and what to do
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_trait::async_trait;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use connection::{Connection, Message, Outcome, Published};
use crawler_model::crawl::ItemRecord;
use crawler_model::settings::SinkName;
use crawler_sink::digest::digest;
use crawler_sink::settings::SettingError;
use crawler_sink::{
    CheckSink, Delivery, Gathering, OpenSinks, Sink, SinkCheck, SinkError, Written, push_line,
};
use rejects::Rejected;
use trouble::{Cause, Trouble};

use crate::fitting;

mod check;
mod connection;
mod faults;
mod rejects;
mod settings;
mod subject;
mod target;
mod trouble;

pub use settings::NatsSettings;
pub use subject::{SubjectError, SubjectTemplate};
pub use target::{NatsSecret, NatsTarget, NatsTargetError};

/// Header by which a stream recognises a message that it has.
const ID: &str = "Nats-Msg-Id";
/// Number of full batches of all shards that may be on their way to a server.
const N_BATCHES: u64 = 4;
/// Part of its bound by which the number of items of a batch grows after one that was in time.
const GROWTH: usize = 64;

/// Sinks of all shards of a process at one server.
pub struct NatsSinks {
    server: Arc<Server>,
    settings: NatsSettings,
}

/// Server, and the connection to it that all shards use.
struct Server {
    target: NatsTarget,
    /// Connection of further batches. It is locked only while another one is made.
    connection: Mutex<Option<Arc<Connection>>>,
    /// Room for the bytes of all shards that are on their way.
    room: Semaphore,
    /// Number of bytes for which there is room.
    n_room: u64,
}

impl NatsSinks {
    /// Creates the sinks of a server. Nothing is connected before the first write.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    pub fn new(target: NatsTarget, settings: NatsSettings) -> Result<Self, SettingError> {
        settings.check()?;
        let n_room = settings.batch_bytes * N_BATCHES;
        let server = Server {
            target,
            connection: Mutex::new(None),
            room: Semaphore::new(n_room as usize),
            n_room,
        };
        Ok(Self {
            server: Arc::new(server),
            settings,
        })
    }

    /// Returns the sink of a shard.
    pub fn sink(&self, delivery: &Delivery) -> NatsSink {
        NatsSink {
            server: Arc::clone(&self.server),
            settings: self.settings.clone(),
            cluster: delivery.cluster.clone(),
            name: delivery.sink.clone(),
            resource: delivery.spec.name.to_string(),
            max_items: self.settings.batch_items,
            ahead: HashSet::new(),
        }
    }
}

#[async_trait]
impl OpenSinks for NatsSinks {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(self.sink(delivery)))
    }
}

#[async_trait]
impl CheckSink for NatsSinks {
    async fn check(&self) -> Result<SinkCheck, SinkError> {
        let target = &self.server.target;
        let looked = Box::pin(check::look(target, &self.settings)).await;
        let would_create =
            looked.map_err(|trouble| trouble.into_sink_error(&target.to_string()))?;
        Ok(SinkCheck { would_create })
    }
}

/// Sink of one shard in the stream of its subjects.
pub struct NatsSink {
    server: Arc<Server>,
    settings: NatsSettings,
    /// Id of the cluster.
    cluster: String,
    name: SinkName,
    /// Name of the resource.
    resource: String,
    /// Number of items that the stream takes in time, as far as it is known. It is between one and the setting.
    max_items: usize,
    /// Ids of messages that the stream has and that do not count yet, because one before them failed. All are of one batch
    /// that begins with that one.
    ahead: HashSet<String>,
}

/// Progress of a write.
struct Done {
    /// Number of the first items that are published, as rejected ones or not.
    n_items: usize,
    n_rejected: u64,
    /// Reason why there are not more of them, unless it is that the time of the write is over.
    trouble: Option<Trouble>,
}

impl Done {
    fn nothing(trouble: Trouble) -> Self {
        Self {
            n_items: 0,
            n_rejected: 0,
            trouble: Some(trouble),
        }
    }
}

#[async_trait]
impl Sink for NatsSink {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let (n_items, n_bytes) = fitting(items, self.max_items, self.settings.batch_bytes)?;
        let items = &items[..n_items];
        if items.is_empty() {
            return Ok(Written::default());
        }
        let done = Box::pin(self.publish(items, n_bytes)).await?;
        match &done.trouble {
            None => {
                let step = self.settings.batch_items.div_ceil(GROWTH);
                self.max_items = (self.max_items + step).min(self.settings.batch_items);
            }
            Some(trouble) if trouble.cause == Cause::Slow => {
                self.max_items = (items.len() / 2).max(1);
            }
            Some(_) => {}
        }
        match done.trouble {
            Some(trouble) if done.n_items == 0 => {
                Err(trouble.into_sink_error(&self.server.target.to_string()))
            }
            // The next write meets the trouble again, if it lasts.
            Some(_) | None => Ok(Written {
                n_rejected: done.n_rejected,
                ..Written::all(&items[..done.n_items], None)
            }),
        }
    }

    /// Items of a write that is given up come again, under the same ids.
    fn is_cancel_safe(&self) -> bool {
        true
    }

    fn gathering(&self) -> Gathering {
        Gathering {
            max_items: self.settings.batch_items,
            n_bytes: self.settings.batch_bytes,
            max_wait: self.settings.max_wait,
        }
    }
}

impl NatsSink {
    fn message(&self, record: &ItemRecord) -> Result<Message, SinkError> {
        let mut line = Vec::new();
        push_line(&mut line, record)?;
        line.pop();
        let subject = self.settings.subject.subject(&self.resource, record);
        let id = digest([
            self.cluster.as_str(),
            self.name.as_str(),
            subject.as_str(),
            record.key.0.as_str(),
        ]);
        let mut headers = HeaderMap::new();
        headers.insert(ID, id);
        Ok(Message {
            subject,
            headers,
            body: line.into(),
        })
    }

    /// Publishes items of this size, and those that are too large as rejected ones.
    async fn publish(&mut self, items: &[ItemRecord], n_bytes: u64) -> Result<Done, SinkError> {
        let timeout = self.settings.timeout;
        let server = Arc::clone(&self.server);
        let _room = match server.room(n_bytes, timeout).await {
            Ok(room) => room,
            Err(trouble) => return Ok(Done::nothing(trouble)),
        };
        let messages = items.iter().map(|record| self.message(record));
        let messages: Vec<Message> = messages.collect::<Result<_, SinkError>>()?;
        let end = Instant::now() + timeout;
        let missing = messages.iter().filter(|m| !self.ahead.contains(m.id()));
        let missing: Vec<&Message> = missing.collect();
        let (connection, published) = match server.publish(&missing, timeout).await {
            Ok(published) => published,
            Err(trouble) => return Ok(Done::nothing(trouble)),
        };
        let mut too_large: HashMap<&str, String> = HashMap::new();
        for (message, outcome) in missing.iter().zip(published.outcomes) {
            match outcome {
                Some(Outcome::Stored) => {
                    self.ahead.insert(message.id().to_owned());
                }
                Some(Outcome::TooLarge(reason)) => {
                    too_large.insert(message.id(), reason);
                }
                None => {}
            }
        }
        let mut done = Done {
            n_items: 0,
            n_rejected: 0,
            trouble: published.trouble,
        };
        for (record, message) in items.iter().zip(&messages) {
            if !self.ahead.contains(message.id()) {
                let Some(reason) = too_large.get(message.id()) else {
                    break;
                };
                let cause = done.trouble.as_ref().map(|trouble| trouble.cause);
                let is_of_connection = cause.is_some_and(Cause::is_of_connection);
                // The first item of a write has time in any case, so that there is progress.
                let now = Instant::now();
                let end = if done.n_items == 0 {
                    now + timeout
                } else {
                    end
                };
                if is_of_connection || end <= now {
                    break;
                }
                let failed = self.reject(&connection, record, message, reason, end).await;
                if failed.is_some() {
                    done.trouble = failed;
                    break;
                }
                done.n_rejected += 1;
            }
            done.n_items += 1;
        }
        for message in &messages[..done.n_items] {
            self.ahead.remove(message.id());
        }
        Ok(done)
    }

    /// Publishes an item that is too large for a message as a rejected one. Returns the reason if that failed.
    async fn reject(
        &self,
        connection: &Connection,
        record: &ItemRecord,
        message: &Message,
        reason: &str,
        end: Instant,
    ) -> Option<Trouble> {
        let rejected = Rejected {
            subject: self.settings.reject_subject.subject(&self.resource, record),
            key: &record.key.0,
            message,
            reason,
        };
        if let Some(trouble) = rejected.publish(connection, end).await {
            return Some(trouble);
        }
        tracing::warn!(
            sink = %self.name,
            url = record.url,
            n_bytes = message.body.len(),
            reason,
            "an item that is too large for a message is among the rejected ones"
        );
        None
    }
}

impl Server {
    /// Waits for room for bytes on their way. More than there can be take all of it.
    async fn room(&self, n_bytes: u64, timeout: Duration) -> Result<SemaphorePermit<'_>, Trouble> {
        let n_bytes = u32::try_from(n_bytes.min(self.n_room)).unwrap_or(u32::MAX);
        let room = self.room.acquire_many(n_bytes);
        match tokio::time::timeout(timeout, room).await {
            Ok(Ok(room)) => Ok(room),
            Ok(Err(_)) | Err(_) => Err(Trouble::of(Cause::Busy)),
        }
    }

    /// Publishes messages. Returns their outcomes, and the connection for further ones of the same write.
    async fn publish(
        &self,
        messages: &[&Message],
        timeout: Duration,
    ) -> Result<(Arc<Connection>, Published), Trouble> {
        let (connection, was_open) = self.connection(timeout).await?;
        let published = connection.publish(messages, Instant::now() + timeout).await;
        let is_stale = was_open && published.outcomes.iter().all(Option::is_none);
        if !is_stale || !published.is_of(Cause::Away) {
            return Ok((connection, published));
        }
        // The connection was lost while nobody used it.
        let (connection, _) = self.connection(timeout).await?;
        let published = connection.publish(messages, Instant::now() + timeout).await;
        Ok((connection, published))
    }

    /// Returns the connection, and true if it was open before. If there is none, or it is of no use any more, it is made.
    async fn connection(&self, timeout: Duration) -> Result<(Arc<Connection>, bool), Trouble> {
        let Ok(mut held) = tokio::time::timeout(timeout, self.connection.lock()).await else {
            // Another shard tries to make it.
            let said = format!("no connection within {timeout:?}");
            return Err(Trouble::told(Cause::Away, said));
        };
        if let Some(known) = held.as_ref().filter(|known| known.is_usable()) {
            return Ok((Arc::clone(known), true));
        }
        *held = None;
        let opened = Arc::new(Connection::open(&self.target, timeout).await?);
        *held = Some(Arc::clone(&opened));
        Ok((opened, false))
    }
}

impl Published {
    /// Returns true if this is the reason why not all messages are acknowledged.
    fn is_of(&self, cause: Cause) -> bool {
        let trouble = self.trouble.as_ref();
        trouble.is_some_and(|trouble| trouble.cause == cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{delivery, record};

    fn sinks() -> NatsSinks {
        let target = NatsTarget::parse("nats://127.0.0.1:1", None, None).unwrap();
        NatsSinks::new(target, NatsSettings::default()).unwrap()
    }

    #[test]
    fn an_id_tells_the_cluster_the_sink_and_the_item() {
        let id = |delivery: &Delivery, n: u32| {
            let message = sinks().sink(delivery).message(&record(n, "{}")).unwrap();
            message.headers.get(ID).unwrap().as_str().to_owned()
        };
        let own = delivery();
        assert_eq!(id(&own, 1), id(&own, 1));
        assert_ne!(id(&own, 1), id(&own, 2));
        let of_other_cluster = Delivery {
            cluster: "c2".to_owned(),
            ..delivery()
        };
        assert_ne!(id(&of_other_cluster, 1), id(&own, 1));
        let of_other_sink = Delivery {
            sink: "other".parse().unwrap(),
            ..delivery()
        };
        assert_ne!(id(&of_other_sink, 1), id(&own, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_other_shards_does_not_shrink_batches() {
        let sinks = sinks();
        let server = Arc::clone(&sinks.server);
        let mut sink = sinks.sink(&delivery());
        let patience = Duration::from_secs(1);
        let taken = server.room(u64::MAX, patience).await.unwrap();
        let items = [record(1, "{}"), record(2, "{}")];
        let error = sink.write(0, &items).await.unwrap_err().to_string();
        assert!(error.contains("other shards use the connection"), "{error}");
        assert_eq!(sink.max_items, sinks.settings.batch_items);
        drop(taken);
        assert!(server.room(1, patience).await.is_ok());
    }
}
