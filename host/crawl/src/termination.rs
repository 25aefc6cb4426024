//! Checks if a crawl may end, because nothing of it is under way.

use super::shared::Shared;
use crawler_frontier::{Frontier, FrontierError};
use crawler_model::crawl::UnixMillis;

/// Returns true if the crawl may end as resting until this moment: nothing is under way, and no link waits
/// for another shard. A link that is not durable yet counts too, because it would be delivered before the
/// end, however long that takes.
pub(super) async fn may_rest(
    shared: &Shared,
    in_flight: u64,
    until: UnixMillis,
) -> Result<bool, FrontierError> {
    let frontier = &shared.parts.frontier;
    if in_flight > 0 || !shared.may_rest(until) {
        return Ok(false);
    }
    frontier.settle().await?;
    Ok(frontier.peers().is_empty())
}

/// Returns true if no item waits for its sink, and no link for another shard.
pub(super) async fn is_all_delivered(frontier: &dyn Frontier) -> Result<bool, FrontierError> {
    frontier.settle().await?;
    if !frontier.peers().is_empty() || !frontier.outbox(1).await?.items.is_empty() {
        return Ok(false);
    }
    // The change that has emptied it may be younger than the first settling.
    frontier.settle().await?;
    if frontier.counts().due == 0 {
        frontier.check_empty().await?;
    }
    Ok(true)
}
