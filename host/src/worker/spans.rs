//! Spans of a crawl: the fields that the log lines within them have in common.
//!
//! The filter of the log applies to spans too: a line has the fields of a span only if both pass it. Spans that
//! tell which crawl a line belongs to are therefore at `error`, so that a warning has them although only warnings
//! are shown. Spans of one page are at `debug`: at the default level `info` they cost next to nothing.

use tracing::Span;
use tracing::field::Empty;

use crate::frontier::Claim;
use crate::model::id::{Epoch, ResourceName, Run};
use crate::model::resource::ShardId;

/// Returns the span of the crawl of a shard, from its start to the line about its end.
pub fn of_crawl(resource: &ResourceName, shard: ShardId, epoch: Epoch, run: Run) -> Span {
    tracing::error_span!("crawl", %resource, %shard, %epoch, %run)
}

/// Returns the span of a crawl whose shard no other worker can get. Field `run` is recorded once it is known.
pub fn of_crawl_alone(resource: &ResourceName, shard: ShardId) -> Span {
    tracing::error_span!("crawl", %resource, %shard, run = Empty)
}

/// Returns the span of the return of a shard, after the end of its crawl.
pub(super) fn of_return(resource: &ResourceName, shard: ShardId, epoch: Epoch) -> Span {
    tracing::error_span!("return", %resource, %shard, %epoch)
}

/// Returns the span of one attempt at a page.
pub(super) fn of_page(claim: &Claim) -> Span {
    tracing::debug_span!("page", url = %claim.request.url, attempt = claim.attempt)
}

/// Returns the span of the preparation of a host before its first page.
pub(super) fn of_host(claim: &Claim) -> Span {
    tracing::debug_span!("host", host = %claim.request.host())
}
