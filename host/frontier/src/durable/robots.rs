//! robots.txt of hosts, which later openings need not ask for.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;
use url::Url;

use super::inner::Inner;
use crate::workbench::HostId;
use crate::{FrontierError, keys, records};
use crawler_model::robots::KeptRobots;

/// Maximum size in bytes of the files that wait for a batch; more are not kept.
const MAX_WAITING: usize = 1 << 20;
/// Approximate size in bytes of a record without its file.
const RECORD_BYTES: usize = 128;

/// Files of this opening that wait for the next batch, and whether there are any of earlier openings.
#[derive(Debug, Default)]
pub(super) struct Robots {
    /// Files that wait, by host.
    waiting: BTreeMap<HostId, KeptRobots>,
    /// Approximate size in bytes of them.
    n_bytes: usize,
    /// True if earlier openings have kept any.
    pub(super) has_earlier: bool,
}

impl Robots {
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
    /// Returns the file that earlier openings have kept for the host of a URL.
    pub(super) async fn kept_robots(&self, url: &Url) -> Result<Option<KeptRobots>, FrontierError> {
        self.check()?;
        if !self.state().kept_robots.has_earlier {
            return Ok(None);
        }
        let found = self.get(keys::robots(keys::host_of_url(url))).await?;
        let robots = found.map(|bytes| self.decode::<records::Robots>(&bytes, "robots.txt"));
        Ok(robots.transpose()?.map(KeptRobots::from))
    }

    /// Returns true if earlier openings have kept any file.
    pub(super) async fn has_kept_robots(&self) -> Result<bool, FrontierError> {
        let mut found = self.scan_prefix(keys::ROBOTS).await?;
        Ok(found.next().await?.is_some())
    }
}
