//! Records of hosts, as read from a frontier.

use std::num::NonZeroU32;

use bytes::Bytes;

use super::FrontierReader;
use crate::monotonic_time::MonotonicTime;
use crate::workbench::{HostClock, HostId};
use crate::{FrontierError, keys, records};
use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::{HostEntry, HostState, HostWait};
use crawler_model::id::Shard;
use crawler_model::links::shard_of_host;

/// Maximum number of records that are read for one page, whatever is asked for.
const MAX_READ: usize = 100_000;

/// One page of a list of hosts.
#[derive(Debug, Default)]
pub struct HostPage {
    /// Hosts in the order of their keys.
    pub entries: Vec<HostEntry>,
    /// Start of the next page, to be passed to [`FrontierReader::hosts`]. `None` after the last page.
    pub next: Option<Vec<u8>>,
}

/// Selection of hosts of one shard that are not to be asked for a while.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostsOf {
    pub(crate) shard: Shard,
    /// Number of shards by which the hosts belong to this one.
    pub(crate) n_shards: NonZeroU32,
    /// Present time, by the wall clock.
    pub(crate) now: UnixMillis,
    /// Lower bound: only hosts that are not to be asked until a later moment are selected.
    pub(crate) after: UnixMillis,
}

impl FrontierReader {
    /// Returns at most `max` hosts of the present run, those in one state or all, from where an earlier page
    /// ended. A page may have fewer, although others follow, if many hosts had to be skipped.
    pub async fn hosts(
        &self,
        only: Option<HostState>,
        from: Option<Vec<u8>>,
        max: usize,
        now: UnixMillis,
    ) -> Result<HostPage, FrontierError> {
        let prefix = Bytes::from_static(keys::HOSTS);
        let end = keys::end_of(&prefix);
        let from = from
            .map(Bytes::from)
            .filter(|from| from.starts_with(&prefix));
        let mut found = self.scan(from.unwrap_or(prefix)..end).await?;
        let mut time = MonotonicTime::from(self.last_batch().await?.latest);
        let own_now = time.now(now);
        let mut page = HostPage::default();
        let mut n_read = 0;
        while let Some((key, record)) = found.next::<records::Host>("host").await? {
            if page.entries.len() == max || n_read == MAX_READ {
                page.next = Some(key.to_vec());
                break;
            }
            n_read += 1;
            let state = record.state(own_now);
            let is_wanted = only.is_none_or(|only| only == state);
            if record.is_of(self.run) && is_wanted {
                let not_before = time.to_wall(record.clock);
                let host = self.host(&key, record, state).await?;
                page.entries.push(HostEntry { not_before, ..host });
            }
        }
        Ok(page)
    }

    async fn host(
        &self,
        key: &[u8],
        record: records::Host,
        state: HostState,
    ) -> Result<HostEntry, FrontierError> {
        let host = keys::parse_host(key);
        let host = host.ok_or_else(|| self.damaged("a host key is too short".to_owned()))?;
        let name: Option<records::HostName> =
            self.record(&keys::host_name(host), "host name").await?;
        let mut n_due = 0;
        if state != HostState::Idle {
            let mut due = self
                .scan_prefix(&keys::ready_of_host(self.run, host))
                .await?;
            while n_due < HostEntry::MAX_DUE && due.next_bytes().await?.is_some() {
                n_due += 1;
            }
        }
        let delay_by = record.delay_by();
        let (n_failures, reason) = match record.trouble {
            Some(trouble) => (trouble.n, trouble.reason),
            None => (0, String::new()),
        };
        Ok(HostEntry {
            // Frontiers of earlier versions have no names.
            name: name.map_or_else(|| format!("{:016x}", host.0), |name| name.name),
            state,
            hash: host.0,
            n_due,
            n_in_flight: None,
            not_before: record.clock,
            delay_ms: record.delay,
            delay_by,
            has_answered: record.has_answered,
            n_failures,
            reason,
        })
    }

    /// Returns the clocks of these hosts, by the wall clock. If the frontier was not closed, or is open, a
    /// host waits from now on for the delay after its last answer: it may have been asked since.
    pub(crate) async fn clocks(
        &self,
        hosts: HostsOf,
    ) -> Result<Vec<(HostId, HostClock)>, FrontierError> {
        let mut time = MonotonicTime::from(self.last_batch().await?.latest);
        time.now(hosts.now);
        let head = self.head().await?.unwrap_or_default();
        let held_until = time.to_wall(head.held_until);
        let mut clocks = Vec::new();
        let mut found = self.scan_prefix(keys::HOSTS).await?;
        while let Some((key, record)) = found.next::<records::Host>("host").await? {
            let host = keys::parse_host(&key)
                .ok_or_else(|| self.damaged("a host key is too short".to_owned()))?;
            let delay = record.delay;
            let earliest = match head.has_exact_clocks {
                true => held_until,
                false => hosts.now.saturating_add(delay),
            };
            let at = time.to_wall(record.clock).max(earliest);
            if at > hosts.after && shard_of_host(host.0, hosts.n_shards) == hosts.shard {
                clocks.push((host, HostClock { at, delay }));
            }
        }
        Ok(clocks)
    }

    /// Returns the record of the host of a URL that waits, if this run knows the host.
    pub(super) async fn wait_of(
        &self,
        host: HostId,
        time: MonotonicTime,
    ) -> Result<Option<HostWait>, FrontierError> {
        let record: Option<records::Host> = self.record(&keys::host(host), "host").await?;
        let Some(record) = record.filter(|record| record.is_of(self.run)) else {
            return Ok(None);
        };
        let delay_by = record.delay_by();
        let (n_failures, reason) = match record.trouble {
            Some(trouble) => (trouble.n, trouble.reason),
            None => (0, String::new()),
        };
        Ok(Some(HostWait {
            until: time.to_wall(record.clock),
            delay_ms: record.delay,
            delay_by,
            n_failures,
            reason,
        }))
    }
}
