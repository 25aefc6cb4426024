//! Tests of whole crawls against twins of fetcher, rules and sink.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::Notify;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::run;
use crate::doubles::{FaultyFrontier, closed, page, report, requests};
use crate::end::CrawlEnd;
use crate::log::CrawlLog;
use crate::pacing::Pacing;
use crate::parts::{CrawlConfig, CrawlParts};
use crate::permit::Always;
use crawler_fetch::{Answer, Failure, Fetch, FetchError, FetchRequest, Fetched};
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_frontier::{Frontier, ItemOutbox as _};
use crawler_model::crawl::{
    Counts, Item, ItemRecord, Kill, NO_RULE, Page, PageContext, Request, RuleError, UnixMillis,
};
use crawler_model::frontier::{DelaySource, Validators};
use crawler_model::id::{Digest, ResourceId, Run};
use crawler_model::plugin::{Description, Limits};
use crawler_model::resource::{CrawlSettings, Robots};
use crawler_model::settings::SinkName;
use crawler_plugin::{CallConfig, CallFailure, CallOutput, CallReport, KillReport, Rules};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::CrawlMemory;
use crawler_sink::{Gathering, Sink, SinkError, Written};

mod archive;
mod bench;
mod changes;
mod drift;
mod files;
mod incidents;
mod memory;
mod quotas;
mod sinks;
mod suspects;
mod traces;
mod unchanged;
mod wide;

use bench::*;

#[tokio::test]
async fn every_page_in_scope_is_fetched_once_and_its_items_are_kept() {
    let ended = crawl(&["/"], CrawlSettings::default(), Kept::default()).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    let mut asked = ended.asked;
    asked.sort();
    assert_eq!(asked, ["/", "/a", "/b", "/deep", "/deeper", "/gone"]);
    let expected: BTreeSet<String> = ["/", "/a", "/b", "/deep", "/deeper"].map(item).into();
    assert_eq!((ended.paths, ended.n_items), (expected, 5));
    assert_eq!(
        (
            ended.counts.parsed,
            ended.counts.other_done,
            ended.counts.items
        ),
        (5, 1, 5)
    );
    assert_eq!(
        ended.counts.refused_links,
        BTreeMap::from([("out-of-scope".to_owned(), 1), ("scheme".to_owned(), 1)])
    );
}

#[tokio::test]
async fn f30_a_rule_sees_an_accepted_status_and_its_referrer() {
    let sink = Kept::default();
    let ended = crawl(&["/checked"], CrawlSettings::default(), sink.clone()).await;
    assert_eq!((ended.end, ended.asked.len()), (CrawlEnd::Finished, 2));
    assert_eq!((ended.counts.parsed, ended.counts.other_done), (2, 0));
    let items = sink.items.lock().unwrap();
    let expected = r#"{"path":"/broken","referrer":"http://site.test/checked"}"#;
    assert_eq!(items[0].item.get(), expected);
}

#[tokio::test]
async fn depth_and_pages_are_limited() {
    let settings = CrawlSettings {
        max_depth: Some(1),
        ..Default::default()
    };
    let ended = crawl(&["/"], settings, Kept::default()).await;
    let mut asked = ended.asked;
    asked.sort();
    assert_eq!(asked, ["/", "/a", "/b", "/gone"]);
    let settings = CrawlSettings {
        max_pages: Some(2),
        ..Default::default()
    };
    let ended = crawl(&["/"], settings, Kept::default()).await;
    assert_eq!((ended.end, ended.asked.len()), (CrawlEnd::Finished, 2));
    let settings = CrawlSettings {
        max_pages: Some(1),
        ..Default::default()
    };
    let ended = crawl(&["/"], settings, Kept::default()).await;
    let told = "stopped at 1 page, the limit set by --max-pages";
    let is_told = ended.log.iter().any(|line| line.contains(told));
    assert!(is_told, "{:?}", ended.log);
}

#[tokio::test]
async fn a_pattern_that_is_full_is_told_once() {
    let settings = CrawlSettings {
        max_pattern_urls: Some(2),
        concurrency: Some(1),
        ..CrawlSettings::default()
    };
    let ended = crawl(&["/numbers"], settings, Kept::default()).await;
    assert_eq!((ended.end, ended.asked.len()), (CrawlEnd::Finished, 3));
    assert_eq!(ended.counts.refused_links["max-pattern-urls"], 2 * 3);
    let told = ended
        .log
        .iter()
        .filter(|line| line.contains("max-pattern-urls"));
    assert_eq!(told.count(), 1, "{:?}", ended.log);
}

#[tokio::test]
async fn a_crawl_that_ignores_robots_says_so_once() {
    for (robots, n_told) in [(None, 0), (Some(Robots::Ignore), 1)] {
        let settings = CrawlSettings {
            robots,
            ..CrawlSettings::default()
        };
        let ended = crawl(&["/"], settings, Kept::default()).await;
        let told = ended.log.iter().filter(|line| line.contains("--robots"));
        assert_eq!(told.count(), n_told, "{:?}", ended.log);
    }
}

#[tokio::test]
async fn a_page_that_is_tried_alone_ends_by_its_own_attempts() {
    let frontier = Arc::new(FaultyFrontier {
        is_alone: true,
        ..FaultyFrontier::default()
    });
    let settings = CrawlSettings {
        max_attempts: Some(1),
        ..CrawlSettings::default()
    };
    let stop = CancellationToken::new();
    let ended = crawl_on(frontier, &["/unreached"], settings, Kept::default(), stop).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    assert_eq!(ended.counts.dead_by_reason["connection"], 1);
}

/// Each page has four bytes.
#[tokio::test]
async fn bytes_are_limited_over_all_lives_of_a_run() {
    let limited_to = |max_bytes| CrawlSettings {
        max_bytes: Some(max_bytes),
        concurrency: Some(1),
        ..Default::default()
    };
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    for (max_bytes, n_asked) in [(5, 2), (8, 0), (12, 1)] {
        let ended = crawl_on(
            frontier.clone(),
            &["/"],
            limited_to(max_bytes),
            Kept::default(),
            CancellationToken::new(),
        )
        .await;
        let found = (ended.end, ended.asked.len());
        assert_eq!(found, (CrawlEnd::Finished, n_asked), "{max_bytes}");
        let told = format!("the limit of {max_bytes} set by --max-bytes is reached");
        assert!(ended.log[0].ends_with(&told), "{:?}", ended.log);
    }
    assert_eq!(frontier.counts().bytes, 12);
}

#[tokio::test]
async fn f24_a_page_that_failed_once_is_fetched_again() {
    let ended = crawl(&["/flaky"], CrawlSettings::default(), Kept::default()).await;
    assert_eq!(ended.asked, ["/flaky", "/flaky"]);
    assert_eq!(ended.paths, BTreeSet::from([item("/flaky")]));
}

#[tokio::test]
async fn a_page_whose_host_is_left_alone_waits_and_that_is_no_attempt() {
    let settings = CrawlSettings {
        max_attempts: Some(1),
        ..CrawlSettings::default()
    };
    let ended = crawl(&["/paused"], settings, Kept::default()).await;
    assert_eq!(ended.asked, ["/paused"; 4]);
    assert_eq!(ended.paths, BTreeSet::from([item("/paused")]));
    assert_eq!(ended.counts.retries, 0);
}

#[tokio::test]
async fn no_more_pages_are_begun_than_a_rate_lets_a_crawl() {
    let settings = CrawlSettings {
        rate: Some("3/s, 4/2s".parse().unwrap()),
        ..CrawlSettings::default()
    };
    let began = std::time::Instant::now();
    let ended = crawl(&["/numbers"], settings, Kept::default()).await;
    // The fifth page has to wait for the first.
    assert_eq!(ended.asked.len(), 5);
    assert!(began.elapsed() >= Duration::from_secs(2));
}

#[tokio::test]
async fn outside_of_its_hours_a_crawl_begins_no_page_and_rests_until_they_begin() {
    let now = SystemClock.unix_millis();
    let minute = now / 60_000 % (24 * 60);
    let at = |minute: u64| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
    // The hours begin an hour from now, and last for an hour.
    let hours = format!("{}-{}", at(minute + 60), at(minute + 120));
    let settings = CrawlSettings {
        hours: Some(hours.parse().unwrap()),
        ..CrawlSettings::default()
    };
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let (sink, stop) = (Kept::default(), CancellationToken::new());
    let ended = crawl_or_rest(frontier, &["/"], settings, sink, stop, Rest::after(60)).await;
    let CrawlEnd::Resting { until } = ended.end else {
        panic!("{:?}", ended.end)
    };
    assert!((now + 58 * 60_000..=now + 61 * 60_000).contains(&until));
    assert_eq!(ended.asked, Vec::<String>::new());
}

#[tokio::test]
async fn a_crawl_that_has_rested_goes_on_with_the_rate_that_it_had() {
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let settings = CrawlSettings {
        rate: Some("1/h".parse().unwrap()),
        ..CrawlSettings::default()
    };
    let rest = Rest::after(60);
    for n_before in [0, 1, 1] {
        let (sink, stop) = (Kept::default(), CancellationToken::new());
        let ended = crawl_or_rest(
            frontier.clone(),
            &["/a", "/b"],
            settings.clone(),
            sink,
            stop,
            rest.clone(),
        )
        .await;
        assert!(matches!(ended.end, CrawlEnd::Resting { .. }));
        assert_eq!(ended.asked.len(), 1 - n_before);
    }
}

#[tokio::test]
async fn two_redirects_to_one_page_give_its_items_once() {
    let settings = CrawlSettings {
        concurrency: Some(1),
        ..Default::default()
    };
    let ended = crawl(
        &["/moved", "/moved-too", "/target"],
        settings,
        Kept::default(),
    )
    .await;
    assert_eq!((ended.end, ended.n_items), (CrawlEnd::Finished, 1));
}

#[tokio::test]
async fn a_redirect_to_another_host_is_followed_only_in_scope() {
    let ended = crawl(&["/away"], CrawlSettings::default(), Kept::default()).await;
    assert_eq!(ended.asked, ["/away"]);
    let scope = vec!["other.test".parse().unwrap()];
    let settings = CrawlSettings {
        scope,
        ..Default::default()
    };
    let ended = crawl(&["/away"], settings, Kept::default()).await;
    assert_eq!(ended.asked[..2], ["/away", "/"]);
}

#[tokio::test]
async fn f27_a_panic_while_a_page_is_handled_costs_that_page_only() {
    let ended = crawl(&["/panic", "/b"], CrawlSettings::default(), Kept::default()).await;
    assert_eq!(
        (ended.end, ended.paths),
        (CrawlEnd::Finished, BTreeSet::from([item("/b")]))
    );
    assert_eq!(
        ended.counts.dead_by_reason,
        BTreeMap::from([("host-panic".to_owned(), 1)])
    );
}

#[tokio::test]
async fn f27_a_page_that_is_never_committed_ends_the_crawl_instead_of_holding_it_up() {
    let frontier = FaultyFrontier {
        panics_on_commit: true,
        ..FaultyFrontier::default()
    };
    let ended = crawl_on(
        Arc::new(frontier),
        &["/"],
        CrawlSettings::default(),
        Kept::default(),
        CancellationToken::new(),
    )
    .await;
    assert!(matches!(ended.end, CrawlEnd::Failed(_)), "{:?}", ended.end);
}

#[tokio::test]
async fn r01_a_root_that_has_ended_the_process_three_times_fails_the_crawl() {
    for (root_ends, is_called) in [(2, true), (3, false)] {
        let frontier = Arc::new(FaultyFrontier {
            root_ends,
            ..FaultyFrontier::default()
        });
        let (settings, stop) = (CrawlSettings::default(), CancellationToken::new());
        let ended = crawl_on(frontier.clone(), &["/b"], settings, Kept::default(), stop).await;
        match ended.end {
            CrawlEnd::Finished => assert!(is_called),
            CrawlEnd::Failed(why) => {
                assert!(
                    !is_called && why.contains("has ended the process 3 times"),
                    "{why}"
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(frontier.n_entered_root(), usize::from(is_called));
    }
}

/// The crawl does not end as failed: the frontier is opened again, and it goes on.
#[tokio::test]
async fn a_frontier_that_cannot_note_or_commit_a_page_ends_the_crawl_as_lost() {
    for fails_on_commit in [false, true] {
        let frontier = Arc::new(FaultyFrontier {
            fails_on_commit,
            fails_on_suspect: !fails_on_commit,
            suspect_after: Some(Duration::ZERO),
            ..FaultyFrontier::default()
        });
        let stop = CancellationToken::new();
        let settings = CrawlSettings::default();
        let ended = crawl_on(frontier.clone(), &["/b"], settings, Kept::default(), stop).await;
        let lost = CrawlEnd::Frontier(closed());
        assert_eq!((ended.end, ended.n_items), (lost, 0));
        // A page that never reached its rule is put back.
        assert_eq!(frontier.in_flight(), usize::from(fails_on_commit));
        assert_eq!(ended.counts.due, 1);
    }
}

#[tokio::test]
async fn a_page_of_a_kind_that_is_not_wanted_is_done_and_counted() {
    let ended = crawl(&["/film", "/b"], CrawlSettings::default(), Kept::default()).await;
    let counts = (
        ended.counts.dead,
        ended.counts.other_done,
        ended.counts.parsed,
    );
    assert_eq!((ended.end, counts), (CrawlEnd::Finished, (0, 1, 1)));
    assert_eq!(ended.counts.refused_links["content-type"], 1);
}

#[tokio::test]
async fn a_crawl_that_names_what_its_worker_does_not_have_waits_and_loses_no_page() {
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let (sink, stop) = (Kept::default(), CancellationToken::new());
    let settings = CrawlSettings::default();
    let ended = crawl_or_rest(frontier, &["/unset"], settings, sink, stop, Rest::after(10)).await;
    assert!(
        matches!(ended.end, CrawlEnd::Resting { .. }),
        "{:?}",
        ended.end
    );
    assert_eq!((ended.counts.due, ended.counts.retries), (1, 0));
}

#[tokio::test]
async fn a_killed_or_skipped_page_does_not_end_the_crawl_and_a_fatal_one_does() {
    let ended = crawl(
        &["/fuel", "/skip", "/b"],
        CrawlSettings::default(),
        Kept::default(),
    )
    .await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    assert_eq!(
        (
            ended.counts.dead,
            ended.counts.other_done,
            ended.counts.parsed
        ),
        (1, 1, 1)
    );
    let ended = crawl(&["/fatal"], CrawlSettings::default(), Kept::default()).await;
    let reason = "rule page gave up at http://site.test/fatal: no sense";
    assert_eq!(ended.end, CrawlEnd::Failed(reason.into()));
}

#[tokio::test]
async fn a_page_whose_rule_the_plugin_does_not_have_is_given_up_unfetched() {
    let ended = crawl(&["/stray"], CrawlSettings::default(), Kept::default()).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    assert_eq!(
        ended.counts.dead_by_reason,
        [(NO_RULE.to_owned(), 1)].into()
    );
    assert_eq!(ended.asked, ["/stray", "/b"]);
}

#[tokio::test]
async fn a_root_without_requests_fails_the_crawl() {
    let ended = crawl(&[], CrawlSettings::default(), Kept::default()).await;
    let reason = "root gave no request: check the resource's params";
    assert_eq!(ended.end, CrawlEnd::Failed(reason.into()));
}

#[tokio::test(start_paused = true)]
async fn root_is_called_as_often_as_a_page_is_tried_and_waited_for_no_longer() {
    let settings = CrawlSettings {
        max_attempts: Some(3),
        max_retry_wait_ms: Some(5_000),
        ..CrawlSettings::default()
    };
    let started = Instant::now();
    let ended = crawl(&["/retry"], settings, Kept::default()).await;
    let reason = "root failed 3 times, the last time: not yet";
    assert_eq!(ended.end, CrawlEnd::Failed(reason.into()));
    assert_eq!(started.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_waits_for_longer_than_it_may_rests_with_its_items_delivered() {
    let settings = CrawlSettings {
        max_retry_wait_ms: Some(2 * 60 * 60_000),
        max_attempts: Some(2),
        ..CrawlSettings::default()
    };
    for (rest_after, rests) in [(1, true), (2 * 60 * 60, false)] {
        let before = SystemClock.unix_millis();
        let ended = crawl_or_rest(
            Arc::new(MemoryFrontier::new(MemorySettings::default())),
            &["/later", "/b"],
            settings.clone(),
            Kept::default(),
            CancellationToken::new(),
            Rest::after(rest_after),
        );
        if !rests {
            let in_time = tokio::time::timeout(Duration::from_secs(30), ended);
            assert!(in_time.await.is_err(), "it waits");
            continue;
        }
        let ended = ended.await;
        let CrawlEnd::Resting { until } = ended.end else {
            panic!("{:?}", ended.end)
        };
        let wait = until - before;
        assert!((30 * 60_000..2 * 60 * 60_000).contains(&wait), "{wait}");
        assert_eq!((ended.n_items, ended.counts.due), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn f33_items_are_kept_while_their_sink_fails() {
    let sink = Kept {
        n_failures: Arc::new(AtomicU32::new(3)),
        ..Default::default()
    };
    let ended = crawl(&["/"], CrawlSettings::default(), sink).await;
    assert_eq!((ended.end, ended.n_items), (CrawlEnd::Finished, 5));
}

#[tokio::test]
async fn f33_a_sink_that_never_takes_an_item_fails_the_crawl() {
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let sink = Kept {
        is_closed_for_good: true,
        ..Default::default()
    };
    let stop = CancellationToken::new();
    let ended = crawl_on(
        frontier.clone(),
        &["/"],
        CrawlSettings::default(),
        sink,
        stop,
    )
    .await;
    let expected = "items cannot be delivered: cannot insert into items: no such table";
    assert_eq!(ended.end, CrawlEnd::Failed(expected.to_owned()));
    let left = frontier.outbox(&SinkName::lines(), 9).await.unwrap();
    assert!(!left.items.is_empty(), "the items are kept");
}

#[tokio::test]
async fn s19_a_stop_ends_pages_in_flight_at_once() {
    let stop = CancellationToken::new();
    let crawl = crawl_until(
        &["/hang"],
        CrawlSettings::default(),
        Kept::default(),
        stop.clone(),
    );
    let (ended, ()) = tokio::join!(crawl, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        stop.cancel();
    });
    assert_eq!((ended.end, ended.asked.len()), (CrawlEnd::Stopped, 1));
}

#[tokio::test(start_paused = true)]
async fn items_gather_until_there_are_enough_or_the_crawl_ends() {
    let gathered = async |max_items, n_bytes| {
        let sink = Kept {
            gathering: Gathering {
                max_items,
                n_bytes,
                max_wait: Duration::from_secs(3_600),
            },
            ..Kept::default()
        };
        let before = Instant::now();
        let ended = crawl(&["/"], CrawlSettings::default(), sink.clone()).await;
        assert!(before.elapsed() < Duration::from_secs(60), "nothing waits");
        (ended.n_items, sink.n_writes.load(Ordering::Relaxed))
    };
    assert_eq!(gathered(1_000, 1 << 20).await, (5, 1));
    let (n_items, n_writes) = gathered(1, 1 << 20).await;
    assert!(n_items == 5 && n_writes > 1, "{n_writes}");
    let (n_items, n_writes) = gathered(1_000, 1).await;
    assert!(n_items == 5 && n_writes > 1, "{n_writes}");
}

#[tokio::test(start_paused = true)]
async fn items_are_not_read_again_after_a_mark_unless_more_gather() {
    for (max_wait, wants_when_marked, reads_of_a_write) in [
        (Duration::ZERO, 0, 1),
        (Duration::from_secs(60), 0, 2),
        (Duration::ZERO, 10_000, 2),
    ] {
        let frontier = Arc::new(FaultyFrontier::default());
        let sink = Kept {
            leaves_marks: true,
            wants_when_marked,
            gathering: Gathering {
                max_wait,
                ..Gathering::default()
            },
            ..Kept::default()
        };
        let n_writes = sink.n_writes.clone();
        let (settings, stop) = (CrawlSettings::default(), CancellationToken::new());
        let ended = crawl_on(frontier.clone(), &["/"], settings, sink, stop).await;
        assert_eq!((ended.end, ended.n_items), (CrawlEnd::Finished, 5));
        let n_writes = n_writes.load(Ordering::Relaxed) as usize;
        let n_reads = frontier.n_outbox_reads.load(Ordering::Relaxed);
        let expected = n_writes * reads_of_a_write;
        assert_eq!(n_reads, expected, "{max_wait:?}, {wants_when_marked}");
    }
}

#[tokio::test(start_paused = true)]
async fn items_that_only_the_sink_has_fail_the_crawl() {
    let sink = Kept {
        n_there: 1_000,
        ..Kept::default()
    };
    let ended = crawl(&["/"], CrawlSettings::default(), sink).await;
    let CrawlEnd::Failed(why) = ended.end else {
        panic!("{:?}", ended.end)
    };
    let expected = "the sink has 1000 items from number 0 on, and the frontier only ";
    assert!(why.starts_with(expected), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_gives_up_a_write_after_a_grace_period() {
    let stopped = async |write_time| {
        let sink = Kept {
            write_time,
            ..Kept::default()
        };
        let stop = CancellationToken::new();
        let (began, token) = (sink.began.clone(), stop.clone());
        let cancel = async {
            began.notified().await;
            token.cancel();
        };
        let before = Instant::now();
        let crawl = crawl_until(&["/"], CrawlSettings::default(), sink, stop);
        let ((), ended) = tokio::join!(cancel, crawl);
        (
            ended.n_items > 0,
            before.elapsed() < Duration::from_secs(10),
        )
    };
    assert_eq!(stopped(Duration::from_secs(1)).await, (true, true));
    assert_eq!(stopped(Duration::from_secs(3_600)).await, (false, true));
}
