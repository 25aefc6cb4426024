//! Tests of crawls whose resource names several sinks, of which a worker may lack one.

use super::bench::settings;
use super::*;
use crawler_model::crawl::ItemRecord;
use crawler_model::settings::SinkName;
use crawler_model::status::LogLine;
use crawler_sink::lines::{ExportedLines, LineFolders, LineSettings};
use crawler_sink::{Delivery, OpenSinks, Sink, SinkError, Written};
use futures::StreamExt as _;

/// Sink that rejects every other item.
struct Narrow;

#[async_trait]
impl Sink for Narrow {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let numbers = (first..).take(items.len());
        Ok(Written {
            n_rejected: numbers.filter(|number| number % 2 == 0).count() as u64,
            ..Written::all(items, None)
        })
    }
}

/// Sinks of a process that declares a folder and a narrow sink, and no other.
struct WithFolder {
    lines: LineFolders,
    out: ExportedLines,
}

#[async_trait]
impl OpenSinks for WithFolder {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        match delivery.sink.as_str() {
            "lines" => self.lines.open(delivery).await,
            "out" => self.out.open(delivery).await,
            "narrow" => Ok(Box::new(Narrow)),
            other => Err(SinkError::Retry {
                message: format!("sink {other} is not declared"),
                source: None,
            }),
        }
    }
}

fn named(sinks: &[&str]) -> CrawlSettings {
    CrawlSettings {
        sinks: sinks.iter().map(|name| name.parse().unwrap()).collect(),
        ..settings()
    }
}

/// Returns the number of lines that a program sees in the folder of the operator.
fn n_out(folder: &std::path::Path) -> usize {
    let files = std::fs::read_dir(folder.join("7/0")).into_iter().flatten();
    let text = |file: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(file.unwrap().path()).unwrap()
    };
    files.map(|file| text(file).lines().count()).sum()
}

/// Returns true if a line of the crawl's log begins like this.
async fn is_told(bench: &Bench, text: &str) -> bool {
    let lines = bench.parts.crawls.logs(bench::shard().resource, false);
    let lines: Vec<LogLine> = lines.collect().await;
    lines.iter().any(|line| line.message.starts_with(text))
}

async fn bench(out: &std::path::Path) -> Bench {
    let folder = out.to_owned();
    Bench::with_parts(move |parts| {
        let lines = parts.data.items_root().unwrap();
        parts.sinks = Arc::new(WithFolder {
            lines: LineFolders::new(lines, LineSettings::default()),
            out: ExportedLines::new(folder, LineSettings::default()),
        });
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_a_worker_lacks_is_told_and_the_others_go_on() {
    let out = tempfile::tempdir().unwrap();
    let bench = bench(out.path()).await;
    let crawl = named(&["lines", "out", "gone"]);
    bench.assign_with(1, Generation(1), crawl).await;
    let go_on = async |bench: &Bench| bench.n_items() > 3 && n_out(out.path()) > 3;
    bench.wait_for("others go on", MINUTE, go_on).await;
    assert_eq!(bench.waits(), None, "a crawl that goes on does not wait");
    let fault = "items wait for sink gone: sink gone is not declared";
    assert!(is_told(&bench, fault).await);
    // The resource goes without it: the crawl goes on with the others by itself.
    bench
        .assign_with(1, Generation(2), named(&["lines", "out"]))
        .await;
    let is_well = async |bench: &Bench| bench.waits().is_none() && bench.is_open();
    bench.wait_for("it goes on", MINUTE, is_well).await;
    let dropped = "the resource no longer has sink gone: ";
    let is_dropped = async |bench: &Bench| is_told(bench, dropped).await;
    bench.wait_for("it is told", MINUTE, is_dropped).await;
    let n_before = n_out(out.path());
    let more = async |_: &Bench| n_out(out.path()) > n_before + 3;
    bench.wait_for("more comes", MINUTE, more).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn items_that_do_not_fit_are_counted() {
    let out = tempfile::tempdir().unwrap();
    let bench = bench(out.path()).await;
    bench
        .assign_with(1, Generation(1), named(&["narrow"]))
        .await;
    let crawls = bench.parts.crawls.clone();
    let counts = crawls.sink_counts();
    let are_counted = async |_: &Bench| counts.rejected.read() > 1;
    bench.wait_for("some", MINUTE, are_counted).await;
    bench.stop().await;
    let n_items = counts.items.read();
    assert_eq!(counts.rejected.read(), n_items.div_ceil(2), "{n_items}");
}

#[tokio::test(start_paused = true)]
async fn a_backlog_pauses_the_crawl_and_names_the_sink() {
    let out = tempfile::tempdir().unwrap();
    let bench = bench(out.path()).await;
    let crawl = CrawlSettings {
        max_undelivered: Some(1_000),
        ..named(&["lines", "gone"])
    };
    bench.assign_with(1, Generation(1), crawl).await;
    let is_paused = async |bench: &Bench| {
        let status = bench.parts.crawls.status(None);
        let waits = status.into_iter().find_map(|crawl| crawl.waits);
        waits.is_some_and(|waits| {
            waits.condition == "SinkUnavailable"
                && waits.why.contains("until sink gone has caught up")
                && waits.why.contains("sink gone is not declared")
        })
    };
    bench.wait_for("it pauses", MINUTE, is_paused).await;
    bench.pass(SECOND).await;
    let n_asked = bench.n_asked();
    bench.pass(MINUTE).await;
    assert_eq!(bench.n_asked(), n_asked, "no page is taken");
    let n_items = bench.n_items();
    assert!(n_items > 0, "{n_items}");
    // The sink in the data root has all items, and the crawl goes on once it is the only one.
    let crawl = CrawlSettings {
        max_undelivered: Some(1_000),
        ..named(&[SinkName::lines().as_str()])
    };
    bench.assign_with(1, Generation(2), crawl).await;
    let goes_on = async |bench: &Bench| bench.n_asked() > n_asked + 3;
    bench.wait_for("it goes on", MINUTE, goes_on).await;
    assert_eq!(bench.waits(), None);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_waits_only_for_a_sink_that_fails_is_shown() {
    let few = CrawlSettings {
        max_depth: Some(2),
        ..named(&["lines", "gone"])
    };
    let limited = CrawlSettings {
        max_pages: Some(5),
        ..named(&["lines", "gone"])
    };
    for crawl in [few, limited] {
        let out = tempfile::tempdir().unwrap();
        let bench = bench(out.path()).await;
        bench.assign_with(1, Generation(1), crawl).await;
        let is_shown = async |bench: &Bench| bench.waits().as_deref() == Some("SinkUnavailable");
        bench.wait_for("it is shown", MINUTE, is_shown).await;
        let has_all = async |bench: &Bench| bench.n_items() == bench.n_asked();
        bench.wait_for("the other has all", MINUTE, has_all).await;
        bench.stop().await;
    }
}
