//! Changes of the state by the calls of the frontier.

use std::collections::HashSet;

use super::*;
use crawler_model::id::Shard;

impl State {
    pub(super) fn claim(
        &mut self,
        lane: LaneId,
        position: QueuePosition,
        waiting: Waiting,
        now: UnixMillis,
    ) -> Box<Claim> {
        if let Some(seen) = self.seen.get_mut(&waiting.fingerprint) {
            seen.n_waiting -= 1;
        }
        let host = self.workbench.standing(lane.host, now);
        let in_flight = InFlight {
            fingerprint: waiting.fingerprint,
            attempt: waiting.attempt,
            lane,
            position,
            is_preparing: !host.is_ready,
        };
        self.n_preparing += usize::from(!host.is_ready);
        self.in_flight.insert(position.entry, in_flight);
        Box::new(Claim {
            request: waiting.request,
            depth: waiting.depth,
            attempt: waiting.attempt,
            visit: waiting.visit,
            fingerprint: waiting.fingerprint,
            entry: position.entry,
            alone: false,
            validators: None,
            host,
        })
    }

    pub(super) fn release(
        &mut self,
        claim: &Claim,
        host_ready_at: UnixMillis,
    ) -> Result<InFlight, FrontierError> {
        // The attempt tells a claim from an earlier one of the same URL that comes back late.
        let known = self.in_flight.get(&claim.entry).is_some_and(|known| {
            known.fingerprint == claim.fingerprint && known.attempt == claim.attempt
        });
        let released = known.then(|| self.in_flight.remove(&claim.entry)).flatten();
        let in_flight = released.ok_or_else(|| FrontierError::NotInFlight {
            url: claim.request.url.to_string(),
        })?;
        self.n_preparing -= usize::from(in_flight.is_preparing);
        let ready_at = self.time.of_wall(host_ready_at);
        let now = self.time.latest();
        self.workbench
            .release(in_flight.lane, in_flight.position, now, ready_at);
        Ok(in_flight)
    }

    /// Puts a claim back, with the update about its host.
    pub(super) fn give_back(&mut self, claim: Claim, update: HostUpdate) {
        let host_ready_at = match update {
            HostUpdate::None | HostUpdate::Unready | HostUpdate::NotBefore(_) => 0,
            HostUpdate::Ready { not_before, .. } => not_before,
        };
        let Some(page) = self.released(&claim, host_ready_at) else {
            return;
        };
        if let HostUpdate::NotBefore(until) = update {
            let until = self.time.of_wait(until);
            self.workbench.postpone(page.lane.host, until);
        }
        self.workbench
            .update_health(page.lane.host, |health| health.apply(update));
        self.wait_again(claim, page.position.due, page.attempt);
    }

    /// Puts a claim back, and its host off.
    pub(super) fn put_off(&mut self, claim: Claim, failure: &HostFailure) {
        let Some(page) = self.released(&claim, 0) else {
            return;
        };
        let (host, n_before) = (page.lane.host, claim.host.n_failures);
        if self
            .workbench
            .update_health(host, |health| health.record_failure(n_before, failure))
        {
            let until = self.time.of_wait(failure.until);
            self.workbench.postpone(host, until);
        }
        self.wait_again(claim, page.position.due, page.attempt);
    }

    /// Removes a claim from flight that is to be put back.
    fn released(&mut self, claim: &Claim, host_ready_at: UnixMillis) -> Option<InFlight> {
        let released = self.release(claim, host_ready_at);
        released
            .inspect_err(|error| tracing::warn!(%error, "a claim was given back twice"))
            .ok()
    }

    pub(super) fn wait_again(&mut self, claim: Claim, due: UnixMillis, attempt: u32) {
        let position = QueuePosition {
            due,
            entry: claim.entry,
        };
        let waiting = Waiting {
            request: claim.request,
            fingerprint: claim.fingerprint,
            depth: claim.depth,
            attempt,
            visit: claim.visit,
        };
        self.wait(position, waiting);
    }

    pub(super) fn wait(&mut self, position: QueuePosition, waiting: Waiting) {
        if let Some(seen) = self.seen.get_mut(&waiting.fingerprint) {
            seen.n_waiting += 1;
        }
        let next = HostId(self.hosts.len() as u64);
        let host = *self.hosts.entry(waiting.request.host()).or_insert(next);
        let lane = self.workbench.lane_for(host, waiting.request.priority);
        self.workbench.put(lane, position, waiting);
        self.counts.hosts = self.hosts.len() as u64;
    }

    fn is_host_too_many(&self, request: &Request, growth: GrowthBounds) -> bool {
        self.hosts.len() as u64 >= growth.hosts && !self.hosts.contains_key(&request.host())
    }

    /// Applies a commit except for its requests.
    pub(super) fn end(&mut self, commit: Commit) {
        commit.note_in(&mut self.statistics);
        if let Some(cookies) = commit.cookies {
            cookies.replace(&mut self.cookies);
        }
        let now = self.time.to_wall(self.time.latest());
        let counts = &mut self.counts;
        counts.note_attempt(now, commit.answered_at);
        counts.bytes += commit.result.bytes;
        counts.kept_bytes += commit.result.kept_bytes;
        counts.items += (commit.result.items.len() + commit.result.watched.len()) as u64;
        for (reason, n) in commit.result.refused {
            counts.refuse(reason, n);
        }
        self.outbox.push(commit.result.items);
        self.outbox.push(commit.result.watched);
        if let Some(final_url) = commit.result.final_url {
            let final_url = final_url.fingerprint();
            let depth = commit.claim.depth;
            self.seen.entry(final_url).or_insert(Seen {
                depth,
                visit: 0,
                n_waiting: 0,
            });
        }
        match commit.result.ended {
            Ended::Done(done) => counts.end_done(done),
            Ended::Dead { reason } => counts.end_dead(&reason),
            Ended::Retry { at, reason: _ } => {
                counts.retries += 1;
                let attempt = commit.claim.attempt.saturating_add(1);
                let due = self.time.of_wall(at);
                self.wait_again(*commit.claim, due, attempt);
            }
        }
    }

    /// Stores links for other shards. Returns their number, and the number of those for which there was no room.
    pub(super) fn send(
        &mut self,
        links: Vec<(Shard, Fingerprint, NewRequest)>,
        max_urls: u64,
    ) -> (u64, u64) {
        let (mut n_sent, mut n_over_capacity) = (0, 0);
        let mut sent_here = HashSet::new();
        for (to, fingerprint, link) in links {
            let is_known = self.seen.contains_key(&fingerprint);
            let is_again = link.request.reload && !sent_here.contains(&fingerprint);
            if is_known && !is_again {
                continue;
            }
            if !is_known && self.seen.len() as u64 >= max_urls {
                n_over_capacity += 1;
                continue;
            }
            sent_here.insert(fingerprint);
            let seen = Seen {
                depth: link.depth,
                visit: 0,
                n_waiting: 0,
            };
            self.seen.entry(fingerprint).or_insert(seen);
            self.peers.push(to, link);
            n_sent += 1;
        }
        self.counts.refuse(FRONTIER_URLS, n_over_capacity);
        (n_sent, n_over_capacity)
    }

    pub(super) fn store(
        &mut self,
        requests: Vec<(Fingerprint, NewRequest)>,
        max_urls: u64,
        growth: Option<GrowthBounds>,
    ) -> Committed {
        let mut committed = Committed::default();
        for (fingerprint, NewRequest { request, depth }) in requests {
            let has_room = (self.seen.len() as u64) < max_urls;
            let is_host_too_many =
                growth.is_some_and(|growth| self.is_host_too_many(&request, growth));
            let (depth, visit) = match self.seen.get_mut(&fingerprint) {
                Some(seen) if request.reload && seen.n_waiting == 0 => {
                    seen.visit = seen.visit.saturating_add(1);
                    (seen.depth, seen.visit)
                }
                Some(_) => continue,
                None if !has_room => {
                    committed.n_over_capacity += 1;
                    continue;
                }
                None if is_host_too_many => {
                    committed.n_over_hosts += 1;
                    continue;
                }
                None if growth.is_some_and(|growth| {
                    !self.patterns.admit(&request.url, growth.pattern_urls)
                }) =>
                {
                    committed.n_over_pattern += 1;
                    continue;
                }
                None => {
                    let seen = Seen {
                        depth,
                        visit: 0,
                        n_waiting: 0,
                    };
                    self.seen.insert(fingerprint, seen);
                    committed.n_new += 1;
                    (depth, 0)
                }
            };
            let position = QueuePosition {
                due: self.time.latest(),
                entry: self.next_entry,
            };
            self.next_entry += 1;
            let waiting = Waiting {
                request,
                fingerprint,
                depth,
                attempt: 1,
                visit,
            };
            self.wait(position, waiting);
        }
        for (reason, n) in [
            (FRONTIER_URLS, committed.n_over_capacity),
            (PATTERN_URLS, committed.n_over_pattern),
            (HOSTS, committed.n_over_hosts),
        ] {
            self.counts.refuse(reason, n);
        }
        committed
    }
}
