//! Tests of what the agent does with its assignments, and of crawls that fail in unforeseen ways.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use tokio::runtime::Handle;
use url::Url;

use super::*;
use crawler_data::DataRoot;
use crawler_fetch::{Failure, Fetch, FetchRequest, Fetched};
use crawler_frontier::FrontierError;
use crawler_frontier::suite::hanging::Hangs;
use crawler_model::id::Digest;
use crawler_model::resource::{CrawlSettings, ShardRecord};
use crawler_model::settings::ArchiveForm;
use crawler_plugin::{LoadRules, PluginError, Rules};

mod assignments;
mod bench;
mod faulty_store;
mod logs;
mod memory;
mod outage;
mod release;
mod shards;
mod sinks;
mod totals;

use bench::{Bench, assign, parts};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

struct Faulty;

#[async_trait]
impl LoadRules for Faulty {
    async fn load(&self, _digest: Digest) -> Result<Arc<dyn Rules>, PluginError> {
        panic!("on purpose")
    }
}

#[async_trait]
impl Fetch for Faulty {
    async fn fetch(&self, _request: FetchRequest) -> Result<Fetched, Failure> {
        panic!("nothing is fetched")
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        1
    }
}

#[tokio::test]
async fn f27_a_panic_in_a_crawl_reaches_whoever_watches_the_agent() {
    let (_folder, _store, parts) = parts(Arc::new(Faulty), Arc::new(Faulty));
    let new = ShardRecord::new("books".parse().unwrap());
    let settings = CrawlSettings::default();
    assign(&parts, new, Epoch(1), Generation(1), settings).await;
    let watched = TaskScope::new();
    watched.spawn("agent", run(Arc::new(parts), watched.stop_signal()));
    let failed = watched.failed();
    tokio::time::timeout(MINUTE, failed.cancelled())
        .await
        .expect("noticed");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_that_a_shard_is_at_rest_while_an_earlier_assignment_of_it_still_writes() {
    let bench = Bench::new().await;
    bench.assign(1).await;
    bench
        .wait_for("crawled", MINUTE, async |bench| bench.n_asked() > 1)
        .await;
    bench.objects.set(Hangs::All);
    bench.assign(2).await;
    bench.pass(SECOND).await;
    bench.unassign().await;
    bench.pass(SECOND).await;
    assert_eq!(bench.epoch(), Some(Epoch(1)));
    // The crawl after the next does not begin beside it either.
    bench.assign(3).await;
    bench.pass(SECOND).await;
    assert_eq!(bench.epoch(), Some(Epoch(1)));
    bench.objects.set(Hangs::Nothing);
    bench
        .wait_for("taken over", MINUTE, async |bench| {
            bench.epoch() == Some(Epoch(3)) && bench.is_open()
        })
        .await;
    bench.unassign().await;
    bench
        .wait_for("at rest", MINUTE, async |bench| bench.epoch().is_none())
        .await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_frontier_is_closed_again_when_the_shard_was_lost_while_it_was_opened() {
    let bench = Bench::new().await;
    let is_at_rest = async |bench: &Bench| {
        let n_tasks = Handle::current().metrics().num_alive_tasks();
        bench.epoch().is_none() && n_tasks == bench.n_tasks
    };
    bench.assign(1).await;
    bench
        .wait_for("crawled", MINUTE, async |bench| bench.n_asked() > 1)
        .await;
    bench.unassign().await;
    bench.wait_for("at rest", MINUTE, is_at_rest).await;
    bench.objects.set(Hangs::Writes);
    bench.assign(2).await;
    bench
        .wait_for("being opened", MINUTE, async |bench| {
            bench.record().await.storage_epoch > 0
        })
        .await;
    let lost = ShardRecord {
        epoch: Epoch(3),
        ..bench.record().await
    };
    bench.put(&lost).await;
    bench.objects.set(Hangs::Nothing);
    bench.wait_for("at rest again", MINUTE, is_at_rest).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_fault_after_a_long_time_of_good_work_is_the_first_one_again() {
    let bench = Bench::new().await;
    bench.assign(1).await;
    let mut waited = Duration::ZERO;
    let n_faults = 5;
    for n in 0..=n_faults {
        bench
            .wait_for("open", MINUTE, async |bench| bench.is_open())
            .await;
        if n == n_faults {
            assert!(waited > SECOND, "{waited:?}");
            // The frontier stays open, and its writes do not run ahead of the database's own clock.
            *bench.site.not_before.lock().unwrap() = Some(50 * SECOND);
            bench.pass(40 * SECOND).await;
        }
        let noticed = bench.wait_for("noticed", MINUTE, async |bench| {
            bench.waits().is_some_and(|waits| waits == "FrontierFenced")
        });
        let (stolen, ()) = tokio::join!(bench.steal(), noticed);
        // The crawl may have it back already.
        assert!(matches!(stolen, Ok(()) | Err(FrontierError::Fenced { .. })));
        let since = tokio::time::Instant::now();
        bench
            .wait_for("open again", MINUTE, async |bench| bench.is_open())
            .await;
        waited = since.elapsed();
    }
    assert!(waited < SECOND, "{waited:?}");
    bench.stop().await;
}

/// Returns a crawl whose only page is to be tried again in an hour, and whose frontier is closed.
async fn resting() -> Bench {
    let bench = Bench::new().await;
    *bench.site.not_before.lock().unwrap() = Some(60 * MINUTE);
    bench.assign(1).await;
    bench
        .wait_for("closed", MINUTE, async |bench| {
            bench.n_asked() == 1 && !bench.is_open()
        })
        .await;
    assert_eq!((bench.epoch(), bench.waits()), (Some(Epoch(1)), None));
    bench
}

#[tokio::test(start_paused = true)]
async fn a_shard_with_nothing_to_do_is_closed_until_there_is() {
    let bench = resting().await;
    bench.pass(59 * MINUTE).await;
    assert!(!bench.is_open());
    let n_tasks = Handle::current().metrics().num_alive_tasks();
    assert_eq!(n_tasks, bench.n_tasks + 1, "no more than the crawl itself");
    bench
        .wait_for("goes on", 2 * MINUTE, async |bench| bench.n_asked() > 1)
        .await;
    assert!(bench.is_open());
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_closed_is_opened_when_its_settings_change() {
    let bench = resting().await;
    check_that_settings_open(bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_being_closed_is_opened_when_its_settings_change() {
    let bench = Bench::new().await;
    *bench.site.not_before.lock().unwrap() = Some(60 * MINUTE);
    *bench.site.hangs.lock().unwrap() = Some(bench.objects.clone());
    bench.assign(1).await;
    bench
        .wait_for("asked", MINUTE, async |bench| bench.n_asked() == 1)
        .await;
    check_that_settings_open(bench).await;
}

async fn check_that_settings_open(bench: Bench) {
    let changed = CrawlSettings {
        concurrency: Some(1),
        ..bench::settings()
    };
    bench.assign_with(1, Generation(2), changed).await;
    bench.pass(SECOND).await;
    bench.objects.set(Hangs::Nothing);
    bench
        .wait_for("opened", MINUTE, async |bench| {
            bench.record().await.storage_epoch > 0
        })
        .await;
    bench
        .wait_for("closed again", MINUTE, async |bench| !bench.is_open())
        .await;
    assert_eq!(bench.n_asked(), 1);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f33_a_sink_that_fails_is_named_until_it_works_again() {
    let bench = Bench::new().await;
    let items = bench.data.items_folder(bench::shard().resource).unwrap();
    std::fs::write(&items, "in the way").unwrap();
    bench.assign(1).await;
    bench
        .wait_for("named", MINUTE, async |bench| bench.waits().is_some())
        .await;
    assert_eq!(bench.waits().unwrap(), "StorageUnavailable");
    assert!(bench.is_open());
    std::fs::remove_file(&items).unwrap();
    bench
        .wait_for("written", MINUTE, async |bench| bench.waits().is_none())
        .await;
    assert!(items.join("0").is_dir());
    bench.stop().await;
}

fn archiving() -> CrawlSettings {
    CrawlSettings {
        archive: Some(ArchiveForm::Warc),
        ..bench::settings()
    }
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_cannot_be_written_is_named_until_it_can() {
    let bench = Bench::new().await;
    let archives = bench.data.archives_root().unwrap();
    let archive = archives.join(bench::shard().resource.to_string());
    std::fs::write(&archive, "in the way").unwrap();
    bench.assign_with(1, Generation(1), archiving()).await;
    bench
        .wait_for("named", MINUTE, async |bench| bench.waits().is_some())
        .await;
    assert_eq!(bench.waits().unwrap(), "StorageUnavailable");
    assert!(bench.is_open());
    std::fs::remove_file(&archive).unwrap();
    bench
        .wait_for("written", MINUTE, async |bench| bench.waits().is_none())
        .await;
    assert!(archive.is_dir());
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_crawl_without_a_place_for_its_archive_waits() {
    let bucket = DataRoot::open("s3://books").unwrap();
    let bench = Bench::with_parts(|parts| parts.data = bucket).await;
    bench.assign_with(1, Generation(1), archiving()).await;
    bench
        .wait_for("told", MINUTE, async |bench| bench.waits().is_some())
        .await;
    assert_eq!(bench.waits().unwrap(), "ArchiveUnavailable");
    // The operator takes the setting back.
    let settings = bench::settings();
    bench.assign_with(1, Generation(2), settings).await;
    bench
        .wait_for("crawled", MINUTE, async |bench| bench.n_asked() > 1)
        .await;
    assert_eq!(bench.waits(), None);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_crawl_whose_plugin_cannot_be_had_waits_with_the_reason_until_it_can() {
    let bench = Bench::new().await;
    bench.site.has_no_plugin.store(true, Ordering::Relaxed);
    bench.assign(1).await;
    let recorded = async |bench: &Bench| bench.record().await.waits;
    bench
        .wait_for("told", MINUTE, async |bench| {
            recorded(bench).await.is_some()
        })
        .await;
    let waits = recorded(&bench).await.unwrap();
    assert_eq!(waits.condition, "PluginUnavailable");
    assert_eq!(
        waits.why,
        "cannot fetch the plugin from a master: none is registered"
    );
    assert_eq!(bench.waits().unwrap(), "PluginUnavailable");
    bench.site.has_no_plugin.store(false, Ordering::Relaxed);
    bench
        .wait_for("crawled", MINUTE, async |bench| bench.n_asked() > 1)
        .await;
    assert_eq!((bench.waits(), recorded(&bench).await), (None, None));
    bench.stop().await;
}
