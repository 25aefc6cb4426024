//! Bounds on the requests of clients: their arguments, and the resulting settings.

use std::time::Duration;

use clap::Args;

use super::Failure;
use super::args::{size, store_time};
use crawler_api::CallerLimits;
use crawler_api::requests::RequestSettings;
use crawler_frontier::reader::pool::DEFAULT_READERS;
use crawler_master::events::DEFAULT_KEPT;
use crawler_store::breaker::BreakerSettings;

/// Default number of plugins that are pushed at once; `--uploads` shows it.
const DEFAULT_UPLOADS: u32 = 4;
/// Default number of frontiers that are read at once; `--frontier-readers` shows it.
const DEFAULT_FRONTIER_READERS: u32 = DEFAULT_READERS as u32;
/// Default number of writes of each resource and node whose events are kept; `--keep-events` shows it.
const DEFAULT_KEEP_EVENTS: u32 = DEFAULT_KEPT as u32;

/// Bounds on the work that a master does for clients at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOptions {
    /// Number of plugins that are pushed.
    pub uploads: usize,
    /// Number of frontiers that are read.
    pub frontier_readers: usize,
    /// Number of writes of each resource and node whose events are kept.
    pub keep_events: usize,
    /// Bounds on the calls of each caller.
    pub limits: CallerLimits,
    /// Time at which calls fail at once because the store is away, and until which.
    pub breaker: BreakerSettings,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            uploads: DEFAULT_UPLOADS as usize,
            frontier_readers: DEFAULT_READERS,
            keep_events: DEFAULT_KEPT,
            limits: CallerLimits::default(),
            breaker: BreakerSettings::default(),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct RequestArgs {
    /// Bytes that the bodies of all requests may hold at once; further requests are told to come again
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    request_memory: u64,
    /// Connections of each listener at once; further ones are told to come again
    #[arg(long, value_name = "N", default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// How long a client may take for the head of a request, or for the next piece of its body
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    stall_timeout: Duration,
}

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// Plugins that are pushed at once; further ones are told to come again
    #[arg(long, value_name = "N", default_value_t = DEFAULT_UPLOADS, value_parser = clap::value_parser!(u32).range(1..=512))]
    uploads: u32,
    /// Frontiers that are read at once, over all calls; further reads wait for their turn
    #[arg(long, value_name = "N", default_value_t = DEFAULT_FRONTIER_READERS, value_parser = clap::value_parser!(u32).range(2..=4_096))]
    frontier_readers: u32,
    /// Writes of each resource and node whose events are kept, in 16 KiB, or in 320 bytes for each if that is more; the oldest go
    #[arg(long, value_name = "N", default_value_t = DEFAULT_KEEP_EVENTS, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    keep_events: u32,
    /// Calls a second of each subject of an access token, or of each address that shows none; further ones are told to
    /// come again. 0 allows any number
    #[arg(long, value_name = "N", default_value_t = CallerLimits::default().rate, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    api_rate: u32,
    /// Calls in hand at once of each subject or address; further ones are told to come again. 0 allows any number
    #[arg(long, value_name = "N", default_value_t = CallerLimits::default().concurrency, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    api_concurrency: u32,
    /// Streams open at once of each subject or address: items, logs, files and events; further ones are told to come
    /// again. 0 allows any number
    #[arg(long, value_name = "N", default_value_t = CallerLimits::default().streams, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    api_streams: u32,
    /// Calls in a row that the store has not answered, after which further ones fail at once
    #[arg(long, value_name = "N", default_value_t = BreakerSettings::default().failures, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    store_failures: u32,
    /// Time for which calls fail at once before one of them asks the store again
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = store_time)]
    store_pause: Duration,
    /// Time for which that call waits for the store, while all others fail
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = store_time)]
    store_probe_timeout: Duration,
}

impl RequestArgs {
    /// Turns the arguments into settings. `largest` is the largest body that has to fit, with the setting
    /// that allows it.
    pub(super) fn into_settings(
        self,
        (largest, setting): (u64, &str),
    ) -> Result<RequestSettings, Failure> {
        let settings = RequestSettings {
            memory: self.request_memory,
            connections: self.connections as usize,
            stall_timeout: self.stall_timeout,
        };
        if settings.stall_timeout.is_zero() {
            let what = "--stall-timeout 0s leaves clients no time to send anything";
            return Err(Failure::new(what, "use at least 1s"));
        }
        if settings.largest_body() < largest {
            return Err(Failure::new(
                format!(
                    "--request-memory of {} bytes is too little for {setting}: {largest} bytes",
                    settings.memory
                ),
                "allow more, or less there; one body may have seven eighths of it at the most",
            ));
        }
        Ok(settings)
    }
}

impl CallArgs {
    pub(super) fn into_options(self) -> CallOptions {
        CallOptions {
            uploads: self.uploads as usize,
            frontier_readers: self.frontier_readers as usize,
            keep_events: self.keep_events as usize,
            limits: CallerLimits {
                rate: self.api_rate,
                concurrency: self.api_concurrency,
                streams: self.api_streams,
            },
            breaker: BreakerSettings {
                failures: self.store_failures,
                pause: self.store_pause,
                probe_timeout: self.store_probe_timeout,
            },
        }
    }
}
