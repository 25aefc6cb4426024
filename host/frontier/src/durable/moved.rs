//! Hosts that another shard had before: the number of shards has changed, and hosts were divided anew.
//!
//! A shard that is opened for the first time since then knows nothing of the hosts that came to it. It
//! therefore takes no page before one full delay has passed, and reads the clocks that are further ahead,
//! because of a back-off, a `Retry-After` or a longer delay, from the frontiers of all other shards. These
//! are only read. A frontier that cannot be read is skipped with a warning: it delays no crawl.
//!
//! The delay and the clocks are durable before the first page is taken. A process that ends before that
//! repeats the work.

use futures::StreamExt as _;
use object_store::ObjectStore as _;
use object_store::path::Path as ObjectPath;
use slatedb::WriteBatch;

use super::inner::Inner;
use super::state::State;
use super::writer::in_time;
use crate::reader::{FrontierReader, HostsOf};
use crate::workbench::{HostClock, HostId};
use crate::{FrontierError, OpenOptions, Take, folder_of};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::Shard;
use crawler_model::resource::ShardId;

/// Number of frontiers that are read at once.
const AT_ONCE: usize = 4;
/// Number of clocks that are written in one batch.
const BATCH: usize = 1_000;

impl State {
    /// Returns an order to wait while hosts that came from other shards may have been asked a moment ago.
    pub(super) fn rest(&self, now: UnixMillis) -> Option<Take> {
        let until = self.head.rests_until;
        (now < until).then(|| Take::WaitUntil(self.time.to_wall(until)))
    }
}

impl Inner {
    /// Gives all hosts one full delay from now on, and gives hosts from other shards the clocks that they had
    /// there, if these are further ahead.
    pub(super) async fn take_hosts_over(&self, state: &mut State, options: &OpenOptions) {
        let Some(division) = options.division else {
            return;
        };
        let wall = options.clock.unix_millis();
        let now = state.time.now(wall);
        let delay = u64::try_from(options.delay.as_millis()).unwrap_or(u64::MAX);
        state.head.rests_until = now.saturating_add(delay);
        let shards = match self.other_shards().await {
            Ok(shards) => shards,
            Err(error) => {
                tracing::warn!(%error, "the frontiers of other shards are not found; hosts that came from them are asked after one delay");
                return;
            }
        };
        let hosts = HostsOf {
            shard: self.shard.shard,
            n_shards: division.n_shards,
            now: wall,
            after: wall.saturating_add(delay),
        };
        let clocks = shards.into_iter().map(|from| self.clocks(from, hosts));
        let mut clocks = futures::stream::iter(clocks).buffer_unordered(AT_ONCE);
        let mut n = 0_usize;
        while let Some(clocks) = clocks.next().await {
            n += clocks.len();
            for (host, clock) in clocks {
                let at = state.time.of_wall(clock.at);
                let answered = at.saturating_sub(clock.delay);
                state.bench.set_host_clock(host, answered, at);
                state.unsaved.insert(host);
            }
        }
        tracing::info!(
            n,
            "hosts were divided anew; clocks of other shards are taken over"
        );
    }

    /// Makes the clocks durable that were taken over.
    pub(super) async fn save_hosts_taken_over(&self) -> Result<(), FrontierError> {
        loop {
            let guard = self.writer.lock().await;
            let mut batch = WriteBatch::new();
            {
                let mut state = self.state();
                let hosts: Vec<HostId> = state.unsaved.iter().take(BATCH).copied().collect();
                if hosts.is_empty() {
                    return Ok(());
                }
                for host in hosts {
                    state.save_host(host, &mut batch);
                }
            }
            self.write(&guard, batch, 0).await?;
        }
    }

    /// Returns the other shards of the resource that have ever had a frontier.
    async fn other_shards(&self) -> Result<Vec<ShardId>, FrontierError> {
        let folder = folder_of(self.shard.resource);
        let (shard, objects) = (self.shard, &self.frontiers.objects);
        let list = async {
            let listed = objects.list_with_delimiter(Some(&folder)).await;
            listed.map_err(|error| FrontierError::Unavailable {
                doing: "find",
                shard,
                why: error.to_string(),
            })
        };
        let (deadline, last_fault) = (self.frontiers.settings.deadline, &self.frontiers.last_fault);
        let listed = in_time(shard, "find", deadline, last_fault, list).await?;
        let names = listed
            .common_prefixes
            .iter()
            .filter_map(ObjectPath::filename);
        let shards = names.filter_map(|name| name.parse().ok().map(Shard));
        let shards = shards.map(|shard| ShardId {
            shard,
            ..self.shard
        });
        Ok(shards.filter(|shard| *shard != self.shard).collect())
    }

    /// Returns the clocks that another shard's frontier has of these hosts, or none if it cannot be read.
    async fn clocks(&self, from: ShardId, hosts: HostsOf) -> Vec<(HostId, HostClock)> {
        let read = async {
            let objects = self.frontiers.objects.clone();
            let Some(reader) = Box::pin(FrontierReader::open(objects, from)).await? else {
                return Ok(Vec::new());
            };
            let clocks = reader.clocks(hosts).await;
            reader.close().await;
            clocks
        };
        let (deadline, last_fault) = (self.frontiers.settings.deadline, &self.frontiers.last_fault);
        let clocks = in_time(from, "read", deadline, last_fault, read).await;
        clocks.unwrap_or_else(|error| {
            tracing::warn!(%from, %error, "another shard's frontier cannot be read; hosts that came from it are asked after one delay");
            Vec::new()
        })
    }
}
