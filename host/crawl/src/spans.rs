//! Spans of a crawl: the fields that the log lines within them have in common.
//!
//! The filter of the log applies to spans too: a line has the fields of a span only if both pass it. Spans that
//! tell which crawl a line belongs to have a target of their own, which every filter lets pass. Spans of one page
//! are at `debug`: at the default level `info` they cost next to nothing.

use tracing::Span;
use tracing::field::Empty;

use crawler_frontier::Claim;
use crawler_model::id::{Epoch, ResourceName, Run};
use crawler_model::resource::ShardId;

/// Returns the span of the crawl of a shard, from its start to the line about its end.
pub fn of_crawl(resource: &ResourceName, shard: ShardId, epoch: Epoch, run: Run) -> Span {
    tracing::error_span!(target: "spans", "crawl", %resource, %shard, %epoch, %run)
}

/// Returns the span of a crawl whose shard no other worker can get. Field `run` is recorded once it is known.
pub fn of_crawl_alone(resource: &ResourceName, shard: ShardId) -> Span {
    tracing::error_span!(target: "spans", "crawl", %resource, %shard, run = Empty)
}

/// Returns the span of one attempt at a page.
pub(super) fn of_page(claim: &Claim) -> Span {
    tracing::debug_span!("page", url = %claim.request.url, attempt = claim.attempt)
}

/// Returns the span of the preparation of a host before its first page.
pub(super) fn of_host(claim: &Claim) -> Span {
    tracing::debug_span!("host", host = %claim.request.host())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::ResourceId;
    use crawler_process::telemetry::testing::Log;

    #[test]
    fn a_filter_of_another_module_lets_the_span_of_a_crawl_pass() {
        let (log, _guard) = Log::of_this_thread("crawler_frontier=debug");
        let shop = "shop".parse().unwrap();
        let span = of_crawl_alone(&shop, ShardId::only(ResourceId(1)));
        span.in_scope(|| tracing::debug!(target: "crawler_frontier", "open"));
        span.in_scope(|| tracing::info!(target: "crawler_crawl", "not shown"));
        let lines = log.lines();
        assert!(
            lines.len() == 1 && lines[0].contains("resource=shop"),
            "{lines:?}"
        );
    }
}
