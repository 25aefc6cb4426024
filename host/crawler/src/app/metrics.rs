//! The metrics of a process: which parts they are read from, and who may read them.
//!
//! Nothing is counted here. Each part keeps counts of its own, and a scrape reads them and the present state. So metrics
//! cost a crawl nothing beyond the counts, and the time of a scrape depends on the number of crawls of the process.
//!
//! ```text
//! families  the table of all metrics
//! writer    the text format
//! process   metrics of every process
//! worker    metrics of a worker
//! master    metrics of a master
//! ```

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, ensure};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::cli::MetricsOptions;
use crawler_api::http::{Metrics, MetricsAccess, Scrape};
use crawler_model::id::Digest;
use crawler_worker::lease_permit::Registered;
use writer::Writer;

mod families;
mod master;
mod process;
#[cfg(test)]
mod tests;
mod worker;
mod writer;

pub(super) use master::Master;
pub(super) use process::Process;
pub(super) use worker::Worker;

/// Smallest number of bytes of the token of a worker's metrics: nobody should guess it.
const TOKEN_MIN: usize = 16;

/// Leases of the nodes of this process by their roles, once they are registered.
pub(super) type Leases = Arc<OnceLock<Vec<(String, Registered)>>>;

/// Parts of a process that its metrics are read from.
pub(super) struct Sources {
    is_on: bool,
    /// Rule of a worker for the callers.
    access: MetricsAccess,
    process: Process,
    /// `None` on a process without a worker.
    pub(super) worker: Option<Worker>,
    /// `None` on a process without a master.
    pub(super) master: Option<Master>,
}

/// Text of the metrics of some sources.
struct OpenMetrics {
    registry: Registry,
}

impl Sources {
    /// Creates the sources of a process without a node. `is_reached` is true if other machines reach its HTTP listener, and
    /// it asks them for tokens.
    pub(super) fn new(
        options: &MetricsOptions,
        is_reached: bool,
        process: Process,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            is_on: options.is_on,
            access: access_of_worker(options, is_reached)?,
            process,
            worker: None,
            master: None,
        })
    }

    /// Returns the place of the leases, which is filled once the nodes are registered.
    pub(super) fn leases(&self) -> Leases {
        self.process.leases.clone()
    }

    /// Returns the metrics for the HTTP listener, or `None` if they are switched off.
    pub(super) fn open(self) -> Option<Metrics> {
        let access = self.access;
        self.is_on.then(|| {
            let mut registry = Registry::default();
            registry.register_collector(Box::new(self));
            Metrics::new(Arc::new(OpenMetrics { registry }), access)
        })
    }
}

impl Scrape for OpenMetrics {
    fn scrape(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("has_worker", &self.worker.is_some())
            .field("has_master", &self.master.is_some())
            .finish_non_exhaustive()
    }
}

impl Collector for Sources {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer::new(encoder);
        self.process.write(&mut writer)?;
        if let Some(worker) = &self.worker {
            worker.write(&self.process, &mut writer)?;
        }
        if let Some(master) = &self.master {
            master.write(&mut writer)?;
        }
        Ok(())
    }
}

/// Returns the rule for the callers of a worker's metrics.
fn access_of_worker(options: &MetricsOptions, is_reached: bool) -> anyhow::Result<MetricsAccess> {
    let token = options.token_file.as_deref().map(token).transpose()?;
    Ok(match (is_reached, token) {
        (_, Some(token)) => MetricsAccess::Token(token),
        (false, None) => MetricsAccess::Open,
        (true, None) => MetricsAccess::Closed,
    })
}

/// Reads the token of a worker's metrics.
fn token(file: &Path) -> anyhow::Result<Digest> {
    let text = std::fs::read_to_string(file);
    let text = text
        .with_context(|| format!("cannot read the token of the metrics in {}", file.display()))?;
    let token = text.trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        token.len() >= TOKEN_MIN && is_plain,
        "the token of the metrics in {} has to be at least {TOKEN_MIN} visible ASCII characters; \
         make one with `openssl rand -hex 32`, and name its file with --metrics-token",
        file.display()
    );
    Ok(Digest::of(token.as_bytes()))
}
