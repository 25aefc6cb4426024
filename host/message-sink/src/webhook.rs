//! Sink of items that are posted to a URL: several items are one signed call, as of other webhooks.
//!
//! Before a post is sent, the frontier keeps its plan: how many items it has, and its id. So whoever goes on after a crash
//! sends the same items under the same id (`Idempotency-Key`, `webhook-id`), by which the receiver recognises them, and the
//! frontier forgets the plan in the batch that removes the items.
//!
//! A status from 200 to 299 means that the receiver has the items. After anything else they are kept and posted again: the
//! caller of a write tries again, and no shard does so before the time that `Retry-After` asks for. A post that is too large for the
//! receiver (413) is planned anew with half of its items, because it is certain that none of them was taken.
//!
//! ```text
//! settings  form and bounds of posts
//! plan      items of a post, as the frontier keeps it
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crawler_fetch::webhook::{CallError, WebhookClient};
use crawler_model::crawl::ItemRecord;
use crawler_model::settings::SinkName;
use crawler_sink::settings::SettingError;
use crawler_sink::{
    CheckSink, Delivery, Gathering, OpenSinks, Sink, SinkCheck, SinkError, Written, push_line,
};
use plan::Plan;

use crate::fitting;

mod plan;
mod settings;
#[cfg(test)]
mod tests;

pub use settings::{PostFormat, PostFormatError, WebhookSettings};

/// Part of its bound by which the number of items of a post grows after one that was taken.
const GROWTH: usize = 64;
/// The least number of items that a caller is asked for. It is more than a caller gives anyway.
const LEAST_WANTED: usize = 4_096;
/// Status of a receiver for which a post is too large.
const TOO_LARGE: u16 = 413;

/// Sinks of all shards of a process at one URL.
pub struct WebhookSinks {
    receiver: Arc<Receiver>,
    /// URL as messages show it: without its path, which may be a secret.
    shown: String,
    settings: WebhookSettings,
}

/// Receiver of the posts of all shards.
struct Receiver {
    client: WebhookClient,
    /// Time before which the receiver is left alone, as it has asked for, and the message of its answer.
    rest: Mutex<Option<(Instant, String)>>,
}

impl Receiver {
    /// Returns the message of the answer that has asked for a rest, as long as it lasts.
    fn rests(&self) -> Option<String> {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = rest.as_ref().filter(|(until, _)| Instant::now() < *until);
        rest.map(|(_, message)| message.clone())
    }

    /// Leaves the receiver alone until then. An answer that asks for less does not shorten a rest.
    fn rest_until(&self, until: Instant, message: String) {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if rest.as_ref().is_none_or(|(known, _)| *known < until) {
            *rest = Some((until, message));
        }
    }
}

impl WebhookSinks {
    /// Creates the sinks of a URL, which messages call `shown`. Nothing is sent before the first write.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    pub fn new(
        client: WebhookClient,
        shown: String,
        settings: WebhookSettings,
    ) -> Result<Self, SettingError> {
        settings.check()?;
        Ok(Self {
            receiver: Arc::new(Receiver {
                client,
                rest: Mutex::new(None),
            }),
            shown,
            settings,
        })
    }
}

#[async_trait]
impl OpenSinks for WebhookSinks {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(WebhookSink {
            receiver: Arc::clone(&self.receiver),
            shown: self.shown.clone(),
            settings: self.settings.clone(),
            plan: Plan::pending(&delivery.marks)?,
            cluster: delivery.cluster.clone(),
            name: delivery.sink.clone(),
            n_wanted: 0,
            n_too_few: 0,
            max_items: self.settings.batch_items,
        }))
    }
}

#[async_trait]
impl CheckSink for WebhookSinks {
    /// Posts no items: an empty body shows whether the receiver takes calls with this signature.
    async fn check(&self) -> Result<SinkCheck, SinkError> {
        let format = self.settings.format;
        let headers = headers(format, "check", 0);
        let called = self
            .receiver
            .client
            .call("check", headers, body(format, &[])?);
        called.await.map_err(|error| failed(&self.shown, &error))?;
        let n_items = self.settings.batch_items;
        Ok(SinkCheck {
            would_create: vec![format!(
                "calls of {}, each with up to {n_items} items as {format}",
                self.shown
            )],
        })
    }
}

/// Posts of the items of one shard.
struct WebhookSink {
    receiver: Arc<Receiver>,
    shown: String,
    settings: WebhookSettings,
    /// Id of the cluster.
    cluster: String,
    /// Name of the sink.
    name: SinkName,
    /// Plan whose post may have been sent.
    plan: Option<Plan>,
    /// Number of items that the caller is asked for, because it has given fewer than the plan has. A choice of items may
    /// leave some of them out.
    n_wanted: usize,
    /// Number of items that were too few for the plan at the last write.
    n_too_few: usize,
    /// Number of items that the receiver takes at once, as far as it is known. It is between one and the setting.
    max_items: usize,
}

#[async_trait]
impl Sink for WebhookSink {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        if items.is_empty() {
            return Ok(Written::default());
        }
        let Some(plan) = self.plan.clone() else {
            return self.announce(first, items);
        };
        let is_same = plan.first == first;
        let n_planned = plan.n_items as usize;
        if is_same && n_planned > items.len() && items.len() > self.n_too_few {
            // The next write gets more items, if there are more. The mark is the same, and nothing is written yet.
            self.n_too_few = items.len();
            let n_wanted = self.n_wanted.max(self.settings.batch_items).max(n_planned);
            self.n_wanted = n_wanted.saturating_mul(2).max(LEAST_WANTED);
            return Ok(Written {
                mark: Some(plan.to_mark()),
                ..Written::default()
            });
        }
        let given = items.get(..n_planned).filter(|_| is_same);
        let given = given.filter(|given| self.plan_of(first, given) == plan);
        let Some(given) = given else {
            // Others are chosen now, or the resource had lost the sink, and its items were dropped.
            return self.announce(first, items);
        };
        self.post(&plan, given).await
    }

    /// A post that is given up comes again, under the same id.
    fn is_cancel_safe(&self) -> bool {
        true
    }

    /// Returns no time to wait if items are planned: they have gathered.
    fn gathering(&self) -> Gathering {
        Gathering {
            max_items: self.settings.batch_items.max(self.n_wanted),
            n_bytes: self.settings.batch_bytes,
            max_wait: match &self.plan {
                Some(_) => Duration::ZERO,
                None => self.settings.max_wait,
            },
        }
    }
}

impl WebhookSink {
    fn plan_of(&self, first: u64, items: &[ItemRecord]) -> Plan {
        Plan::of(&self.cluster, &self.name, first, items)
    }

    /// Plans the next post, which is sent once the frontier has the plan.
    fn announce(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let (n_items, _) = fitting(items, self.max_items, self.settings.batch_bytes)?;
        let plan = self.plan_of(first, &items[..n_items]);
        let mark = Some(plan.to_mark());
        self.plan = Some(plan);
        (self.n_wanted, self.n_too_few) = (0, 0);
        Ok(Written {
            mark,
            ..Written::default()
        })
    }

    /// Sends a post that the frontier knows.
    async fn post(&mut self, plan: &Plan, items: &[ItemRecord]) -> Result<Written, SinkError> {
        if let Some(message) = self.receiver.rests() {
            return Err(retry(message));
        }
        let format = self.settings.format;
        let headers = headers(format, &plan.id, plan.n_items);
        let body = body(format, items)?;
        match self.receiver.client.call(&plan.id, headers, body).await {
            Ok(()) => {
                self.plan = None;
                (self.n_wanted, self.n_too_few) = (0, 0);
                let step = self.settings.batch_items.div_ceil(GROWTH);
                self.max_items = (self.max_items + step).min(self.settings.batch_items);
                Ok(Written {
                    n_items: plan.n_items,
                    mark: Some(Plan::default().to_mark()),
                    ..Written::default()
                })
            }
            Err(error) if error.status == Some(TOO_LARGE) && items.len() > 1 => {
                self.max_items = items.len() / 2;
                let n_items = items.len();
                tracing::info!(
                    sink = %self.name,
                    n_items,
                    "a post is too large for its receiver; it is sent in halves"
                );
                self.announce(plan.first, items)
            }
            Err(error) => {
                let message = message(&self.shown, &error);
                let wait = error.retry_after.filter(|wait| !wait.is_zero());
                if let Some(wait) = wait {
                    let until = Instant::now() + wait.min(self.settings.max_retry_wait);
                    self.receiver.rest_until(until, message.clone());
                }
                Err(retry(message))
            }
        }
    }
}

fn headers(format: PostFormat, id: &str, n_items: u64) -> Vec<(&'static str, String)> {
    vec![
        ("content-type", format.media_type().to_owned()),
        ("idempotency-key", id.to_owned()),
        ("crawler-items", n_items.to_string()),
    ]
}

/// Returns the body of a post.
fn body(format: PostFormat, items: &[ItemRecord]) -> Result<bytes::Bytes, SinkError> {
    let mut lines = Vec::new();
    for record in items {
        push_line(&mut lines, record)?;
    }
    match format {
        PostFormat::Lines => {}
        PostFormat::Array => {
            // Within a line there is no line break.
            lines.pop();
            for byte in &mut lines {
                if *byte == b'\n' {
                    *byte = b',';
                }
            }
            lines.insert(0, b'[');
            lines.push(b']');
        }
    }
    Ok(lines.into())
}

fn failed(shown: &str, error: &CallError) -> SinkError {
    retry(message(shown, error))
}

/// Returns the state of the receiver, and the way out.
fn message(shown: &str, error: &CallError) -> String {
    let state = match error.status {
        Some(429) => "the receiver asks for a slower pace",
        Some(TOO_LARGE) => {
            "an item is too large for the receiver; let it take larger bodies, or choose fewer fields"
        }
        Some(401 | 403) => "the receiver refuses the call; check the secret on both sides",
        Some(404 | 410) => "the receiver has nothing at this url; check it",
        Some(408 | 500..) | None => "the receiver is in trouble or away",
        Some(_) => "the receiver refuses the items; they wait until it takes them",
    };
    format!("cannot post items to {shown}: {state} ({error})")
}

fn retry(message: String) -> SinkError {
    SinkError::Retry {
        message,
        source: None,
    }
}
