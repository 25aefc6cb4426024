//! Archives of `crawler run`: where the pages of its crawl go, and where pages come from in the place of sites.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use url::Url;

use crate::cli::{RunOptions, archive};
use crawler_archive::{Archive, ArchiveSettings, RecordedPages, RunInfo};
use crawler_fetch::http::Recorded;
use crawler_model::exchange::{Exchange, Redirects};
use crawler_model::resource::CrawlSettings;
use crawler_process::clock::Clock;
use crawler_process::task::blocking;
use crawler_process::telemetry;

/// Makes the folder of an archive.
pub(super) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let made = std::fs::create_dir_all(folder);
    made.with_context(|| {
        format!(
            "cannot create {}, the folder of --archives",
            folder.display()
        )
    })
}

/// Returns the archive that the options ask for. Files of other runs may be in its folder, so that the time of the start is
/// the epoch of this one.
pub(super) fn archive(
    options: &RunOptions,
    info: RunInfo,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Option<Archive>> {
    let Some(folder) = &options.archives else {
        return Ok(None);
    };
    make_folder(folder)?;
    let settings = ArchiveSettings {
        base: folder.clone(),
        folder: folder.clone(),
        epoch: clock.unix_millis(),
        is_exclusive: false,
        size: options.crawl.archive_size(),
    };
    Ok(Some(Archive::new(settings, info, Arc::clone(clock))))
}

/// Reads the archives that answer in the place of sites; `None` if sites are asked. What is damaged is left out and told.
pub(super) async fn recorded(options: &RunOptions) -> anyhow::Result<Option<Arc<RecordedPages>>> {
    if options.from_archive.is_empty() {
        return Ok(None);
    }
    let (paths, max) = (options.from_archive.clone(), options.frontier_urls);
    let opened = move || -> anyhow::Result<_> {
        let files = archive::named_archives(&paths)?;
        Ok(RecordedPages::open(&files, max, "--frontier-urls")?)
    };
    let pages = blocking(opened).await??;
    for why in pages.damage() {
        tracing::warn!(why, "a part of the archive is left out");
    }
    Ok(Some(Arc::new(pages)))
}

/// Returns the settings of the crawl. An archive has no other answer later, so that nothing is asked of it twice.
pub(super) fn settings(options: &RunOptions) -> CrawlSettings {
    let mut settings = options.crawl.clone();
    if !options.from_archive.is_empty() {
        settings.max_attempts = Some(1);
    }
    settings
}

/// Archives in the place of sites.
#[derive(Debug)]
pub(super) struct ArchivedSites(pub(super) Arc<RecordedPages>);

#[async_trait]
impl Recorded for ArchivedSites {
    async fn answer(
        &self,
        method: &str,
        url: &Url,
        body: Option<&Bytes>,
        redirects: Option<&Redirects>,
        most: u64,
    ) -> Result<Option<Exchange>, String> {
        let pages = Arc::clone(&self.0);
        let (method, url, body) = (method.to_owned(), url.clone(), body.cloned());
        let redirects = redirects.cloned();
        let found = blocking(move || {
            pages.answer_after(redirects.as_ref(), &method, &url, body.as_ref(), most)
        });
        match found.await {
            Ok(found) => found.map_err(|error| telemetry::chain(&error)),
            // The process ends.
            Err(_cancelled) => std::future::pending().await,
        }
    }
}
