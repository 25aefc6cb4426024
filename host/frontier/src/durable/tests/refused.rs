//! Tests of opening a frontier by several owners, and of frontiers that are refused.

use futures::TryStreamExt as _;
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use super::*;
use crate::path_of;
use crate::{keys, records};

#[tokio::test]
async fn whoever_is_overtaken_can_write_nothing_more() {
    let objects = Arc::new(InMemory::new());
    let first: Arc<dyn Frontier> = open(&objects, 1).await;
    first.seed(urls(&["1", "2"])).await.unwrap();
    let claim = ready(take(&first, 0, 1).await);
    let second = reopen(&objects, 1).await;
    let shard = shard();
    let mut error = first.commit(parsed(claim)).await.err();
    if error.is_none() {
        error = first.settle().await.err();
    }
    assert_eq!(error, Some(FrontierError::Fenced { shard }));
    assert_eq!(first.take(0, 1), Err(FrontierError::Fenced { shard }));
    assert_eq!(crawl(&second).await, ["/1", "/2"]);
}

#[tokio::test]
async fn an_epoch_that_is_not_the_present_one_opens_nothing() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(&objects, settings());
    let stale = open_options(&frontiers, 1).await;
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    let shard = shard();
    for storage_epoch in [0, 2, 7] {
        let open_options = OpenOptions {
            storage_epoch,
            ..stale.clone()
        };
        let error = frontiers.open(open_options).await.err();
        assert_eq!(
            error,
            Some(FrontierError::Fenced { shard }),
            "{storage_epoch}"
        );
    }
    frontier.seed(urls(&["1"])).await.unwrap();
    assert_eq!(crawl(&frontier).await, ["/1"]);
    let earlier = OpenOptions {
        epoch: Epoch(0),
        ..open_options(&frontiers, 1).await
    };
    assert_eq!(
        frontiers.open(earlier).await.err(),
        Some(FrontierError::Fenced { shard })
    );
}

#[tokio::test]
async fn a_frontier_that_is_not_what_was_written_is_refused() {
    let objects = Arc::new(InMemory::new());
    let frontier = open(&objects, 2).await;
    frontier.close().await.unwrap();
    let frontiers = frontiers_in(&objects, settings());
    let refused = |change: fn(&mut OpenOptions)| {
        let frontiers = frontiers.clone();
        async move {
            let mut open_options = open_options(&frontiers, 2).await;
            change(&mut open_options);
            frontiers
                .open(open_options)
                .await
                .err()
                .map(|error| error.condition())
        }
    };
    assert_eq!(
        refused(|open| open.cluster = "c2".into()).await,
        Some("FrontierForeign")
    );
    assert_eq!(
        refused(|open| open.run = Run(1)).await,
        Some("FrontierDamaged")
    );
    let put = |key: &'static [u8], value: Vec<u8>| {
        let objects = objects.clone();
        async move {
            let db = Db::builder(path_of(shard()), objects as Arc<dyn ObjectStore>)
                .with_segment_extractor(Arc::new(keys::Kinds))
                .build()
                .await
                .unwrap();
            db.put(key, value).await.unwrap();
            db.close().await.unwrap();
        }
    };
    let gone = keys::batch(1);
    let db_key: &'static [u8] = Box::leak(gone.to_vec().into_boxed_slice());
    use prost::Message as _;
    let other = records::Batch {
        n: 16_385,
        ..Default::default()
    };
    put(db_key, other.encode_to_vec()).await;
    assert_eq!(refused(|_| {}).await, Some("FrontierDamaged"));
    let newer = records::Head {
        format: 9,
        ..Default::default()
    };
    put(keys::HEAD, newer.encode_to_vec()).await;
    assert_eq!(refused(|_| {}).await, Some("FrontierFormat"));
}

#[tokio::test]
async fn a_frontier_that_was_created_and_is_empty_is_missing() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(&objects, settings());
    let open_options = OpenOptions {
        created: true,
        ..open_options(&frontiers, 1).await
    };
    let error = frontiers.open(open_options).await.err().unwrap();
    assert_eq!(error.condition(), "FrontierMissing");
}

/// The database takes an empty log file for the mark of an opening, and skips it.
#[tokio::test]
async fn a_file_of_the_log_that_lost_its_bytes_is_found_when_it_is_opened() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    for _ in 0..3 {
        let claim = ready(take(&frontier, 0, 1).await);
        frontier.commit(parsed(claim)).await.unwrap();
        frontier.settle().await.unwrap();
    }
    let log = format!("{}/wal", path_of(shard())).into();
    let files: Vec<_> = objects.list(Some(&log)).try_collect().await.unwrap();
    let mut files: Vec<_> = files.into_iter().filter(|file| file.size > 0).collect();
    files.sort_by(|one, other| one.location.cmp(&other.location));
    let emptied = files[files.len() - 2].location.clone();
    objects.put(&emptied, Vec::new().into()).await.unwrap();
    let frontiers = frontiers_in(&objects, settings());
    let opened = frontiers.open(open_options(&frontiers, 1).await).await;
    let error = opened.err().unwrap().to_string();
    assert!(
        error.contains(" is missing; restore it from a copy"),
        "{error}"
    );
}
