//! The record of who did what to what, from where, and with which result.
//!
//! Each master appends its entries to objects of its own in the data root, as lines of JSON:
//! `audit/<time of the first entry>-<node>-<process>.jsonl`. An entry is durable within a second or two; a master that
//! is killed may lose those of that time. No call waits for it. If the storage does not take them, up to
//! [`QUEUE_BYTES`] of entries wait, and further ones are counted instead of kept. The oldest objects are removed when
//! all together have more than [`AuditSettings::max_bytes`].
//!
//! Refused calls cannot fill the record: those of one subject to one call make an entry at once, and then at most one
//! a minute, with their number. All callers without a valid token count as one subject.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt as _};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crawler_model::access::TokenId;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::NodeId;
use crawler_process::clock::Clock;
use writer::Writer;

mod writer;

/// Folder of the record.
const AUDIT: &str = "audit";
/// Bytes of entries that wait to be written.
pub const QUEUE_BYTES: usize = 1 << 20;
/// Time in which entries gather.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two entries for refused calls of one subject to one call.
const REFUSED_INTERVAL: Duration = Duration::from_secs(60);
/// Largest number of subjects and calls whose refused calls are told apart.
const REFUSED_MAX: usize = 1_024;
/// Bytes of a name or a detail in an entry; what is longer is cut.
const TEXT_MAX: usize = 1_024;
/// Largest number of entries that one reading returns.
pub const READ_MAX: usize = 10_000;

/// Bounds of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditSettings {
    /// Bytes of all objects: setting `--audit-size`.
    pub max_bytes: u64,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
        }
    }
}

/// One entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditEntry {
    /// Time of the end of the call, in milliseconds since 1970.
    pub at: UnixMillis,
    /// Subject that called; words for a caller without a token.
    pub subject: String,
    /// Token that was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// Address of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// Master that forwarded the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<NodeId>,
    /// Call.
    pub method: String,
    /// Name of the resource, plugin, node or subject that it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `OK`, or the code of the error.
    pub result: String,
    /// Reason why it was not carried out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Number of calls that the entry stands for.
    pub times: u64,
}

/// The record, as the calls of a master add to it. Clones share it.
#[derive(Clone)]
pub struct AuditLog {
    shared: Arc<Shared>,
    objects: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<String>,
    n_bytes: usize,
    /// Number of entries that found no room.
    n_lost: u64,
    /// Refused calls, by subject and call.
    refused: BTreeMap<(String, String), Refused>,
}

/// Refused calls of one subject to one call.
struct Refused {
    /// The last of them, with the number of those that have no entry yet.
    last: AuditEntry,
    /// Time of the last entry.
    told_at: Option<Instant>,
}

/// Choice of entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only those of this subject.
    pub subject: Option<String>,
    /// Only those about this name.
    pub name: Option<String>,
    /// Only those from this time on.
    pub since: UnixMillis,
    /// At most so many, the newest; at most [`READ_MAX`].
    pub limit: usize,
}

impl AuditLog {
    /// Creates the record of a process, and the task that writes it until `stop` is cancelled, and then what is left.
    pub fn new(
        objects: Arc<dyn ObjectStore>,
        node: &NodeId,
        settings: AuditSettings,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Notify::new(),
        });
        let mut writer = Writer {
            shared: shared.clone(),
            objects: objects.clone(),
            clock: clock.clone(),
            settings,
            name: format!("{node}-{:08x}.jsonl", rand::random::<u32>()),
            present: None,
        };
        let log = Self {
            shared,
            objects,
            clock,
        };
        let task = async move {
            stop.run_until_cancelled(writer.run()).await;
            writer.finish().await;
        };
        (log, task)
    }

    /// Adds an entry, whose time is set here.
    pub fn record(&self, entry: AuditEntry) {
        let line = self.line(entry);
        let mut queue = self.shared.queue();
        match queue.n_bytes + line.len() > QUEUE_BYTES {
            true => queue.n_lost += 1,
            false => {
                queue.n_bytes += line.len();
                queue.lines.push_back(line);
            }
        }
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// Adds a call that was refused.
    pub fn record_refused(&self, entry: AuditEntry) {
        let entry = cut(entry);
        let key = (entry.subject.clone(), entry.method.clone());
        let mut queue = self.shared.queue();
        let n_refused = queue.refused.len();
        match queue.refused.get_mut(&key) {
            Some(refused) => {
                let times = refused.last.times + 1;
                refused.last = AuditEntry { times, ..entry };
            }
            None if n_refused >= REFUSED_MAX => queue.n_lost += 1,
            None => {
                let last = AuditEntry { times: 1, ..entry };
                let told_at = None;
                queue.refused.insert(key, Refused { last, told_at });
            }
        }
        drop(queue);
        self.shared.changed.notify_one();
    }

    fn line(&self, entry: AuditEntry) -> String {
        line(entry, self.clock.unix_millis())
    }

    /// Returns the newest entries that are wanted, in the order of their times.
    pub async fn read(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, ObjectError> {
        let limit = query.limit.clamp(1, READ_MAX);
        let mut objects = list(&*self.objects).await?;
        objects.sort_by_key(|object| std::cmp::Reverse(object.last_modified));
        let mut found: Vec<AuditEntry> = Vec::new();
        for object in objects {
            // Its last entry is not newer than the object, but for the difference of two clocks.
            let newest = object.last_modified.timestamp_millis() + CLOCKS_DIFFER;
            let newest = UnixMillis::try_from(newest).unwrap_or(0);
            let is_over = found.len() == limit && found[0].at > newest;
            if is_over || newest < query.since {
                break;
            }
            let text = match self.objects.get(&object.location).await {
                Ok(found) => found.bytes().await?,
                // It was the oldest, and was removed meanwhile.
                Err(ObjectError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let text = String::from_utf8_lossy(&text);
            let entries = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            found.extend(entries.filter(|entry| query.wants(entry)));
            found.sort_by_key(|entry| entry.at);
            let n_more = found.len().saturating_sub(limit);
            found.drain(..n_more);
        }
        Ok(found)
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

/// Milliseconds by which the clocks of masters and storage may differ.
const CLOCKS_DIFFER: i64 = 10 * 60 * 1_000;

impl AuditQuery {
    fn wants(&self, entry: &AuditEntry) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|w| w == found);
        entry.at >= self.since && is(&self.subject, &entry.subject) && is(&self.name, &entry.name)
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all lines that wait. Refused calls that had an entry a moment ago wait longer, unless these are the last
    /// ones.
    fn take(&self, now: UnixMillis, are_last: bool) -> String {
        let mut queue = self.queue();
        let mut lines = std::mem::take(&mut queue.lines);
        queue.n_bytes = 0;
        queue.refused.retain(|_, refused| {
            let is_due = refused
                .told_at
                .is_none_or(|at| at.elapsed() >= REFUSED_INTERVAL);
            if refused.last.times > 0 && (is_due || are_last) {
                lines.push_back(line(refused.last.clone(), now));
                refused.last.times = 0;
                refused.told_at = Some(Instant::now());
                return true;
            }
            !is_due
        });
        let n_lost = std::mem::take(&mut queue.n_lost);
        if n_lost > 0 {
            let lost = AuditEntry {
                result: "LOST".to_owned(),
                detail: "there was no room for these entries".to_owned(),
                times: n_lost,
                ..AuditEntry::default()
            };
            lines.push_back(line(lost, now));
        }
        lines.into_iter().collect()
    }

    /// True if refused calls wait for their time.
    fn has_refused(&self) -> bool {
        let queue = self.queue();
        queue.refused.values().any(|refused| refused.last.times > 0)
    }
}

async fn list(objects: &dyn ObjectStore) -> Result<Vec<ObjectMeta>, ObjectError> {
    objects
        .list(Some(&ObjectPath::from(AUDIT)))
        .try_collect()
        .await
}

/// Cuts texts that a caller may have made as long as it likes.
fn cut(mut entry: AuditEntry) -> AuditEntry {
    for text in [&mut entry.name, &mut entry.detail] {
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        text.shrink_to_fit();
    }
    entry
}

fn line(entry: AuditEntry, now: UnixMillis) -> String {
    let mut entry = cut(entry);
    entry.at = now;
    entry.times = entry.times.max(1);
    let mut line = serde_json::to_string(&entry).expect("an entry has text and numbers only");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;
    use crawler_process::clock::SystemClock;

    struct Bench {
        log: AuditLog,
        objects: Arc<InMemory>,
        stop: CancellationToken,
        task: tokio::task::JoinHandle<()>,
    }

    impl Bench {
        fn new(settings: AuditSettings) -> Self {
            let objects = Arc::new(InMemory::new());
            let stop = CancellationToken::new();
            let clock = Arc::new(SystemClock);
            let node = "master-1".parse().unwrap();
            let (log, task) = AuditLog::new(objects.clone(), &node, settings, clock, stop.clone());
            Self {
                log,
                objects,
                stop,
                #[expect(clippy::disallowed_methods, reason = "the test waits for its end")]
                task: tokio::spawn(task),
            }
        }

        async fn stopped(self) -> (AuditLog, Arc<InMemory>) {
            self.stop.cancel();
            self.task.await.unwrap();
            (self.log, self.objects)
        }
    }

    fn entry(subject: &str, name: &str) -> AuditEntry {
        AuditEntry {
            subject: subject.to_owned(),
            name: name.to_owned(),
            method: "AddResource".to_owned(),
            result: "OK".to_owned(),
            ..AuditEntry::default()
        }
    }

    async fn read(log: &AuditLog, query: AuditQuery) -> Vec<String> {
        let entries = log.read(&query).await.unwrap().into_iter();
        let shown = entries.map(|e| format!("{} {} {} {}", e.subject, e.name, e.result, e.times));
        shown.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn entries_are_written_within_moments_and_at_the_end() {
        let bench = Bench::new(AuditSettings::default());
        bench.log.record(entry("alice", "team/shop"));
        tokio::time::sleep(2 * INTERVAL).await;
        let all = AuditQuery {
            limit: 10,
            ..AuditQuery::default()
        };
        assert_eq!(
            read(&bench.log, all.clone()).await,
            ["alice team/shop OK 1"]
        );
        bench.log.record(entry("bob", "team/shop"));
        let (log, objects) = bench.stopped().await;
        let both = ["alice team/shop OK 1", "bob team/shop OK 1"];
        assert_eq!(read(&log, all.clone()).await, both);
        assert_eq!(
            list(&*objects).await.unwrap().len(),
            1,
            "one object for both"
        );
        let of_bob = AuditQuery {
            subject: Some("bob".to_owned()),
            ..all.clone()
        };
        assert_eq!(read(&log, of_bob).await, [both[1]]);
        let newest = AuditQuery { limit: 1, ..all };
        assert_eq!(read(&log, newest).await, [both[1]]);
    }

    #[tokio::test(start_paused = true)]
    async fn refused_calls_make_an_entry_at_once_and_then_one_a_minute() {
        let bench = Bench::new(AuditSettings::default());
        let all = AuditQuery {
            limit: READ_MAX,
            ..AuditQuery::default()
        };
        bench.log.record_refused(entry("alice", "a"));
        tokio::time::sleep(2 * INTERVAL).await;
        assert_eq!(read(&bench.log, all.clone()).await, ["alice a OK 1"]);
        for _ in 0..100_000 {
            bench.log.record_refused(entry("alice", "b"));
        }
        bench.log.record_refused(entry("bob", "c"));
        tokio::time::sleep(2 * INTERVAL).await;
        let both = ["alice a OK 1", "bob c OK 1"];
        assert_eq!(read(&bench.log, all.clone()).await, both);
        tokio::time::sleep(2 * REFUSED_INTERVAL).await;
        let three = [both[0], both[1], "alice b OK 100000"];
        assert_eq!(read(&bench.log, all.clone()).await, three);
        // The end does not wait for the minute.
        bench.log.record_refused(entry("alice", "d"));
        let (log, _objects) = bench.stopped().await;
        let four = [three[0], three[1], three[2], "alice d OK 1"];
        assert_eq!(read(&log, all).await, four);
    }

    #[tokio::test(start_paused = true)]
    async fn refused_calls_are_told_apart_up_to_a_bound() {
        let bench = Bench::new(AuditSettings::default());
        for n in 0..REFUSED_MAX + 10 {
            bench.log.record_refused(entry(&format!("s{n}"), "a"));
        }
        let (log, _objects) = bench.stopped().await;
        let all = AuditQuery {
            limit: READ_MAX,
            ..AuditQuery::default()
        };
        let entries = log.read(&all).await.unwrap();
        assert_eq!(entries.len(), REFUSED_MAX + 1);
        let lost = entries.iter().find(|entry| entry.result == "LOST").unwrap();
        assert_eq!(lost.times, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_is_counted() {
        let bench = Bench::new(AuditSettings::default());
        let long = "n".repeat(2 * TEXT_MAX);
        let n = 2 * QUEUE_BYTES / TEXT_MAX;
        for _ in 0..n {
            bench.log.record(entry("alice", &long));
        }
        let (log, _objects) = bench.stopped().await;
        let all = AuditQuery {
            limit: READ_MAX,
            ..AuditQuery::default()
        };
        let entries = log.read(&all).await.unwrap();
        assert_eq!(entries[0].name.len(), TEXT_MAX);
        assert_eq!(
            entries.iter().map(|entry| entry.times).sum::<u64>(),
            n as u64
        );
        assert_eq!(entries.last().unwrap().result, "LOST");
    }

    #[tokio::test(start_paused = true)]
    async fn the_record_stays_within_its_bound() {
        let max_bytes = 1 << 20;
        let bench = Bench::new(AuditSettings { max_bytes });
        for _ in 0..40 {
            for _ in 0..300 {
                bench.log.record(entry("alice", &"n".repeat(TEXT_MAX)));
            }
            tokio::time::sleep(2 * INTERVAL).await;
        }
        let (_log, objects) = bench.stopped().await;
        let sizes = list(&*objects)
            .await
            .unwrap()
            .into_iter()
            .map(|object| object.size);
        let n_bytes: u64 = sizes.sum();
        assert!(
            n_bytes > max_bytes / 2 && n_bytes <= max_bytes + (1 << 19),
            "{n_bytes}"
        );
    }
}
