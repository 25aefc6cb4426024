//! `crawler bench`: a crawl of a web that another process serves on loopback, as a worker crawls, and its figures.
//!
//! URLs and items are kept in a temporary folder, which is removed at the end, unless the process is killed.

#![expect(
    clippy::print_stderr,
    reason = "a command that tells its terminal what it does"
)]

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tokio_util::sync::CancellationToken;

use super::stop::unless_stopped;
use crate::bench::report::{BenchReport, Crawled, FrontierPlace, Setup};
use crate::cli::bench::print;
use crate::cli::plugin::build_plugin;
use crate::cli::{self, BenchOptions, Unmet, check_roots};
use crawl::crawl;
use crawler_model::number;
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
    let ended = Box::pin(run_in(folder.path(), &options, &plugin, &stop)).await;
    let path = folder.path().to_owned();
    if let Err(error) = folder.close() {
        eprintln!(
            "cannot remove {}: {error}; remove it by hand",
            path.display()
        );
    }
    ended
}

/// Runs the benchmark with its data in this folder.
async fn run_in(
    folder: &Path,
    options: &BenchOptions,
    plugin: &Path,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    // A folder that cannot be served is reported before anything is built.
    let mut web = unless_stopped(stop, WebProcess::start(&options.server)).await?;
    if plugin.is_dir() {
        eprintln!(
            "building the rules, {}; the first time takes about a minute",
            plugin.display()
        );
    }
    let wasm = unless_stopped(stop, build_plugin(plugin)).await?;
    let crawled = crawl_of_web(&mut web, options, &wasm, folder, stop).await?;
    let visits = unless_stopped(stop, web.end()).await?;
    let setup = Setup {
        processors: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        seed: options.server.web.seed,
        n_hosts: web.site.n_hosts,
        n_pages: web.site.n_pages,
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
    // A rule of the user may leave pages out.
    let has_to_be_whole = options.plugin.is_none();
    check(&report, has_to_be_whole, options.crawl.robots())?;
    Ok(())
}

/// Crawls the web, which has to be there until the end of the crawl.
async fn crawl_of_web(
    web: &mut WebProcess,
    options: &BenchOptions,
    wasm: &Path,
    folder: &Path,
    stop: &CancellationToken,
) -> anyhow::Result<Crawled> {
    let site = web.site;
    let crawl_stop = stop.child_token();
    let mut crawled = Box::pin(crawl(options, site, wasm, folder, &crawl_stop));
    tokio::select! {
        // A crawl without a web may end too, and then the reason is the web.
        biased;
        lost = web.lost() => {
            crawl_stop.cancel();
            // It closes its files before their folder is removed. Its own end is that of the stop.
            let _interrupted = crawled.await;
            Err(lost)
        }
        crawled = &mut crawled => crawled,
    }
}

/// Returns the source of the benchmark's rule, in the repository that this program was built from.
fn source() -> anyhow::Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/site_outline");
    ensure!(
        path.is_dir(),
        "the benchmark builds plugins/site_outline of the repository, which is not at {}; name a plugin: crawler bench PATH_OR_WASM",
        path.display()
    );
    Ok(path.canonicalize()?)
}

/// Checks that the crawl was polite and, if it has to be whole, that it left no page out.
fn check(report: &BenchReport, has_to_be_whole: bool, robots: Robots) -> Result<(), Unmet> {
    let unmet = |what: String, hint: &str| {
        Err(Unmet {
            what,
            hint: hint.to_owned(),
        })
    };
    let n_all = report.pages_of_web;
    let n_found = report.pages.min(report.pages_served).min(report.items);
    if has_to_be_whole && n_found < n_all {
        let what = match n_all - n_found {
            1 => format!("1 of {n_all} pages was not served, parsed and stored"),
            n => format!("{n} of {n_all} pages were not served, parsed and stored"),
        };
        return unmet(
            what,
            "other ends and the settings of the crawl tell why; -v shows its log",
        );
    }
    if report.early_requests > 0 {
        let what = format!(
            "{} came sooner than the delay of a host allows",
            number(report.early_requests, "request")
        );
        return unmet(
            what,
            "a machine that is too busy to keep time may be the reason",
        );
    }
    if report.forbidden_requests > 0 && robots == Robots::Obey {
        let what = format!(
            "robots.txt forbids {} of the crawl",
            number(report.forbidden_requests, "request")
        );
        return unmet(
            what,
            "this is a fault of the crawler: report it with the options of the benchmark",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::tests::report;

    /// Returns the message of a verdict, or an empty text if there is nothing to report.
    fn verdict(report: &BenchReport, has_to_be_whole: bool, robots: Robots) -> String {
        let checked = check(report, has_to_be_whole, robots);
        checked.map_or_else(|unmet| unmet.what, |()| String::new())
    }

    #[test]
    fn a_page_that_was_left_out_is_no_success() {
        let whole = report();
        assert_eq!(verdict(&whole, true, Robots::Obey), "");
        let left_out = [
            BenchReport {
                pages: 999,
                ..report()
            },
            BenchReport {
                pages_served: 999,
                ..report()
            },
            BenchReport {
                items: 999,
                ..report()
            },
        ];
        for report in left_out {
            let expected = "1 of 1000 pages was not served, parsed and stored";
            assert_eq!(verdict(&report, true, Robots::Obey), expected);
            assert_eq!(verdict(&report, false, Robots::Obey), "");
        }
    }

    #[test]
    fn a_request_that_was_not_polite_is_no_success() {
        let early = BenchReport {
            early_requests: 1,
            ..report()
        };
        let expected = "1 request came sooner than the delay of a host allows";
        for robots in [Robots::Obey, Robots::Ignore] {
            assert_eq!(verdict(&early, false, robots), expected);
        }
        let forbidden = BenchReport {
            forbidden_requests: 1,
            ..report()
        };
        let expected = "robots.txt forbids 1 request of the crawl";
        assert_eq!(verdict(&forbidden, false, Robots::Obey), expected);
        assert_eq!(verdict(&forbidden, false, Robots::Ignore), "");
    }
}
