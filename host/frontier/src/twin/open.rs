//! One opening of a frontier: its calls change its own copy of the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::plain::Plain;
use super::shared::{Shared, State};
use super::{FrontiersTwin, Writer};
use crate::workbench::{ANSWERED_IN_A_ROW, HostKind};
use crate::{
    Claim, Commit, Committed, Frontier, FrontierError, HostFailure, HostUpdate, LinkBatch,
    LinkBounds, LinkExchange, LinkPolicy, NewRequest, OpenFrontier, Take, TakeLimits, URL_BYTES,
};
use crawler_model::crawl::{Counts, Request, UnixMillis};
use crawler_model::frontier::KeptCookies;
use crawler_model::id::Shard;
use crawler_model::resource::{LinkTotals, Redrive};
use crawler_model::robots::KeptRobots;
use crawler_model::settings::SinkName;
use crawler_model::statistics::Statistics;
use crawler_model::status::PresentHosts;
use crawler_process::task::TaskScope;

/// Maximum numbers of pages in flight, and of items that wait for their sinks.
pub(super) const BOUNDS: (usize, usize) = (512, 100_000);

pub(super) struct Opened {
    pub(super) shared: Arc<Shared>,
    scope: TaskScope,
}

impl Opened {
    pub(super) fn new(twin: FrontiersTwin, writer: Writer, plain: Plain) -> Self {
        let shared = Arc::new(Shared {
            twin,
            writer,
            state: Mutex::new(State {
                durable_outbox_end: plain.outbox_end(),
                durable_peers: plain.peers.clone(),
                plain,
                version: 0,
                in_flight: BTreeMap::new(),
                has_unsure_clocks: false,
                is_closed: false,
            }),
            dirty: Notify::new(),
            take_changed: Notify::new(),
            outbox_changed: Notify::new(),
            links_changed: Notify::new(),
            durable: watch::Sender::new(Ok(0)),
        });
        let scope = TaskScope::new();
        let stop: CancellationToken = scope.stop_signal();
        let flushes = shared.clone();
        scope.spawn("flushes of a frontier", async move {
            let _stopped = stop.run_until_cancelled(flushes.flush()).await;
        });
        Self { shared, scope }
    }
}

#[async_trait]
impl Frontier for Opened {
    async fn seed_shard(
        &self,
        roots: Vec<Url>,
        requests: Vec<NewRequest>,
    ) -> Result<Committed, FrontierError> {
        self.shared.check()?;
        let seed = |state: &mut State| state.plain.seed(roots, requests);
        Ok(self.shared.change(seed))
    }

    fn roots(&self) -> Option<Vec<Url>> {
        self.shared.state().plain.roots.clone()
    }

    fn root_ends(&self) -> u32 {
        0
    }

    async fn acquire_root_permit(&self) {}

    async fn enter_root(&self) -> Result<(), FrontierError> {
        self.shared.check()
    }

    async fn leave_root(&self) -> Result<(), FrontierError> {
        self.shared.check()
    }

    fn n_ready_hosts(&self) -> usize {
        let state = self.shared.state();
        let hosts = state.waiting().map(|(_, known)| known.request.host());
        let ready = hosts.filter(|host| state.plain.standing(host).is_ready);
        ready.collect::<BTreeSet<_>>().len()
    }

    fn take_within(&self, now: UnixMillis, limits: TakeLimits) -> Result<Take, FrontierError> {
        self.shared.check()?;
        let mut state = self.shared.state();
        if state.plain.roots.is_none() {
            return Ok(Take::Blocked);
        }
        let now = state.plain.time.now(now);
        if state.waiting().next().is_none() {
            let is_sent = state.plain.peers.waiting().is_empty();
            let is_over = state.in_flight.is_empty() && is_sent && !self.shared.is_behind(&state);
            return Ok(if is_over { Take::Empty } else { Take::Blocked });
        }
        if state.in_flight.len() >= BOUNDS.0 || state.plain.outbox.len() >= BOUNDS.1 {
            return Ok(Take::Blocked);
        }
        let rests_until = state.plain.rests_until;
        if now < rests_until {
            return Ok(Take::WaitUntil(state.plain.time.to_wall(rests_until)));
        }
        let may = state.waiting().filter_map(|(entry, known)| {
            let host = known.request.host();
            let kind = state.plain.kind(&host);
            let per_host = match kind {
                HostKind::Ready => limits.ready,
                HostKind::Answered => limits.answered,
                HostKind::Unreached => limits.unreached,
            };
            let has_room = state.n_of_host(&host) < per_host.unwrap_or(0) as usize;
            has_room.then(|| (state.plain.next_at(known), kind, host, *entry))
        });
        let may: Vec<(UnixMillis, HostKind, String, u64)> = may.collect();
        let Some(soonest) = may.iter().map(|(next_at, ..)| *next_at).min() else {
            return Ok(Take::Blocked);
        };
        if soonest > now {
            return Ok(Take::WaitUntil(state.plain.time.to_wall(soonest)));
        }
        let due = may.iter().filter(|(next_at, ..)| *next_at <= now);
        let is_turn_of_unreached = state.plain.n_answered_in_a_row >= ANSWERED_IN_A_ROW;
        let host = due.min_by_key(|(next_at, kind, host, _)| {
            let is_last = *kind == HostKind::Answered && is_turn_of_unreached;
            let place = if is_last {
                HostKind::Unreached as u8 + 1
            } else {
                *kind as u8
            };
            (place, *next_at, host.clone())
        });
        let (_, kind, host, _) = host.expect("one is due").clone();
        match kind {
            HostKind::Ready => {}
            HostKind::Answered => state.plain.n_answered_in_a_row += 1,
            HostKind::Unreached => state.plain.n_answered_in_a_row = 0,
        }
        let of_host = may.iter().filter(|(t, _, h, _)| *h == host && *t <= now);
        let best = of_host.map(|(.., entry)| *entry).min_by_key(|entry| {
            let known = &state.plain.urls[entry];
            (-i64::from(known.request.priority), known.due, *entry)
        });
        let best = best.expect("the first is among them");
        Ok(Take::Ready(state.claim(best)))
    }

    fn suspect_after(&self) -> Option<Duration> {
        None
    }

    async fn suspect(&self, _claim: &Claim) -> Result<(), FrontierError> {
        self.shared.check()
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, FrontierError> {
        self.shared.check()?;
        self.shared.change(|state| {
            state.release(&commit.claim)?;
            state.has_unsure_clocks |= commit.result.host_ready_at == 0 && commit.answered_at == 0;
            Ok(state.plain.end(commit))
        })
    }

    /// Returns none, because simulated sites have none.
    async fn kept_robots(&self, _url: &Url) -> Result<Option<KeptRobots>, FrontierError> {
        Ok(None)
    }

    fn keep_robots(&self, _url: &Url, _robots: KeptRobots) {}

    fn cookies(&self) -> Option<KeptCookies> {
        self.shared.state().plain.cookies.clone()
    }

    fn give_back(&self, claim: Box<Claim>, update: HostUpdate) {
        let mut state = self.shared.state();
        if let Err(error) = state.release(&claim) {
            tracing::warn!(%error, "a claim was given back twice");
            return;
        }
        let host = claim.request.host();
        match update {
            HostUpdate::None => state.has_unsure_clocks = true,
            HostUpdate::NotBefore(until) => state.plain.postpone(&host, until),
            HostUpdate::Ready { not_before, .. } => {
                state.plain.set_host_clock(&host, not_before, 0)
            }
            HostUpdate::Unready => {}
        }
        state.plain.health(host).apply(update);
    }

    async fn put_off(&self, claim: Box<Claim>, failure: HostFailure) -> Result<(), FrontierError> {
        self.shared.check()?;
        self.shared.change(|state| {
            if let Err(error) = state.release(&claim) {
                tracing::warn!(%error, "a claim was given back twice");
                return;
            }
            let host = claim.request.host();
            let n_before = claim.host.n_failures;
            if state
                .plain
                .health(host.clone())
                .record_failure(n_before, &failure)
            {
                state.plain.postpone(&host, failure.until);
            }
        });
        Ok(())
    }

    async fn knows(&self, request: &Request) -> Result<bool, FrontierError> {
        Ok(self.shared.state().plain.knows(request.fingerprint()))
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn counts(&self) -> Counts {
        self.shared.state().plain.counts()
    }

    fn statistics(&self) -> Statistics {
        self.shared.state().plain.statistics.clone()
    }

    fn in_flight(&self) -> usize {
        self.shared.state().in_flight.len()
    }

    fn present_hosts(&self, now: UnixMillis) -> PresentHosts {
        let by_state = self.shared.state().plain.hosts_by_state(now);
        PresentHosts {
            by_state,
            in_flight: BTreeMap::new(),
        }
    }

    async fn take_changed(&self) {
        self.shared.take_changed.notified().await;
    }

    async fn settle(&self) -> Result<(), FrontierError> {
        self.shared.settle().await
    }

    async fn check_empty(&self) -> Result<(), FrontierError> {
        let state = self.shared.state();
        let n_waiting = state.waiting().count();
        let is_sent = state.plain.peers.waiting().is_empty();
        if n_waiting + state.plain.outbox.len() > 0 || !is_sent {
            let (shard, why) = (self.shared.writer.shard, "something is left".to_owned());
            return Err(FrontierError::Damaged { shard, why });
        }
        Ok(())
    }

    fn held_bytes(&self) -> u64 {
        (self.shared.state().plain.urls.len() * URL_BYTES) as u64
    }

    fn stalled(&self) -> Option<String> {
        None
    }

    async fn close(&self) -> Result<(), FrontierError> {
        if self.shared.check().is_ok() {
            self.shared.change(|state| {
                let is_held = state.plain.held_until > state.plain.time.latest();
                if !is_held {
                    state.plain.held_until = 0;
                }
                state.plain.has_exact_clocks =
                    state.in_flight.is_empty() && !state.has_unsure_clocks;
            });
        }
        let settled = self.shared.settle().await;
        self.shared.state().is_closed = true;
        self.scope.stop(Duration::from_secs(1)).await;
        settled
    }
}

#[async_trait]
impl LinkExchange for Opened {
    fn peers(&self) -> Vec<Shard> {
        self.shared.state().durable_peers.waiting()
    }

    async fn links_for(&self, peer: Shard, bounds: LinkBounds) -> Result<LinkBatch, FrontierError> {
        self.shared.check()?;
        Ok(self.shared.state().durable_peers.links_for(peer, bounds))
    }

    async fn delivered(&self, peer: Shard, end: u64) -> Result<(), FrontierError> {
        self.shared.check()?;
        self.shared.change(|state| {
            state.durable_peers.delivered(peer, end);
            state.plain.peers.delivered(peer, end);
        });
        Ok(())
    }

    async fn apply(
        &self,
        from: Shard,
        batch: LinkBatch,
        policy: LinkPolicy<'_>,
    ) -> Result<u64, FrontierError> {
        self.shared.check()?;
        let shard = self.shared.writer.shard;
        let apply = |state: &mut State| state.plain.apply(shard, from, batch, policy);
        let applied = self.shared.change(apply);
        self.shared.take_changed.notify_one();
        applied
    }

    fn link_totals(&self) -> LinkTotals {
        self.shared.state().plain.peers.totals()
    }

    async fn links_changed(&self) {
        self.shared.links_changed.notified().await;
    }
}

#[async_trait]
impl OpenFrontier for Opened {
    fn storage_epoch(&self) -> u64 {
        self.shared.writer.storage_epoch
    }

    fn dropped(&self) -> Vec<(SinkName, u64)> {
        self.shared.state().plain.dropped.clone()
    }

    async fn redrive(&self, order: &Redrive) -> Result<u64, FrontierError> {
        self.shared.check()?;
        Ok(self.shared.change(|state| state.plain.redrive(order)))
    }
}
