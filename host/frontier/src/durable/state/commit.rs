//! Changes of a commit, in memory and in its batch at once.

use std::collections::BTreeSet;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;

use super::{State, Waiting};
use crate::durable::new_links::{NewLink, NewLinks};
use crate::records::{self, Stage};
use crate::workbench::{HostHealth, HostId, LaneId, QueuePosition};
use crate::{Commit, Committed, Ended, FrontierError, keys};
use crawler_model::crawl::Done;

/// Stored state of a page that ends.
pub(in crate::durable) struct StoredPage {
    /// True if the state is that of a later visit, which waits.
    pub(in crate::durable) is_superseded: bool,
    /// Reason why an earlier visit was given up, if it was, and the page is given up again.
    pub(in crate::durable) earlier_death: Option<String>,
}

impl State {
    /// Applies a page's end and its results. On an error nothing is changed.
    pub(in crate::durable) fn commit(
        &mut self,
        commit: Commit,
        new_links: NewLinks,
        stored_page: StoredPage,
        plugin: u32,
        batch: &mut WriteBatch,
    ) -> Result<Committed, FrontierError> {
        self.find(&commit.claim)?;
        if let Some(reason) = &stored_page.earlier_death {
            self.forget_death(reason);
        }
        self.statistics.note(&commit);
        let claim = commit.claim;
        let Some(page) = self.release(claim.entry) else {
            return Ok(Committed::default());
        };
        if page.permit.is_some() {
            self.left_alone = page.permit;
        }
        // This belongs to the same step: the page must always be counted as in flight somewhere.
        self.n_undurable += 1;
        let (lane, now) = (page.lane, self.time.latest());
        let ready_at = match commit.result.host_ready_at {
            0 => 0,
            wall => self.time.of_wall(wall),
        };
        // It is unknown if the host was asked.
        self.has_unsure_clocks |= commit.result.host_ready_at == 0 && commit.answered_at == 0;
        let answered = match commit.answered_at {
            0 => now,
            wall => self.time.of_wall(wall).min(now),
        };
        self.bench.release(lane, page.position, answered, ready_at);
        self.note_origin(
            lane.host,
            ready_at.saturating_sub(answered),
            commit.result.delay_by,
        );
        if commit.result.host_answered {
            self.bench
                .update_health(lane.host, HostHealth::record_answer);
        }
        batch.delete(keys::ready(self.run, lane, page.position));
        if page.is_suspect {
            batch.delete(keys::suspect(page.fingerprint));
        }
        if let Some(cookies) = commit.cookies {
            let (version, jar) = (cookies.version, cookies.jar.clone());
            if cookies.replace(&mut self.cookies) {
                batch.put(Bytes::from_static(keys::COOKIES), jar);
                self.last.cookies_version = version;
            }
        }
        self.counts.bytes += commit.result.bytes;
        self.counts.kept_bytes += commit.result.kept_bytes;
        let wall = self.time.to_wall(now);
        self.counts.note_attempt(wall, commit.answered_at);
        for (reason, n) in commit.result.refused {
            self.counts.refuse(reason, n);
        }
        let mut hosts = BTreeSet::from([lane.host]);
        let mut state = records::State {
            run: self.run.0,
            stage: 0,
            reason: String::new(),
            due: 0,
            entry: page.position.entry,
            priority: lane.priority,
            visit: claim.visit,
            depth: claim.depth,
            since: self.time.to_wall(now),
            plugin: page.plugin,
            request: None,
            validators: None,
            is_not_due: false,
        };
        match commit.result.ended {
            Ended::Done(done) => {
                state.stage = Stage::from(done) as i32;
                state.is_not_due = done == Done::NotDue;
                state.request = Some((&claim.request).into());
                state.validators = match (&commit.result.validators, &claim.validators) {
                    (Some(validators), _) => Some(validators.into()),
                    (None, Some(earlier)) if matches!(done, Done::NotModified | Done::NotDue) => {
                        Some((&**earlier).into())
                    }
                    (None, _) => None,
                };
                self.counts.due -= 1;
                self.counts.end_done(done);
            }
            Ended::Dead { reason } => {
                let letter = records::DeadLetter {
                    request: (&claim.request).into(),
                    depth: claim.depth,
                    visit: claim.visit,
                    attempts: claim.attempt,
                    reason: reason.clone(),
                    since: state.since,
                    plugin: page.plugin,
                    detail: commit.result.detail,
                };
                let key = keys::dead_letter(self.run, lane.host, claim.fingerprint);
                batch.put(key, letter.encode_to_vec());
                state.stage = Stage::Dead as i32;
                state.reason.clone_from(&reason);
                self.counts.due -= 1;
                self.counts.end_dead(&reason);
            }
            Ended::Retry { at, reason } => {
                self.counts.retries += 1;
                let position = QueuePosition {
                    due: self.time.of_wall(at),
                    entry: page.position.entry,
                };
                state.due = position.due;
                let waiting = Waiting {
                    request: claim.request.clone(),
                    fingerprint: claim.fingerprint,
                    depth: claim.depth,
                    attempt: claim.attempt.saturating_add(1),
                    visit: claim.visit,
                    failure: reason,
                    validators: claim.validators.clone(),
                    plugin: page.plugin,
                };
                self.wait(lane, position, waiting, batch);
            }
        }
        if !stored_page.is_superseded {
            let key = keys::state(lane.host, claim.fingerprint);
            batch.put(key, state.encode_to_vec());
        }
        if let Some(request) = &commit.result.final_url {
            let host = keys::host_of(request);
            batch.put(keys::seen(self.run, host, request.fingerprint()), []);
        }
        for (reason, n) in new_links.over_bounds() {
            self.counts.refuse(reason, n);
        }
        let committed = Committed {
            n_over_pattern: new_links.n_over_pattern,
            n_over_hosts: new_links.n_over_hosts,
            n_sent: self.peers.send(self.run, new_links.for_peers, batch),
            ..self.store(new_links.links, plugin, &mut hosts, batch)
        };
        self.counts.items += commit.result.items.len() as u64;
        self.outbox
            .push(commit.result.items, plugin, &mut self.last, batch);
        for host in hosts {
            self.save_host(host, batch);
        }
        Ok(committed)
    }

    /// Removes a dead letter from counts and statistics.
    pub(in crate::durable) fn forget_death(&mut self, reason: &str) {
        self.counts.forget_death(reason);
        self.statistics.forget_example(reason);
    }

    /// Stores new links.
    pub(in crate::durable) fn store(
        &mut self,
        links: Vec<NewLink>,
        plugin: u32,
        hosts: &mut BTreeSet<HostId>,
        batch: &mut WriteBatch,
    ) -> Committed {
        let mut committed = Committed::default();
        for link in links {
            let lane = self.bench.lane_for(link.host, link.request.priority);
            let position = QueuePosition {
                due: self.time.latest(),
                entry: self.last.next_entry,
            };
            self.last.next_entry += 1;
            self.counts.due += 1;
            if link.visit > 0 && !self.head.has_reloads {
                self.head.has_reloads = true;
                batch.put(keys::HEAD, self.head.encode_to_vec());
            }
            committed.n_new += u64::from(link.visit == 0);
            if link.meets_host {
                self.counts.hosts += 1;
                self.bench
                    .update_health(link.host, |health| health.is_met = true);
                let name = records::HostName {
                    run: self.run.0,
                    name: link.request.host(),
                };
                batch.put(keys::host_name(link.host), name.encode_to_vec());
            }
            if link.visit == 0 {
                batch.put(keys::seen(self.run, lane.host, link.fingerprint), []);
            }
            if let Some((pattern, n)) = link.pattern {
                let n = records::Number { n };
                batch.put(keys::pattern(self.run, pattern), n.encode_to_vec());
            }
            let state = records::State {
                run: self.run.0,
                stage: Stage::Due as i32,
                due: position.due,
                entry: position.entry,
                priority: lane.priority,
                visit: link.visit,
                depth: link.depth,
                plugin,
                validators: link.validators.as_deref().map(Into::into),
                ..records::State::default()
            };
            let key = keys::state(lane.host, link.fingerprint);
            batch.put(key, state.encode_to_vec());
            let waiting = Waiting {
                request: link.request,
                fingerprint: link.fingerprint,
                depth: link.depth,
                attempt: 1,
                visit: link.visit,
                failure: String::new(),
                validators: link.validators,
                plugin,
            };
            if self.wait(lane, position, waiting, batch) {
                hosts.insert(lane.host);
            }
        }
        committed
    }

    /// Queues a URL; returns true if its host's cursors have to be saved.
    pub(in crate::durable) fn wait(
        &mut self,
        lane: LaneId,
        position: QueuePosition,
        waiting: Waiting,
        batch: &mut WriteBatch,
    ) -> bool {
        let record = records::Ready {
            request: (&waiting.request).into(),
            fingerprint: Bytes::copy_from_slice(&waiting.fingerprint.0),
            depth: waiting.depth,
            attempt: waiting.attempt,
            visit: waiting.visit,
            failure: waiting.failure.clone(),
            plugin: waiting.plugin,
            validators: waiting.validators.as_deref().map(Into::into),
        };
        batch.put(
            keys::ready(self.run, lane, position),
            record.encode_to_vec(),
        );
        let put = self.bench.put(lane, position, Box::new(waiting));
        put.precedes_cursor
    }

    pub(in crate::durable) fn save_host(&mut self, host: HostId, batch: &mut WriteBatch) {
        let (clock, cursors) = self.bench.save(host);
        let lanes = cursors.iter().map(|cursor| records::LaneCursor {
            priority: cursor.priority,
            due: cursor.at.due,
            entry: cursor.at.entry,
        });
        let health = self.bench.health(host);
        let record = records::Host {
            run: self.run.0,
            clock: clock.at,
            delay: clock.delay,
            lanes: lanes.collect(),
            has_answered: health.has_answered,
            trouble: health.failures.map(|failures| (*failures).into()),
            delay_by: health.delay_by as u32,
        };
        self.unsaved.remove(&host);
        batch.put(keys::host(host), record.encode_to_vec());
    }
}
