//! Commits of pages with 300 links of which one in a hundred is new, beside a bare loop that writes
//! batches of the same keys and sizes into the same database with the same settings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crawler::frontier::Frontier as _;
use crawler::frontier::durable::DurableSettings;
use object_store::local::LocalFileSystem;
use slatedb::{Db, WriteBatch};

use super::work::{self, N_NEW, Site};

/// Pages of one measured piece; making their links is not measured.
const PIECE: usize = 500;
const N_PIECES: usize = 20;
const N_KNOWN: usize = 20_000;
const N_PAIRS: usize = 3;

pub(crate) async fn run() {
    println!("commits of 300 links, 1 % new ({N_PIECES} pieces of {PIECE} pages)");
    let mut ratios = Vec::new();
    for _ in 0..N_PAIRS {
        let ours = ours().await;
        let bare = bare().await;
        ratios.push(ours / bare);
        println!(
            "  {ours:>7.0} commits/s, bare loop {bare:>7.0}: {:.2}",
            ours / bare
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("  median {:.2} (goal: at least 0.7)", ratios[N_PAIRS / 2]);
}

async fn ours() -> f64 {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let frontiers = work::frontiers(folder.path(), DurableSettings::default());
    let frontier = work::open(&frontiers).await;
    let mut site = Site::new();
    frontier
        .seed(site.fresh(N_KNOWN))
        .await
        .expect("it is open");
    let mut spent = Duration::ZERO;
    for _ in 0..N_PIECES {
        let pages: Vec<_> = (0..PIECE).map(|_| site.page()).collect();
        let began = Instant::now();
        for links in pages {
            let claim = work::take(&frontier, 1).await;
            let committed = frontier.commit(work::commit(claim, links)).await;
            committed.expect("it is open");
        }
        work::drain(&frontier).await;
        spent += began.elapsed();
    }
    frontier.close().await.expect("it closes");
    (N_PIECES * PIECE) as f64 / spent.as_secs_f64()
}

/// What a page's batch is made of, without anybody who looks what is new.
async fn bare() -> f64 {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let objects = LocalFileSystem::new_with_prefix(folder.path()).expect("it is there");
    let settings = DurableSettings::default();
    let db = Db::builder("bare", Arc::new(objects.with_fsync(true)))
        .with_settings(settings.database(settings.unflushed_share(0)))
        .with_db_cache(settings.block_cache(), 1)
        .with_segment_extractor(crawler::frontier::durable::segments())
        .build();
    let db = db.await.expect("it opens");
    let mut n = 0;
    let mut spent = Duration::ZERO;
    for _ in 0..N_PIECES {
        let began = Instant::now();
        for _ in 0..PIECE {
            n += 1;
            db.write(batch(n)).await.expect("it is open");
        }
        let mut cleared = WriteBatch::new();
        for n in n - PIECE as u64 + 1..=n {
            cleared.delete(key(b'o', n, 9));
        }
        db.write(cleared).await.expect("it is open");
        spent += began.elapsed();
    }
    db.close().await.expect("it closes");
    (N_PIECES * PIECE) as f64 / spent.as_secs_f64()
}

fn batch(n: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.delete(key(b'r', n, 37));
    batch.put(key(b'u', n, 25), value(100));
    batch.put(key(b'h', 1, 9), value(24));
    batch.put(key(b'm', n % 16_384, 4), value(24));
    batch.put(key(b'c', 1, 10), value(40));
    batch.put(key(b'o', n, 9), value(420));
    for link in 0..N_NEW as u64 {
        let n = 1_000_000 + n * N_NEW as u64 + link;
        batch.put(key(b's', n, 33), value(0));
        batch.put(key(b'u', n, 25), value(20));
        batch.put(key(b'r', n, 37), value(100));
    }
    batch
}

/// A key of this kind and length; like ours, those of fingerprints come in no order.
fn key(kind: u8, n: u64, length: usize) -> Bytes {
    let mut key = vec![kind];
    if matches!(kind, b'u' | b's') {
        key.extend(n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    }
    let number = n.to_be_bytes();
    let room = length - key.len();
    key.resize(length - room.min(number.len()), 0);
    key.extend(&number[number.len() - room.min(number.len())..]);
    key.into()
}

fn value(length: usize) -> Bytes {
    vec![b'x'; length].into()
}
