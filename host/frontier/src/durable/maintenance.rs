//! Background work of an open frontier: reads URLs in before they are needed, watches what has become durable
//! and if the database is still ours, writes statistics that no batch has taken along, and forgets idle hosts.

use std::sync::Weak;
use std::time::Duration;

use slatedb::{CloseReason, DbStatus};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::inner::Inner;
use super::state::Waiting;
use crate::workbench::{LaneId, QueuePosition};
use crate::{FrontierError, keys, records};

/// Time between two rounds of forgetting idle hosts.
const FORGET_IDLE_PERIOD: Duration = Duration::from_secs(10);
/// Maximum number of lanes that are read in with one scan: a scan costs much more than a lane beside others,
/// but lanes are read in the order of their keys, and the one that is due first may be the last.
const MAX_LANES: usize = 128;
/// Number of URLs that one scan reads in at most, unless a single lane has more.
const MAX_URLS: usize = 1_024;
/// Time after which a scan begins no further lane. The database may remove tables under a scan that lasts.
const SCAN_TIME: Duration = Duration::from_secs(30);

/// Watches what is durable until the frontier is closed or gone.
pub(super) async fn watch_durability(
    inner: Weak<Inner>,
    mut status: watch::Receiver<DbStatus>,
    stop: CancellationToken,
) {
    loop {
        let (sequence, closed) = {
            let status = status.borrow_and_update();
            (status.durable_seq, status.close_reason)
        };
        let Some(inner) = inner.upgrade() else { return };
        inner.heard_durable(sequence);
        let shard = inner.shard;
        match closed {
            None => {}
            Some(CloseReason::Fenced) => return inner.broken(FrontierError::Fenced { shard }),
            Some(CloseReason::Clean) => return inner.broken(FrontierError::Closed { shard }),
            Some(reason) => {
                return inner.broken(FrontierError::Unavailable {
                    doing: "keep open",
                    shard,
                    why: format!("the database has ended: {reason:?}"),
                });
            }
        }
        drop(inner);
        tokio::select! {
            changed = status.changed() => if changed.is_err() { return },
            () = stop.cancelled() => return,
        }
    }
}

/// Writes the statistics if they have changed, and no batch has taken them along for a second.
pub(super) async fn write_statistics(inner: Weak<Inner>, stop: CancellationToken) {
    loop {
        let due_in = {
            let Some(frontier) = inner.upgrade() else {
                return;
            };
            frontier.state().statistics.due_in()
        };
        tokio::select! {
            () = tokio::time::sleep(due_in) => {}
            () = stop.cancelled() => return,
        }
        let Some(frontier) = inner.upgrade() else {
            return;
        };
        // An error has broken the frontier, and its calls return it.
        if frontier.write_statistics().await.is_err() {
            return;
        }
    }
}

/// Reads URLs in where they are needed, and forgets idle hosts.
pub(super) async fn refill(inner: Weak<Inner>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(FORGET_IDLE_PERIOD);
    loop {
        let Some(frontier) = inner.upgrade() else {
            return;
        };
        let result = frontier.refill_all().await;
        if let Err(error) = result {
            return frontier.broken(error);
        }
        tokio::select! {
            () = frontier.refill_wanted.notified() => {}
            () = frontier.memory_share.shrunk() => {}
            _ = ticks.tick() => {
                let mut state = frontier.state();
                let now = state.time.latest();
                state.bench.forget_idle(now);
            }
            () = stop.cancelled() => return,
        }
    }
}

impl Inner {
    async fn refill_all(&self) -> Result<(), FrontierError> {
        loop {
            let (mut lanes, max) = {
                // No batch is on its way, so what the memory knows can be read.
                let _guard = self.writer.lock().await;
                let max = (self.fit_lanes() * 3 / 4).max(1);
                let mut state = self.state();
                let to_refill = std::iter::from_fn(|| state.bench.begin_refill());
                let n_lanes = (MAX_URLS / max).clamp(1, MAX_LANES);
                (to_refill.take(n_lanes).collect::<Vec<_>>(), max)
            };
            if lanes.is_empty() {
                return Ok(());
            }
            // A lane may have asked for a refill twice.
            lanes.sort_by_cached_key(|(lane, _)| keys::ready_of_lane(self.run, *lane));
            lanes.dedup_by_key(|(lane, _)| *lane);
            self.read_lanes(&lanes, max).await?;
        }
    }

    /// Divides the URLs that this frontier may keep in memory at present among the lanes and returns the share
    /// of one.
    fn fit_lanes(&self) -> usize {
        let mut state = self.state();
        let n_buffered = state.bench.n_buffered();
        let settings = &self.frontiers.settings;
        state.fit_lanes(self.memory_share.max_buffered(n_buffered, settings))
    }

    /// Reads the first URLs of each lane that come after a position, in one scan. The lanes are in the order of
    /// their keys.
    async fn read_lanes(
        &self,
        lanes: &[(LaneId, QueuePosition)],
        max: usize,
    ) -> Result<(), FrontierError> {
        let behind =
            |(lane, after): (LaneId, QueuePosition)| keys::ready_behind(self.run, lane, after);
        let (Some(first), Some(last)) = (lanes.first(), lanes.last()) else {
            return Ok(());
        };
        let begun = Instant::now();
        let mut found = self.scan(behind(*first).start..behind(*last).end).await?;
        for (lane, after) in lanes {
            if begun.elapsed() > SCAN_TIME {
                // It still needs a refill, and the next scan reads it.
                self.state().bench.fill(*lane, Vec::new(), false);
                continue;
            }
            let range = behind((*lane, *after));
            found.skip_to(&range.start).await?;
            let mut urls: Vec<(QueuePosition, Box<Waiting>)> = Vec::new();
            while urls.len() < max
                && let Some((key, value)) = found.next_before(&range.end).await?
            {
                let (_, position) = keys::parse_ready(&key)
                    .ok_or_else(|| self.damaged("a ready key is too short".to_owned()))?;
                let mut waiting = Box::new(self.waiting(&value)?);
                if let Some((_, before)) = urls.last() {
                    share_referrer(before, &mut waiting);
                }
                urls.push((position, waiting));
            }
            let is_all = urls.len() < max;
            self.state().bench.fill(*lane, urls, is_all);
            // Memory may have become short meanwhile, or another frontier may have been opened.
            self.fit_lanes();
            self.take_changed.notify_one();
        }
        Ok(())
    }

    /// Decodes the URL in a ready record.
    pub(super) fn waiting(&self, bytes: &[u8]) -> Result<Waiting, FrontierError> {
        let record: records::Ready = self.decode(bytes, "ready")?;
        let fingerprint = records::fingerprint(&record.fingerprint)
            .ok_or_else(|| self.damaged("a ready record has no fingerprint".to_owned()))?;
        let request = record.request.into_request();
        Ok(Waiting {
            request: request.map_err(|why| self.damaged(why))?,
            fingerprint,
            depth: record.depth,
            attempt: record.attempt,
            visit: record.visit,
            failure: record.failure,
            validators: record
                .validators
                .map(|validators| Box::new(validators.into())),
            plugin: record.plugin,
        })
    }
}

/// Lets a URL share the text of its referrer with the one before it: links of one page mostly stand in a row.
fn share_referrer(before: &Waiting, next: &mut Waiting) {
    if before.request.referrer == next.request.referrer {
        let referrer = &mut next.request.referrer;
        referrer.clone_from(&before.request.referrer);
    }
}
