//! Requests for pages.

use super::parts::CrawlConfig;
use super::shared::Shared;
use super::slot::SlotGuard;
use super::unchanged;
use crawler_fetch::FetchRequest;
use crawler_frontier::Claim;

/// Builds the request for the page of a claim, with the settings of the crawl.
pub(super) fn fetch_request(
    shared: &Shared,
    slot: &SlotGuard,
    claim: &Claim,
    config: &CrawlConfig,
) -> FetchRequest {
    let (request, settings) = (&claim.request, &config.settings);
    FetchRequest {
        names_port: shared.bounds(settings).names_port(&request.url),
        cookies: shared.cookies(settings),
        robots_store: Some(shared.robots_store.clone()),
        validators: unchanged::condition(claim, settings, || shared.parsed_by(config)).cloned(),
        account: shared.parts.crawl_memory.account().clone(),
        requester: shared.requester,
        slot: Some(slot.fetch_slot()),
        ..FetchRequest::new(request, settings, claim.attempt, config.limits.body)
    }
}
