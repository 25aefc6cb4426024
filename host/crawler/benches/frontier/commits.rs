//! Commits of pages with 300 links of which one in a hundred is new, made as the tasks of a crawl make them.
//! They are compared with two bare loops that write batches of the same keys and sizes into the same database
//! with the same settings. One loop looks links up as well, because somebody has to, and the other only
//! writes. Like those loops, the frontier does not wait here for anything to become durable; pages that end
//! at the same time share a batch with it, as in a crawl.
//!
//! The three keep both processors of a small machine busy. The processor time of a commit is therefore the
//! bound on commits per second, and it is the measure here: it varies far less on a shared machine. The tasks
//! of all three make the same links, so that the database's own tasks find the processors equally busy; the
//! cost of making and dropping them is subtracted from each.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use crawler_frontier::Frontier as _;
use crawler_frontier::durable::DurableSettings;
use object_store::local::LocalFileSystem;
use slatedb::{Db, WriteBatch};

use super::work::{self, N_NEW, Site, Spent};

/// Number of pages of one measured piece.
const PIECE: usize = 100;
const N_PIECES: usize = 100;
const N_PAGES: usize = PIECE * N_PIECES;
const N_KNOWN: usize = 20_000;
const N_ROUNDS: usize = 15;
/// Number of links of a page that a cache has forgotten, so that the database is asked for them.
const N_FORGOTTEN: u64 = 2;

pub(crate) async fn run() {
    println!("commits of 300 links, 1 % new ({N_PIECES} pieces of {PIECE} pages)");
    let (mut beside_looking, mut beside_writing) = (Vec::new(), Vec::new());
    for round in 0..N_ROUNDS {
        let mut costs = [Spent::default(); 4];
        // The order rotates: each finds the machine as the others left it.
        for n in 0..costs.len() {
            let n = (n + round) % costs.len();
            costs[n] = match n {
                0 => making().await,
                1 => ours().await,
                n => bare(n == 2).await,
            };
        }
        let [making, ours, looking, writing] = costs;
        let micros = |spent: Spent| {
            let processors = spent.processors.saturating_sub(making.processors);
            processors.as_secs_f64() * 1e6 / N_PAGES as f64
        };
        let rate = |spent: Spent| N_PAGES as f64 / spent.wall.as_secs_f64();
        let (to_looking, to_writing) = (
            micros(looking) / micros(ours),
            micros(writing) / micros(ours),
        );
        beside_looking.push(to_looking);
        beside_writing.push(to_writing);
        println!(
            "  {:>5.1} us of a processor, {:>6.0} pages/s; a loop that looks links up and writes {:>5.1} us, \
             {:>6.0}: {to_looking:.2}; one that only writes {:>5.1} us, {:>6.0}: {to_writing:.2}",
            micros(ours),
            rate(ours),
            micros(looking),
            rate(looking),
            micros(writing),
            rate(writing),
        );
    }
    println!(
        "  median {:.2} and {:.2} (goal: at least 0.7)",
        super::median(beside_looking),
        super::median(beside_writing)
    );
}

async fn making() -> Spent {
    let mut site = Site::new();
    drop(site.fresh(N_KNOWN));
    let mut spent = Spent::default();
    for _ in 0..N_PIECES {
        spent += Spent::on(work::make_links(&site.pages(PIECE))).await;
    }
    spent
}

async fn ours() -> Spent {
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
    frontier.settle().await.expect("it is open");
    let mut spent = Spent::default();
    for _ in 0..N_PIECES {
        spent += Spent::on(work::crawl(&frontier, &site.pages(PIECE))).await;
    }
    frontier.close().await.expect("it closes");
    spent
}

/// Writes one batch for each page.
async fn bare(is_looking: bool) -> Spent {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let objects = LocalFileSystem::new_with_prefix(folder.path()).expect("it is there");
    let settings = DurableSettings::default();
    let db = Db::builder("bare", Arc::new(objects.with_fsync(true)))
        .with_settings(settings.database(settings.unflushed_share(0), Duration::ZERO))
        .with_db_cache(settings.block_cache(), 1)
        .with_segment_extractor(crawler_frontier::durable::segments())
        .build();
    let db = db.await.expect("it opens");
    let mut site = Site::new();
    drop(site.fresh(N_KNOWN));
    db.write(seeds()).await.expect("it is open");
    db.flush().await.expect("it is open");
    let (known, last) = (Arc::new(Mutex::default()), Arc::new(AtomicU64::new(0)));
    let mut spent = Spent::default();
    for _ in 0..N_PIECES {
        let pages = site.pages(PIECE);
        let (known, numbers, db_of) = (known.clone(), last.clone(), db.clone());
        let piece = async {
            work::at_once(&pages, move |page| {
                let n = numbers.fetch_add(1, Ordering::Relaxed) + 1;
                let (known, db) = (known.clone(), db_of.clone());
                async move {
                    let links = page.links();
                    if is_looking {
                        look_up(&db, &known, n).await;
                    }
                    db.write(batch(n)).await.expect("it is open");
                    drop(links);
                }
            })
            .await;
            clear(&db, last.load(Ordering::Relaxed)).await;
        };
        spent += Spent::on(piece).await;
    }
    db.close().await.expect("it closes");
    spent
}

/// Removes the items of the last piece, as a sink would.
async fn clear(db: &Db, last: u64) {
    let mut cleared = WriteBatch::new();
    for n in last - PIECE as u64 + 1..=last {
        cleared.delete(key(b'o', n, 9));
    }
    db.write(cleared).await.expect("it is open");
}

/// Looks up the links of one page: most are known, some of them only to the database, and the rest are new.
async fn look_up(db: &Db, known: &Mutex<HashSet<u64>>, n: u64) {
    let (n_links, n_new) = (work::N_LINKS as u64, N_NEW as u64);
    let any_known =
        |link: u64| (n * n_links + link).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (n * n_new);
    {
        let known = known.lock().expect("nobody panics with it");
        for link in 0..n_links - n_new {
            std::hint::black_box(known.contains(&any_known(link)));
        }
    }
    for link in 0..N_FORGOTTEN + n_new {
        let link = match link < N_FORGOTTEN {
            true => any_known(link),
            false => n * n_new + link - N_FORGOTTEN,
        };
        let found = db.get(key(b's', 1_000_000 + link, 33)).await;
        std::hint::black_box(found.expect("it is open"));
        known.lock().expect("nobody panics with it").insert(link);
    }
}

/// Returns the stored links that are known before the first page.
fn seeds() -> WriteBatch {
    let mut batch = WriteBatch::new();
    for n in 0..N_KNOWN as u64 {
        put_link(&mut batch, 2_000_000 + n);
    }
    batch
}

fn put_link(batch: &mut WriteBatch, n: u64) {
    batch.put(key(b's', n, 33), value(0));
    batch.put(key(b'u', n, 25), value(20));
    batch.put(key(b'r', n, 37), value(100));
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
        put_link(&mut batch, 1_000_000 + n * N_NEW as u64 + link);
    }
    batch
}

/// Returns a key of this kind and length; keys of fingerprints come in no order, like the real ones.
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
