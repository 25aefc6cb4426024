//! Requests for pages.

use super::parts::CrawlConfig;
use super::shared::Shared;
use super::slot::Held;
use super::unchanged;
use crawler_fetch::FetchRequest;
use crawler_fetch::agents::identity;
use crawler_frontier::Claim;

/// Builds the request for the page of a claim, with the settings of the crawl.
pub(super) fn fetch_request(
    shared: &Shared,
    slot: &Held,
    claim: &Claim,
    config: &CrawlConfig,
) -> FetchRequest {
    let request = &claim.request;
    FetchRequest {
        url: request.url.clone(),
        names_port: shared.bounds(&config.settings).names_port(&request.url),
        method: request.method.clone(),
        headers: request.headers.clone(),
        identity: identity(&config.settings.user_agents, &request.url, claim.attempt),
        cookies: shared.cookies(&config.settings),
        proxy: config.settings.proxy.clone(),
        credentials: config.settings.credentials.clone().unwrap_or_default(),
        body: request.body.clone(),
        max_url_length: config.settings.max_url_length(),
        content_types: config.settings.content_types.clone().unwrap_or_default(),
        max_body: config.limits.body,
        delay: config.settings.delay(),
        random_delay: config.settings.random_delay(),
        host_rate: config.settings.host_rate.clone().unwrap_or_default(),
        unless: unchanged::condition(claim, &config.settings).cloned(),
        robots: config.settings.robots(),
        max_crawl_delay: config.settings.max_crawl_delay(),
        account: shared.parts.seat.account().clone(),
        asker: shared.asker,
        place: Some(slot.place()),
    }
}
