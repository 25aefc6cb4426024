//! `crawler bench`: its arguments, and its report as text or JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};

use self::settings::SettingArgs;
use super::args::{RuleArgs, millis};
use super::failure::Failure;
use super::table;
use crate::bench::Share;
use crate::bench::messages::{Promised, ServerSettings};
use crate::bench::report::{BenchReport, FrontierPlace, StageFigures};
use crate::bench::web::WebSettings;
use crawler_model::number;
use crawler_model::plugin::{LimitName, LimitOverrides};
use crawler_model::resource::{CrawlSettings, Robots};

mod settings;

/// Links that a page may have if the user sets no limit: lists and menus of a folder may be long.
const MAX_LINKS: u64 = 100_000;
/// Longest time of an answer: much shorter than any timeout.
const MAX_LATENCY_MS: u64 = 5_000;
/// Longest crawl-delay.
const MAX_CRAWL_DELAY_MS: u64 = 60_000;

/// Options of `crawler bench`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BenchOptions {
    /// Folder of source, or a .wasm file. If `None`, the rule of the benchmark crawls.
    pub plugin: Option<PathBuf>,
    /// Params, which the rules get as their config.
    pub params: BTreeMap<String, String>,
    /// Limits of one call of a rule.
    pub limits: LimitOverrides,
    /// Settings of the crawl, with bounds beyond any web that is served.
    pub crawl: CrawlSettings,
    /// Web that is served.
    pub server: ServerSettings,
    /// True if URLs are kept in memory alone.
    pub is_in_memory: bool,
    /// True if the report is JSON.
    pub is_json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  crawler bench\n  crawler bench --hosts 1000 --pages 50000 --delay 100ms --json\n  crawler bench plugins/books --folder saved-site --param start=/catalogue/page-1.html\n\nThe web is made up from --seed and served by another process on loopback: the same seed, the same web.\nURLs and items go to a temporary folder, in $TMPDIR or /tmp."
)]
pub(super) struct BenchArgs {
    /// A plugin: a folder of source, or a .wasm file. Its param start is the first page; --param start=/PATH begins at
    /// another one of the web [default: a rule that follows all links and makes an item of each page, built from
    /// plugins/site_outline]
    #[arg(value_name = "PATH_OR_WASM")]
    plugin: Option<PathBuf>,
    #[command(flatten)]
    rules: RuleArgs,
    /// Serve the HTML files of a folder, on one host, instead of a made-up web
    #[arg(long, value_name = "DIR", conflicts_with_all = ["hosts", "pages", "errors", "redirects"])]
    folder: Option<PathBuf>,
    /// Number from which the web is made up
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Hosts of the web, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(1..=100_000))]
    hosts: u32,
    /// Pages of the web, 1 to 10000000, and no fewer than hosts
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pages: u32,
    /// Average time from a request to its answer, at most 5s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = latency)]
    latency: Duration,
    /// Share of the pages that answer with status 503 at first, and of those with a dead link, 0% to 50%
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    errors: Share,
    /// Share of the pages that are reached by a redirect, 0% to 50%
    #[arg(long, value_name = "SHARE", default_value = "1%")]
    redirects: Share,
    /// crawl-delay that robots.txt asks for, at most 1m
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = crawl_delay)]
    crawl_delay: Duration,
    /// Keep URLs in memory, as `crawler run` does, instead of on disk, as a worker does
    #[arg(long)]
    in_memory: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    crawl: SettingArgs,
}

impl BenchArgs {
    pub(super) fn into_options(self) -> anyhow::Result<BenchOptions> {
        if self.pages < self.hosts {
            let (hosts, pages) = (self.hosts, self.pages);
            return Err(Failure::new(
                format!("--hosts {hosts} needs more pages than --pages {pages}: each host has at least one"),
                format!("give --pages {hosts} or more, or fewer --hosts"),
            )
            .into());
        }
        let mut limits = self.rules.limits();
        if limits.iter().all(|(name, _)| name != LimitName::Requests) {
            let set = limits.set_value(LimitName::Requests, MAX_LINKS);
            set.expect("it is above zero");
        }
        let crawl = self.crawl.settings()?;
        Ok(BenchOptions {
            params: self.rules.params(),
            limits,
            server: ServerSettings {
                promised: promised(&crawl, self.crawl_delay),
                web: WebSettings {
                    seed: self.seed,
                    n_hosts: self.hosts,
                    n_pages: self.pages,
                    errors: self.errors,
                    redirects: self.redirects,
                },
                folder: self.folder,
                latency: self.latency,
                crawl_delay: self.crawl_delay,
            },
            crawl,
            plugin: self.plugin,
            is_in_memory: self.in_memory,
            is_json: self.json,
        })
    }
}

/// Returns the delays that a crawl keeps between two requests to a host of the web.
fn promised(crawl: &CrawlSettings, crawl_delay: Duration) -> Promised {
    // The web is in an allowed network, where no delay is kept unless it is asked for.
    let own = crawl.delay().unwrap_or_default();
    Promised {
        after_robots: own,
        after_page: match crawl.robots() {
            Robots::Obey => own.max(crawl_delay.min(crawl.max_crawl_delay())),
            Robots::Ignore => own,
        },
    }
}

fn latency(text: &str) -> Result<Duration, String> {
    within(text, MAX_LATENCY_MS)
}

fn crawl_delay(text: &str) -> Result<Duration, String> {
    within(text, MAX_CRAWL_DELAY_MS)
}

fn within(text: &str, max_ms: u64) -> Result<Duration, String> {
    let time = Duration::from_millis(millis(text)?);
    let max = Duration::from_millis(max_ms);
    match time <= max {
        true => Ok(time),
        false => Err(format!("at most {}", humantime::format_duration(max))),
    }
}

/// Prints a report.
pub fn print(report: &BenchReport, is_json: bool) -> anyhow::Result<()> {
    match is_json {
        true => table::print_json(report),
        false => Ok(table::print_text(text(report).as_bytes())?),
    }
}

fn text(report: &BenchReport) -> String {
    let lines = rows(report).into_iter();
    let lines = lines.map(|(name, value)| format!("  {name:<13} {value}\n"));
    let lines: String = lines.collect();
    let head = ["STAGE", "PROCESSOR", "TIMES", "P50", "P99"];
    let mut stages: Vec<_> = report.stages.iter().map(stage).collect();
    let other = time(report.other_us_per_page);
    stages.push([
        "other".to_owned(),
        other,
        String::new(),
        String::new(),
        String::new(),
    ]);
    format!(
        "{}\n{lines}\n{}",
        summary(report),
        table::text(head, &stages)
    )
}

fn summary(report: &BenchReport) -> String {
    format!(
        "{}, {}, {} in {:.1} s: {:.1} pages/s, {:.1} MB/s",
        number(report.pages, "page"),
        number(report.items, "item"),
        table::size(report.body_bytes),
        report.wall_ms as f64 / 1e3,
        report.pages_per_s,
        report.mb_per_s,
    )
}

fn rows(report: &BenchReport) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        (
            "web",
            format!(
                "seed {}, {}, {} of {} served",
                report.seed,
                number(report.hosts.into(), "host"),
                report.pages_served,
                number(report.pages_of_web, "page"),
            ),
        ),
        (
            "crawl",
            format!(
                "URLs {}, concurrency {}, {}",
                match report.frontier {
                    FrontierPlace::Disk => "on disk",
                    FrontierPlace::Memory => "in memory",
                },
                report.concurrency,
                number(report.processors as u64, "processor"),
            ),
        ),
        (
            "requests",
            format!(
                "{}: {} too early, {} forbidden; {}",
                report.requests,
                report.early_requests,
                report.forbidden_requests,
                match report.retries {
                    1 => "1 retry".to_owned(),
                    n => format!("{n} retries"),
                },
            ),
        ),
    ];
    let outcomes = report.other_outcomes.iter();
    let outcomes: Vec<_> = outcomes
        .map(|(end, n)| format!("{} {n}", table::plain(end)))
        .collect();
    if !outcomes.is_empty() {
        rows.push(("other ends", outcomes.join(", ")));
    }
    if let Some(bytes) = report.peak_memory_bytes {
        rows.push(("memory", format!("{} at its peak", table::size(bytes))));
    }
    let processor = time(report.processor_us_per_page);
    rows.push(("processor", format!("{processor} for each page")));
    if let Some(n) = report.allocations_per_page {
        rows.push(("allocations", format!("{n:.0} for each page")));
    }
    rows
}

fn stage(figures: &StageFigures) -> [String; 5] {
    let duration = |micros| match figures.times {
        0 => String::new(),
        _ => time(micros),
    };
    [
        figures.stage.to_owned(),
        time(figures.processor_us_per_page),
        figures.times.to_string(),
        duration(figures.p50_us),
        duration(figures.p99_us),
    ]
}

/// Formats a time, such as `12.3 µs`.
fn time(micros: f64) -> String {
    match micros {
        1e6.. => format!("{:.2} s", micros / 1e6),
        1e3.. => format!("{:.2} ms", micros / 1e3),
        _ => format!("{micros:.1} µs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::tests::report;

    #[test]
    fn a_report_is_a_block_and_a_table() {
        let expected = "\
1000 pages, 1000 items, 20.0 MB in 2.0 s: 500.0 pages/s, 10.0 MB/s
  web           seed 7, 4 hosts, 1000 of 1000 pages served
  crawl         URLs on disk, concurrency 64, 2 processors
  requests      1050: 0 too early, 0 forbidden; 9 retries
  other ends    dead: robots 20, gone 8
  memory        314.6 MB at its peak
  processor     4.00 ms for each page
  allocations   1234 for each page

STAGE     PROCESSOR  TIMES  P50      P99
guard     0.0 µs     1000   0.0 µs   0.0 µs
fetch     100.0 µs   1001   10.0 µs  1.00 ms
decode    200.0 µs   1002   20.0 µs  2.00 ms
extract   300.0 µs   1003   30.0 µs  3.00 ms
instance  400.0 µs   1004   40.0 µs  4.00 ms
guest     500.0 µs   1005   50.0 µs  5.00 ms
seen      600.0 µs   1006   60.0 µs  6.00 ms
commit    700.0 µs   1007   70.0 µs  7.00 ms
sink      800.0 µs   1008   80.0 µs  8.00 ms
other     400.0 µs
";
        assert_eq!(text(&report()), expected);
    }

    #[test]
    fn times_have_the_unit_that_they_need() {
        for (micros, expected) in [
            (0.04, "0.0 µs"),
            (999.9, "999.9 µs"),
            (1_234.0, "1.23 ms"),
            (2_500_000.0, "2.50 s"),
        ] {
            assert_eq!(time(micros), expected);
        }
    }

    #[test]
    fn the_longest_delay_is_promised_once_it_is_known() {
        #[track_caller]
        fn check(delay: Option<u64>, robots: Robots, crawl_delay: u64, expected: (u64, u64)) {
            let crawl = CrawlSettings {
                delay_ms: delay.map(|seconds| 1_000 * seconds),
                robots: Some(robots),
                max_crawl_delay_ms: Some(10_000),
                ..CrawlSettings::default()
            };
            let promised = promised(&crawl, Duration::from_secs(crawl_delay));
            let found = (
                promised.after_robots.as_secs(),
                promised.after_page.as_secs(),
            );
            assert_eq!(found, expected);
        }
        check(None, Robots::Obey, 0, (0, 0));
        check(None, Robots::Obey, 2, (0, 2));
        check(None, Robots::Obey, 20, (0, 10));
        check(Some(3), Robots::Obey, 2, (3, 3));
        check(Some(1), Robots::Ignore, 2, (1, 1));
    }
}
