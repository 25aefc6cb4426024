//! Read-only view of a frontier, beside its owner and without fencing it.
//!
//! A reader writes nothing to the object store, not even a checkpoint. It sees what is durable, with a short
//! delay. A scan that takes so long that the owner's collector removes its files fails, and has to be tried
//! again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use object_store::ObjectStore;
use prost::Message;
use slatedb::admin::Admin;
use slatedb::config::DbReaderOptions;
use slatedb::{DbReader, DbReaderMode};

use super::durable::failed;
use super::monotonic_time::MonotonicTime;
use super::records;
use super::{FrontierError, keys, path_of};
pub use changes::ChangePage;
use crawler_model::crawl::{Counts, Request, UnixMillis};
use crawler_model::frontier::{FrontierStats, UrlEntry, UrlFilter, UrlState};
use crawler_model::id::Run;
use crawler_model::resource::ShardId;
pub use hosts::HostPage;
pub(crate) use hosts::HostsOf;
pub use quarantine::HeldPage;
use scan::Records;

mod changes;
mod delivery;
mod find;
mod hosts;
mod log;
pub mod pool;
mod quarantine;
mod scan;
mod statistics;

/// Time between two polls of a reader for new durable data.
const POLL: Duration = Duration::from_millis(200);
/// Number of tries of one call of the object store before its error is returned.
const MAX_RETRIES: u32 = 3;
/// Deadline for opening. The database itself retries reading its manifest without end.
const OPEN_DEADLINE: Duration = Duration::from_secs(20);
/// Deadline for a reader's last poll.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// A frontier, opened for reading. Dropping it ends its polls.
pub struct FrontierReader {
    shard: ShardId,
    db: DbReader,
    run: Run,
}

/// One page of a list of URLs.
#[derive(Debug, Default)]
pub struct UrlPage {
    /// Entries in the order of their hosts.
    pub entries: Vec<UrlEntry>,
    /// Start of the next page, to be passed to [`FrontierReader::list`]. `None` after the last page.
    pub next: Option<Vec<u8>>,
}

impl FrontierReader {
    /// Opens a frontier. Returns `None` if there is none.
    pub async fn open(
        objects: Arc<dyn ObjectStore>,
        shard: ShardId,
    ) -> Result<Option<Self>, FrontierError> {
        let opened = tokio::time::timeout(OPEN_DEADLINE, Self::try_open(objects, shard)).await;
        opened.unwrap_or_else(|_elapsed| {
            Err(FrontierError::Unavailable {
                doing: "read",
                shard,
                why: format!("no answer in {} s", OPEN_DEADLINE.as_secs()),
            })
        })
    }

    async fn try_open(
        objects: Arc<dyn ObjectStore>,
        shard: ShardId,
    ) -> Result<Option<Self>, FrontierError> {
        let path = path_of(shard);
        let admin = Admin::builder(path.clone(), objects.clone()).build();
        // The database's futures are large; on the heap they do not make every caller's large too.
        let manifest = Box::pin(admin.read_manifest(None)).await;
        let manifest = manifest.map_err(|e| failed(shard, "read", &e))?;
        if manifest.is_none_or(|manifest| manifest.writer_epoch() == 0) {
            return Ok(None);
        }
        let options = DbReaderOptions {
            manifest_poll_interval: POLL,
            object_store_max_retries: Some(MAX_RETRIES),
            ..DbReaderOptions::default()
        };
        let build = DbReader::builder(path, objects)
            .with_reader_mode(DbReaderMode::FollowLatest)
            .with_options(options)
            .with_segment_extractor(Arc::new(keys::Kinds))
            .with_db_cache_disabled()
            .build();
        let db = Box::pin(build)
            .await
            .map_err(|e| failed(shard, "read", &e))?;
        let mut reader = Self {
            shard,
            db,
            run: Run(0),
        };
        match reader.head().await? {
            Some(head) => {
                reader.run = Run(head.run);
                Ok(Some(reader))
            }
            // The frontier is being created.
            None => {
                reader.close().await;
                Ok(None)
            }
        }
    }

    async fn head(&self) -> Result<Option<records::Head>, FrontierError> {
        let head: Option<records::Head> = self.record(keys::HEAD, "head").await?;
        match head {
            Some(head) if !records::is_known_format(head.format) => Err(FrontierError::Format {
                shard: self.shard,
                found: head.format,
                known: records::LATEST_FORMAT,
            }),
            head => Ok(head),
        }
    }

    /// Returns the run that the frontier was in when the reader was opened.
    pub fn run(&self) -> Run {
        self.run
    }

    /// Returns the totals; the waits of hosts are those at `now`.
    pub async fn stats(&self, now: UnixMillis) -> Result<FrontierStats, FrontierError> {
        let head = self.head().await?.unwrap_or_default();
        let run = Run(head.run);
        let totals = keys::totals(run);
        let totals: Option<records::Totals> = self.record(&totals, "totals").await?;
        let counts = totals.map(Counts::from).unwrap_or_default();
        let last = self.last_batch().await?;
        let (mut n_hosts, mut hosts_by_state) = (0, BTreeMap::new());
        let own_now = MonotonicTime::from(last.latest).now(now);
        let mut found = self.scan_prefix(keys::HOSTS).await?;
        while let Some((_, host)) = found.next::<records::Host>("host").await? {
            if host.is_of(run) {
                n_hosts += u64::from(!host.lanes.is_empty());
                *hosts_by_state.entry(host.state(own_now)).or_default() += 1;
            }
        }
        let mut n_suspects = 0;
        let mut found = self.scan_prefix(keys::SUSPECTS).await?;
        while found.next::<records::Suspect>("suspect").await?.is_some() {
            n_suspects += 1;
        }
        let roots = head.roots.iter();
        let urls = roots.filter_map(|url| url::Url::parse(url).ok());
        let mut root_hosts: Vec<String> = urls
            .filter_map(|url| url.host_str().map(str::to_owned))
            .collect();
        root_hosts.sort_unstable();
        root_hosts.dedup();
        Ok(FrontierStats {
            run,
            seeded: head.is_seeded,
            root_hosts,
            n_hosts,
            hosts_by_state,
            n_undelivered: last.outbox_next - last.outbox_first,
            n_dead_letters: counts.dead,
            n_suspects,
            n_unclean_stops: head.n_unclean_stops,
            counts,
        })
    }

    /// Returns at most `max` URLs of the present run in one state, from where an earlier page ended.
    pub async fn list(
        &self,
        filter: UrlFilter,
        from: Option<Vec<u8>>,
        max: usize,
    ) -> Result<UrlPage, FrontierError> {
        let prefix = match filter {
            UrlFilter::Due => keys::ready_of(self.run),
            UrlFilter::Done => Bytes::from_static(keys::STATES),
            UrlFilter::Dead => keys::dead_letters_of(self.run),
        };
        let end = keys::end_of(&prefix);
        // A start from another state's list is not valid here.
        let from = from
            .map(Bytes::from)
            .filter(|from| from.starts_with(&prefix));
        let mut found = self.scan(from.unwrap_or(prefix)..end).await?;
        let mut page = UrlPage::default();
        while let Some((key, value)) = found.next_bytes().await? {
            let entry = match filter {
                UrlFilter::Due => Some(self.ready(&key, &value)?),
                UrlFilter::Done => self.done(&value)?,
                UrlFilter::Dead => Some(self.dead(&value)?),
            };
            let Some(entry) = entry else { continue };
            if page.entries.len() == max {
                page.next = Some(key.to_vec());
                break;
            }
            page.entries.push(entry);
        }
        Ok(page)
    }

    /// Closes the reader, and waits until its polls have ended.
    pub async fn close(self) {
        match tokio::time::timeout(CLOSE_DEADLINE, self.db.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a reader did not close"),
            Err(_elapsed) => tracing::debug!(shard = %self.shard, "a reader's last poll hangs"),
        }
    }

    fn ready(&self, key: &[u8], value: &[u8]) -> Result<UrlEntry, FrontierError> {
        let record: records::Ready = self.decode(value, "ready")?;
        let position = keys::parse_ready(key).map(|(_, position)| position);
        Ok(UrlEntry {
            request: self.request(record.request)?,
            depth: record.depth,
            run: self.run,
            state: UrlState::Due {
                at: position.map_or(0, |position| position.due),
                attempt: record.attempt,
                failure: record.failure,
                host: None,
            },
            since: 0,
        })
    }

    fn dead(&self, value: &[u8]) -> Result<UrlEntry, FrontierError> {
        let letter: records::DeadLetter = self.decode(value, "dead letter")?;
        Ok(UrlEntry {
            request: self.request(letter.request)?,
            depth: letter.depth,
            run: self.run,
            state: UrlState::Dead {
                reason: letter.reason,
                detail: letter.detail,
            },
            since: letter.since,
        })
    }

    /// Decodes the state of a URL. Returns `None` if the URL has not ended in this run.
    fn done(&self, value: &[u8]) -> Result<Option<UrlEntry>, FrontierError> {
        let state: records::State = self.decode(value, "state")?;
        if state.run != self.run.0 || state.done().is_none() {
            return Ok(None);
        }
        self.of_state(state).map(Some)
    }

    fn of_state(&self, state: records::State) -> Result<UrlEntry, FrontierError> {
        let done = state.done();
        let (Some(done), Some(request)) = (done, state.request) else {
            return Err(self.damaged("a state that ended has no request".to_owned()));
        };
        Ok(UrlEntry {
            request: self.request(request)?,
            depth: state.depth,
            run: Run(state.run),
            state: UrlState::Done(done),
            since: state.since,
        })
    }

    fn request(&self, record: records::RequestRecord) -> Result<Request, FrontierError> {
        record.into_request().map_err(|why| self.damaged(why))
    }

    async fn record<T: Message + Default>(
        &self,
        key: &[u8],
        what: &str,
    ) -> Result<Option<T>, FrontierError> {
        let bytes = self.get(key).await?;
        bytes.map(|bytes| self.decode(&bytes, what)).transpose()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, FrontierError> {
        let value = Box::pin(self.db.get(key)).await;
        value.map_err(|e| failed(self.shard, "read", &e))
    }

    async fn scan_prefix(&self, prefix: &[u8]) -> Result<Records, FrontierError> {
        self.scan(Bytes::copy_from_slice(prefix)..keys::end_of(prefix))
            .await
    }

    async fn scan(&self, range: Range<Bytes>) -> Result<Records, FrontierError> {
        let entries = Box::pin(self.db.scan(range)).await;
        let entries = entries.map_err(|e| failed(self.shard, "read", &e))?;
        Ok(Records {
            shard: self.shard,
            entries,
        })
    }

    fn decode<T: Message + Default>(&self, bytes: &[u8], what: &str) -> Result<T, FrontierError> {
        super::durable::decode(self.shard, bytes, what)
    }
}

/// Closes the database on drop: its task would poll for ever. The call tells the task to end before it first waits.
impl Drop for FrontierReader {
    fn drop(&mut self) {
        let _is_over = self.db.close().now_or_never();
    }
}

#[cfg(test)]
mod tests;
