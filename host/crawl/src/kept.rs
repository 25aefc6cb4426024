//! Bodies that rules want kept: stored before their rules are called, within the quota of the run.
//!
//! The body is durable before the item that names its digest can be. A crash in between, or a rule that fails, leaves
//! a file that no item names, and that the next attempt at the page finds. A body counts for the quota with the commit
//! of its page, whatever the rule made of it.

use std::time::Duration;

use bytes::Bytes;

use super::shared::Shared;
use crawler_frontier::{Claim, Ended, PageResult};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::Digest;
use crawler_model::resource::CrawlSettings;
use crawler_process::retry::Backoff;
use crawler_process::task::blocking;
use crawler_process::telemetry;

/// Word by which pages are counted whose bodies the quota has no room for.
const OVER_QUOTA: &str = "max-kept";
/// Length of a body that is hashed without another thread, in bytes: less than a millisecond of work.
const HASHED_AT_ONCE: usize = 256 << 10;
/// First and longest pause before a file is stored again that could not be stored.
const STORE_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Returns the end of a page if its request asks for a file and the quota is used up: its site need not be asked.
pub(super) fn refused(
    shared: &Shared,
    claim: &Claim,
    settings: &CrawlSettings,
) -> Option<PageResult> {
    if !claim.request.keeps(200) || shared.n_kept_left(settings) > 0 {
        return None;
    }
    let max = shared.max_kept(settings);
    let detail = format!(
        "a file is not fetched: the {max} bytes that --max-kept allows here in one run are kept"
    );
    Some(refusal(shared, detail, 0))
}

/// Returns the digest of a body. That of a long one is computed on a thread that may block.
pub(super) async fn digest_of(body: &Bytes) -> Digest {
    if body.len() <= HASHED_AT_ONCE {
        return Digest::of(body);
    }
    let body = body.clone();
    match blocking(move || Digest::of(&body)).await {
        Ok(digest) => digest,
        // The process ends.
        Err(_cancelled) => std::future::pending().await,
    }
}

/// Stores the body of a page. While the data root does not take it, the page waits in its slot, so that nothing is
/// lost and its site is not asked again. Returns false if the quota has no room for the body.
pub(super) async fn store(
    shared: &Shared,
    claim: &Claim,
    settings: &CrawlSettings,
    digest: Digest,
    body: &Bytes,
) -> bool {
    // An attempt that is cut off does not give its bytes back: the crawl ends then, and counts anew when it goes on.
    if !shared.reserve_kept(body.len() as u64, settings) {
        return false;
    }
    let Some(files) = &shared.parts.files else {
        return true;
    };
    let [first, longest] = STORE_PAUSES;
    let mut backoff = Backoff::new(first, longest);
    while let Err(error) = files.keep(digest, body.clone()).await {
        let (request, why) = (&claim.request, telemetry::chain(&error));
        let log = &shared.parts.log;
        let message = format!("the page waits until its file is stored: {why}");
        log.on_page("error", request.url.as_str(), &request.rule, message);
        tokio::time::sleep(backoff.next_delay()).await;
    }
    true
}

/// Returns the result of a page whose body of so many bytes the quota has no room for.
pub(super) fn over_quota(
    shared: &Shared,
    settings: &CrawlSettings,
    n_bytes: usize,
    host_ready_at: UnixMillis,
) -> PageResult {
    let (left, max) = (shared.n_kept_left(settings), shared.max_kept(settings));
    refusal(
        shared,
        format!(
            "a file of {n_bytes} bytes is not kept: {left} bytes are left of the {max} that --max-kept allows here in one run"
        ),
        host_ready_at,
    )
}

fn refusal(shared: &Shared, detail: String, host_ready_at: UnixMillis) -> PageResult {
    shared.logged_kept.call_once(|| {
        let message = format!("{detail}; the page is given up, and others may be");
        shared.parts.log.note("warn", message);
    });
    let ended = Ended::Dead {
        reason: OVER_QUOTA.to_owned(),
    };
    PageResult {
        detail,
        ..PageResult::new(ended, host_ready_at)
    }
}
