//! Checks if a crawl may end, because nothing of it is under way.

use super::shared::Shared;
use crawler_frontier::{Frontier, FrontierError};
use crawler_model::crawl::UnixMillis;

/// Returns true if the crawl may end as resting until this moment: nothing is under way, no item waits for a sink, and no
/// link for another shard. Both would be delivered before the end, however long that takes, and nobody would take pages
/// meanwhile. A link that is not durable yet counts too.
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
    Ok(frontier.peers().is_empty() && !has_items(&**frontier))
}

/// Returns true if an item waits for a sink, or for a verdict. Held items wait for a person, and keep no crawl.
fn has_items(frontier: &dyn Frontier) -> bool {
    frontier.n_undelivered() > 0 || frontier.kept_back().n_waiting > 0
}

/// Returns true if no item waits for any sink, and no link for another shard.
pub(super) async fn is_all_delivered(frontier: &dyn Frontier) -> Result<bool, FrontierError> {
    frontier.settle().await?;
    if !frontier.peers().is_empty() || has_items(frontier) {
        return Ok(false);
    }
    // The change that has emptied it may be younger than the first settling.
    frontier.settle().await?;
    if frontier.counts().due == 0 {
        frontier.check_empty().await?;
    }
    Ok(true)
}
