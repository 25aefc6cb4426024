//! The archive of a crawl: what a page was asked and answered is recorded before the page is committed.
//!
//! Therefore each committed page has its records. A crash in between leaves records of a page that is fetched again, and the
//! later ones count. While the archive cannot be written, the page waits in its slot, so that nothing is lost and its
//! site is not asked again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::incidents::whole_seconds;
use super::shared::Shared;
use crawler_archive::{About, Archive, ArchiveSettings, PageRecord, RunInfo};
use crawler_data::DataRoot;
use crawler_fetch::tape::Tape;
use crawler_frontier::Claim;
use crawler_model::event::EventKind;
use crawler_model::exchange::Exchange;
use crawler_model::settings::ArchiveForm;
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;

/// First and longest pause before a page is recorded again that could not be recorded.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// Number of times that the files are completed at the end of a crawl, if that fails.
const ENDS: u32 = 3;

/// Returns the archive that a shard writes in the data root, if its settings ask for one. `epoch` is the storage epoch of
/// its frontier. An error says why there can be none.
pub fn archive_in(
    data: &DataRoot,
    info: RunInfo,
    epoch: u64,
    clock: Arc<dyn Clock>,
) -> Result<Option<Archive>, String> {
    let (form, size) = (info.settings.archive(), info.settings.archive_size());
    if form == ArchiveForm::Off {
        return Ok(None);
    }
    let Some(base) = data.archives_root() else {
        return Err(format!(
            "setting archive is {form}, and archives need a data root that is a folder; this one is in a bucket. Set archive to off, or use a folder for --data"
        ));
    };
    let parts = [
        info.resource.to_string(),
        info.run.to_string(),
        info.shard.to_string(),
    ];
    let folder = parts
        .iter()
        .fold(base.clone(), |path, part| path.join(part));
    let settings = ArchiveSettings {
        base,
        folder,
        epoch,
        is_exclusive: true,
        size,
    };
    Ok(Some(Archive::new(settings, info, clock)))
}

/// Completes the files that earlier lives of the frontier have left, in this run or before it, while the crawl goes
/// on. What fails is told, and left to the next life: such files keep their names, and are read as far as they go.
pub(super) async fn adopt(shared: &Shared, stop: &CancellationToken) {
    let Some(archive) = &shared.parts.archive else {
        return;
    };
    if let Some(Err(error)) = stop.run_until_cancelled(archive.adopt()).await {
        let why = telemetry::chain(&error);
        let message = format!(
            "files of the archive that end in .open are not complete: {why}; the next opening of the frontier tries again"
        );
        shared.parts.log.note("error", message);
    }
}

/// Records what is on the tape of a page. It is durable when this returns.
pub(super) async fn store(shared: &Shared, archive: &Archive, claim: &Claim, tape: Arc<Tape>) {
    let exchanges = tape.take();
    if exchanges.is_empty() {
        return;
    }
    let n_bytes = exchanges.iter().map(Exchange::n_bytes).sum();
    let held = shared.parts.crawl_memory.account().reserve(n_bytes);
    // It counts a part of the same bytes.
    drop(tape);
    let request = &claim.request;
    let page = Arc::new(PageRecord {
        exchanges,
        about: About {
            rule: request.rule.clone(),
            depth: claim.depth,
            attempt: claim.attempt,
            priority: request.priority,
            state: request.state.clone(),
            referrer: request.referrer.clone(),
        },
        held,
    });
    let [first, longest] = PAUSES;
    let mut backoff = Backoff::new(first, longest);
    let incidents = &shared.parts.incidents;
    let mut refused_at = None;
    while let Err(error) = archive.append(Arc::clone(&page)).await {
        let why = telemetry::chain(&*error);
        if refused_at.is_none() {
            refused_at = Some(Instant::now());
            incidents.add(EventKind::ArchiveRefused, &why);
        }
        let message = format!("the page waits until it is archived: {why}");
        let log = &shared.parts.log;
        log.on_page("error", request.url.as_str(), &request.rule, message);
        tokio::time::sleep(backoff.next_delay()).await;
    }
    if let Some(refused_at) = refused_at {
        let time = whole_seconds(refused_at.elapsed());
        incidents.add(EventKind::ArchiveBack, format_args!("after {time}"));
    }
}

/// Completes the files of the archive at the end of a crawl. What fails several times is told. Nothing is lost by it: all
/// pages are in the files, which keep their names until the next life of the frontier completes them.
pub(super) async fn finish(shared: &Shared) {
    let Some(archive) = &shared.parts.archive else {
        return;
    };
    let [first, longest] = PAUSES;
    let mut backoff = Backoff::new(first, longest);
    for n_left in (0..ENDS).rev() {
        let Err(error) = archive.finish().await else {
            return;
        };
        if n_left == 0 {
            let why = telemetry::chain(&error);
            let message = format!(
                "a file of the archive keeps a name that ends in .open: {why}; all pages are in it, and `crawler archive wacz` reads it"
            );
            shared.parts.log.note("error", message);
            return;
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}
