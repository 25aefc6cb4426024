//! One of the workers that share turns: it asks the owners of hosts for its own crawls, and owns some hosts
//! itself. It does no IO: the holder of this type carries its calls to the others.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Answer, MAX_ASKS, TurnRequest, TurnRequests, WorkerProcess};
use super::holder::{Due, Holder, POLL_AFTER, TurnDecision};
use super::owner::Owner;
use super::rank::{Peer, Ranks};
use crawler_model::id::NodeId;

/// Time for which a worker goes alone after an owner did not answer.
pub(super) const ALONE_FOR: Duration = Duration::from_secs(5);
/// Maximum number of hosts that are asked or waited for at once. Crawls of further hosts are told to come again.
const MAX_HOSTS: usize = 100_000;
/// Time after which a crawl comes again if there is no room, or no list of workers.
const AGAIN: Duration = Duration::from_millis(500);

/// Part of one worker in the turns of all hosts.
#[derive(Debug)]
pub(super) struct Member {
    own: WorkerProcess,
    ranks: Ranks,
    owner: Owner,
    holders: HashMap<Arc<str>, Holder>,
    /// The other workers.
    remote_owners: BTreeMap<NodeId, RemoteOwner>,
    max_hosts: usize,
}

/// Another worker, as an owner that is asked.
#[derive(Debug)]
struct RemoteOwner {
    peer: Arc<Peer>,
    /// Hosts that the next call is about.
    hosts: VecDeque<Arc<str>>,
    is_called: bool,
    /// Time until which it is asked for no turn, because it has not answered.
    silent_until: Option<Instant>,
    /// True if its last call brought no answer.
    is_silent: bool,
}

/// A call to another worker that is to be carried out.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) to: Arc<Peer>,
    pub(super) asks: TurnRequests,
    pub(super) asked: Instant,
}

/// Change in what is known of an owner, after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerChange {
    /// The owner answers, or stays silent, as before.
    None,
    /// The owner has stopped answering.
    Lost,
    /// The owner has begun to answer again.
    Regained,
}

impl Member {
    /// Creates a worker that does not know the others yet.
    pub(super) fn new(own: WorkerProcess) -> Self {
        Self {
            ranks: Ranks::new(own.clone()),
            own,
            owner: Owner::default(),
            holders: HashMap::new(),
            remote_owners: BTreeMap::new(),
            max_hosts: MAX_HOSTS,
        }
    }

    /// Replaces the list of registered workers. Leases of hosts whose owner has changed are not used any
    /// more, and the new owner is told of requests in flight.
    pub(super) fn change(&mut self, peers: Vec<Peer>, now: Instant) {
        if !self.ranks.change(peers, now) {
            return;
        }
        let mut before = std::mem::take(&mut self.remote_owners);
        for peer in self.ranks.peers().filter(|peer| peer.process() != self.own) {
            let known = before.remove(&peer.node.id);
            let known = known.filter(|other| other.peer.is_same(peer));
            let other = known.unwrap_or_else(|| RemoteOwner {
                peer: Arc::clone(peer),
                hosts: VecDeque::new(),
                is_called: false,
                silent_until: None,
                is_silent: false,
            });
            self.remote_owners.insert(peer.node.id.clone(), other);
        }
        let ranks = &self.ranks;
        // The hosts are kept that this worker owned and still owns.
        self.owner.keep_owned(|host| !ranks.has_moved(host));
        for (host, holder) in &mut self.holders {
            if ranks.has_moved(host) {
                holder.owner_changed();
            }
        }
        self.tick(now);
    }

    /// Asks for a turn of a host. On success the crawl may go on to the throttle; the error holds the time after
    /// which it is to come again.
    pub(super) fn turn(
        &mut self,
        host: &str,
        delay: Duration,
        now: Instant,
    ) -> Result<(), Duration> {
        if !self.ranks.is_known() {
            return Err(AGAIN);
        }
        if !self.ranks.is_shared() {
            return Ok(());
        }
        let Some(host) = self.known(host) else {
            return Err(AGAIN);
        };
        let mut turn = self.holder(&host).turn(delay, now);
        if turn == TurnDecision::AskOwner {
            self.tell(&host, now);
            turn = self.holder(&host).turn(delay, now);
        }
        match turn {
            TurnDecision::Free => Ok(()),
            TurnDecision::Later(at) => Err(at.saturating_duration_since(now)),
            TurnDecision::AskOwner => Err(POLL_AFTER),
        }
    }

    /// Begins a request, if its turn is still valid.
    pub(super) fn begin(&mut self, host: &str, delay: Duration, now: Instant) -> bool {
        if !self.ranks.is_shared() {
            // Without room, workers that come during this request do not hear of it.
            if let Some(host) = self.known(host) {
                self.holder(&host).begin_unasked(delay);
            }
            return true;
        }
        let Some((host, holder)) = self.holders.get_key_value(host) else {
            return false;
        };
        let (host, is_reminder_due) = (Arc::clone(host), holder.is_reminder_due(now));
        let has_begun = self.holder(&host).begin(delay, now);
        if has_begun && is_reminder_due {
            self.tell(&host, now);
        }
        has_begun
    }

    /// Ends a request; its host is left alone for `pause`.
    pub(super) fn end(&mut self, host: &Arc<str>, pause: Duration, now: Instant) {
        let Some(holder) = self.holders.get_mut(host) else {
            return;
        };
        let is_due = holder.end(pause, now);
        if is_due && self.ranks.is_shared() {
            self.tell(host, now);
        }
    }

    /// Answers another worker as the owner of hosts.
    pub(super) fn receive(&mut self, asks: &TurnRequests, now: Instant) -> Vec<Answer> {
        let answer = |ask: &TurnRequest| match self.ranks.owned_since(&ask.host) {
            Some(since) => self.owner.ask(&asks.from, ask, since, now),
            // One of the two workers has not seen the present list yet.
            None if ask.is_wanted => Answer::Later { after: AGAIN },
            None => Answer::Noted,
        };
        asks.asks.iter().map(answer).collect()
    }

    /// Returns the next call to carry out, if there is one. Each owner has one call at a time; news that come
    /// meanwhile go with the next.
    pub(super) fn next_call(&mut self, now: Instant) -> Option<Call> {
        for other in self.remote_owners.values_mut() {
            if other.is_called {
                continue;
            }
            let mut asks = Vec::new();
            while asks.len() < MAX_ASKS
                && let Some(host) = other.hosts.pop_front()
            {
                let owner = self.ranks.owner(&host);
                if owner.is_some_and(|owner| owner.is_same(&other.peer)) {
                    let holder = self.holders.get_mut(&host);
                    asks.extend(holder.and_then(|holder| holder.tell(&host, now)));
                }
            }
            if !asks.is_empty() {
                other.is_called = true;
                return Some(Call {
                    to: Arc::clone(&other.peer),
                    asks: TurnRequests {
                        from: self.own.clone(),
                        asks,
                    },
                    asked: now,
                });
            }
        }
        None
    }

    /// Processes the answers to a call. `None` stands for a call without an answer.
    pub(super) fn answered(
        &mut self,
        call: &Call,
        answers: Option<&[Answer]>,
        now: Instant,
    ) -> OwnerChange {
        let is_whole = |answers: &&[Answer]| answers.len() == call.asks.asks.len();
        let answers = answers.filter(is_whole);
        let other = self.remote_owners.get_mut(&call.to.node.id);
        let Some(other) = other.filter(|other| other.peer.is_same(&call.to)) else {
            // Its hosts have other owners by now, who are asked anew.
            return OwnerChange::None;
        };
        other.is_called = false;
        let was_silent = std::mem::replace(&mut other.is_silent, answers.is_none());
        let alone_until = now + ALONE_FOR;
        other.silent_until = answers.is_none().then_some(alone_until);
        for (nth, ask) in call.asks.asks.iter().enumerate() {
            let owner = self.ranks.owner_since(&ask.host);
            let is_owner =
                owner.is_some_and(|(peer, since)| peer.is_same(&call.to) && since <= call.asked);
            let holder = self.holders.get_mut(&ask.host);
            // A host that has moved meanwhile is asked for anew.
            let Some(holder) = holder.filter(|_| is_owner) else {
                continue;
            };
            match answers.map(|answers| answers[nth]) {
                None => holder.unanswered(alone_until),
                Some(answer) => holder.answered(answer, call.asked, now),
            }
        }
        if answers.is_none() {
            // Hosts that the next call would be about do not wait for it.
            for host in &other.hosts {
                if let Some(holder) = self.holders.get_mut(host) {
                    holder.unanswered(alone_until);
                }
            }
            other.hosts.clear();
        }
        match (was_silent, answers.is_none()) {
            (false, true) => OwnerChange::Lost,
            (true, false) => OwnerChange::Regained,
            (true, true) | (false, false) => OwnerChange::None,
        }
    }

    /// Checks all hosts: returns unused leases, reminds owners of requests in flight, and forgets hosts that
    /// need not be known.
    pub(super) fn tick(&mut self, now: Instant) {
        let is_shared = self.ranks.is_shared();
        let mut due = Vec::new();
        self.holders
            .retain(|host, holder| match holder.tick(is_shared, now) {
                Due::Nothing => true,
                Due::Tell => {
                    due.push(Arc::clone(host));
                    true
                }
                Due::Forget => false,
            });
        for host in due {
            self.tell(&host, now);
        }
    }

    /// Tells the owner of a host its state: at once if this worker is the owner, with the next call otherwise.
    fn tell(&mut self, host: &Arc<str>, now: Instant) {
        let Some(holder) = self.holders.get_mut(host) else {
            return;
        };
        if let Some(since) = self.ranks.owned_since(host) {
            if let Some(ask) = holder.tell(host, now) {
                let answer = self.owner.ask(&self.own, &ask, since, now);
                holder.answered(answer, now, now);
            }
            return;
        }
        let owner = self.ranks.owner(host);
        let other = owner.and_then(|peer| self.remote_owners.get_mut(&peer.node.id));
        match other {
            // A reminder is worth a call all the same: the owner may count the host as free.
            Some(other) if other.is_resting(now) && !holder.is_in_flight() => {
                holder.unanswered(other.silent_until.unwrap_or(now));
            }
            Some(other) => {
                if !holder.is_queued() {
                    other.hosts.push_back(Arc::clone(host));
                    holder.queued();
                }
            }
            None => holder.answered(Answer::Later { after: AGAIN }, now, now),
        }
    }

    fn holder(&mut self, host: &Arc<str>) -> &mut Holder {
        self.holders.entry(Arc::clone(host)).or_default()
    }

    /// Returns the shared name of a host. Returns `None` if there is no room until the next look.
    fn known(&self, host: &str) -> Option<Arc<str>> {
        if let Some((host, _)) = self.holders.get_key_value(host) {
            return Some(Arc::clone(host));
        }
        (self.holders.len() < self.max_hosts).then(|| Arc::from(host))
    }
}

impl RemoteOwner {
    fn is_resting(&self, now: Instant) -> bool {
        self.silent_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests;
