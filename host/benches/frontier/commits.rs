//! Commits of pages with 300 links of which one in a hundred is new, as the tasks of a crawl make them,
//! beside bare loops that write batches of the same keys and sizes into the same database with the same
//! settings: one that looks links up as well, for somebody has to, and one that only writes. As those
//! loops, the frontier waits here for nothing to become durable.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crawler::frontier::Frontier as _;
use crawler::frontier::durable::DurableSettings;
use object_store::local::LocalFileSystem;
use slatedb::{Db, WriteBatch};

use super::work::{self, N_NEW, Site};

/// Pages of one measured piece.
const PIECE: usize = 100;
const N_PIECES: usize = 100;
const N_KNOWN: usize = 20_000;
const N_ROUNDS: usize = 9;
/// Links of a page that a cache has forgotten, so that the database is asked for them.
const N_FORGOTTEN: u64 = 2;

pub(crate) async fn run() {
    println!("commits of 300 links, 1 % new ({N_PIECES} pieces of {PIECE} pages)");
    let (mut beside_looking, mut beside_writing) = (Vec::new(), Vec::new());
    for _ in 0..N_ROUNDS {
        let ours = ours().await;
        let (looking, writing) = (bare(true).await, bare(false).await);
        beside_looking.push(ours / looking);
        beside_writing.push(ours / writing);
        println!(
            "  {ours:>6.0} commits/s; a loop that looks links up and writes {looking:>6.0}: {:.2}; \
             one that only writes {writing:>6.0}: {:.2}",
            ours / looking,
            ours / writing
        );
    }
    println!(
        "  median {:.2} and {:.2} (goal: at least 0.7)",
        median(beside_looking),
        median(beside_writing)
    );
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

async fn ours() -> f64 {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let settings = DurableSettings {
        max_undurable: 1 << 20,
        ..DurableSettings::default()
    };
    let frontiers = work::frontiers(folder.path(), settings);
    let frontier = Arc::new(work::open(&frontiers).await);
    let mut site = Site::new();
    frontier
        .seed(site.fresh(N_KNOWN))
        .await
        .expect("it is open");
    let mut spent = Duration::ZERO;
    for _ in 0..N_PIECES {
        let pages = site.pages(PIECE);
        spent += work::crawl(&frontier, &pages).await;
    }
    frontier.close().await.expect("it closes");
    (N_PIECES * PIECE) as f64 / spent.as_secs_f64()
}

/// One batch after the other.
async fn bare(is_looking: bool) -> f64 {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let objects = LocalFileSystem::new_with_prefix(folder.path()).expect("it is there");
    let settings = DurableSettings::default();
    let db = Db::builder("bare", Arc::new(objects.with_fsync(true)))
        .with_settings(settings.database(settings.unflushed_share(0), Duration::ZERO))
        .with_db_cache(settings.block_cache(), 1)
        .with_segment_extractor(crawler::frontier::durable::segments())
        .build();
    let db = db.await.expect("it opens");
    let mut known: HashSet<u64> = HashSet::new();
    let mut n = 0;
    let mut spent = Duration::ZERO;
    for _ in 0..N_PIECES {
        let began = Instant::now();
        for _ in 0..PIECE {
            n += 1;
            if is_looking {
                look_up(&db, &mut known, n).await;
            }
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

/// The links of one page: most are known, some of them to the database only, and the rest are new.
async fn look_up(db: &Db, known: &mut HashSet<u64>, n: u64) {
    let (n_links, n_new) = (work::N_LINKS as u64, N_NEW as u64);
    for link in 0..n_links - n_new {
        let link = (n * n_links + link).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (n * n_new);
        std::hint::black_box(known.contains(&link));
    }
    for link in 0..N_FORGOTTEN + n_new {
        let link = match link < N_FORGOTTEN {
            true => (n * n_links + link).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (n * n_new),
            false => n * n_new + link - N_FORGOTTEN,
        };
        let found = db.get(key(b's', 1_000_000 + link, 33)).await;
        std::hint::black_box(found.expect("it is open"));
        known.insert(link);
    }
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
