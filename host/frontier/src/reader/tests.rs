//! Tests of readers that are dropped or given up.

use object_store::memory::InMemory;
use tokio::runtime::Handle;

use super::*;
use crate::Frontier as _;
use crate::durable::{DurableSettings, Frontiers, OpenOptions};
use crate::suite::hanging::{Hanging, Hangs};
use crate::suite::{line, of_another_format};
use crawler_model::id::ResourceId;

fn shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

/// Creates a frontier that is not open.
async fn frontier() -> Arc<dyn ObjectStore> {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let frontiers = Arc::new(Frontiers::new(objects.clone(), DurableSettings::default()));
    let open_options = OpenOptions {
        created: false,
        storage_epoch: 0,
        ..OpenOptions::first(shard())
    };
    let opened = frontiers.open(open_options).await.unwrap();
    opened.close().await.unwrap();
    objects
}

/// Waits until there are no more background tasks than before.
async fn wait_for_tasks(n: usize) {
    let ended = async {
        while Handle::current().metrics().num_alive_tasks() > n {
            tokio::time::sleep(POLL).await;
        }
    };
    let deadline = Duration::from_secs(60);
    tokio::time::timeout(deadline, ended).await.expect("ended");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_dropped_looks_no_more() {
    let objects = frontier().await;
    wait_for_tasks(0).await;
    let reader = FrontierReader::open(objects.clone(), shard()).await;
    let reader = reader.unwrap().unwrap();
    assert!(Handle::current().metrics().num_alive_tasks() > 0);
    drop(reader);
    wait_for_tasks(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_refused_looks_no_more() {
    let objects = frontier().await;
    of_another_format(&objects, shard()).await;
    wait_for_tasks(0).await;
    let opened = FrontierReader::open(objects, shard()).await;
    assert!(matches!(opened, Err(FrontierError::Format { .. })));
    wait_for_tasks(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_line_that_does_not_decode_is_left_out() {
    let objects = frontier().await;
    let db = slatedb::Db::builder(path_of(shard()), objects.clone())
        .with_segment_extractor(Arc::new(keys::Kinds))
        .build();
    let db = Box::pin(db).await.unwrap();
    db.put(keys::line(1), b"\xff").await.unwrap();
    let kept = records::Line::from(&*line(2, "kept"));
    db.put(keys::line(2), kept.encode_to_vec()).await.unwrap();
    db.close().await.unwrap();
    let opened = FrontierReader::open(objects, shard()).await;
    let reader = opened.unwrap().expect("it is there");
    assert_eq!(reader.log().await.unwrap(), [(*line(2, "kept")).clone()]);
    reader.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_frontier_that_does_not_answer_is_named() {
    let objects = Arc::new(Hanging::new(frontier().await));
    objects.set(Hangs::All);
    let opening = FrontierReader::open(objects.clone(), shard());
    let opened = tokio::time::timeout(OPEN_DEADLINE * 2, opening).await;
    let error = opened.expect("ended").err().expect("it hangs").to_string();
    assert_eq!(error, "cannot read the frontier 7/0: no answer in 20 s");
    objects.set(Hangs::Nothing);
    let opened = FrontierReader::open(objects, shard()).await;
    opened.unwrap().expect("it is there").close().await;
}

#[tokio::test(start_paused = true)]
async fn r03_reads_of_frontiers_wait_for_one_of_few_readers() {
    let readers = pool::Readers::new(frontier().await, 2);
    let open = async || readers.open(shard()).await.map(|reader| reader.unwrap());
    let (first, second) = (open().await.unwrap(), open().await.unwrap());
    let error = open().await.err().expect("there is none left").to_string();
    assert_eq!(
        error,
        "cannot read the frontier 7/0: 2 frontiers are being read, as many as --frontier-readers \
         allows, and none was let go within 10 s; try again, or raise it"
    );
    let let_go = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        first.close().await;
    };
    let (third, ()) = tokio::join!(open(), let_go);
    third.unwrap().close().await;
    second.close().await;
}

#[tokio::test(start_paused = true)]
async fn r03_followers_of_a_frontier_share_a_reader() {
    let readers = pool::Readers::new(frontier().await, 2);
    let follow = async || readers.follow(shard()).await.unwrap().unwrap();
    let (first, second) = (follow().await, follow().await);
    assert!(Arc::ptr_eq(&first, &second));
    assert!(first.may_be_kept());
    // A reader that does not read any more is replaced; only half of the readers may be kept.
    readers.stop_sharing(&first);
    let third = follow().await;
    assert!(!Arc::ptr_eq(&first, &third));
    assert!(!third.may_be_kept());
    drop((first, second, third));
    let open = async || readers.open(shard()).await.unwrap().unwrap();
    let both = (open().await, open().await);
    both.0.close().await;
    both.1.close().await;
    assert!(follow().await.may_be_kept());
}
