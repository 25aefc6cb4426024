//! Files and bytes of a data root over a long crawl, with all ages one minute. After that the remains of a
//! frontier are flat, through openings too. Items grow with the crawl, and both go with their resource.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawler_data::DataRoot;
use crawler_frontier::durable::{DurableFrontier, DurableSettings, Frontiers};
use crawler_frontier::{Frontier as _, path_of};
use crawler_sink::items::ItemStore as _;
use crawler_sink::lines::{LineFiles, LineFolders, LineSettings};
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::manifest::Segment;

use super::sizes::disk;
use super::work::{self, SHARD, Site};

const AGE: Duration = Duration::from_secs(60);
const N_LIVES: u32 = 8;
/// Time between two openings, each of which has line files of its own.
const LIFE: Duration = Duration::from_secs(75);
const PAGES_PER_SECOND: u64 = 500;
/// Size of a line file, so small that there are several in one life.
const FILE_BYTES: u64 = 4 << 20;

pub(crate) async fn run() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let data = folder
        .path()
        .to_str()
        .and_then(|root| DataRoot::open(root).ok());
    let data = data.expect("a fresh folder is a good root");
    let settings = DurableSettings {
        min_age: AGE,
        ..DurableSettings::default()
    };
    let frontiers = Arc::new(Frontiers::new(data.object_store(), settings));
    println!("{PAGES_PER_SECOND} pages/s, each with one new link; all ages one minute");
    let (mut site, began) = (Site::new(), Instant::now());
    let admin = AdminBuilder::new(path_of(SHARD), data.object_store()).build();
    for _ in 0..N_LIVES {
        let frontier = work::open(&frontiers).await;
        if frontier.roots().is_none() {
            frontier.seed(site.fresh(1_000)).await.expect("it is open");
        }
        let items = data.items_folder(SHARD.resource).expect("it is a folder");
        let items = items.join(SHARD.shard.to_string());
        let settings = LineSettings {
            max_file_bytes: FILE_BYTES,
        };
        let mut sink = LineFiles::open(items, frontier.storage_epoch(), settings);
        live(&frontier, &mut sink, &mut site, async || {
            show(folder.path(), began);
            println!("         {}", named(&admin).await);
        })
        .await;
        frontier.close().await.expect("it closes");
    }
    let removed = data.delete_frontiers(SHARD.resource).await;
    removed.expect("nobody has it open");
    let lines = LineFolders::new(
        data.items_root().expect("it is a folder"),
        LineSettings::default(),
    );
    let removed = lines.delete(SHARD.resource).await;
    removed.expect("nobody writes them");
    println!("  deleted:");
    show(folder.path(), began);
}

async fn live(
    frontier: &DurableFrontier,
    sink: &mut LineFiles,
    site: &mut Site,
    show: impl AsyncFn(),
) {
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let (opened, mut shown) = (Instant::now(), Instant::now());
    while opened.elapsed() < LIFE {
        tick.tick().await;
        for _ in 0..PAGES_PER_SECOND / 10 {
            let claim = work::take(frontier, 1).await;
            let committed = frontier.commit(work::commit(claim, site.fresh(1))).await;
            committed.expect("it is open");
        }
        work::deliver(frontier, sink).await;
        if shown.elapsed() >= Duration::from_secs(15) {
            shown = Instant::now();
            show().await;
        }
    }
}

fn show(root: &Path, began: Instant) {
    let size = |name: &str| {
        let (n_files, n_bytes) = disk(&root.join(name));
        format!("{n_files:>5} files, {:>7.1} MB", n_bytes as f64 / 1e6)
    };
    let seconds = began.elapsed().as_secs();
    let (frontier, items) = (size("frontiers"), size("items"));
    println!(
        "  {seconds:>4} s: frontier {frontier} ({}); items {items}",
        by_kind(root)
    );
}

/// Describes the tables that the newest manifest names; all others in the folder wait for their age.
async fn named(admin: &Admin) -> String {
    let Ok(Some(manifest)) = admin.read_manifest(None).await else {
        return "no manifest".into();
    };
    let segments = manifest.segments();
    let (mut n_tables, mut n_bytes) = (0, 0);
    for view in manifest.all_sst_views() {
        n_tables += 1;
        n_bytes += view.estimate_size();
    }
    let n_new: usize = segments.iter().map(|segment| segment.l0().len()).sum();
    let runs = segments.iter().flat_map(Segment::compacted);
    let longest = runs.clone().map(|run| run.sst_views().len()).max();
    format!(
        "in use: {n_tables} tables, {:.1} MB: {n_new} of level 0, {} runs of at most {} in {} kinds of keys",
        n_bytes as f64 / 1e6,
        runs.count(),
        longest.unwrap_or(0),
        segments.len(),
    )
}

/// Returns the files of the frontier's database, by kind.
fn by_kind(root: &Path) -> String {
    let folder = root.join(path_of(SHARD).as_ref());
    let kinds = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut kinds: Vec<String> = kinds
        .map(|kind| format!("{} {}", kind.file_name().display(), disk(&kind.path()).0))
        .collect();
    kinds.sort_unstable();
    kinds.join(", ")
}
