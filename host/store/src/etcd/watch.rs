//! Watch that continues over failures.
//!
//! The watch resumes from the last change that it delivered, inclusive, and leaves out changes of that revision
//! that it has already delivered: a message may end in the middle of a revision. It never resumes from headers:
//! while a watch catches up, they carry the present revision, ahead of its changes.
//!
//! Changes may be missing because they are compacted away, too large to be received, or silently lost by the
//! server (so this happens at an interval too). Then a watch from the present on is opened first, and only then
//! is the reader told to start over, so that nothing is missed in between.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::proto::{PbEvent, PbWatchResponse};
use etcd_client::{Client, Error, KeyValue, WatchOptions, WatchResponse, WatchStream};
use rand::RngExt as _;
use tokio::time::Instant;

use super::endpoints::Endpoints;
use super::fault::{Fault, Kind};
use super::kv::{ANSWER_MAX, entry, number, range_of, revision};
use crate::{Revision, StoreError, Watch, WatchEvent};
use crawler_process::retry::Backoff;

/// Number of a deletion among the kinds of events.
const DELETION: i32 = 1;

pub(super) struct EtcdWatch {
    endpoints: Arc<Endpoints>,
    prefix: String,
    place: Place,
    state: State,
    /// Events that the reader gets before anything else.
    pending: VecDeque<WatchEvent>,
    /// True if the next watch is opened from the present on, and the reader is told to start over.
    starts_over: bool,
    relist_interval: Duration,
    relist_at: Instant,
    backoff: Backoff,
    /// True if the server refused the watch, which it also does when the token has expired.
    was_denied: bool,
}

/// Position up to which changes were taken.
struct Place {
    /// Revision before which all changes were taken.
    revision: i64,
    /// Keys whose changes at this revision were taken.
    taken: HashSet<Vec<u8>>,
}

type Opened = Result<(WatchStream, i64), Fault>;

enum State {
    Waiting(Instant),
    /// The opening is kept when a wait is cancelled: a reader that asks again and again must get there, too.
    Opening(usize, Pin<Box<dyn Future<Output = Opened> + Send>>),
    Open(usize, Box<WatchStream>),
}

impl EtcdWatch {
    pub(super) fn new(
        endpoints: Arc<Endpoints>,
        prefix: &str,
        from: Revision,
        relist_interval: Duration,
    ) -> Self {
        Self {
            endpoints,
            prefix: prefix.to_owned(),
            place: Place {
                revision: number(from).saturating_add(1),
                taken: HashSet::new(),
            },
            state: State::Waiting(Instant::now()),
            pending: VecDeque::new(),
            starts_over: false,
            relist_interval,
            relist_at: relist_at(relist_interval),
            backoff: Backoff::new(Duration::from_millis(20), Duration::from_secs(2)),
            was_denied: false,
        }
    }

    /// Waits until a member has accepted the watch, or none does.
    pub(super) async fn open(&mut self) -> Result<(), StoreError> {
        let mut n_left = self.endpoints.n_tries();
        loop {
            n_left -= 1;
            match self.step().await {
                Ok(()) if matches!(self.state, State::Open(..)) => return Ok(()),
                Ok(()) => n_left += 1,
                Err(error) if error.is_transient() && n_left > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on to the next state, or takes a message. Cancelling loses nothing.
    async fn step(&mut self) -> Result<(), StoreError> {
        match &mut self.state {
            State::Waiting(until) => {
                tokio::time::sleep_until(*until).await;
                self.begin_opening();
                Ok(())
            }
            State::Opening(at, opening) => {
                let at = *at;
                match opening.await {
                    Ok((stream, present)) => {
                        if std::mem::take(&mut self.starts_over) {
                            self.place = Place {
                                revision: present + 1,
                                taken: HashSet::new(),
                            };
                            self.relist_at = relist_at(self.relist_interval);
                            self.pending.push_back(WatchEvent::StartOver);
                        }
                        self.state = State::Open(at, Box::new(stream));
                        Ok(())
                    }
                    Err(mut fault) => {
                        self.wait();
                        if fault.kind == Kind::Token
                            && std::mem::replace(&mut self.was_denied, true)
                        {
                            fault.kind = Kind::Denied;
                        }
                        Err(self.endpoints.error(fault))
                    }
                }
            }
            State::Open(at, stream) => {
                let at = *at;
                let message = tokio::select! {
                    message = stream.message() => message,
                    () = tokio::time::sleep_until(self.relist_at) => {
                        self.start_over();
                        return Ok(());
                    }
                };
                match message {
                    Ok(Some(message)) => self.take(at, message).await,
                    Ok(None) => {
                        self.fail(at, &Error::WatchError("it ended".to_owned()))
                            .await
                    }
                    Err(error) => self.fail(at, &error).await,
                }
            }
        }
    }

    fn begin_opening(&mut self) {
        let from = if self.starts_over {
            0
        } else {
            self.place.revision
        };
        let endpoints = self.endpoints.clone();
        let prefix = self.prefix.clone();
        let at = endpoints.present();
        let opening = async move {
            let limit = endpoints.call_timeout();
            let opened = endpoints.try_once(limit, |client| open(client, &prefix, from));
            opened.await
        };
        self.state = State::Opening(at, Box::pin(opening));
    }

    fn start_over(&mut self) {
        self.starts_over = true;
        self.begin_opening();
    }

    fn wait(&mut self) {
        self.state = State::Waiting(Instant::now() + self.backoff.next_delay());
    }

    async fn fail(&mut self, at: usize, error: &Error) -> Result<(), StoreError> {
        let fault = self.endpoints.fault(at, error);
        if fault.kind == Kind::AnswerTooLarge {
            // The message would be as large the next time.
            self.start_over();
            return Ok(());
        }
        self.wait();
        self.endpoints.note(at, &fault).await;
        if fault.is_passing() {
            tracing::debug!(
                prefix = self.prefix,
                why = fault.why,
                "opening a watch anew"
            );
            return Ok(());
        }
        Err(self.endpoints.error(fault))
    }

    async fn take(&mut self, at: usize, message: WatchResponse) -> Result<(), StoreError> {
        // This comes first: nothing else in such a message has a meaning, and nothing follows it.
        if message.canceled() {
            if message.compact_revision() > 0 {
                self.start_over();
                return Ok(());
            }
            let error = Error::WatchError(message.cancel_reason().to_owned());
            return self.fail(at, &error).await;
        }
        self.backoff.reset();
        self.was_denied = false;
        let WatchResponse(PbWatchResponse { events, .. }) = message;
        for event in events {
            self.pending.extend(self.place.take(event));
        }
        Ok(())
    }
}

impl Place {
    /// Returns the event of a change if it is new.
    fn take(&mut self, event: PbEvent) -> Option<WatchEvent> {
        let kv = event.kv?;
        let changed = kv.mod_revision;
        if changed < self.revision {
            return None;
        }
        if changed > self.revision {
            self.revision = changed;
            self.taken.clear();
        }
        if !self.taken.insert(kv.key.clone()) {
            return None;
        }
        let entry = entry(KeyValue(kv))?;
        Some(if event.r#type == DELETION {
            WatchEvent::Delete {
                key: entry.key,
                revision: revision(changed),
            }
        } else {
            WatchEvent::Put(entry)
        })
    }
}

#[async_trait]
impl Watch for EtcdWatch {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            self.step().await?;
        }
    }
}

/// Opens a watch of the changes from a revision on (0 for the next one), and waits until the server has agreed.
/// Returns the server's present revision too.
async fn open(client: Client, prefix: &str, from: i64) -> Result<(WatchStream, i64), Error> {
    let (key, end) = range_of(prefix);
    // Without fragments, the changes that gather for a slow reader arrive as one message of any size.
    let options = WatchOptions::new()
        .with_range(end)
        .with_start_revision(from)
        .with_fragment();
    let mut client = client.watch_client().max_decoding_message_size(ANSWER_MAX);
    let mut stream = client.watch(key, Some(options)).await?;
    let refused = |why: &str| Err(Error::WatchError(why.to_owned()));
    match stream.message().await? {
        Some(first) if first.canceled() => refused(first.cancel_reason()),
        Some(first) if first.created() => match first.header() {
            Some(header) => Ok((stream, header.revision())),
            None => refused("the server did not tell its revision"),
        },
        Some(_) => refused("the server answered something else"),
        None => refused("the server ended it"),
    }
}

/// Returns the time of the next listing, at random, so that the watches of a process do not all list at once.
fn relist_at(interval: Duration) -> Instant {
    Instant::now() + interval.mul_f64(rand::rng().random_range(0.9..=1.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etcd_client::proto::PbKeyValue;

    fn event(key: &str, mod_revision: i64) -> PbEvent {
        PbEvent {
            kv: Some(PbKeyValue {
                key: key.into(),
                mod_revision,
                ..PbKeyValue::default()
            }),
            ..PbEvent::default()
        }
    }

    #[test]
    fn what_comes_again_after_a_break_inside_a_revision_is_told_once() {
        let mut place = Place {
            revision: 2,
            taken: HashSet::new(),
        };
        let before_the_break = [("/a", 2), ("/a", 4), ("/b", 4)];
        let after_it = [("/a", 4), ("/b", 4), ("/c", 4), ("/a", 5)];
        let mut told = Vec::new();
        for (key, revision) in before_the_break.into_iter().chain(after_it) {
            told.extend(place.take(event(key, revision)).map(|_| (key, revision)));
        }
        assert_eq!(
            told,
            [("/a", 2), ("/a", 4), ("/b", 4), ("/c", 4), ("/a", 5)]
        );
        assert_eq!(place.revision, 5);
    }
}
