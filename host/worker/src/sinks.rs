//! Sinks of a crawl: those of its resource, what its log is told of them, and its stop once the resource has others.

use std::convert::Infallible;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::assigned::Assigned;
use super::crawl_state::CrawlState;
use super::reporting_sink::ReportingSink;
use crawler_crawl::log::CrawlLog;
use crawler_crawl::{CrawlConfig, NamedSink};
use crawler_frontier::{FrontierError, OpenFrontier};
use crawler_model::number;
use crawler_model::plugin::Schema;
use crawler_model::settings::SinkNames;
use crawler_sink::Delivery;
use crawler_sink::lazy::LazySink;

impl Assigned {
    /// Returns the sinks of the crawl, and tells its log of those that may not do what is meant. Each is opened when it
    /// gets its first items.
    pub(super) async fn sinks(
        &self,
        frontier: &dyn OpenFrontier,
        names: &SinkNames,
        schemas: &[Schema],
        crawl_state: &CrawlState,
        log: &CrawlLog,
    ) -> Result<Vec<NamedSink>, FrontierError> {
        let mut sinks = Vec::new();
        for name in names.iter() {
            // Masters read the marks of the sink in the data root; the sink itself does not need them.
            let marks = match name.is_lines() {
                true => Vec::new(),
                false => frontier.marks(name).await?,
            };
            let delivery = Delivery {
                sink: name.clone(),
                shard: self.shard.id,
                cluster: self.parts.cluster.clone(),
                run: self.resource.run,
                storage_epoch: frontier.storage_epoch(),
                spec: self.resource.spec.clone(),
                schemas: schemas.to_vec(),
                other_kinds: None,
                marks,
            };
            for warning in self.parts.sinks.warnings(&delivery) {
                log.note("warn", warning);
            }
            let sink = LazySink::new(self.parts.sinks.clone(), delivery);
            let sink = ReportingSink::new(sink, name.clone(), crawl_state.clone());
            sinks.push(NamedSink {
                name: name.clone(),
                sink: Box::new(sink),
            });
        }
        Ok(sinks)
    }
}

/// Logs the items that are delivered no more, because the resource no longer has their sink.
pub(super) fn note_dropped(frontier: &dyn OpenFrontier, log: &CrawlLog) {
    for (sink, n_items) in frontier.dropped() {
        let items = number(n_items, "item");
        let line = format!(
            "the resource no longer has sink {sink}: {items} that waited for it will not be delivered"
        );
        log.note("warn", line);
    }
}

/// Stops a crawl once its resource has other sinks.
pub(super) async fn stop_for_others(
    mut config: watch::Receiver<CrawlConfig>,
    sinks: &SinkNames,
    stop: &CancellationToken,
    log: &CrawlLog,
) -> Infallible {
    let is_other = |config: &CrawlConfig| config.settings.sink_names() != *sinks;
    if config.wait_for(is_other).await.is_ok() {
        log.note(
            "info",
            "the resource has other sinks: its frontier is opened for them",
        );
        stop.cancel();
    }
    std::future::pending().await
}
