//! `crawler bench`: a crawl of a web that another process serves on loopback, as a worker crawls, and its figures.
//!
//! URLs and items are kept in a temporary folder, which is removed at the end, however the command ends.

#![expect(
    clippy::print_stderr,
    reason = "a command that tells its terminal what it does"
)]

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tokio_util::sync::CancellationToken;

use super::stop::unless_stopped;
use crate::bench::report::{BenchReport, FrontierPlace, Setup};
use crate::cli::bench::print;
use crate::cli::plugin::build_plugin;
use crate::cli::{self, BenchOptions, Unmet, check_roots};
use crawl::crawl;
use crawler_model::resource::Robots;
use web_process::WebProcess;

mod crawl;
mod web_process;

/// Crawls, prints the figures, and fails if a page is missing or a request was not polite.
pub(super) async fn run(options: BenchOptions, stop: CancellationToken) -> anyhow::Result<()> {
    options.crawl.check()?;
    let plugin = match &options.plugin {
        Some(plugin) => plugin.clone(),
        None => source()?,
    };
    let folder = tempfile::Builder::new().prefix("crawler-bench-").tempdir();
    let folder = folder.context("cannot make a temporary folder")?;
    // A folder that cannot be served is told before anything is built.
    let mut web = unless_stopped(&stop, WebProcess::start(&options.server)).await?;
    if plugin.is_dir() {
        eprintln!(
            "building the rules, {}; the first time takes about a minute",
            plugin.display()
        );
    }
    let wasm = unless_stopped(&stop, build_plugin(&plugin)).await?;
    let crawled = crawl(&options, &web, &wasm, folder.path(), &stop);
    let crawled = Box::pin(crawled).await?;
    let visits = unless_stopped(&stop, web.end()).await?;
    let setup = Setup {
        processors: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        seed: options.server.web.seed,
        n_hosts: web.n_hosts,
        n_pages: web.n_pages,
        frontier: match options.is_in_memory {
            true => FrontierPlace::Memory,
            false => FrontierPlace::Disk,
        },
        concurrency: options.crawl.concurrency(),
    };
    let report = BenchReport::new(setup, &crawled, &visits);
    match print(&report, options.is_json) {
        // The reader of the figures has closed the output and wants no more.
        Err(error) if cli::is_closed_pipe(&error) => {}
        printed => printed?,
    }
    check_roots(&crawled.counts)?;
    check(&report, &options)?;
    Ok(())
}

/// Returns the source of the benchmark's rule, in the repository that this program was built from.
fn source() -> anyhow::Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/outline");
    ensure!(
        path.is_dir(),
        "the benchmark builds plugins/outline of the repository, which is not at {}; name a plugin: crawler bench PATH_OR_WASM",
        path.display()
    );
    Ok(path.canonicalize()?)
}

/// Checks that the crawl was complete and polite. Another rule than that of the benchmark may leave pages out.
fn check(report: &BenchReport, options: &BenchOptions) -> Result<(), Unmet> {
    let unmet = |what: String, hint: &str| {
        Err(Unmet {
            what,
            hint: hint.to_owned(),
        })
    };
    let n_all = report.pages_of_web;
    let n_found = report.pages.min(report.pages_served).min(report.items);
    if options.plugin.is_none() && n_found < n_all {
        let what = format!(
            "{} of {n_all} pages were not served, parsed and stored",
            n_all - n_found
        );
        return unmet(
            what,
            "other ends and the settings of the crawl tell why; -v shows its log",
        );
    }
    if report.early_requests > 0 {
        let what = format!(
            "{} requests came sooner than the delay of their host allows",
            report.early_requests
        );
        return unmet(
            what,
            "a machine that is too busy to keep time may be the reason",
        );
    }
    if report.forbidden_requests > 0 && options.crawl.robots() == Robots::Obey {
        let what = format!(
            "{} requests were for pages that robots.txt forbids",
            report.forbidden_requests
        );
        return unmet(what, "");
    }
    Ok(())
}
