//! Reading of a database on opening: whose it is, if it is whole, and what waits.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::inner::Inner;
use super::state::{State, StatisticsRecord};
use super::suspects::{MAX_ALONE, n_careful};
use super::writer::decode_statistics;
use crate::workbench::{HostClock, HostHealth, HostId, LaneId, QueuePosition};
use crate::{FrontierError, OpenOptions, RestingHost, keys, records};
use crawler_model::crawl::{Counts, UnixMillis};
use crawler_model::frontier::{DelaySource, KeptCookies};
use crawler_model::id::{Digest, Run};
use crawler_model::links::Division;
use crawler_model::settings::SinkName;

/// Maximum number of hosts whose pauses are told to others after an opening. Each costs a read.
const MAX_RESTING: usize = 200;

/// Wait of hosts that an opening causes, in addition to their stored clocks.
#[derive(Debug, Clone, Copy)]
enum Hold {
    /// Hosts wait until this moment; all clocks are exact.
    Until(UnixMillis),
    /// Each host waits for its own delay, or for this one if it has never answered.
    Delay(Duration),
}

impl Inner {
    /// Loads the database. Returns the entries of pages that are to be given up.
    pub(super) async fn load(
        &mut self,
        options: &OpenOptions,
    ) -> Result<VecDeque<u64>, FrontierError> {
        let shard = self.shard;
        let head = self.get(Bytes::from_static(keys::HEAD)).await?;
        let head = head.map(|bytes| self.decode::<records::Head>(&bytes, "head"));
        let mut head = match head.transpose()? {
            Some(head) => {
                check_head(&head, options)?;
                head
            }
            None if options.created => return Err(FrontierError::Missing { shard }),
            None => records::Head {
                format: records::FORMAT,
                cluster: options.cluster.clone(),
                shard: shard.to_string(),
                is_clean: true,
                // There is no earlier run that could have left anything.
                swept_before: options.run.0,
                ..records::Head::default()
            },
        };
        let has_moved = |division: Division| head.run < division.first_run.0;
        let is_divided_anew = options.division.is_some_and(has_moved);
        let last = self.check_batches().await?;
        self.clock.go_on_from(last.made_at);
        let last_run = Run(head.run);
        let is_new_run = last_run < options.run;
        self.opening = self.frontiers.seen.open(is_new_run);
        if is_new_run {
            // URLs that an earlier run did not manage to carry over are carried over by this one.
            head.carry_from = match options.carry.filter(|first| first.0 <= head.run) {
                Some(_) if head.is_carrying => head.carry_from,
                Some(_) => head.run,
                None => 0,
            };
            head.is_carrying = head.carry_from > 0;
            head.run = options.run.0;
            head.is_seeded = false;
            head.roots = Vec::new();
            head.has_reloads = false;
            head.forget_root();
        }
        head.epoch = options.epoch.0;
        head.n_unclean_stops = match head.is_clean {
            true => 0,
            false => head.n_unclean_stops + 1,
        };
        let n_careful = n_careful(head.n_unclean_stops, self.frontiers.settings.max_undurable);
        let (has_exact_clocks, held_until) = (head.has_exact_clocks, head.held_until);
        (head.is_clean, head.has_exact_clocks, head.held_until) = (false, false, 0);
        self.plugin = plugin_number(&mut head, options.plugin);
        if head.root_plugin != self.plugin {
            head.forget_root();
        }
        let root_is_suspect = head.count_root_end(self.frontiers.process);
        let totals = self.get(keys::totals(options.run)).await?;
        let totals = totals.map(|bytes| self.decode::<records::Totals>(&bytes, "totals"));
        let counts = totals.transpose()?.map(Counts::from).unwrap_or_default();
        let comparison = self.load_comparison(options, last_run, &counts).await?;
        let settings = &self.frontiers.settings;
        let mut state = State::new(options.run, head, last, counts, settings);
        state.comparison = comparison;
        if let Some(bytes) = self.get(keys::statistics(options.run)).await? {
            // They only inform: the crawl goes on without those of before.
            match decode_statistics(self.shard, &bytes) {
                Ok(statistics) => state.statistics = StatisticsRecord::from(statistics),
                Err(error) => tracing::warn!(%error, "statistics begin anew"),
            }
        }
        let jar = self.get(Bytes::from_static(keys::COOKIES)).await?;
        let version = state.last.cookies_version;
        state.root_is_suspect = root_is_suspect;
        state.cookies = jar.map(|jar| KeptCookies { version, jar });
        let now = state.time.now(options.clock.unix_millis());
        state.n_careful = n_careful;
        let hold = match has_exact_clocks {
            true => Hold::Until(held_until),
            // A host that has never answered may have been asked all the same.
            false => Hold::Delay(options.delay),
        };
        self.load_hosts(&mut state, hold, now).await?;
        if is_divided_anew {
            self.take_hosts_over(&mut state, options).await;
        }
        state.robots.has_earlier = self.has_kept_robots().await?;
        self.load_outbox(&mut state).await?;
        self.load_quarantine(&mut state, options, last_run).await?;
        self.load_peers(&mut state).await?;
        let poisoned = self.load_suspects(&mut state).await?;
        *self.state() = state;
        Ok(poisoned)
    }

    /// Returns the record with the highest batch number, after checking that no number before it is missing.
    async fn check_batches(&self) -> Result<records::Batch, FrontierError> {
        let mut found = self.scan_prefix(keys::BATCHES).await?;
        let mut batches = HashMap::new();
        while let Some((_, value)) = found.next().await? {
            let batch: records::Batch = self.decode(&value, "batch")?;
            batches.insert(batch.n, batch);
        }
        let Some(last) = batches.values().max_by_key(|batch| batch.n).copied() else {
            return Ok(records::Batch {
                // 0 is before the first batch.
                next_entry: 1,
                ..records::Batch::default()
            });
        };
        let first = last.n.saturating_sub(keys::RING - 1).max(1);
        match (first..=last.n).find(|n| !batches.contains_key(n)) {
            Some(n) => Err(self.damaged(format!("batch {n} of {} is missing", last.n))),
            None => Ok(last),
        }
    }

    async fn load_hosts(
        &self,
        state: &mut State,
        hold: Hold,
        now: UnixMillis,
    ) -> Result<(), FrontierError> {
        let mut found = self.scan_prefix(keys::HOSTS).await?;
        let mut resting = Vec::new();
        while let Some((key, value)) = found.next().await? {
            let host = keys::parse_host(&key)
                .ok_or_else(|| self.damaged("a host key is too short".to_owned()))?;
            let record: records::Host = self.decode(&value, "host")?;
            let rests = record.trouble.is_none() && record.delay_by() == DelaySource::Trouble;
            if rests && record.clock > now && resting.len() < MAX_RESTING {
                resting.push((host, record.clock));
            }
            let earliest = match hold {
                Hold::Until(moment) => moment,
                Hold::Delay(delay) if record.delay == 0 => {
                    now.saturating_add(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
                }
                Hold::Delay(_) => now.saturating_add(record.delay),
            };
            let clock = HostClock {
                at: record.clock.max(earliest),
                delay: record.delay,
            };
            if clock.at > record.clock {
                state.held_until = state.held_until.max(clock.at);
            }
            let (health, cursors) = match record.run == self.run.0 {
                true => (record.health(), record.cursors()),
                false => (HostHealth::unmet(record.delay_by()), Vec::new()),
            };
            if !cursors.is_empty() || clock.at > now {
                state.bench.restore(host, clock, health, &cursors);
            }
        }
        for (host, until) in resting {
            // Frontiers of earlier versions have no names.
            if let Some(name) = self.get(keys::host_name(host)).await? {
                let name: records::HostName = self.decode(&name, "host name")?;
                state.resting.push(RestingHost {
                    name: name.name,
                    until: state.time.to_wall(until),
                });
            }
        }
        Ok(())
    }

    async fn load_outbox(&self, state: &mut State) -> Result<(), FrontierError> {
        let (first, next) = (state.last.outbox_first, state.last.outbox_next);
        let positions: BTreeMap<SinkName, u64> = match state.head.format {
            records::FORMAT => [(SinkName::lines(), first)].into(),
            _ => self.load_cursors().await?,
        };
        let mut sizes = Vec::new();
        let mut n_bytes = 0;
        let mut found = self.scan(keys::item(first)..keys::item(next)).await?;
        while let Some((_, value)) = found.next().await? {
            let size = value.len();
            n_bytes += size as u64;
            sizes.push(u32::try_from(size).unwrap_or(u32::MAX));
        }
        if sizes.len() as u64 != next - first {
            let (found, expected) = (sizes.len(), next - first);
            return Err(self.damaged(format!("{found} items are left of {expected}")));
        }
        state.last.outbox_bytes = n_bytes;
        state.outbox.restore(sizes, next, positions);
        Ok(())
    }

    /// Returns the number of the first item that each sink does not have.
    async fn load_cursors(&self) -> Result<BTreeMap<SinkName, u64>, FrontierError> {
        let mut positions = BTreeMap::new();
        let mut found = self.scan_prefix(keys::CURSORS).await?;
        while let Some((key, value)) = found.next().await? {
            let sink = keys::parse_cursor(&key)
                .ok_or_else(|| self.damaged("the key of a cursor names no sink".to_owned()))?;
            let cursor: records::Number = self.decode(&value, "cursor")?;
            positions.insert(sink, cursor.n);
        }
        match positions.is_empty() {
            true => Err(self.damaged("no sink has a cursor".to_owned())),
            false => Ok(positions),
        }
    }

    /// Queues suspects to be tried alone. Returns the entries of those that were tried often enough.
    async fn load_suspects(&self, state: &mut State) -> Result<VecDeque<u64>, FrontierError> {
        let mut found = self.scan_prefix(keys::SUSPECTS).await?;
        let mut notes = Vec::new();
        while let Some((key, value)) = found.next().await? {
            let fingerprint = keys::parse_suspect(&key)
                .ok_or_else(|| self.damaged("a suspect key is too short".to_owned()))?;
            notes.push((
                fingerprint,
                self.decode::<records::Suspect>(&value, "suspect")?,
            ));
        }
        notes.sort_by_key(|(_, note)| (std::cmp::Reverse(note.n_alone), note.entry));
        let mut poisoned = VecDeque::new();
        for (fingerprint, note) in notes {
            let lane = LaneId {
                host: HostId(note.host),
                priority: note.priority,
            };
            let position = QueuePosition {
                due: note.due,
                entry: note.entry,
            };
            let Some(record) = self.get(keys::ready(self.run, lane, position)).await? else {
                // The suspect belongs to a run that is over.
                state.forget_suspect(fingerprint);
                continue;
            };
            let waiting = Box::new(self.waiting(&record)?);
            state.bench.hold(lane, position);
            if note.n_alone >= MAX_ALONE {
                poisoned.push_back(note.entry);
                state.alone.push_front((lane, position, waiting));
            } else {
                state.alone.push_back((lane, position, waiting));
            }
        }
        Ok(poisoned)
    }
}

fn check_head(head: &records::Head, options: &OpenOptions) -> Result<(), FrontierError> {
    let shard = options.shard;
    let foreign = |found: String, expected: String| FrontierError::Foreign {
        shard,
        found,
        expected,
    };
    if !records::is_known_format(head.format) {
        return Err(FrontierError::Format {
            shard,
            found: head.format,
            known: records::LATEST_FORMAT,
        });
    }
    if head.cluster != options.cluster {
        let (found, expected) = (&head.cluster, &options.cluster);
        return Err(foreign(
            format!("cluster {found}"),
            format!("cluster {expected}"),
        ));
    }
    if head.shard != shard.to_string() {
        return Err(foreign(
            format!("shard {}", head.shard),
            format!("shard {shard}"),
        ));
    }
    if head.epoch > options.epoch.0 {
        return Err(FrontierError::Fenced { shard });
    }
    if head.run > options.run.0 {
        let why = format!(
            "it is in run {}, and its resource in run {}",
            head.run, options.run
        );
        return Err(FrontierError::Damaged { shard, why });
    }
    Ok(())
}

fn plugin_number(head: &mut records::Head, digest: Digest) -> u32 {
    let digest = Bytes::copy_from_slice(digest.as_bytes());
    let known = head.plugins.iter().position(|known| *known == digest);
    let n = known.unwrap_or_else(|| {
        head.plugins.push(digest);
        head.plugins.len() - 1
    });
    u32::try_from(n).unwrap_or(u32::MAX)
}
