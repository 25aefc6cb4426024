//! State that the calls of one opening share with the task that makes it durable.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::plain::{Known, Plain, Stage};
use super::{FrontiersTwin, Writer};
use crate::memory::peers::PeerLinks;
use crate::{Claim, FrontierError, LinkBounds};

pub(super) struct Shared {
    pub(super) twin: FrontiersTwin,
    pub(super) writer: Writer,
    pub(super) state: Mutex<State>,
    /// Signals that there are changes to be made durable.
    pub(super) dirty: Notify,
    pub(super) take_changed: Notify,
    pub(super) outbox_changed: Notify,
    pub(super) links_changed: Notify,
    /// Latest version that is durable, or the error after which none will be any more.
    pub(super) durable: watch::Sender<Result<u64, FrontierError>>,
}

pub(super) struct State {
    pub(super) plain: Plain,
    /// Number that grows with each change.
    pub(super) version: u64,
    /// End of the outbox in the durable version.
    pub(super) durable_outbox_end: u64,
    /// Durable links, without those that were delivered since.
    pub(super) durable_peers: PeerLinks,
    /// Attempts of pages in flight, by entry.
    pub(super) in_flight: BTreeMap<u64, u32>,
    /// True if a host may have been asked without an update of its clock.
    pub(super) has_unsure_clocks: bool,
    pub(super) is_closed: bool,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn check(&self) -> Result<(), FrontierError> {
        if self.state().is_closed {
            let shard = self.writer.shard;
            return Err(FrontierError::Closed { shard });
        }
        self.durable.borrow().clone().map(drop)
    }

    /// Changes the state; the change becomes durable later.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        state.version += 1;
        let changed = change(&mut state);
        drop(state);
        self.dirty.notify_one();
        changed
    }

    pub(super) async fn flush(&self) {
        loop {
            self.dirty.notified().await;
            let (plain, version) = {
                let state = self.state();
                (state.plain.clone(), state.version)
            };
            let (writer, outbox_end) = (self.writer, plain.outbox_end());
            let mut peers = plain.peers.clone();
            let kept = self
                .twin
                .ask("write", writer.shard, move |twin| twin.keep(&writer, plain));
            let kept = kept.await.and_then(|kept| kept);
            if kept.is_ok() {
                let mut state = self.state();
                state.durable_outbox_end = state.durable_outbox_end.max(outbox_end);
                for peer in peers.waiting() {
                    let none = LinkBounds { n: 0, bytes: 0 };
                    let first = state.plain.peers.links_for(peer, none).first;
                    peers.delivered(peer, first);
                }
                state.durable_peers = peers;
            }
            let is_over = kept.is_err();
            let _before = self.durable.send_replace(kept.map(|()| version));
            self.take_changed.notify_one();
            self.outbox_changed.notify_one();
            self.links_changed.notify_one();
            if is_over {
                return;
            }
        }
    }

    pub(super) async fn settle(&self) -> Result<(), FrontierError> {
        let version = self.state().version;
        let mut durable = self.durable.subscribe();
        let reached = |durable: &Result<u64, FrontierError>| match durable {
            Ok(durable) => *durable >= version,
            Err(_) => true,
        };
        let settled = durable.wait_for(reached).await;
        settled.map_or_else(
            |_| {
                let shard = self.writer.shard;
                Err(FrontierError::Closed { shard })
            },
            |durable| durable.clone().map(drop),
        )
    }

    /// Returns true if some change is not durable yet.
    pub(super) fn is_behind(&self, state: &State) -> bool {
        !matches!(&*self.durable.borrow(), Ok(durable) if *durable >= state.version)
    }
}

impl State {
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&u64, &Known)> {
        let is_free = |(entry, known): &(&u64, &Known)| {
            known.stage == Stage::Due && !self.in_flight.contains_key(entry)
        };
        self.plain.urls.iter().filter(is_free)
    }

    pub(super) fn n_of_host(&self, host: &str) -> usize {
        let hosts = self
            .in_flight
            .keys()
            .map(|e| self.plain.urls[e].request.host());
        hosts.filter(|other| other == host).count()
    }

    /// Takes a claim out of flight. Fails if it is not in flight.
    pub(super) fn release(&mut self, claim: &Claim) -> Result<(), FrontierError> {
        if self.in_flight.get(&claim.entry) != Some(&claim.attempt) {
            let url = claim.request.url.to_string();
            return Err(FrontierError::NotInFlight { url });
        }
        self.in_flight.remove(&claim.entry);
        Ok(())
    }

    pub(super) fn claim(&mut self, entry: u64) -> Box<Claim> {
        let known = &self.plain.urls[&entry];
        self.in_flight.insert(entry, known.attempt);
        Box::new(Claim {
            request: known.request.clone(),
            depth: known.depth,
            attempt: known.attempt,
            visit: known.visit,
            fingerprint: known.fingerprint,
            entry,
            alone: false,
            validators: None,
            host: self.plain.standing(&known.request.host()),
        })
    }
}
