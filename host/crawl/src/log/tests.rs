//! Tests of what readers see of a log, and what a frontier stores of it.

use futures::FutureExt as _;

use super::*;
use crawler_frontier::Frontier;
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_process::clock::SystemClock;

/// A clock that tests set.
struct At(u64);

impl Clock for At {
    fn unix_nanos(&self) -> u64 {
        self.0 * 1_000_000
    }
}

fn log() -> CrawlLog {
    CrawlLog::new(Arc::new(SystemClock))
}

/// Returns the log of a run that begins at this moment.
fn log_at(at: u64, run: u64) -> CrawlLog {
    CrawlLog::of(Arc::new(At(at)), Shard(0), Run(run))
}

fn frontier() -> Arc<MemoryFrontier> {
    Arc::new(MemoryFrontier::new(MemorySettings::default()))
}

/// Returns the lines as people read them: page, count and message.
async fn shown(log: &CrawlLog) -> Vec<String> {
    log.read(false).map(|line| text(&line)).collect().await
}

fn text(line: &LogLine) -> String {
    match line.more {
        0 => format!("{} {}", line.url, line.message).trim().to_owned(),
        n => format!("{} +{n} {}", line.url, line.message),
    }
}

/// Logs that something went wrong with the pages of these numbers.
fn fail(log: &CrawlLog, pages: std::ops::RangeInclusive<u32>, message: &str) {
    for n in pages {
        log.on_page("warn", &format!("/{n}"), "page", message);
    }
}

#[tokio::test]
async fn a_follower_gets_what_is_kept_then_what_comes_then_the_end() {
    let log = log();
    log.note("info", "first");
    let follower = log.read(true);
    log.note("info", "second");
    log.close();
    let messages: Vec<String> = follower.map(|line| line.message).collect().await;
    assert_eq!(messages, ["first", "second"]);
}

#[tokio::test]
async fn the_last_errors_are_told_without_what_went_well() {
    let log = log();
    for (level, message) in [("error", "a"), ("info", "b"), ("warn", "c"), ("error", "d")] {
        log.note(level, message);
    }
    let last: Vec<String> = log.last_errors(2).into_iter().map(|l| l.message).collect();
    assert_eq!(last, ["c", "d"]);
}

#[tokio::test]
async fn only_the_last_lines_are_kept_and_the_setting_is_named() {
    let log = log();
    log.set_bounds(LogBounds {
        lines: 3,
        bytes: 1 << 20,
    });
    for n in 0..8 {
        log.note("info", n.to_string());
    }
    let gone = "5 lines are gone: the log keeps the last 3 lines and 1048576 bytes, the limits set by --max-log and --max-log-size";
    assert_eq!(shown(&log).await, [gone, "5", "6", "7"]);
    log.set_bounds(LogBounds { lines: 3, bytes: 2 });
    assert_eq!(shown(&log).await[1..], ["6", "7"]);
}

#[test]
fn a_log_has_the_bounds_of_the_settings() {
    let bounds = LogBounds {
        lines: 1_000,
        bytes: 1 << 20,
    };
    assert_eq!(LogBounds::default(), bounds);
    let settings = CrawlSettings {
        max_log: Some(7),
        max_log_size: Some(9_000),
        ..CrawlSettings::default()
    };
    let bounds = LogBounds {
        lines: 7,
        bytes: 9_000,
    };
    assert_eq!(LogBounds::of(&settings), bounds);
}

#[tokio::test]
async fn r05_a_long_line_is_cut_between_characters_and_marked() {
    let log = log();
    let url = format!("http://a.test/{}", "ü".repeat(4_000));
    for shift in 0..4 {
        let message = format!("{}{}", "x".repeat(shift), "🦀".repeat(22 << 10));
        log.on_page("info", &url, &"r".repeat(300), message);
    }
    log.on_page("info", "http://a.test/", "page", "as it is");
    let lines: Vec<LogLine> = log.read(false).collect().await;
    for line in &lines[..4] {
        assert!(ring::size(line) <= LINE_BYTES && ring::size(line) > LINE_BYTES - 8);
        for text in [&line.url, &line.rule, &line.message] {
            assert!(text.ends_with(CUT_MARK), "{text}");
        }
    }
    let last = &lines[4];
    assert_eq!((&*last.url, &*last.message), ("http://a.test/", "as it is"));
}

#[tokio::test]
async fn r05_the_log_of_a_crawl_is_bounded_in_bytes() {
    let log = log();
    let bounds = LogBounds::default();
    let slow = log.read(true);
    for n in 0..bounds.lines {
        log.note("info", format!("{n} {}", "x".repeat(88 << 10)));
    }
    let n_kept = bounds.bytes / LINE_BYTES;
    assert_eq!(log.shared.lines().ring.latest_first().count(), n_kept);
    log.close();
    // A reader that follows holds nothing beyond that, and is told of lines that are gone.
    let heard: Vec<LogLine> = slow.collect().await;
    assert_eq!(heard.len(), n_kept + 1);
    let n_missed = bounds.lines - n_kept;
    assert!(heard[0].message.starts_with(&format!("{n_missed} lines")));
    assert!(heard[n_kept].message.starts_with("999 x"));
}

#[tokio::test]
async fn a_slow_reader_is_told_how_many_lines_are_gone() {
    let frontier = frontier();
    let first = log_at(1_000, 1);
    first.attach(frontier.clone()).await.unwrap();
    first.note("info", "before");
    first.detach();
    let log = log_at(9_000_000, 2);
    log.attach(frontier.clone()).await.unwrap();
    log.set_bounds(LogBounds {
        lines: 2,
        bytes: 1 << 20,
    });
    let mut slow = log.read(true);
    // This line moves twice, and its old numbers are gaps.
    fail(&log, 1..=100, "no price");
    (0..3).for_each(|n| log.note("info", n.to_string()));
    let mut lines = vec![slow.next().await.unwrap(), slow.next().await.unwrap()];
    // Of the next three lines that go, the reader has read the first.
    (3..6).for_each(|n| log.note("info", n.to_string()));
    log.close();
    lines.extend(slow.collect::<Vec<_>>().await);
    let told = lines
        .iter()
        .map(|line| line.message.split(':').next().unwrap());
    let expected = ["3 lines are gone", "1", "2 lines are gone", "4", "5"];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn readers_from_before_the_frontier_is_open_read_each_line_once() {
    let frontier = frontier();
    let first = log_at(9_000_000, 1);
    first.attach(frontier.clone()).await.unwrap();
    first.note("info", "stored");
    first.detach();
    // The clock of the next process is behind, so its lines are numbered anew.
    let log = log_at(1_000, 2);
    log.note("info", "1");
    log.note("info", "2");
    let mut follower = log.read(true);
    assert_eq!(follower.next().await.unwrap().message, "1");
    let reader = log.read(false);
    log.attach(frontier.clone()).await.unwrap();
    log.note("info", "3");
    log.close();
    let messages = async |lines: BoxStream<'static, LogLine>| {
        let messages = lines.map(|line| line.message);
        messages.collect::<Vec<String>>().await
    };
    assert_eq!(messages(follower).await, ["2", "3"]);
    assert_eq!(messages(reader).await, ["1", "2"]);
}

#[tokio::test]
async fn a_reader_is_told_nothing_of_lines_beyond_its_end() {
    let log = log();
    log.set_bounds(LogBounds {
        lines: 2,
        bytes: 1 << 20,
    });
    log.note("info", "0");
    let reader = log.read(false);
    (1..6).for_each(|n| log.note("info", n.to_string()));
    let lines: Vec<String> = reader.map(|line| line.message).collect().await;
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("1 line is gone: "), "{lines:?}");
}

#[tokio::test]
async fn what_went_wrong_with_many_pages_is_one_line_with_their_number() {
    let log = log();
    let mut follower = log.read(true);
    let mut followed = Vec::new();
    for n in 1..=400 {
        fail(&log, n..=n, "no price");
        while let Some(Some(line)) = follower.next().now_or_never() {
            followed.push(text(&line));
        }
    }
    assert_eq!(shown(&log).await, ["/100 +399 no price"]);
    log.close();
    followed.extend(follower.map(|line| text(&line)).collect::<Vec<_>>().await);
    let counts = ["/1", "/10 +9", "/100 +99", "/100 +399"];
    assert_eq!(followed, counts.map(|start| format!("{start} no price")));
    assert_eq!(shown(&log).await, ["/100 +399 no price"]);
}

#[tokio::test]
async fn a_line_that_counts_pages_names_one_page_throughout() {
    let log = log();
    for n in 1..=12 {
        let url = format!("/{n}");
        log.on_page_with(PageNote {
            level: "warn",
            url: &url,
            rule: "page",
            said: format!("{url} is empty"),
            detail: format!("; {n} ms"),
            place: "",
        });
    }
    assert_eq!(shown(&log).await, ["/10 +11 /10 is empty; 10 ms"]);
    log.close();
    assert_eq!(shown(&log).await, ["/10 +11 /10 is empty; 10 ms"]);
}

#[tokio::test]
async fn a_page_that_is_retried_counts_once() {
    let log = log();
    for _attempt in 0..5 {
        fail(&log, 1..=1, "timeout");
    }
    assert_eq!(shown(&log).await, ["/1 timeout"]);
    for _attempt in 0..5 {
        fail(&log, 1..=3, "timeout");
    }
    assert_eq!(shown(&log).await, ["/1 +2 timeout"]);
    // Another line counts the same pages anew.
    log.set_bounds(LogBounds {
        lines: 1,
        bytes: 1 << 20,
    });
    log.note("info", "later");
    fail(&log, 2..=3, "timeout");
    assert_eq!(shown(&log).await[1..], ["/2 +1 timeout"]);
}

#[tokio::test]
async fn only_the_same_warning_of_the_same_rule_is_counted() {
    let log = log();
    for url in ["/1", "/2"] {
        log.on_page("info", url, "page", "read");
        log.on_page("warn", url, "page", format!("{url} is empty"));
        log.on_page("warn", url, "list", "empty");
        log.note("warn", "the crawl waits");
        log.on_page_with(PageNote {
            level: "error",
            url,
            rule: "page",
            said: "ended".to_owned(),
            detail: format!(" after {url}"),
            place: "page",
        });
    }
    let expected = [
        "/1 read",
        "/1 +1 /1 is empty",
        "/1 +1 empty",
        "the crawl waits",
        "/1 +1 ended after /1",
        "/2 read",
        "the crawl waits",
    ];
    assert_eq!(shown(&log).await, expected);
}

#[tokio::test]
async fn a_line_that_is_gone_counts_no_more_pages() {
    let log = log();
    log.set_bounds(LogBounds {
        lines: 1,
        bytes: 1 << 20,
    });
    fail(&log, 1..=2, "no price");
    log.note("info", "later");
    fail(&log, 3..=4, "no price");
    assert_eq!(shown(&log).await[1..], ["/3 +1 no price"]);
}

#[tokio::test]
async fn a_log_goes_on_from_what_the_frontier_stores() {
    let frontier = frontier();
    let first = log_at(1_000, 1);
    first.note("info", "before the opening");
    first.attach(frontier.clone()).await.unwrap();
    fail(&first, 1..=3, "no price");
    first.detach();
    first.note("error", "the crawl waits");
    // The same crawl opens its frontier again, then another process does, with a clock that is behind.
    first.attach(frontier.clone()).await.unwrap();
    first.detach();
    let second = log_at(900, 2);
    second.note("warn", "new process");
    let follower = second.read(true);
    second.attach(frontier.clone()).await.unwrap();
    fail(&second, 9..=9, "no price");
    let expected = [
        "before the opening",
        "/1 +2 no price",
        "the crawl waits",
        "new process",
        "/9 no price",
    ];
    assert_eq!(shown(&second).await, expected);
    let errors = second.last_errors(9).into_iter().map(|line| text(&line));
    assert_eq!(errors.collect::<Vec<_>>(), ["new process", "/9 no price"]);
    let stored = frontier.stored_lines().await.unwrap();
    let stored: Vec<String> = stored.iter().map(|line| text(line)).collect();
    assert_eq!(stored, expected);
    second.close();
    assert!(follower.count().await >= 2);
}

#[tokio::test]
async fn r05_the_log_in_a_frontier_is_bounded_too() {
    let frontier = frontier();
    let log = log_at(1_000, 1);
    let bounds = |lines| LogBounds {
        lines,
        bytes: 1 << 20,
    };
    log.set_bounds(bounds(5));
    log.attach(frontier.clone()).await.unwrap();
    for n in 0..100 {
        log.note("info", n.to_string());
    }
    let stored = async || frontier.stored_lines().await.unwrap().len();
    assert_eq!(stored().await, 5);
    // The next opening may have smaller bounds.
    let next = log_at(2_000, 1);
    next.set_bounds(bounds(2));
    next.attach(frontier.clone()).await.unwrap();
    assert_eq!(stored().await, 2);
    assert_eq!(shown(&next).await, ["98", "99"]);
    frontier.close().await.unwrap();
}
