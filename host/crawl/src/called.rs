//! Result of a page by the report of its rule's call: items, links, or the end that a failure decides.

use serde_json::value::RawValue;

use super::log::said;
use super::parts::CrawlConfig;
use super::shared::Shared;
use super::verdict::{self, Attempt};
use crawler_frontier::{Claim, Ended, PageResult};
use crawler_model::crawl::{
    Done, Item, ItemKey, ItemRecord, Kill, Page, Request, RuleError, UnixMillis,
};
use crawler_model::event::EventKind;
use crawler_model::guest_text::GuestText;
use crawler_model::statistics::{Kind, Observed};
use crawler_plugin::{CallFailure, CallReport};
use crawler_process::stage::Stage;

/// Maximum size in bytes of a rule's message in the record of a page that is given up.
const DETAIL_BYTES: usize = 1 << 10;

/// Returns the result of a page by the report of its call.
pub(super) fn called(
    shared: &Shared,
    claim: &Claim,
    config: &CrawlConfig,
    page: &Page,
    report: CallReport,
    host_ready_at: UnixMillis,
) -> PageResult {
    let request = &claim.request;
    let now = shared.parts.clock.unix_millis();
    let attempt = Attempt::ended(claim.attempt, &config.settings, now);
    let output = match report.result {
        Ok(output) => output,
        Err(CallFailure::Rule(error)) => {
            let (said, why) = said(&error, report.place.as_ref());
            let log = &shared.parts.log;
            log.on_page("warn", request.url.as_str(), &request.rule, said);
            if let RuleError::Fatal(_) = &error {
                shared.fail(format!(
                    "rule {} gave up at {}: {why}",
                    request.rule, request.url
                ));
            }
            return PageResult {
                detail: detail(&why),
                ..PageResult::new(verdict::of_rule_error(&error, attempt), host_ready_at)
            };
        }
        Err(CallFailure::Killed(kill)) => {
            // For want of room the page is tried again, whatever its rule does.
            if kill.kill != Kill::NoRoom {
                let what = format_args!("{} in rule {}", kill.kill, request.rule);
                shared.parts.incidents.add(EventKind::RuleKilled, what);
            }
            return PageResult {
                detail: detail(&kill.message),
                ..PageResult::new(verdict::of_kill(kill.kill, attempt), host_ready_at)
            };
        }
    };
    let bounds = shared.bounds(&config.settings);
    let depth = claim.depth.saturating_add(1);
    let peers = shared.parts.peers.as_ref();
    let referrer = Request::referrer_of(&page.url);
    let mut requests = output.requests;
    for request in &mut requests {
        request.referrer.clone_from(&referrer);
    }
    let sorted = Stage::Seen.charge(|| verdict::of_links(bounds, peers, requests, depth));
    let mut refused: Vec<(&'static str, u64)> = sorted.refused.into_iter().collect();
    if output.n_bad_urls > 0 {
        refused.push(("bad-url", output.n_bad_urls));
    }
    match records(shared, claim, page, output.items) {
        Ok(items) => PageResult {
            requests: sorted.requests,
            for_peers: sorted.for_peers,
            refused,
            observed: Observed {
                refused_hosts: sorted.refused_hosts,
                kinds: Kind::of_items(&items),
                ..Observed::default()
            },
            items,
            ..PageResult::new(Ended::Done(Done::Parsed), host_ready_at)
        },
        Err(e) => {
            let message = format!("an item is not JSON after all: {e}");
            shared
                .parts
                .log
                .on_page("error", request.url.as_str(), &request.rule, message);
            PageResult::new(
                Ended::Dead {
                    reason: "bad-item".to_owned(),
                },
                host_ready_at,
            )
        }
    }
}

/// Returns what a rule has said, or what is said of it, for the record of a page that is given up.
fn detail(said: &GuestText) -> String {
    GuestText::within(DETAIL_BYTES, said).into()
}

fn records(
    shared: &Shared,
    claim: &Claim,
    page: &Page,
    items: Vec<Item>,
) -> Result<Vec<ItemRecord>, serde_json::Error> {
    let parts = &shared.parts;
    let rule = &claim.request.rule;
    let record = |(ordinal, item): (u32, Item)| {
        Ok(ItemRecord {
            key: ItemKey::of(
                parts.resource,
                parts.run,
                claim.fingerprint,
                claim.visit,
                rule,
                ordinal,
            ),
            url: page.url.to_string(),
            rule: rule.to_string(),
            schema: item.schema,
            run: parts.run,
            fetched_at: page.fetched_at,
            item: RawValue::from_string(item.json)?,
            change: None,
        })
    };
    (0..).zip(items).map(record).collect()
}
