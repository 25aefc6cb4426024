//! State of one shard, as plain lists that are searched from front to back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use url::Url;

use super::Marks;
use super::quarantine::Quarantined;
use crate::log::Lines;
use crate::memory::peers::PeerLinks;
use crate::monotonic_time::MonotonicTime;
use crate::workbench::{HostClock, HostHealth};
use crate::{
    Commit, Committed, Ended, FrontierError, LinkBatch, LinkPolicy, NewRequest, OpenOptions,
};
use crawler_model::crawl::{Counts, Done, Fingerprint, ItemRecord, Request, UnixMillis};
use crawler_model::frontier::KeptCookies;
use crawler_model::id::{Run, Shard};
use crawler_model::links::Division;
use crawler_model::pattern::{PatternKey, path_pattern};
use crawler_model::resource::ShardId;
use crawler_model::scope::{GrowthBounds, HOSTS, PATTERN_URLS};
use crawler_model::settings::SinkName;
use crawler_model::statistics::Statistics;

/// State of a URL.
#[derive(Debug, Clone)]
pub struct Known {
    pub request: Request,
    pub(super) fingerprint: Fingerprint,
    pub(super) depth: u32,
    pub(super) visit: u32,
    pub(super) attempt: u32,
    pub(super) due: UnixMillis,
    pub stage: Stage,
}

/// Stage of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    Due,
    Done(Done),
    Dead(String),
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    depth: u32,
    visit: u32,
}

#[derive(Debug, Clone, Default)]
pub struct Plain {
    pub run: Run,
    pub roots: Option<Vec<Url>>,
    /// Number of `Answered` hosts taken since the last `Unreached` one.
    pub n_answered_in_a_row: u32,
    /// URLs in the order in which they were stored.
    pub urls: BTreeMap<u64, Known>,
    seen: BTreeMap<Fingerprint, Seen>,
    patterns: BTreeMap<PatternKey, u64>,
    /// Hosts of which this run has, or had, a URL.
    pub(super) met: BTreeSet<String>,
    pub(super) hosts: BTreeMap<String, HostClock>,
    pub(super) health_by_host: BTreeMap<String, HostHealth>,
    pub(super) time: MonotonicTime,
    next_entry: u64,
    pub outbox: VecDeque<ItemRecord>,
    pub(super) outbox_first: u64,
    /// Items that are not in the outbox.
    pub(super) quarantined: Quarantined,
    /// Number of the first item that each sink does not have.
    pub(super) positions: BTreeMap<SinkName, u64>,
    /// Sinks that the last opening has removed, with the number of items that waited for each.
    pub(super) dropped: Vec<(SinkName, u64)>,
    /// Marks of the files of items in the data root.
    pub marks: Marks,
    /// Marks of the other sinks.
    pub(super) marks_elsewhere: BTreeMap<SinkName, Marks>,
    pub(super) counts: Counts,
    pub(super) statistics: Statistics,
    /// Lines of the log, by their numbers.
    pub(super) lines: Lines,
    /// Links to other shards, and from them.
    pub(super) peers: PeerLinks,
    pub(super) cookies: Option<KeptCookies>,
    /// True if it was closed, and its clocks cover every request.
    pub(super) has_exact_clocks: bool,
    /// Time until which hosts wait because of the opening.
    pub(super) held_until: UnixMillis,
    /// Time before which no page is taken: hosts may have come from other shards.
    pub(super) rests_until: UnixMillis,
}

impl Plain {
    /// Begins another opening, and another run if that is a later one.
    pub(super) fn open(&mut self, options: &OpenOptions) {
        self.set_sinks(&options.sinks);
        self.open_quarantine(options);
        let has_moved = |division: Division| self.run < division.first_run;
        let is_divided_anew = options.division.is_some_and(has_moved);
        if options.run > self.run {
            let before = std::mem::take(self);
            *self = Self {
                run: options.run,
                hosts: before.hosts,
                time: before.time,
                next_entry: before.next_entry,
                outbox: before.outbox,
                outbox_first: before.outbox_first,
                quarantined: before.quarantined,
                positions: before.positions,
                dropped: before.dropped,
                marks: before.marks,
                marks_elsewhere: before.marks_elsewhere,
                cookies: before.cookies,
                lines: before.lines,
                has_exact_clocks: before.has_exact_clocks,
                held_until: before.held_until,
                ..Self::default()
            };
        }
        for health in self.health_by_host.values_mut() {
            let failures = health.failures.take().map(|failures| *failures);
            *health = HostHealth::restored(true, health.has_answered, failures);
        }
        let now = self.time.now(options.clock.unix_millis());
        let is_exact = std::mem::take(&mut self.has_exact_clocks);
        let held_until = std::mem::take(&mut self.held_until);
        let delay = u64::try_from(options.delay.as_millis()).unwrap_or(u64::MAX);
        if is_divided_anew {
            self.rests_until = now + delay;
        }
        for clock in self.hosts.values_mut() {
            let delay = if clock.delay == 0 { delay } else { clock.delay };
            let earliest = if is_exact { held_until } else { now + delay };
            if earliest > clock.at {
                clock.at = earliest;
                self.held_until = self.held_until.max(earliest);
            }
        }
    }

    pub(super) fn seed(&mut self, roots: Vec<Url>, requests: Vec<NewRequest>) -> Committed {
        if self.roots.is_some() {
            return Committed::default();
        }
        self.roots = Some(roots);
        self.store(requests, None)
    }

    /// Returns the moment before which a URL's host is not to be asked.
    pub(super) fn next_at(&self, known: &Known) -> UnixMillis {
        let host = known.request.host();
        match self
            .health_by_host
            .get(&host)
            .is_some_and(HostHealth::is_given_up)
        {
            true => known.due,
            false => known.due.max(self.clock(&host)),
        }
    }

    /// Applies a page's end and its results.
    pub(super) fn end(&mut self, commit: Commit) -> Committed {
        commit.note_in(&mut self.statistics);
        let (ready_at, answered_at) = (commit.result.host_ready_at, commit.answered_at);
        self.set_host_clock(&commit.claim.request.host(), ready_at, answered_at);
        if commit.result.host_answered {
            self.health(commit.claim.request.host()).record_answer();
        }
        if let Some(cookies) = commit.cookies {
            cookies.replace(&mut self.cookies);
        }
        self.counts.bytes += commit.result.bytes;
        self.counts.kept_bytes += commit.result.kept_bytes;
        self.counts.items += commit.result.items.len() as u64;
        let now = self.time.to_wall(self.time.latest());
        self.counts.note_attempt(now, answered_at);
        for (reason, n) in commit.result.refused {
            self.counts.refuse(reason, n);
        }
        self.outbox.extend(commit.result.items);
        self.keep_back(commit.claim.entry, commit.result.watched);
        if let Some(request) = commit.result.final_url {
            let depth = commit.claim.depth;
            let seen = Seen { depth, visit: 0 };
            self.seen.entry(request.fingerprint()).or_insert(seen);
        }
        let time = self.time;
        let known = self.urls.get_mut(&commit.claim.entry);
        let known = known.expect("what is in flight is known");
        match commit.result.ended {
            Ended::Done(done) => {
                self.counts.end_done(done);
                known.stage = Stage::Done(done);
            }
            Ended::Dead { reason } => {
                self.counts.end_dead(&reason);
                known.stage = Stage::Dead(reason);
            }
            Ended::Retry { at, reason: _ } => {
                (known.due, known.attempt) = (time.of_wall(at), known.attempt + 1);
                self.counts.retries += 1;
            }
        }
        let n_sent = self.send(commit.result.for_peers);
        Committed {
            n_sent,
            ..self.store(commit.result.requests, Some(commit.growth))
        }
    }

    /// Stores links for other shards and returns their number.
    fn send(&mut self, links: Vec<(Shard, NewRequest)>) -> u64 {
        let mut sent_here = BTreeSet::new();
        for (to, link) in links {
            let fingerprint = link.request.fingerprint();
            let is_again = link.request.reload && !sent_here.contains(&fingerprint);
            if self.seen.contains_key(&fingerprint) && !is_again {
                continue;
            }
            sent_here.insert(fingerprint);
            let (depth, visit) = (link.depth, 0);
            self.seen
                .entry(fingerprint)
                .or_insert(Seen { depth, visit });
            self.peers.push(to, link);
        }
        sent_here.len() as u64
    }

    /// Stores the new ones of the links of another shard. Returns the number of the last that is stored.
    pub(super) fn apply(
        &mut self,
        shard: ShardId,
        from: Shard,
        batch: LinkBatch,
        policy: LinkPolicy<'_>,
    ) -> Result<u64, FrontierError> {
        if self.roots.is_none() {
            return Err(FrontierError::Unseeded { shard });
        }
        let last = self.peers.applied.get(&from).copied().unwrap_or(0);
        let (expected, first, end) = (last + 1, batch.first, batch.end());
        if first > expected {
            return Err(FrontierError::LinkGap {
                from,
                first,
                expected,
            });
        }
        let n_known = usize::try_from(expected - first).unwrap_or(usize::MAX);
        let (new, refused) = policy.partition(batch.links.into_iter().skip(n_known));
        self.store(new, Some(policy.growth));
        for (reason, n) in refused {
            self.counts.refuse(reason, n);
        }
        let last = last.max(end - 1);
        self.peers.applied.insert(from, last);
        Ok(last)
    }

    fn store(&mut self, requests: Vec<NewRequest>, growth: Option<GrowthBounds>) -> Committed {
        let mut committed = Committed::default();
        for NewRequest { request, depth } in requests {
            let fingerprint = request.fingerprint();
            let (depth, visit) = match self.seen.get(&fingerprint).copied() {
                Some(seen) if request.reload && !self.waits(fingerprint) => {
                    (seen.depth, seen.visit + 1)
                }
                Some(_) => continue,
                None if growth.is_some_and(|growth| self.is_host_too_many(&request, growth)) => {
                    committed.n_over_hosts += 1;
                    continue;
                }
                None if growth.is_some_and(|g| !self.admit(&request.url, g.pattern_urls)) => {
                    committed.n_over_pattern += 1;
                    continue;
                }
                None => {
                    committed.n_new += 1;
                    (depth, 0)
                }
            };
            self.seen.insert(fingerprint, Seen { depth, visit });
            self.hosts.entry(request.host()).or_default();
            self.met.insert(request.host());
            self.counts.hosts = self.met.len() as u64;
            let known = Known {
                fingerprint,
                depth,
                visit,
                attempt: 1,
                due: self.time.latest(),
                stage: Stage::Due,
                request,
            };
            self.urls.insert(self.next_entry, known);
            self.next_entry += 1;
        }
        for (reason, n) in [
            (PATTERN_URLS, committed.n_over_pattern),
            (HOSTS, committed.n_over_hosts),
        ] {
            if n > 0 {
                let refused = self.counts.refused_links.entry(reason.to_owned());
                *refused.or_default() += n;
            }
        }
        committed
    }

    pub(super) fn knows(&self, fingerprint: Fingerprint) -> bool {
        self.seen.contains_key(&fingerprint)
    }

    fn waits(&self, fingerprint: Fingerprint) -> bool {
        let mut known = self.urls.values();
        known.any(|known| known.fingerprint == fingerprint && known.stage == Stage::Due)
    }

    fn is_host_too_many(&self, request: &Request, growth: GrowthBounds) -> bool {
        self.met.len() as u64 >= growth.hosts && !self.met.contains(&request.host())
    }

    fn admit(&mut self, url: &Url, max: u64) -> bool {
        let Some(pattern) = path_pattern(url) else {
            return true;
        };
        let n_stored = self.patterns.entry(pattern).or_default();
        let has_room = *n_stored < max;
        *n_stored += u64::from(has_room);
        has_room
    }

    pub(super) fn counts(&self) -> Counts {
        let due = self.urls.values().filter(|known| known.stage == Stage::Due);
        Counts {
            due: due.count() as u64,
            held: self.n_held(),
            ..self.counts.clone()
        }
    }
}
