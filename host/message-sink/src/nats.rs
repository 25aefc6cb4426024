//! Sink of items in streams of NATS JetStream: a message for each item.
//!
//! A message has the item with its envelope as JSON. Its id (`Nats-Msg-Id`) is a digest of the cluster, the sink, the subject
//! and the key of the item, so it is the same however often the item is published, and a stream drops a message whose id it has seen
//! within its duplicate window. A write counts the items that are acknowledged without a gap; those behind come again.
//!
//! An item that is too large for a message goes to the subject of rejected items, in pieces, with the reason. All other
//! errors keep the items: the caller of a write tries again, and they go on as soon as their cause is gone. If the stream is
//! too slow for a write, the next one has half of its items.
//!
//! ```text
//! settings    settings of a stream, and their ranges
//! target      URL of a server, and the login
//! subject     subjects of items
//! connection  messages that are acknowledged, and requests
//! rejects     items that are too large for a message
//! check       what is looked at before a resource uses a stream
//! trouble     causes of errors, and what to do
//! ```

use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_trait::async_trait;
use tokio::sync::Mutex;

use connection::{Connection, Message, Outcome, Published};
use crawler_model::crawl::ItemRecord;
use crawler_model::settings::SinkName;
use crawler_sink::{
    CheckSink, Delivery, Gathering, OpenSinks, Sink, SinkCheck, SinkError, Written, push_line,
};
use trouble::{Cause, Trouble};

use crate::settings::SettingError;
use crate::{digest, n_fitting};

mod check;
mod connection;
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
/// Part of its bound by which the number of items of a batch grows after one that was in time.
const GROWTH: usize = 64;

/// Sinks of all shards of a process at one server.
pub struct NatsSinks {
    server: Arc<Server>,
    settings: NatsSettings,
}

/// Server, and the connection to it that all shards use, one batch after the other.
struct Server {
    target: NatsTarget,
    connection: Mutex<Option<Connection>>,
}

impl NatsSinks {
    /// Creates the sinks of a server. Nothing is connected before the first write.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    pub fn new(target: NatsTarget, settings: NatsSettings) -> Result<Self, SettingError> {
        settings.check()?;
        let server = Server {
            target,
            connection: Mutex::new(None),
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
}

#[async_trait]
impl Sink for NatsSink {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let items = &items[..n_fitting(items, self.max_items, self.settings.batch_bytes)];
        if items.is_empty() {
            return Ok(Written::default());
        }
        let messages = items.iter().map(|record| self.message(record));
        let messages: Vec<Message> = messages.collect::<Result<_, SinkError>>()?;
        let (n_items, trouble) = Box::pin(self.publish(items, &messages)).await;
        let Some(trouble) = trouble else {
            let step = self.settings.batch_items.div_ceil(GROWTH);
            self.max_items = (self.max_items + step).min(self.settings.batch_items);
            return Ok(Written::all(items, None));
        };
        if trouble.cause == Cause::Slow {
            self.max_items = (items.len() / 2).max(1);
        }
        match n_items {
            0 => Err(trouble.into_sink_error(&self.server.target.to_string())),
            // The next write meets the trouble again, if it lasts.
            _ => Ok(Written::all(&items[..n_items], None)),
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
            &subject,
            &record.key.0,
        ]);
        let mut headers = HeaderMap::new();
        headers.insert(ID, id);
        Ok(Message {
            subject,
            headers,
            body: line.into(),
        })
    }

    /// Publishes items, and those that are too large as rejected ones. Returns the number of the first items for which that
    /// is done, and the reason why there are not more of them.
    async fn publish(
        &self,
        items: &[ItemRecord],
        messages: &[Message],
    ) -> (usize, Option<Trouble>) {
        let timeout = self.settings.timeout;
        let held = tokio::time::timeout(timeout, self.server.connection.lock()).await;
        let Ok(mut held) = held else {
            let said = format!("other shards used the connection for {timeout:?}");
            return (0, Some(Trouble::told(Cause::Slow, said)));
        };
        let was_open = held.as_ref().is_some_and(|known| !known.is_lost());
        if !was_open {
            *held = None;
        }
        let mut published = publish_on(&mut held, &self.server.target, messages, timeout).await;
        let is_stale = was_open && held.is_none() && published.outcomes.is_empty();
        if is_stale && published.is_of(Cause::Away) {
            // The connection was lost while nobody used it.
            published = publish_on(&mut held, &self.server.target, messages, timeout).await;
        }
        let large = published.outcomes.iter().enumerate();
        let large = large.filter_map(|(place, outcome)| match outcome {
            Outcome::Stored => None,
            Outcome::TooLarge(reason) => Some((place, reason)),
        });
        for (place, reason) in large {
            let Some(connection) = &*held else {
                return (place, published.trouble);
            };
            let pieces = rejects::pieces(
                self.settings
                    .reject_subject
                    .subject(&self.resource, &items[place]),
                &messages[place],
                &items[place],
                reason,
                connection.max_payload(),
            );
            let kept = connection.publish(&pieces, timeout).await;
            if let Some(trouble) = rejects::trouble(kept) {
                if trouble.cause.is_of_connection() {
                    *held = None;
                }
                return (place, Some(trouble));
            }
            let (url, n_bytes) = (&items[place].url, messages[place].body.len());
            tracing::warn!(
                sink = %self.name,
                url,
                n_bytes,
                reason,
                "an item that is too large for a message is among the rejected ones"
            );
        }
        (published.outcomes.len(), published.trouble)
    }
}

impl Published {
    /// Returns true if this is the reason why not all messages are acknowledged.
    fn is_of(&self, cause: Cause) -> bool {
        let trouble = self.trouble.as_ref();
        trouble.is_some_and(|trouble| trouble.cause == cause)
    }
}

/// Publishes messages on the connection, which is opened if there is none, and forgotten if it is of no use any more.
async fn publish_on(
    held: &mut Option<Connection>,
    target: &NatsTarget,
    messages: &[Message],
    timeout: Duration,
) -> Published {
    let connection = match held {
        Some(connection) => connection,
        None => match Connection::open(target, timeout).await {
            Ok(connection) => held.insert(connection),
            Err(trouble) => {
                return Published {
                    outcomes: Vec::new(),
                    trouble: Some(trouble),
                };
            }
        },
    };
    let published = connection.publish(messages, timeout).await;
    let trouble = published.trouble.as_ref();
    if trouble.is_some_and(|trouble| trouble.cause.is_of_connection()) {
        *held = None;
    }
    published
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
}
