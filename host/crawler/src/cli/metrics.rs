//! Options for the metrics of a process.

use std::path::PathBuf;

use clap::Args;

use crawler_worker::DEFAULT_RESOURCES;

/// Options for the metrics of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsOptions {
    /// True if the HTTP listener tells metrics.
    pub is_on: bool,
    /// Number of resources that are told apart.
    pub resources: usize,
    /// File with the token that a worker asks for.
    pub token_file: Option<PathBuf>,
}

impl Default for MetricsOptions {
    fn default() -> Self {
        Self {
            is_on: true,
            resources: DEFAULT_RESOURCES,
            token_file: None,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct MetricsArgs {
    /// Tell no metrics: /metrics is not there
    #[arg(long)]
    no_metrics: bool,
    /// Resources that the metrics of this process tell apart, the largest ones; all others share one row
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RESOURCES as u32, value_parser = clap::value_parser!(u32).range(..=10_000))]
    metrics_resources: u32,
}

impl MetricsArgs {
    pub(super) fn into_options(self) -> MetricsOptions {
        MetricsOptions {
            is_on: !self.no_metrics,
            resources: self.metrics_resources as usize,
            token_file: None,
        }
    }
}
