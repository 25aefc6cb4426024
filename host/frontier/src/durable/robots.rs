//! robots.txt of hosts, which later openings need not ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;
use url::Url;

use super::inner::Inner;
use super::writer::failed;
use crate::workbench::HostId;
use crate::{FrontierError, keys, records};
use crawler_model::robots::KeptRobots;

/// Maximum size in bytes of the files that wait for a batch; more are not kept.
const MAX_WAITING: usize = 1 << 20;
/// Deadline of a read. Pages of the site wait for it.
const READ_DEADLINE: Duration = Duration::from_secs(5);
/// Approximate size in bytes of a record without its file.
const RECORD_BYTES: usize = 128;

/// Files of this opening that wait for the next batch, and whether there are any of earlier openings.
#[derive(Debug, Default)]
pub(super) struct RobotsQueue {
    /// Files that wait, by host.
    waiting: BTreeMap<HostId, KeptRobots>,
    /// Approximate size in bytes of them.
    n_bytes: usize,
    /// True if earlier openings have kept any.
    pub(super) has_earlier: bool,
}

impl RobotsQueue {
    /// Adds a file for the host of a URL, if there is room.
    pub(super) fn add(&mut self, url: &Url, robots: KeptRobots) {
        let size = n_bytes_of(&robots);
        if self.n_bytes + size > MAX_WAITING {
            return;
        }
        self.n_bytes += size;
        let before = self.waiting.insert(keys::host_of_url(url), robots);
        self.n_bytes -= before.as_ref().map_or(0, n_bytes_of);
    }

    /// Adds all files that wait to a batch.
    pub(super) fn write(&mut self, batch: &mut WriteBatch) {
        self.n_bytes = 0;
        while let Some((host, robots)) = self.waiting.pop_first() {
            batch.put(
                keys::robots(host),
                records::Robots::from(robots).encode_to_vec(),
            );
        }
    }
}

/// Returns the approximate size in bytes of a file that waits.
fn n_bytes_of(robots: &KeptRobots) -> usize {
    RECORD_BYTES + robots.origin.len() + robots.file.as_ref().map_or(0, Bytes::len)
}

impl Inner {
    /// Returns the file that earlier openings have kept for the host of a URL. The crawl can do without it, so a read that
    /// fails breaks nothing; the next ones are not tried then.
    pub(super) async fn kept_robots(&self, url: &Url) -> Result<Option<KeptRobots>, FrontierError> {
        self.check()?;
        if !self.state().robots.has_earlier {
            return Ok(None);
        }
        let found = self.read_robots(keys::host_of_url(url)).await;
        if found.is_err() {
            self.state().robots.has_earlier = false;
        }
        found
    }

    async fn read_robots(&self, host: HostId) -> Result<Option<KeptRobots>, FrontierError> {
        let shard = self.shard;
        // The database's futures are large.
        let read = Box::pin(self.db.get(keys::robots(host)));
        let read = tokio::time::timeout(READ_DEADLINE, read).await;
        let read = read.map_err(|_elapsed| FrontierError::Unavailable {
            doing: "read",
            shard,
            why: format!("no answer in {} s", READ_DEADLINE.as_secs()),
        })?;
        let Some(bytes) = read.map_err(|e| failed(shard, "read", &e))? else {
            return Ok(None);
        };
        let robots: records::Robots = self.decode(&bytes, "robots.txt")?;
        Ok(Some(KeptRobots::from(robots)))
    }

    /// Returns true if earlier openings have kept any file.
    pub(super) async fn has_kept_robots(&self) -> Result<bool, FrontierError> {
        let mut found = self.scan_prefix(keys::ROBOTS).await?;
        Ok(found.next().await?.is_some())
    }
}
