//! State machine of an owner of hosts: to which worker each host is lent, and which is next.
//!
//! A host is lent to one worker at a time. It is lent again once it was returned and the rest of its delay is
//! over; the delay is the longest that any worker asked for lately. A lease that is not returned counts as a
//! request that ended when the lease ran out. A worker that has a request in flight beyond that says so again
//! and again, and no other worker gets the host meanwhile.
//!
//! Workers that were sent away have their turns in the order in which they came. Each was told when to come
//! again, and its turn is kept until [`GRACE`] after that; one that comes later goes to the end of the queue.
//!
//! A host of which nothing is known may have been lent by the previous owner. It gets no turn until such a
//! lease has run out ([`HANDOVER_TIME`] after this worker became the owner), and then a whole delay more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Answer, Grant, LEASE, MAX_AFTER, MAX_TURNS, TurnRequest, WorkerProcess};
use crate::throttle::STRICT_FOR;

/// Time after which no lease of an earlier owner can be in use: the length of a lease, plus the time in which
/// the two owners do not know of each other.
pub(super) const HANDOVER_TIME: Duration = Duration::from_secs(LEASE.as_secs() + 1);

/// Maximum number of hosts that an owner knows. Further hosts get no turn until there is room.
const MAX_HOSTS: usize = 100_000;
/// Maximum number of workers that have, or wait for, one host.
const MAX_WORKERS: usize = 1_024;
/// Number of known hosts at which the first sweep is due.
const FIRST_SWEEP: usize = 1_024;
/// Time between two sweeps of a full table.
const SWEEP_EVERY: Duration = Duration::from_millis(250);
/// Time for which a turn is kept for a worker that does not come.
const GRACE: Duration = Duration::from_secs(1);
/// Time after which a worker asks again for a host whose lease should have been returned by now.
const RETRY: Duration = Duration::from_millis(250);
/// The same time for a host that there is no room for.
const NO_ROOM: Duration = Duration::from_secs(1);

/// Hosts that this worker owns.
#[derive(Debug)]
pub(super) struct Owner {
    hosts: HashMap<Arc<str>, Host>,
    /// Number of hosts that the last sweep left; the next one is due at twice that.
    n_swept: usize,
    max_hosts: usize,
    /// Time of the last sweep that found no room.
    full_at: Option<Instant>,
    /// Time at which something about a host was last not recorded for lack of room.
    blind_at: Option<Instant>,
}

#[derive(Debug)]
struct Host {
    /// The longest delay asked for lately, and the time until which it binds all.
    strictest: (Duration, Instant),
    /// Moment that the delay counts from.
    ended: Instant,
    paused_until: Option<Instant>,
    /// Leases and requests in flight; usually one.
    holds: Vec<Hold>,
    queue: VecDeque<Reservation>,
}

/// A lease, or a request in flight.
#[derive(Debug)]
struct Hold {
    process: WorkerProcess,
    until: Instant,
    /// Moment at which the host is likely to be free.
    free_at: Instant,
}

/// A worker that was told when to come again.
#[derive(Debug)]
struct Reservation {
    process: WorkerProcess,
    at: Instant,
}

impl Default for Owner {
    fn default() -> Self {
        Self {
            hosts: HashMap::new(),
            n_swept: 0,
            max_hosts: MAX_HOSTS,
            full_at: None,
            blind_at: None,
        }
    }
}

impl Owner {
    /// Answers a worker's message about a host that is owned since `since`.
    pub(super) fn ask(
        &mut self,
        from: &WorkerProcess,
        ask: &TurnRequest,
        since: Instant,
        now: Instant,
    ) -> Answer {
        if !self.hosts.contains_key(&ask.host) {
            if !ask.is_wanted && !ask.is_in_flight && ask.ended.is_none() {
                return Answer::Noted;
            }
            if !self.has_room(now) {
                self.blind_at = Some(now);
                return match ask.is_wanted {
                    true => Answer::Later { after: NO_ROOM },
                    false => Answer::Noted,
                };
            }
            let since = self.blind_at.map_or(since, |blind| blind.max(since));
            let host = Host::unknown(ask.delay, since, now);
            self.hosts.insert(Arc::clone(&ask.host), host);
        }
        match self.hosts.get_mut(&ask.host) {
            Some(host) => host.ask(from, ask, now),
            None => Answer::Noted,
        }
    }

    /// Forgets the hosts that this worker does not own any more, or not without a break.
    pub(super) fn keep_owned(&mut self, is_owned: impl Fn(&str) -> bool) {
        self.hosts.retain(|host, _| is_owned(host));
    }

    /// Returns true if there is room for another host, after forgetting those that need not be known.
    fn has_room(&mut self, now: Instant) -> bool {
        let n = self.hosts.len();
        if n < FIRST_SWEEP.max(2 * self.n_swept) && n < self.max_hosts {
            return true;
        }
        // A sweep of a full table takes milliseconds, and a call may be about a thousand hosts.
        let is_full = self.full_at.is_some_and(|full| now < full + SWEEP_EVERY);
        if is_full && n >= self.max_hosts {
            return false;
        }
        self.hosts
            .retain(|_, host| !host.is_forgettable(now, false));
        if self.hosts.len() >= self.max_hosts {
            self.hosts.retain(|_, host| !host.is_forgettable(now, true));
        }
        self.n_swept = self.hosts.len();
        let has_room = self.hosts.len() < self.max_hosts;
        self.full_at = (!has_room).then_some(now);
        has_room
    }
}

impl Host {
    fn unknown(delay: Duration, since: Instant, now: Instant) -> Self {
        Self {
            strictest: (delay, now),
            ended: since + HANDOVER_TIME,
            paused_until: None,
            holds: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    fn ask(&mut self, from: &WorkerProcess, ask: &TurnRequest, now: Instant) -> Answer {
        self.end_holds(now);
        self.bind(ask.delay, now);
        if let Some(ended) = ask.ended {
            let end = now.checked_sub(ended.ago).unwrap_or(now);
            self.ended = self.ended.max(end);
            self.paused_until = self.paused_until.max(Some(end + ended.pause));
        }
        let held = self.holds.iter().position(|hold| hold.process == *from);
        let held = held.map(|place| self.holds.swap_remove(place));
        if ask.is_in_flight {
            let until = now + LEASE;
            let free_at = held.map_or(now, |held| held.free_at).max(now + RETRY);
            self.hold(from, until, free_at);
        }
        if !ask.is_wanted {
            return Answer::Noted;
        }
        let delay = self.strictest.0;
        let turns = turns(delay);
        let free_at = self.free_at();
        let n_before = self.n_before(from, free_at, now);
        if self.holds.is_empty() && n_before == 0 && free_at <= now {
            self.queue
                .retain(|reservation| reservation.process != *from);
            self.hold(from, now + LEASE, now + delay * turns);
            return Answer::Granted(Grant {
                turns,
                lasts: LEASE,
                delay,
            });
        }
        let held_until = self.holds.iter().map(|hold| hold.free_at.max(now + RETRY));
        let free_at = held_until.fold(free_at, Instant::max).max(now);
        let at = free_at + (delay * turns).saturating_mul(n_before).min(MAX_AFTER);
        let at = at.min(now + MAX_AFTER);
        self.reserve(from, at);
        Answer::Later { after: at - now }
    }

    /// Makes all workers keep this delay, if it is the longest.
    fn bind(&mut self, delay: Duration, now: Instant) {
        let (strictest, until) = self.strictest;
        if delay >= strictest || until <= now {
            self.strictest = (delay, now + 2 * delay + STRICT_FOR);
        }
    }

    /// Counts leases that were not returned as requests that ended when they ran out.
    fn end_holds(&mut self, now: Instant) {
        let over = self.holds.iter().map(|hold| hold.until);
        let over = over.filter(|until| *until <= now);
        self.ended = over.fold(self.ended, Instant::max);
        self.holds.retain(|hold| hold.until > now);
    }

    fn hold(&mut self, process: &WorkerProcess, until: Instant, free_at: Instant) {
        if self.holds.len() >= MAX_WORKERS {
            self.ended = self.ended.max(until);
            return;
        }
        self.holds.push(Hold {
            process: process.clone(),
            until,
            free_at,
        });
    }

    /// Returns the moment before which no worker may ask the host, apart from those that hold it.
    fn free_at(&self) -> Instant {
        let rested = self.ended + self.strictest.0;
        self.paused_until.map_or(rested, |until| until.max(rested))
    }

    /// Returns the number of workers whose turns come before this one's.
    fn n_before(&mut self, process: &WorkerProcess, free_at: Instant, now: Instant) -> u32 {
        let is_late = |reservation: &Reservation| reservation.at.max(free_at) + GRACE < now;
        while self.holds.is_empty() && self.queue.front().is_some_and(is_late) {
            self.queue.pop_front();
        }
        let place = self
            .queue
            .iter()
            .position(|reservation| reservation.process == *process);
        u32::try_from(place.unwrap_or(self.queue.len())).unwrap_or(u32::MAX)
    }

    fn reserve(&mut self, process: &WorkerProcess, at: Instant) {
        if let Some(reservation) =
            (self.queue.iter_mut()).find(|reservation| reservation.process == *process)
        {
            reservation.at = at;
        } else if self.queue.len() < MAX_WORKERS {
            let process = process.clone();
            self.queue.push_back(Reservation { process, at });
        }
    }

    /// Returns true if an unknown host would be treated in the same way. If room `is_short`, the delay that
    /// other workers asked for is disregarded.
    fn is_forgettable(&mut self, now: Instant, is_short: bool) -> bool {
        self.end_holds(now);
        let is_awaited = self
            .queue
            .iter()
            .any(|reservation| reservation.at + GRACE >= now);
        let is_over = self.holds.is_empty() && self.free_at() <= now && !is_awaited;
        is_over && (is_short || self.strictest.1 <= now)
    }
}

/// Returns the number of requests of one lease: as many as can begin in its time if answers take none.
fn turns(delay: Duration) -> u32 {
    let further = LEASE.as_millis().checked_div(delay.as_millis());
    let further = further.and_then(|n| u32::try_from(n).ok());
    further.map_or(MAX_TURNS, |n| n.saturating_add(1).min(MAX_TURNS))
}

#[cfg(test)]
mod tests;
