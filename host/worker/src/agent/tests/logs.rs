//! Tests of what the log lines of a crawl tell of it.

use futures::StreamExt as _;

use super::*;
use crawler_process::telemetry::testing::Log;

/// Fields of the span of a crawl, as lines show them.
fn crawl(epoch: u64) -> String {
    format!(" resource=books shard=7/0 epoch={epoch} run=1")
}

/// Checks that there are lines with this message, and that each has these fields after it.
#[track_caller]
fn check(lines: &[String], message: &str, fields: &str) {
    let told: Vec<&String> = lines.iter().filter(|line| line.contains(message)).collect();
    assert!(!told.is_empty(), "no line {message:?} in {lines:#?}");
    for line in told {
        assert!(line.contains(&format!("{message}{fields}")), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_line_of_a_crawl_tells_its_resource_and_shard() {
    let (log, _guard) = Log::of_this_thread("info,crawler_frontier::durable=debug");
    let bench = Bench::new().await;
    bench.assign(1).await;
    let is_crawled = async |bench: &Bench| bench.n_asked() > 1;
    bench.wait_for("crawled", MINUTE, is_crawled).await;
    let slower = CrawlSettings {
        delay_ms: Some(2_000),
        ..bench::settings()
    };
    bench.assign_with(1, Generation(2), slower).await;
    bench.pass(SECOND).await;
    bench.unassign().await;
    let is_over = async |bench: &Bench| bench.epoch().is_none();
    bench.wait_for("over", MINUTE, is_over).await;
    bench.pass(SECOND).await;
    bench.stop().await;
    let lines = log.lines();
    for message in [
        "crawl starts",
        "the frontier is open",
        "batches are durable",
        "settings changed",
        "no longer assigned; the crawl is to end",
        "crawl ends",
    ] {
        check(&lines, message, &crawl(1));
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_of_a_shard_goes_on_in_its_next_assignment() {
    let bench = Bench::new().await;
    *bench.site.not_before.lock().unwrap() = Some(SECOND);
    let messages = async |bench: &Bench| {
        let lines = bench.parts.crawls.logs(bench::shard().resource, false);
        lines.map(|line| line.message).collect::<Vec<_>>().await
    };
    for epoch in [1, 2] {
        bench.assign(epoch).await;
        let is_crawled = async |bench: &Bench| bench.is_open() && bench.n_asked() > 1;
        bench.wait_for("crawled", MINUTE, is_crawled).await;
        bench.unassign().await;
        let is_over = async |bench: &Bench| bench.epoch().is_none();
        bench.wait_for("over", MINUTE, is_over).await;
    }
    let expected = ["run 1 begins", "retry: not yet", "run 1 goes on"];
    let messages = messages(&bench).await;
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    assert!(messages.starts_with(&expected), "{messages:#?}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_about_a_page_tells_its_url_and_attempt_once() {
    let (log, _guard) = Log::of_this_thread("debug");
    let bench = Bench::new().await;
    *bench.site.not_before.lock().unwrap() = Some(SECOND);
    bench.assign(1).await;
    let is_crawled = async |bench: &Bench| bench.n_asked() > 1;
    bench.wait_for("crawled", MINUTE, is_crawled).await;
    bench.stop().await;
    let lines = log.lines();
    let line = lines.iter().find(|line| line.contains("not yet"));
    let line = line.unwrap_or_else(|| panic!("{lines:#?}"));
    let fields = format!("DEBUG crawl log{} attempt=1 level=", crawl(1));
    assert!(line.contains(&fields), "{line}");
    assert_eq!(line.matches("url=").count(), 1, "{line}");
}
