//! Sweep after a new run began: makes URLs of earlier runs due again, if that is asked for, and then removes
//! the records of earlier runs. It begins again after a restart: repeating it changes nothing.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;
use tokio_util::sync::CancellationToken;

use super::changes;
use super::inner::Inner;
use super::links::DedupContext;
use crate::records::{self, Stage};
use crate::{FrontierError, NewRequest, keys};
use crawler_model::id::Run;
use crawler_model::robots::KeptRobots;

/// Number of records in one batch; pages are committed between two of them. Each batch scans anew, because a
/// long scan would hold on to files that the collector may remove.
const AT_ONCE: usize = 64;
/// Pause between two batches, because pages come first.
const PAUSE: Duration = Duration::from_millis(2);

/// Action of a sweep on one piece of a range.
enum Piece {
    Carry,
    Remove(fn(&Inner, &Bytes, &Bytes) -> Result<bool, FrontierError>),
}

pub(super) async fn run(inner: Weak<Inner>, stop: CancellationToken) {
    let Some(frontier) = inner.upgrade() else {
        return;
    };
    if let Err(error) = frontier.sweep(&stop).await {
        frontier.broken(error);
    }
}

impl Inner {
    /// Sweeps all records. It ends early, between two pieces, when told to stop.
    async fn sweep(&self, stop: &CancellationToken) -> Result<(), FrontierError> {
        let head = self.state().head.clone();
        if head.is_carrying {
            while !self.state().head.is_seeded {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(50)) => {}
                    () = stop.cancelled() => return Ok(()),
                }
            }
            let from = Run(head.carry_from);
            let earlier = [
                Bytes::from_static(keys::STATES)..keys::end_of(keys::STATES),
                keys::ready_of(from)..keys::ready_of(self.run),
                keys::dead_letters_of(from)..keys::dead_letters_of(self.run),
            ];
            if !self.sweep_all(earlier, &Piece::Carry, stop).await? {
                return Ok(());
            }
            self.change_head(|head| head.is_carrying = false).await?;
            self.take_changed.notify_one();
        }
        if head.swept_before >= self.run.0 {
            return Ok(());
        }
        let none = Run(0);
        let over = [
            keys::seen_of(none)..keys::seen_of(self.run),
            keys::ready_of(none)..keys::ready_of(self.run),
            keys::dead_letters_of(none)..keys::dead_letters_of(self.run),
            keys::patterns_of(none)..keys::patterns_of(self.run),
            keys::totals(none)..keys::totals(self.run),
            keys::statistics(none)..keys::statistics(self.run),
            keys::links_of(none)..keys::links_of(self.run),
            keys::applied_of(none)..keys::applied_of(self.run),
        ];
        let comparison = self.state().comparison.as_ref().map(|known| known.record);
        let changes_over = changes::over(comparison);
        let states = [Bytes::from_static(keys::STATES)..keys::end_of(keys::STATES)];
        let hosts = [Bytes::from_static(keys::HOSTS)..keys::end_of(keys::HOSTS)];
        let names = [Bytes::from_static(keys::NAMES)..keys::end_of(keys::NAMES)];
        let robots = [Bytes::from_static(keys::ROBOTS)..keys::end_of(keys::ROBOTS)];
        let is_swept = self
            .sweep_all(over, &Piece::Remove(|_, _, _| Ok(true)), stop)
            .await?
            && self
                .sweep_all(changes_over, &Piece::Remove(|_, _, _| Ok(true)), stop)
                .await?
            && self
                .sweep_all(states, &Piece::Remove(Inner::is_old_state), stop)
                .await?
            && self
                .sweep_all(hosts, &Piece::Remove(Inner::is_old_host), stop)
                .await?
            && self
                .sweep_all(names, &Piece::Remove(Inner::is_old_name), stop)
                .await?
            && self
                .sweep_all(robots, &Piece::Remove(Inner::is_old_robots), stop)
                .await?;
        if is_swept {
            let run = self.run.0;
            self.change_head(|head| head.swept_before = run).await?;
        }
        Ok(())
    }

    async fn change_head(
        &self,
        change: impl FnOnce(&mut records::Head),
    ) -> Result<(), FrontierError> {
        let guard = self.writer.lock().await;
        let mut batch = WriteBatch::new();
        {
            let mut state = self.state();
            change(&mut state.head);
            batch.put(keys::HEAD, state.head.encode_to_vec());
        }
        self.write(&guard, batch, 0).await.map(drop)
    }

    /// Sweeps all ranges piece by piece; returns false if it was told to stop.
    async fn sweep_all<const N: usize>(
        &self,
        ranges: [Range<Bytes>; N],
        piece: &Piece,
        stop: &CancellationToken,
    ) -> Result<bool, FrontierError> {
        for mut range in ranges {
            loop {
                if stop.is_cancelled() {
                    return Ok(false);
                }
                let entries = self.piece(range.clone()).await?;
                let Some((last, _)) = entries.last() else {
                    break;
                };
                range.start = keys::after(last);
                match piece {
                    Piece::Carry => self.carry(entries).await?,
                    Piece::Remove(is_over) => self.remove(entries, *is_over).await?,
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(true)
    }

    /// Returns the first records of a range.
    pub(super) async fn piece(
        &self,
        range: Range<Bytes>,
    ) -> Result<Vec<(Bytes, Bytes)>, FrontierError> {
        let mut found = self.scan(range).await?;
        let mut entries = Vec::with_capacity(AT_ONCE);
        while entries.len() < AT_ONCE
            && let Some(entry) = found.next().await?
        {
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Removes the records that are over, both as read and under the write guard, when no other task can write.
    async fn remove(
        &self,
        entries: Vec<(Bytes, Bytes)>,
        is_over: fn(&Inner, &Bytes, &Bytes) -> Result<bool, FrontierError>,
    ) -> Result<(), FrontierError> {
        let mut over = Vec::new();
        for (key, value) in entries {
            if is_over(self, &key, &value)? {
                over.push(key);
            }
        }
        if over.is_empty() {
            return Ok(());
        }
        let guard = self.writer.lock().await;
        let mut batch = WriteBatch::new();
        for key in over {
            if let Some(value) = self.get(key.clone()).await?
                && is_over(self, &key, &value)?
            {
                batch.delete(key);
            }
        }
        self.write(&guard, batch, 0).await.map(drop)
    }

    /// Returns true for a state that neither this run nor the one before has seen.
    fn is_old_state(&self, _key: &Bytes, value: &Bytes) -> Result<bool, FrontierError> {
        let state: records::State = self.decode(value, "state")?;
        Ok(state.run + 1 < self.run.0)
    }

    /// Returns true for a host of an earlier run that may be asked again and is not known to this run.
    fn is_old_host(&self, key: &Bytes, value: &Bytes) -> Result<bool, FrontierError> {
        let host: records::Host = self.decode(value, "host")?;
        let state = self.state();
        let is_known = keys::parse_host(key).is_some_and(|host| state.bench.knows(host));
        Ok(host.run < self.run.0 && host.clock <= state.time.latest() && !is_known)
    }

    /// Returns true for the name of a host that this run has not met.
    fn is_old_name(&self, _key: &Bytes, value: &Bytes) -> Result<bool, FrontierError> {
        let name: records::HostName = self.decode(value, "host name")?;
        Ok(name.run < self.run.0)
    }

    /// Returns true for a robots.txt that is not valid any more, or cannot be read: its site can be asked.
    fn is_old_robots(&self, _key: &Bytes, value: &Bytes) -> Result<bool, FrontierError> {
        let Ok(robots) = self.decode::<records::Robots>(value, "robots.txt") else {
            return Ok(true);
        };
        let state = self.state();
        let now = state.time.to_wall(state.time.latest());
        Ok(KeptRobots::from(robots).is_over(now))
    }

    /// Makes URLs of earlier runs due again: pages, URLs that waited, and URLs that were given up.
    async fn carry(&self, entries: Vec<(Bytes, Bytes)>) -> Result<(), FrontierError> {
        let mut links = Vec::new();
        for (key, value) in entries {
            let found = if key.starts_with(keys::STATES) {
                let state: records::State = self.decode(&value, "state")?;
                let is_over = matches!(state.stage(), Stage::Gone | Stage::Denied | Stage::Dead);
                let carried = self.state().head.carry_from..self.run.0;
                let is_carried = carried.contains(&state.run) && !is_over;
                state
                    .request
                    .filter(|_| is_carried)
                    .map(|request| (request, state.depth))
            } else if key.starts_with(keys::READY) {
                let ready: records::Ready = self.decode(&value, "ready")?;
                Some((ready.request, ready.depth))
            } else {
                let letter: records::DeadLetter = self.decode(&value, "dead letter")?;
                Some((letter.request, letter.depth))
            };
            if let Some((request, depth)) = found {
                let mut request = request.into_request().map_err(|why| self.damaged(why))?;
                request.reload = false;
                links.push(NewRequest { request, depth });
            }
        }
        let links = self.links(links, Vec::new());
        let guard = self.writer.lock().await;
        let sorted = self.deduplicate(links, DedupContext::default()).await?;
        if sorted.links.is_empty() {
            return Ok(());
        }
        let stored = self.seen_keys(&sorted);
        let mut batch = WriteBatch::new();
        {
            let mut state = self.state();
            let mut hosts = BTreeSet::new();
            state.store(sorted.links, self.plugin, &mut hosts, &mut batch);
            for host in hosts {
                state.save_host(host, &mut batch);
            }
        }
        self.write(&guard, batch, 0).await?;
        self.remember(stored);
        drop(guard);
        self.take_changed.notify_one();
        Ok(())
    }
}
