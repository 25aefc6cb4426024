//! Tests of the state after an opening, by the way in which the last one ended.

use std::sync::atomic::{AtomicU64, Ordering};

use prost::Message as _;

use super::*;
use crate::reader::FrontierReader;
use crate::suite::hanging::{Hanging, Hangs};
use crate::suite::links::bounds;
use crate::suite::requests::linked;
use crate::{RestingHost, keys, records};
use crawler_model::frontier::DelaySource;

async fn open_with(objects: &Arc<InMemory>, now: UnixMillis, delay: u64) -> Arc<dyn Frontier> {
    let frontiers = frontiers_in(objects, settings());
    let open_options = OpenOptions {
        clock: Arc::new(StillClock(now)),
        delay: Duration::from_millis(delay),
        ..open_options(&frontiers, 1).await
    };
    Arc::new(frontiers.open(open_options).await.unwrap())
}

async fn ask_once(frontier: &Arc<dyn Frontier>, now: UnixMillis, ready_at: UnixMillis) {
    let mut commit = parsed(ready(next(frontier, now).await));
    commit.result.host_ready_at = ready_at;
    frontier.commit(commit).await.unwrap();
}

/// Clock that a test sets, in milliseconds.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn unix_nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed) * 1_000_000
    }
}

#[tokio::test]
async fn hosts_wait_from_when_the_former_owner_can_ask_no_more() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 500).await;
    frontier
        .seed(["http://a/1", "http://a/2"].map(new).into())
        .await
        .unwrap();
    ask_once(&frontier, 10_000, 10_500).await;
    frontier.settle().await.unwrap();
    let hanging = Arc::new(Hanging::new(objects));
    let frontiers = Arc::new(Frontiers::new(hanging.clone(), settings()));
    let clock = Arc::new(SetClock(AtomicU64::new(20_000)));
    let open_options = OpenOptions {
        clock: clock.clone(),
        ..open_options(&frontiers, 1).await
    };
    hanging.set(Hangs::Writes);
    let takes_long = async {
        clock.0.store(24_000, Ordering::Relaxed);
        hanging.set(Hangs::Nothing);
    };
    let (again, ()) = tokio::join!(frontiers.open(open_options), takes_long);
    let again: Arc<dyn Frontier> = Arc::new(again.unwrap());
    assert_eq!(next(&again, 24_000).await, Take::WaitUntil(24_500));
}

#[tokio::test]
async fn what_was_closed_in_order_keeps_the_moments_of_its_hosts() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 120_000).await;
    let all = ["http://a/1", "http://a/2", "http://b/1"];
    frontier.seed(all.map(new).into()).await.unwrap();
    ask_once(&frontier, 10_000, 130_000).await;
    frontier.close().await.unwrap();
    // Host b was not asked, and host a was asked at 10 s.
    let frontier = open_with(&objects, 100_000, 120_000).await;
    ask_once(&frontier, 100_000, 220_000).await;
    assert_eq!(next(&frontier, 100_000).await, Take::WaitUntil(130_000));
    frontier.close().await.unwrap();
    let frontier = open_with(&objects, 130_000, 120_000).await;
    ask_once(&frontier, 130_000, 250_000).await;
    assert_eq!(frontier.counts().due, 0);
}

#[tokio::test]
async fn cookies_are_there_after_a_restart() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 500).await;
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    let mut commit = parsed(ready(next(&frontier, 10_000).await));
    let kept = cookies(7, "a=1");
    commit.cookies = Some(kept.clone());
    frontier.commit(commit).await.unwrap();
    frontier.close().await.unwrap();
    let frontier = open_with(&objects, 20_000, 500).await;
    assert_eq!(frontier.cookies(), Some(kept));
}

#[tokio::test]
async fn a_request_has_its_referrer_and_statuses_after_a_restart() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 0).await;
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let links = ["http://a/1", "http://a/2"].map(|url| linked(url, "http://a/"));
    let mut commit = parsed(ready(next(&frontier, 10_000).await));
    commit.result.requests = links.clone().into();
    commit.result.for_peers = vec![(Shard(1), linked("http://b/1", "http://a/"))];
    frontier.commit(commit).await.unwrap();
    frontier.close().await.unwrap();
    let frontier = open_with(&objects, 20_000, 0).await;
    let sent = frontier.links_for(Shard(1), bounds(9)).await.unwrap();
    assert_eq!(sent.links, [linked("http://b/1", "http://a/")]);
    let mut referrers = Vec::new();
    for link in links {
        let claim = ready(next(&frontier, 20_000).await);
        assert_eq!(claim.request, link.request);
        referrers.extend(claim.request.referrer.clone());
        frontier.commit(parsed(claim)).await.unwrap();
    }
    // Links of one page share the text in memory, as they did before the restart.
    assert!(Arc::ptr_eq(&referrers[0], &referrers[1]));
    frontier.close().await.unwrap();
    let reader = FrontierReader::open(objects.clone(), shard()).await;
    let reader = reader.unwrap().unwrap();
    let ended = reader.find(&new("http://a/1").request, 0).await.unwrap();
    let referrer = ended.unwrap().request.referrer;
    assert_eq!(referrer.as_deref(), Some("http://a/"));
}

#[tokio::test]
async fn r11_versions_of_cookies_hold_over_openings() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 0).await;
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    // The records are those of a version without numbers: 0 is not written.
    for (version, jar, expected) in [(0, "a=0", "a=0"), (2, "a=2", "a=2"), (1, "a=1", "a=2")] {
        let frontier = open_with(&objects, 10_000, 0).await;
        let mut commit = parsed(ready(next(&frontier, 10_000).await));
        commit.cookies = Some(cookies(version, jar));
        frontier.commit(commit).await.unwrap();
        frontier.close().await.unwrap();
        let frontier = open_with(&objects, 10_000, 0).await;
        let kept = frontier.cookies().map(|kept| kept.jar);
        assert_eq!(kept.as_deref(), Some(expected.as_bytes()));
    }
}

#[tokio::test]
async fn a_host_whose_page_was_given_back_may_have_been_asked() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 500).await;
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    ask_once(&frontier, 10_000, 10_500).await;
    frontier.give_back(ready(next(&frontier, 20_000).await), HostUpdate::None);
    frontier.close().await.unwrap();
    let frontier = open_with(&objects, 20_100, 500).await;
    assert_eq!(next(&frontier, 20_100).await, Take::WaitUntil(20_600));
}

#[tokio::test]
async fn a_page_that_was_not_asked_for_leaves_the_moments_of_its_host_as_they_are() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 500).await;
    frontier.seed(urls(&["1", "2", "3", "4"])).await.unwrap();
    let mut commit = parsed(ready(next(&frontier, 10_000).await));
    (commit.answered_at, commit.result.host_ready_at) = (10_000, 10_500);
    frontier.commit(commit).await.unwrap();
    let forbidden = async |frontier: &Arc<dyn Frontier>, now| {
        let mut commit = parsed(ready(next(frontier, now).await));
        (commit.answered_at, commit.result.host_ready_at) = (now, 0);
        frontier.commit(commit).await.unwrap();
    };
    forbidden(&frontier, 20_000).await;
    // All clocks are known, so no host waits.
    frontier.close().await.unwrap();
    let frontier = open_with(&objects, 20_000, 500).await;
    forbidden(&frontier, 20_000).await;
    frontier.settle().await.unwrap();
    // After a crash the host gets the delay after its last answer.
    let frontier = open_with(&objects, 20_100, 500).await;
    assert_eq!(next(&frontier, 20_100).await, Take::WaitUntil(20_600));
}

#[tokio::test]
async fn what_a_host_is_given_after_an_opening_is_no_less_because_its_page_took_long() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 500).await;
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    let mut commit = parsed(ready(next(&frontier, 10_000).await));
    // The host answered at once, and the page was parsed for most of the host's delay.
    (commit.answered_at, commit.result.host_ready_at) = (10_000, 10_500);
    assert_eq!(frontier.take(10_450, 1).unwrap(), Take::Blocked);
    frontier.commit(commit).await.unwrap();
    frontier.give_back(ready(next(&frontier, 20_000).await), HostUpdate::None);
    frontier.close().await.unwrap();
    let frontier = open_with(&objects, 20_100, 500).await;
    assert_eq!(next(&frontier, 20_100).await, Take::WaitUntil(20_600));
}

#[tokio::test]
async fn what_comes_late_and_goes_first_does_so_after_an_opening_too() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 0).await;
    let all = ["http://a/1", "http://b/1", "http://b/2"];
    frontier.seed(all.map(new).into()).await.unwrap();
    frontier.settle().await.unwrap();
    // Host b is saved already, with a lane of another priority.
    let mut commit = parsed(ready(next(&frontier, 0).await));
    assert_eq!(commit.claim.request.url.as_str(), "http://a/1");
    commit.result.requests = vec![new("http://b/urgent")];
    commit.result.requests[0].request.priority = 5;
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    let frontier = open_with(&objects, 0, 0).await;
    assert_eq!(crawl(&frontier).await, ["/urgent", "/1", "/2"]);
}

#[tokio::test]
async fn what_is_found_after_the_clock_was_set_back_is_crawled_after_an_opening_too() {
    const DAY: u64 = 86_400_000;
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 2 * DAY, 0).await;
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    ask_once(&frontier, 2 * DAY, 0).await;
    let mut commit = parsed(ready(next(&frontier, DAY).await));
    commit.result.requests = urls(&["3", "4"]);
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    let frontier = open_with(&objects, DAY, 0).await;
    for path in ["/3", "/4"] {
        let claim = ready(next(&frontier, DAY).await);
        assert_eq!(claim.request.url.path(), path);
        frontier.commit(parsed(claim)).await.unwrap();
    }
    assert_eq!(frontier.counts().due, 0);
}

#[tokio::test]
async fn no_page_is_taken_while_the_outbox_is_full_before_and_after_an_opening() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(
        &objects,
        DurableSettings {
            max_outbox_items: 2,
            ..settings()
        },
    );
    let opened = frontiers
        .open(open_options(&frontiers, 1).await)
        .await
        .unwrap();
    let frontier: Arc<dyn Frontier> = Arc::new(opened);
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    let mut commit = parsed(ready(next(&frontier, 0).await));
    commit.result.items = vec![item_of(&commit.claim, 0), item_of(&commit.claim, 1)];
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    assert_eq!(frontier.take(0, 1).unwrap(), Take::Blocked);
    frontier.close().await.unwrap();
    let opened = frontiers
        .open(open_options(&frontiers, 1).await)
        .await
        .unwrap();
    let durable = Arc::new(opened);
    while durable.inner.state().bench.n_buffered() == 0 {
        durable.take_changed().await;
    }
    let frontier: Arc<dyn Frontier> = durable;
    assert_eq!(frontier.take(0, 1).unwrap(), Take::Blocked);
    frontier
        .clear_outbox(&SinkName::lines(), 1, None)
        .await
        .unwrap();
    ready(next(&frontier, 0).await);
}

#[tokio::test]
async fn items_are_given_once_they_are_durable_and_not_before() {
    let slow = DurableSettings {
        flush_interval: Duration::from_secs(3_600),
        ..settings()
    };
    let frontiers = frontiers_in(&Arc::new(InMemory::new()), slow);
    let opened = frontiers
        .open(open_options(&frontiers, 1).await)
        .await
        .unwrap();
    let frontier: Arc<dyn Frontier> = Arc::new(opened);
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    for n_durable in 0..2 {
        let mut commit = parsed(ready(next(&frontier, 0).await));
        commit.result.items = vec![item_of(&commit.claim, 0)];
        frontier.commit(commit).await.unwrap();
        assert_eq!(
            frontier
                .outbox(&SinkName::lines(), 9)
                .await
                .unwrap()
                .items
                .len(),
            n_durable
        );
        frontier.settle().await.unwrap();
        frontier.outbox_changed().await;
        assert_eq!(
            frontier
                .outbox(&SinkName::lines(), 9)
                .await
                .unwrap()
                .items
                .len(),
            n_durable + 1
        );
    }
}

#[tokio::test]
async fn a_dead_letter_without_a_url_leaves_all_of_them_as_they_are() {
    let objects = Arc::new(InMemory::new());
    let durable = open(&objects, 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    for _ in 0..2 {
        let dead = Ended::Dead {
            reason: "timeout".into(),
        };
        let claim = ready(next(&frontier, 0).await);
        frontier.commit(commit_of(claim, dead)).await.unwrap();
    }
    let inner = &durable.inner;
    let prefix = keys::dead_letters_of(Run(1));
    let range = prefix.clone()..keys::end_of(&prefix);
    let letters = inner.piece(range).await.unwrap();
    let mut batch = slatedb::WriteBatch::new();
    let (key, letter) = &letters[1];
    let mut letter: records::DeadLetter = inner.decode(letter, "dead letter").unwrap();
    letter.request.url = "nowhere".into();
    batch.put(key, letter.encode_to_vec());
    {
        let guard = inner.writer.lock().await;
        inner.write(&guard, batch, 0).await.unwrap();
    }
    let before = frontier.counts();
    assert!(matches!(
        inner.redrive(&Redrive::default()).await,
        Err(FrontierError::Damaged { .. })
    ));
    assert_eq!(frontier.counts(), before);
}

#[tokio::test]
async fn hosts_that_are_held_after_a_crash_are_still_held_after_a_close() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 500).await;
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    ask_once(&frontier, 10_000, 10_500).await;
    // The host is asked, and the process ends.
    ready(next(&frontier, 20_000).await);
    frontier.settle().await.unwrap();
    let frontier = open_with(&objects, 20_100, 500).await;
    assert_eq!(next(&frontier, 20_100).await, Take::WaitUntil(20_600));
    frontier.close().await.unwrap();
    // The wait is no longer than that, however often the frontier is closed meanwhile.
    for now in [20_200, 20_300, 20_500] {
        let frontier = open_with(&objects, now, 500).await;
        assert_eq!(next(&frontier, now).await, Take::WaitUntil(20_600));
        frontier.close().await.unwrap();
    }
    let frontier = open_with(&objects, 20_600, 500).await;
    ready(next(&frontier, 20_600).await);
}

#[tokio::test(start_paused = true)]
async fn a_clock_of_the_machine_that_was_set_back_a_day_stops_no_writing() {
    const DAY: i64 = 86_400_000;
    let objects = Arc::new(InMemory::new());
    let mut n_taken = 0;
    let settings = DurableSettings {
        // Much of the data is in the log alone when it is opened again.
        l0_bytes: 4 << 10,
        ..settings()
    };
    for clock_ahead in [DAY, 0, 0] {
        let mut frontiers = Frontiers::new(objects.clone(), settings.clone());
        frontiers.clock_ahead = clock_ahead;
        let frontiers = Arc::new(frontiers);
        let opened = frontiers
            .open(open_options(&frontiers, 1).await)
            .await
            .unwrap();
        let frontier: Arc<dyn Frontier> = Arc::new(opened);
        let names: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        frontier.seed(urls(&names)).await.unwrap();
        for _ in 0..50 {
            ask_once(&frontier, 0, 0).await;
            n_taken += 1;
        }
        assert_eq!(frontier.counts().parsed, n_taken);
        frontier.settle().await.unwrap();
    }
}

#[tokio::test]
async fn items_that_are_read_back_are_bounded_by_their_bytes_too() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.items = (0..24).map(|n| item_of(&commit.claim, n)).collect();
    for item in &mut commit.result.items {
        item.url += &"x".repeat(1 << 20);
    }
    frontier.commit(commit).await.unwrap();
    frontier.close().await.unwrap();
    let again = reopen(&objects, 1).await;
    let mut n_read = 0;
    for n in [12, 12] {
        let batch = again.outbox(&SinkName::lines(), 2_000).await.unwrap();
        assert_eq!(batch.items.len(), n);
        n_read += n as u64;
        assert_eq!(batch.end, n_read);
        again
            .clear_outbox(&SinkName::lines(), batch.end, None)
            .await
            .unwrap();
    }
    assert!(
        again
            .outbox(&SinkName::lines(), 1)
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn a_page_larger_than_what_may_wait_to_be_written_is_committed_whole() {
    let objects = Arc::new(InMemory::new());
    let settings = DurableSettings {
        max_unflushed_bytes: 64 << 10,
        ..settings()
    };
    let frontiers = frontiers_in(&objects, settings);
    let opened = frontiers
        .open(open_options(&frontiers, 1).await)
        .await
        .unwrap();
    let frontier: Arc<dyn Frontier> = Arc::new(opened);
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    for _ in 0..3 {
        let mut commit = parsed(ready(next(&frontier, 0).await));
        commit.result.items = (0..4).map(|n| item_of(&commit.claim, n)).collect();
        for item in &mut commit.result.items {
            item.url += &"x".repeat(256 << 10);
        }
        frontier.commit(commit).await.unwrap();
    }
    frontier.settle().await.unwrap();
    let again = reopen(&objects, 1).await;
    assert_eq!(
        again
            .outbox(&SinkName::lines(), 100)
            .await
            .unwrap()
            .items
            .len(),
        12
    );
}

#[tokio::test]
async fn a_frontier_knows_how_many_bytes_it_has_on_disk() {
    let objects = Arc::new(InMemory::new());
    let disk_interval = Duration::from_millis(5);
    let settings = DurableSettings {
        disk_interval,
        ..settings()
    };
    let frontiers = frontiers_in(&objects, settings);
    let open_options = open_options(&frontiers, 1).await;
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    let until = async |n_bytes| {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        while frontier.disk_bytes() < n_bytes {
            assert!(tokio::time::Instant::now() < deadline);
            tokio::time::sleep(disk_interval).await;
        }
    };
    until(1).await;
    let before = frontier.disk_bytes();
    frontier.seed(urls(&["1"])).await.unwrap();
    until(before + 1).await;
    // Items that wait are among them, and are also counted by themselves.
    let mut commit = parsed(ready(next(&frontier, 10_000).await));
    let mut item = item_of(&commit.claim, 0);
    let long = format!("\"{}\"", "x".repeat(100_000));
    item.item = serde_json::value::RawValue::from_string(long).unwrap();
    commit.result.items = vec![item];
    frontier.commit(commit).await.unwrap();
    assert!(frontier.undelivered_bytes() > 100_000);
    frontier.settle().await.unwrap();
    until(before + 1_000).await;
    let end = frontier.outbox(&SinkName::lines(), 9).await.unwrap().end;
    frontier
        .clear_outbox(&SinkName::lines(), end, None)
        .await
        .unwrap();
    assert_eq!(frontier.undelivered_bytes(), 0);
}

fn unreachable_until(until: u64) -> HostFailure {
    HostFailure {
        until,
        reason: "resolve".to_owned(),
        gives_up: false,
    }
}

#[tokio::test]
async fn failures_of_a_host_outlive_a_crash_and_no_run() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 0).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    for n in 0..2 {
        let claim = ready(next(&frontier, 10_000 * n).await);
        let failure = unreachable_until(10_000 * (n + 1));
        frontier.put_off(claim, failure).await.unwrap();
    }
    frontier.settle().await.unwrap();
    let frontier = open_with(&objects, 15_000, 0).await;
    assert_eq!(next(&frontier, 15_000).await, Take::WaitUntil(20_000));
    let claim = ready(next(&frontier, 20_000).await);
    assert_eq!((claim.host.n_failures, claim.host.is_ready), (2, false));
    frontier.close().await.unwrap();
    let frontier = open(&objects, 2).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let claim = ready(next(&(frontier as Arc<dyn Frontier>), 30_000).await);
    assert_eq!(claim.host.n_failures, 0);
}

#[tokio::test]
async fn a_host_that_became_ready_keeps_its_clock_after_a_stop() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 0, 500).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let claim = ready(next(&frontier, 10_000).await);
    let asked = HostUpdate::Ready {
        not_before: 10_500,
        delay_by: DelaySource::Setting,
        has_answered: true,
    };
    frontier.give_back(claim, asked);
    frontier.close().await.unwrap();
    // The clock is exact, so no other host would have to wait because of the opening.
    let frontier = open_with(&objects, 10_100, 500).await;
    assert_eq!(next(&frontier, 10_100).await, Take::WaitUntil(10_500));
}

#[tokio::test]
async fn hosts_that_rest_are_told_after_an_opening() {
    let objects = Arc::new(InMemory::new());
    let frontier = open_with(&objects, 10_000, 0).await;
    let roots = ["busy", "slow", "well"].map(|host| new(&format!("https://{host}/")));
    frontier.seed(roots.into()).await.unwrap();
    for _ in 0..3 {
        let mut commit = parsed(ready(next(&frontier, 10_000).await));
        let (ready_at, by) = match commit.claim.request.url.host_str() {
            Some("busy") => (99_000, DelaySource::Trouble),
            Some("slow") => (99_000, DelaySource::Robots),
            _ => (10_001, DelaySource::Trouble),
        };
        commit.result.delay_by = by;
        (commit.answered_at, commit.result.host_ready_at) = (10_000, ready_at);
        frontier.commit(commit).await.unwrap();
    }
    frontier.close().await.unwrap();
    let frontier = open_with(&objects, 20_000, 0).await;
    let busy = RestingHost {
        name: "busy:443".to_owned(),
        until: 99_000,
    };
    assert_eq!(frontier.take_resting_hosts(), [busy]);
    assert_eq!(frontier.take_resting_hosts(), []);
}
