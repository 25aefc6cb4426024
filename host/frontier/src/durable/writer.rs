//! Writing of one batch at a time, each with its number, and the tracking of what is durable.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use slatedb::config::{FlushOptions, FlushType};
use slatedb::{CloseReason, ErrorKind, WriteBatch};
use tokio::sync::{MutexGuard, oneshot};
use url::Url;

use super::inner::Inner;
use super::links::DedupContext;
use super::state::Written;
use crate::seen::SeenKey;
use crate::{Committed, FrontierError, NewRequest, keys};
use crawler_model::resource::ShardId;
use crawler_model::statistics::Statistics;

/// Lock guard that gives the right to hand the next batch to the database.
pub(super) type WriteGuard<'a> = MutexGuard<'a, ()>;

/// Guard that breaks the frontier unless the batch was handed over, because the memory has changed already.
pub(super) struct BreakOnDrop<'a> {
    pub(super) inner: &'a Inner,
    pub(super) is_armed: bool,
}

impl Drop for BreakOnDrop<'_> {
    fn drop(&mut self) {
        if self.is_armed {
            let shard = self.inner.shard;
            self.inner.broken(FrontierError::Closed { shard });
        }
    }
}

impl Inner {
    /// Numbers a batch and hands it to the database; its records can be read when this returns.
    pub(super) async fn write(
        &self,
        _guard: &WriteGuard<'_>,
        mut batch: WriteBatch,
        n_pages: usize,
    ) -> Result<u64, FrontierError> {
        // The task that held the guard before may have been cut off: a batch after a missing one must not be
        // written.
        self.check()?;
        let mut break_on_drop = BreakOnDrop {
            inner: self,
            is_armed: true,
        };
        let (outbox_next, links_next, permit) = {
            let mut state = self.state();
            state.last.made_at = self.clock.millis();
            state.seal(&mut batch);
            let permit = state.left_alone.take();
            (state.last.outbox_next, state.peers.next(), permit)
        };
        let write = async {
            let written = self.db.write(batch).await;
            written.map_err(|e| failed(self.shard, "write", &e))
        };
        let written = self.in_time("write", Box::pin(write)).await;
        break_on_drop.is_armed = false;
        let counts = &self.frontiers.counts;
        match written {
            Ok(handle) => {
                counts.batches.add(1);
                counts.pages.add(n_pages as u64);
                let sequence = handle.seqnum();
                self.state().undurable.push_back(Written {
                    sequence,
                    since: tokio::time::Instant::now(),
                    n_pages,
                    outbox_next,
                    links_next,
                    _permit: permit,
                });
                self.forget_patterns();
                // The batch may have become durable already, before it could be noticed.
                self.heard_durable(self.durable_sequence());
                Ok(sequence)
            }
            Err(error) => {
                counts.not_taken(&error);
                self.broken(error.clone());
                Err(error)
            }
        }
    }

    fn durable_sequence(&self) -> u64 {
        self.status.borrow().durable_seq
    }

    pub(super) fn heard_durable(&self, sequence: u64) {
        let durable = &self.frontiers.counts.durable;
        if self.state().is_durable_to(sequence, durable) {
            let storage_epoch = self.storage_epoch;
            tracing::debug!(storage_epoch, sequence, "batches are durable");
            self.notify();
        }
    }

    /// Waits until everything that was written is durable, with the statistics if nothing is in flight.
    pub(super) async fn settle(&self) -> Result<(), FrontierError> {
        let has_statistics = {
            let mut state = self.state();
            if state.n_in_flight() == 0 {
                state.statistics.write_next();
            }
            state.statistics.is_due()
        };
        if has_statistics {
            self.write_statistics().await?;
        }
        self.flush().await
    }

    /// Waits until everything that was written up to this number is durable. Callers that wait at once share a flush.
    pub(super) async fn flush_to(&self, sequence: u64) -> Result<(), FrontierError> {
        let _flushing = self.flushing.lock().await;
        if self.durable_sequence() >= sequence {
            return Ok(());
        }
        self.flush().await
    }

    /// Makes everything durable that was written.
    async fn flush(&self) -> Result<(), FrontierError> {
        let flush = async {
            let options = FlushOptions {
                flush_type: FlushType::Wal,
            };
            let flushed = self.db.flush_with_options(options).await;
            flushed.map_err(|e| failed(self.shard, "write", &e))
        };
        self.in_time("write", Box::pin(flush)).await?;
        self.heard_durable(self.durable_sequence());
        Ok(())
    }

    /// Writes a batch for the statistics, unless another has taken them along.
    pub(super) async fn write_statistics(&self) -> Result<(), FrontierError> {
        let guard = self.writer.lock().await;
        if !self.state().statistics.is_due() {
            return Ok(());
        }
        self.write(&guard, WriteBatch::new(), 0).await.map(drop)
    }

    pub(super) async fn seed_shard(
        &self,
        roots: Vec<Url>,
        requests: Vec<NewRequest>,
    ) -> Result<Committed, FrontierError> {
        self.check()?;
        let links = self.links(requests, Vec::new());
        let guard = self.writer.lock().await;
        if self.state().head.is_seeded {
            return Ok(Committed::default());
        }
        let new_links = self.deduplicate(links, DedupContext::default()).await?;
        let stored = self.seen_keys(&new_links);
        let mut batch = WriteBatch::new();
        let committed = {
            let mut state = self.state();
            let mut hosts = std::collections::BTreeSet::new();
            let committed = state.store(new_links.links, self.plugin, &mut hosts, &mut batch);
            for host in hosts {
                state.save_host(host, &mut batch);
            }
            state.head.is_seeded = true;
            state.head.roots = roots.into_iter().map(String::from).collect();
            batch.put(keys::HEAD, state.head.encode_to_vec());
            committed
        };
        self.write(&guard, batch, 0).await?;
        self.remember(stored);
        drop(guard);
        self.settle().await?;
        Ok(committed)
    }

    /// Adds the keys to the cache of seen URLs once their batch is made. If the batch cannot be written, the
    /// frontier is not used any more.
    pub(super) fn remember(&self, stored: Vec<SeenKey>) {
        for key in stored {
            self.frontiers.seen.insert(key);
        }
    }

    pub(super) async fn get(&self, key: Bytes) -> Result<Option<Bytes>, FrontierError> {
        self.read(self.db.get(key)).await
    }

    /// Runs a read within the deadline. Otherwise the frontier is broken, because a caller that waits for the
    /// read may hold the guard.
    pub(super) async fn read<T>(
        &self,
        call: impl Future<Output = Result<T, slatedb::Error>>,
    ) -> Result<T, FrontierError> {
        let call = async { call.await.map_err(|e| failed(self.shard, "read", &e)) };
        // The database's futures are large; on the heap they do not make every caller's large too.
        let found = self.in_time("read", Box::pin(call)).await;
        if let Err(error) = &found {
            self.broken(error.clone());
        }
        found
    }

    pub(super) fn decode<T: Message + Default>(
        &self,
        bytes: &[u8],
        what: &str,
    ) -> Result<T, FrontierError> {
        decode(self.shard, bytes, what)
    }

    pub(super) fn damaged(&self, why: String) -> FrontierError {
        let shard = self.shard;
        FrontierError::Damaged { shard, why }
    }

    /// Returns an error if anything is left in the queues, whatever the totals say.
    pub(super) async fn check_empty(&self) -> Result<(), FrontierError> {
        self.check()?;
        let queues = [
            (keys::ready_of(self.run), "a URL is ready"),
            (Bytes::from_static(keys::OUTBOX), "an item is undelivered"),
            (
                Bytes::from_static(keys::WAITING),
                "an item waits for a verdict",
            ),
            (
                keys::links_of(self.run),
                "a link for another shard is undelivered",
            ),
        ];
        for (prefix, what) in queues {
            if self.scan_prefix(&prefix).await?.next().await?.is_some() {
                return Err(self.damaged(format!("{what} that no count knows of")));
            }
        }
        Ok(())
    }

    /// Returns why nothing becomes durable at present.
    pub(super) fn stalled(&self) -> Option<String> {
        let since = self.state().oldest_undurable()?;
        let waited = since.elapsed();
        (waited >= self.frontiers.settings.stall_after).then(|| {
            let why = (self.frontiers.last_fault)();
            let why = why.unwrap_or_else(|| "the object store does not answer".to_owned());
            format!("nothing could be written for {} s: {why}", waited.as_secs())
        })
    }

    /// Closes the database, even if the steps before that fail.
    pub(super) async fn close(&self) -> Result<(), FrontierError> {
        let said = match self.check() {
            Ok(()) => self.in_time("close", self.write_clean_shutdown()).await,
            Err(_broken) => Ok(()),
        };
        let closed = self.close_database().await;
        let shard = self.shard;
        self.broken(FrontierError::Closed { shard });
        said.and(closed)
    }

    /// Records facts that spare the next opening its precautions.
    async fn write_clean_shutdown(&self) -> Result<(), FrontierError> {
        let guard = self.writer.lock().await;
        let mut batch = WriteBatch::new();
        {
            let mut state = self.state();
            let is_clean = state.n_in_flight() == 0;
            state.head.is_clean = is_clean;
            let is_held = state.held_until > state.time.latest();
            state.head.has_exact_clocks = is_clean && !state.has_unsure_clocks;
            // The next opening continues that wait and does not begin a new one.
            state.head.held_until = if is_held { state.held_until } else { 0 };
            state.head.n_unclean_stops = 0;
            state.root_is_cut_off();
            state.statistics.write_next();
            for host in std::mem::take(&mut state.unsaved) {
                state.save_host(host, &mut batch);
            }
            batch.put(keys::HEAD, state.head.encode_to_vec());
        }
        self.write(&guard, batch, 0).await.map(drop)
    }

    /// Closes the database to the end even if the caller stops waiting, because its background work ends only
    /// then.
    pub(super) async fn close_database(&self) -> Result<(), FrontierError> {
        let (db, memory_share) = (self.db.clone(), self.memory_share.clone());
        let (tell, closed) = oneshot::channel();
        let close = Box::pin(async move {
            let closed = db.close().await;
            drop(memory_share);
            // The caller may have stopped waiting.
            let _unheard = tell.send(closed);
        });
        self.frontiers
            .background
            .spawn("closing of a frontier", close);
        let closed = async {
            let shard = self.shard;
            let closed = closed.await.map_err(|_| FrontierError::Closed { shard })?;
            closed.map_err(|e| failed(shard, "close", &e))
        };
        self.in_time("close", closed).await
    }

    pub(super) async fn in_time<T>(
        &self,
        doing: &'static str,
        call: impl Future<Output = Result<T, FrontierError>>,
    ) -> Result<T, FrontierError> {
        let frontiers = &self.frontiers;
        in_time(
            self.shard,
            doing,
            frontiers.settings.deadline,
            &frontiers.last_fault,
            call,
        )
        .await
    }
}

/// Ends a call that takes too long, with an error that tells the known cause.
pub(super) async fn in_time<T>(
    shard: ShardId,
    doing: &'static str,
    deadline: Duration,
    last_fault: &super::frontiers::LastFault,
    call: impl Future<Output = Result<T, FrontierError>>,
) -> Result<T, FrontierError> {
    tokio::time::timeout(deadline, call)
        .await
        .unwrap_or_else(|_elapsed| {
            let fault = last_fault();
            let fault = fault.unwrap_or_else(|| "the object store does not answer".to_owned());
            let why = format!("no answer in {} s: {fault}", deadline.as_secs());
            Err(FrontierError::Unavailable { doing, shard, why })
        })
}

pub(crate) fn decode<T: Message + Default>(
    shard: ShardId,
    bytes: &[u8],
    what: &str,
) -> Result<T, FrontierError> {
    T::decode(bytes).map_err(|e| FrontierError::Damaged {
        shard,
        why: format!("a record ({what}) does not decode: {e}"),
    })
}

/// Decodes the statistics of a run.
pub(crate) fn decode_statistics(shard: ShardId, bytes: &[u8]) -> Result<Statistics, FrontierError> {
    serde_json::from_slice(bytes).map_err(|e| FrontierError::Damaged {
        shard,
        why: format!("a record (statistics) does not decode: {e}"),
    })
}

/// Converts an error of the database into one for the users of the frontier.
pub(crate) fn failed(shard: ShardId, doing: &'static str, error: &slatedb::Error) -> FrontierError {
    let why = crawler_process::telemetry::chain(error);
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => FrontierError::Fenced { shard },
        ErrorKind::Closed(CloseReason::Clean) => FrontierError::Closed { shard },
        ErrorKind::Data => FrontierError::Damaged { shard, why },
        _ => FrontierError::Unavailable { doing, shard, why },
    }
}
