//! Watch of every change below `/crawler/`, by one client for each member of etcd: while one member is away or is
//! cut off, the others tell. A client that is too slow for a compaction goes on behind it; changes that none of
//! them saw are missing from the history.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crawler_tests::etcd::Etcd;
use crawler_tests::{PATIENCE, until};
use etcd_client::{Client, EventType, WatchOptions};
use tokio_util::sync::CancellationToken;

use crate::history::Change;

const PREFIX: &str = "/crawler/";
/// Key that nobody else writes. When its change is seen, all changes before it were seen.
const MARK: &str = "/crawler/-mark";
const PAUSE: Duration = Duration::from_millis(100);
/// Silence after which a stream may be dead.
const SILENCE: Duration = Duration::from_secs(3);

type Seen = Arc<Mutex<BTreeMap<(u64, String), Change>>>;
/// Ranges of revisions that none of the clients may have seen: from one to that of a compaction.
pub(crate) type Gaps = Arc<Mutex<Vec<(u64, u64)>>>;

/// Watcher that runs until it is dropped.
pub(crate) struct Watcher {
    seen: Seen,
    gaps: Gaps,
    stop: CancellationToken,
    threads: Vec<JoinHandle<()>>,
}

impl Watcher {
    pub(crate) fn new(etcd: &Etcd) -> Self {
        let (seen, gaps) = (Seen::default(), Gaps::default());
        let stop = CancellationToken::new();
        let threads = etcd.endpoints().into_iter().map(|endpoint| {
            let watching = watch(endpoint, seen.clone(), gaps.clone());
            let stop = stop.clone();
            std::thread::spawn(move || {
                crawler_tests::http::block_on(stop.run_until_cancelled(watching));
            })
        });
        Self {
            threads: threads.collect(),
            seen,
            gaps,
            stop,
        }
    }

    /// Returns the ranges in which changes may be missing from the history.
    pub(crate) fn gaps(&self) -> Vec<(u64, u64)> {
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.clone()
    }

    /// Returns all changes so far. Etcd must answer.
    pub(crate) fn history(&self, etcd: &Etcd) -> Vec<Change> {
        let revision = etcd.revision();
        until("a mark in the history", PATIENCE, || {
            (etcd.try_ctl(&["put", MARK, "0"]).code == Some(0)).then_some(())
        });
        until("all changes of the store", PATIENCE, || {
            let newest = self.seen().last_key_value().map_or(0, |((n, _), _)| *n);
            (newest > revision).then_some(())
        });
        let seen = self.seen();
        let changes = seen.values().filter(|change| change.key != "-mark");
        changes.cloned().collect()
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<(u64, String), Change>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.cancel();
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

async fn watch(endpoint: String, seen: Seen, gaps: Gaps) {
    let mut next = 1;
    loop {
        // An error is an outage, which is the point of these tests.
        let _outage = watch_on(&endpoint, &seen, &gaps, &mut next).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn watch_on(
    endpoint: &str,
    seen: &Seen,
    gaps: &Gaps,
    next: &mut i64,
) -> Result<(), etcd_client::Error> {
    let mut client = Client::connect([endpoint], None).await?;
    let options = WatchOptions::new().with_prefix().with_start_revision(*next);
    let mut stream = client.watch(PREFIX, Some(options)).await?;
    while let Ok(message) = tokio::time::timeout(SILENCE, stream.message()).await {
        let Some(message) = message? else { break };
        if message.canceled() {
            let compacted = message.compact_revision();
            if compacted > *next {
                let newest = {
                    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.last_key_value().map_or(0, |((n, _), _)| *n)
                };
                // Another client may have been fast enough.
                if newest < number(compacted) {
                    let mut gaps = gaps.lock().unwrap_or_else(PoisonError::into_inner);
                    gaps.push((newest, number(compacted)));
                }
                *next = compacted;
            }
            break;
        }
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        for event in message.events() {
            let Some(kv) = event.kv() else { continue };
            let key = kv.key_str()?.trim_start_matches(PREFIX).to_owned();
            let revision = number(kv.mod_revision());
            let value = match event.event_type() {
                EventType::Put => serde_json::from_slice(kv.value()).ok(),
                EventType::Delete => None,
            };
            let change = Change {
                revision,
                key: key.clone(),
                created: number(kv.create_revision()),
                value,
            };
            seen.insert((revision, key), change);
            *next = (*next).max(kv.mod_revision());
        }
        drop(seen);
    }
    Ok(())
}

fn number(revision: i64) -> u64 {
    u64::try_from(revision).expect("revisions are not negative")
}
