//! The format of frontiers: this build opens and reads a database that an earlier build wrote.
//!
//! `golden/frontier-1` is such a database, of format 1. This build writes the same content into
//! `frontier-golden` in the build folder's `tmp`, and reads it back with the same assertions. After an
//! intended change of the format, keep that folder as the next golden one, beside the old.

#![expect(clippy::unwrap_used, reason = "all of this is a test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crawler_frontier::durable::{DurableFrontier, DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::reader::FrontierReader;
use crawler_frontier::{
    Claim, Commit, Ended, Frontier as _, ItemOutbox as _, NewRequest, PageResult, Take,
};
use crawler_model::accept_status::AcceptStatus;
use crawler_model::crawl::{Done, ItemKey, ItemRecord, Request};
use crawler_model::frontier::{ContentHash, SinkMark, UrlFilter, UrlState, Validators};
use crawler_model::id::{Epoch, ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_model::scope::GrowthBounds;
use crawler_model::settings::SinkName;
use crawler_process::clock::StillClock;
use object_store::local::LocalFileSystem;
use serde_json::value::RawValue;

const SHARD: ShardId = ShardId::only(ResourceId(42));

fn frontiers(folder: &Path) -> Arc<Frontiers> {
    let objects = LocalFileSystem::new_with_prefix(folder).unwrap();
    let settings = DurableSettings {
        flush_interval: Duration::from_millis(5),
        ..DurableSettings::default()
    };
    Arc::new(Frontiers::new(Arc::new(objects), settings))
}

async fn open(frontiers: &Arc<Frontiers>) -> DurableFrontier {
    let storage_epoch = frontiers.storage_epoch(SHARD).await.unwrap();
    let open_options = OpenOptions {
        cluster: "golden".into(),
        epoch: Epoch(3),
        created: storage_epoch > 0,
        storage_epoch,
        clock: Arc::new(StillClock(1_000_000)),
        ..OpenOptions::first(SHARD)
    };
    frontiers.open(open_options).await.unwrap()
}

fn new(path: &str, depth: u32) -> NewRequest {
    let url = format!("http://a.test/{path}").parse().unwrap();
    NewRequest {
        request: Request::get(url, "page"),
        depth,
    }
}

fn form() -> Request {
    Request {
        url: "http://b.test:8080/form?x=1".parse().unwrap(),
        method: "POST".into(),
        headers: vec![("accept".into(), "text/html".into())],
        body: Some(Bytes::from_static(b"q=\x00\xff")),
        rule: "form".into(),
        priority: -7,
        state: Bytes::from_static(b"state"),
        reload: false,
        accept_status: AcceptStatus::default(),
        keep_body: false,
        referrer: None,
    }
}

fn validators() -> Validators {
    Validators {
        etag: Some("\"e\"".into()),
        last_modified: Some("Thu, 01 Jan 1970 00:00:00 GMT".into()),
        content: Some(ContentHash([7; 16])),
        ..Validators::default()
    }
}

fn item(claim: &Claim, ordinal: u32) -> ItemRecord {
    let (rule, fingerprint) = (&claim.request.rule, claim.fingerprint);
    ItemRecord {
        key: ItemKey::of(
            SHARD.resource,
            Run(1),
            fingerprint,
            claim.visit,
            rule,
            ordinal,
        ),
        url: claim.request.url.to_string(),
        rule: rule.to_string(),
        schema: "thing".into(),
        run: Run(1),
        fetched_at: 5,
        item: RawValue::from_string(format!(r#"{{"n":{ordinal}}}"#)).unwrap(),
        change: None,
    }
}

fn mark() -> SinkMark {
    SinkMark {
        key: "1-0.jsonl".into(),
        value: Bytes::from_static(&[8, 0xc1, 2, 16, 1, 24, 1]),
    }
}

fn end(claim: Box<Claim>, ended: Ended) -> Commit {
    Commit {
        claim,
        result: PageResult {
            bytes: 10,
            ..PageResult::new(ended, 1_000_500)
        },
        answered_at: 0,
        cookies: None,
        growth: GrowthBounds {
            pattern_urls: 100,
            ..GrowthBounds::NONE
        },
    }
}

async fn take(frontier: &DurableFrontier, now: u64) -> Box<Claim> {
    loop {
        match frontier.take(now, 1).unwrap() {
            Take::Ready(claim) => return claim,
            Take::Blocked => frontier.take_changed().await,
            other => panic!("{other:?}"),
        }
    }
}

/// Writes four URLs of one host, each in another state, and one of another host that waits.
async fn write(folder: &Path) {
    let frontiers = frontiers(folder);
    let frontier = open(&frontiers).await;
    let roots = ["parsed", "dead", "retried", "waiting"].map(|path| new(path, 0));
    frontier.seed(roots.into()).await.unwrap();

    let mut commit = end(take(&frontier, 1_000_000).await, Ended::Done(Done::Parsed));
    commit.result.refused = vec![("out-of-scope", 4)];
    commit.result.items = (0..3).map(|n| item(&commit.claim, n)).collect();
    commit.result.validators = Some(validators());
    commit.result.final_url = Some(new("led-to", 0).request);
    frontier.commit(commit).await.unwrap();

    let reason = "timeout".to_owned();
    let dead = end(take(&frontier, 1_001_000).await, Ended::Dead { reason });
    frontier.commit(dead).await.unwrap();
    let (at, reason) = (1_900_000, "status-503".to_owned());
    let mut retried = end(
        take(&frontier, 1_002_000).await,
        Ended::Retry { at, reason },
    );
    retried.result.requests = vec![
        NewRequest {
            request: form(),
            depth: 1,
        },
        new("archive/2026", 1),
    ];
    frontier.commit(retried).await.unwrap();
    frontier.settle().await.unwrap();
    frontier
        .clear_outbox(&SinkName::lines(), 1, Some(mark()))
        .await
        .unwrap();
    frontier.close().await.unwrap();
}

async fn check(folder: &Path) {
    let frontiers = frontiers(folder);
    let objects = LocalFileSystem::new_with_prefix(folder).unwrap();
    let reader = FrontierReader::open(Arc::new(objects), SHARD).await;
    let reader = reader.unwrap().expect("there is one");
    let stats = reader.stats(0).await.unwrap();
    assert_eq!(
        (stats.run, stats.seeded, stats.n_undelivered),
        (Run(1), true, 2)
    );
    assert_eq!((stats.n_hosts, stats.n_dead_letters), (2, 1));
    assert_eq!(reader.marks().await.unwrap(), [mark()]);
    let dead = reader.list(UrlFilter::Dead, None, 9).await.unwrap().entries;
    let reason = "timeout".to_owned();
    assert_eq!(
        (dead.len(), &dead[0].state),
        (
            1,
            &UrlState::Dead {
                reason,
                detail: String::new()
            }
        )
    );
    assert_eq!(dead[0].request.url.path(), "/dead");
    let retried = reader
        .find(&new("retried", 0).request, 9_000_000)
        .await
        .unwrap()
        .unwrap();
    let UrlState::Due {
        at,
        attempt,
        failure,
        ..
    } = retried.state
    else {
        panic!("{:?}", retried.state);
    };
    assert_eq!((at, attempt, &*failure), (1_900_000, 2, "status-503"));
    let done = reader
        .find(&new("parsed", 0).request, 0)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(done.state, UrlState::Done(Done::Parsed));
    assert_eq!(
        reader.find(&new("never", 0).request, 0).await.unwrap(),
        None
    );
    reader.close().await;

    let frontier = open(&frontiers).await;
    let roots = frontier.roots().unwrap();
    assert_eq!((roots.len(), roots[1].path()), (4, "/dead"));
    let counts = frontier.counts();
    assert_eq!((counts.parsed, counts.dead, counts.retries), (1, 1, 1));
    assert_eq!((counts.due, counts.items, counts.bytes), (4, 3, 30));
    assert_eq!(counts.refused_links["out-of-scope"], 4);
    assert_eq!(counts.dead_by_reason["timeout"], 1);
    for path in ["parsed", "led-to", "waiting"] {
        assert!(
            frontier.knows(&new(path, 0).request).await.unwrap(),
            "{path}"
        );
    }
    let outbox = frontier.outbox(&SinkName::lines(), 9).await.unwrap();
    let items: Vec<&str> = outbox.items.iter().map(|item| item.item.get()).collect();
    assert_eq!((items, outbox.end), (vec![r#"{"n":1}"#, r#"{"n":2}"#], 3));

    let mut found = Vec::new();
    for _ in 0..3 {
        let claim = take(&frontier, 1_800_000).await;
        found.push(claim.request.clone());
        let commit = end(claim, Ended::Done(Done::Skipped));
        frontier.commit(commit).await.unwrap();
    }
    found.sort_by_key(|request| request.url.to_string());
    let waiting = [new("archive/2026", 1), new("waiting", 0)].map(|new| new.request);
    assert_eq!(found, [&waiting[..], &[form()]].concat());
    let claim = take(&frontier, 1_900_000).await;
    assert_eq!((claim.request.url.path(), claim.attempt), ("/retried", 2));
    frontier.close().await.unwrap();
}

#[tokio::test]
async fn a_frontier_of_an_earlier_build_goes_on_here() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/frontier-1");
    let folder = tempfile::tempdir().unwrap();
    copy(&golden, folder.path());
    Box::pin(check(folder.path())).await;
}

#[tokio::test]
async fn this_build_writes_what_the_golden_frontier_has() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("frontier-golden");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    write(&folder).await;
    let read = tempfile::tempdir().unwrap();
    copy(&folder, read.path());
    Box::pin(check(read.path())).await;
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
