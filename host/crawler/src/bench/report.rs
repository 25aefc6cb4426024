//! Figures of a benchmark, as `--json` prints them. The names of fields tell their units.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::messages::VisitFigures;
use crawler_model::crawl::Counts;
use crawler_process::stage::StageTimes;

/// Figures of a benchmark. A page counts once its rule has parsed it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {
    /// Version of the program.
    pub version: &'static str,
    /// Number of processors that the process may use.
    pub processors: usize,
    /// Seed of the web.
    pub seed: u64,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of pages of the web.
    pub pages_of_web: u64,
    /// Place of the URLs.
    pub frontier: FrontierPlace,
    /// Setting of the number of pages in flight at once. At most 512 take effect, and at most 64 for each host.
    pub concurrency: u32,
    /// Number of parsed pages.
    pub pages: u64,
    /// Number of pages of the web that were served at least once.
    pub pages_served: u64,
    /// Number of items.
    pub items: u64,
    /// Size of all bodies.
    pub body_bytes: u64,
    /// Time from the beginning of the crawl until everything is on disk and the frontier is closed. Neither building the
    /// rule nor opening the frontier counts.
    pub wall_ms: u64,
    /// Parsed pages in a second.
    pub pages_per_s: f64,
    /// Bytes of bodies in a second, in units of 1 000 000.
    pub mb_per_s: f64,
    /// Processor time of the crawling process for each page.
    pub processor_us_per_page: f64,
    /// Processor time for each page that was spent outside of all stages; part of `processor_us_per_page`.
    pub other_us_per_page: f64,
    /// Number of allocations of the crawling process for each page; absent if its allocator does not count them.
    pub allocations_per_page: Option<f64>,
    /// The stages of a page, in their order.
    pub stages: Vec<StageFigures>,
    /// Most memory of the crawling process, without files that are mapped; absent if the system does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// Number of requests that the web got, those for robots.txt included.
    pub requests: u64,
    /// Number of requests that came sooner than the delay allows.
    pub early_requests: u64,
    /// Number of requests for pages that robots.txt forbids.
    pub forbidden_requests: u64,
    /// Number of pages that ended without being parsed, by outcome.
    pub other_outcomes: BTreeMap<String, u64>,
    /// Number of attempts that failed and were repeated.
    pub retries: u64,
}

/// Place where a crawl keeps its URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FrontierPlace {
    /// A folder, as for a worker.
    Disk,
    /// Memory alone, as for `crawler run`.
    Memory,
}

/// Figures of one stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageFigures {
    /// Name of the stage.
    pub stage: &'static str,
    /// Processor time for each page, without that of stages within this one.
    pub processor_us_per_page: f64,
    /// Number of times that it came to its end.
    pub times: u64,
    /// Median of its durations, waits included.
    pub p50_us: f64,
    /// Duration that 99 % of all do not exceed.
    pub p99_us: f64,
}

/// Settings that figures depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Number of processors that the process may use.
    pub processors: usize,
    /// Seed of the web.
    pub seed: u64,
    /// Number of hosts.
    pub n_hosts: u32,
    /// Number of pages of the web.
    pub n_pages: u64,
    /// Place of the URLs.
    pub frontier: FrontierPlace,
    /// Setting of the number of pages in flight at once.
    pub concurrency: u32,
}

/// A crawl that has ended.
#[derive(Debug, Clone)]
pub struct Crawled {
    /// Totals of the crawl.
    pub counts: Counts,
    /// Time that it took.
    pub wall: Duration,
    /// Processor time of the whole process meanwhile.
    pub processor: Duration,
    /// Number of allocations of the whole process meanwhile; `None` if its allocator does not count them.
    pub n_allocations: Option<u64>,
    /// Times of all stages.
    pub stages: Vec<StageTimes>,
    /// Most memory of the process in bytes; `None` if the system does not tell.
    pub peak_memory: Option<u64>,
}

impl BenchReport {
    /// Computes the figures of a crawl.
    pub fn new(setup: Setup, crawled: &Crawled, visits: &VisitFigures) -> Self {
        let counts = &crawled.counts;
        // A crawl without a page is reported too.
        let n_pages = counts.parsed.max(1) as f64;
        let per_page = |time: Duration| micros(time) / n_pages;
        let seconds = crawled.wall.as_secs_f64().max(1e-9);
        let in_stages: Duration = crawled.stages.iter().map(|times| times.processor).sum();
        let dead = counts.dead_by_reason.iter();
        let dead = dead.map(|(reason, n)| (format!("dead: {reason}"), *n));
        let done = counts.outcomes.iter().map(|(end, n)| (end.clone(), *n));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            processors: setup.processors,
            seed: setup.seed,
            hosts: setup.n_hosts,
            pages_of_web: setup.n_pages,
            frontier: setup.frontier,
            concurrency: setup.concurrency,
            pages: counts.parsed,
            pages_served: visits.served,
            items: counts.items,
            body_bytes: counts.bytes,
            wall_ms: u64::try_from(crawled.wall.as_millis()).unwrap_or(u64::MAX),
            pages_per_s: counts.parsed as f64 / seconds,
            mb_per_s: counts.bytes as f64 / 1e6 / seconds,
            processor_us_per_page: per_page(crawled.processor),
            // The clocks of threads and of the process are read at different moments.
            other_us_per_page: per_page(crawled.processor.saturating_sub(in_stages)),
            allocations_per_page: crawled.n_allocations.map(|n| n as f64 / n_pages),
            stages: crawled
                .stages
                .iter()
                .map(|times| StageFigures {
                    stage: times.stage.as_str(),
                    processor_us_per_page: per_page(times.processor),
                    times: times.n,
                    p50_us: micros(times.p50),
                    p99_us: micros(times.p99),
                })
                .collect(),
            peak_memory_bytes: crawled.peak_memory,
            requests: visits.requests,
            early_requests: visits.early,
            forbidden_requests: visits.forbidden,
            other_outcomes: done.chain(dead).filter(|(_, n)| *n > 0).collect(),
            retries: counts.retries,
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crawler_process::stage::Stage;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Returns a report of 1 000 pages in two seconds.
    pub(crate) fn report() -> BenchReport {
        let setup = Setup {
            processors: 2,
            seed: 7,
            n_hosts: 4,
            n_pages: 1_000,
            frontier: FrontierPlace::Disk,
            concurrency: 64,
        };
        let times = |(n, stage): (u64, Stage)| StageTimes {
            stage,
            processor: MS(100 * n),
            n: 1_000 + n,
            p50: Duration::from_micros(10 * n),
            p99: MS(n),
        };
        let crawled = Crawled {
            counts: Counts {
                parsed: 1_000,
                other_done: 8,
                outcomes: [("gone".to_owned(), 8), ("skipped".to_owned(), 0)].into(),
                dead: 20,
                dead_by_reason: [("robots".to_owned(), 20)].into(),
                items: 1_000,
                bytes: 20_000_000,
                retries: 9,
                ..Counts::default()
            },
            wall: Duration::from_secs(2),
            processor: MS(4_000),
            n_allocations: Some(1_234_500),
            stages: (0..).zip(Stage::ALL).map(times).collect(),
            peak_memory: Some(300 << 20),
        };
        let visits = VisitFigures {
            requests: 1_050,
            served: 1_000,
            early: 0,
            forbidden: 0,
        };
        BenchReport::new(setup, &crawled, &visits)
    }

    #[test]
    fn figures_are_those_of_a_page_and_of_a_second() {
        let report = report();
        assert_eq!((report.pages_per_s, report.mb_per_s), (500.0, 10.0));
        assert_eq!(report.processor_us_per_page, 4_000.0);
        assert_eq!(report.allocations_per_page, Some(1_234.5));
        // The nine stages have 3.6 of the 4 seconds.
        assert!((report.other_us_per_page - 400.0).abs() < 1.0);
        let sink = report.stages.last().unwrap();
        assert_eq!((sink.stage, sink.times), ("sink", 1_008));
        assert!((sink.processor_us_per_page - 800.0).abs() < 1.0);
        assert!((sink.p50_us - 80.0).abs() < 0.1 && (sink.p99_us - 8_000.0).abs() < 0.1);
        let outcomes = BTreeMap::from([("dead: robots".to_owned(), 20), ("gone".to_owned(), 8)]);
        assert_eq!(report.other_outcomes, outcomes);
    }

    #[test]
    fn a_crawl_without_a_page_has_finite_figures() {
        let crawled = Crawled {
            counts: Counts::default(),
            wall: Duration::ZERO,
            processor: MS(1),
            n_allocations: None,
            stages: Vec::new(),
            peak_memory: None,
        };
        let setup = Setup {
            processors: 1,
            seed: 1,
            n_hosts: 1,
            n_pages: 1,
            frontier: FrontierPlace::Memory,
            concurrency: 1,
        };
        let report = BenchReport::new(setup, &crawled, &VisitFigures::default());
        assert_eq!((report.pages_per_s, report.mb_per_s), (0.0, 0.0));
        assert_eq!(report.other_us_per_page, 1_000.0);
    }

    #[test]
    fn the_book_has_every_field() {
        let book = include_str!("../../../docs/src/reference/bench.md");
        let json = serde_json::to_value(report()).unwrap();
        let fields = json.as_object().unwrap().keys();
        let of_stage = json["stages"][0].as_object().unwrap().keys();
        let stages = Stage::ALL.map(|stage| stage.as_str().to_owned());
        for name in fields.chain(of_stage).chain(&stages) {
            assert!(book.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}
