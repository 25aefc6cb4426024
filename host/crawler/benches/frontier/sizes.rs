//! Memory, speed and disk with 10 000, 100 000 and 1 000 000 known URLs on one host, and with 1 000 000 on
//! 100 000 hosts. Each runs in a process of its own, in turns, so that a machine that is slow for a while
//! slows all of them. A page's links are made, committed and dropped.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crawler_frontier::Frontier as _;
use crawler_frontier::durable::DurableSettings;

use super::work::{self, Site, Spent};

pub(crate) const ONE: &str = "sizes-of";
/// Numbers of URLs, and of the hosts that they are on.
const SIZES: [(usize, u32); 4] = [
    (10_000, 1),
    (100_000, 1),
    (1_000_000, 1),
    (1_000_000, 100_000),
];
const N_PAGES: usize = 20_000;
const N_ROUNDS: usize = 3;

pub(crate) fn run() {
    println!("known URLs on hosts: pages/s of 300 links each, memory, disk");
    let ratios = (0..N_ROUNDS).map(|_| {
        let rates = SIZES.map(|(n_known, n_hosts)| rate_of(n_known, n_hosts));
        rates[2] / rates[0]
    });
    println!(
        "  a million known: median {:.2} of the pages/s of ten thousand (goals: at least 0.8, \
         and below 512 MiB)",
        super::median(ratios.collect())
    );
}

/// Runs a process, and returns the pages per second that it reports.
fn rate_of(n_known: usize, n_hosts: u32) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program)
        .args([ONE, &n_known.to_string(), &n_hosts.to_string()])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (before, _) = said.split_once(" pages/s").expect("it says so");
    let rate = before.split_whitespace().last().map(str::parse);
    rate.expect("a number is before it")
        .expect("it is a number")
}

pub(crate) async fn one(n_known: usize, n_hosts: u32) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let frontiers = work::frontiers(folder.path(), DurableSettings::default());
    let frontier = Arc::new(work::open(&frontiers).await);
    let mut site = Site::over(n_hosts);
    frontier.seed(site.fresh(1_000)).await.expect("it is open");
    while site.n_known < n_known as u64 {
        let claim = work::take(&frontier, 1).await;
        let committed = frontier
            .commit(work::commit(claim, site.fresh(1_000)))
            .await;
        committed.expect("it is open");
        work::drain(&frontier).await;
    }
    frontier.settle().await.expect("it is open");
    wait_for_compaction(folder.path()).await;
    let mut spent = Spent::default();
    for _ in 0..N_PAGES / 500 {
        let pages = site.pages(500);
        spent += Spent::on(work::crawl(&frontier, &pages)).await;
    }
    let (n_files, n_bytes) = disk(folder.path());
    println!(
        "  {n_known:>9} on {n_hosts:>6}: {:>6.0} pages/s, {:>4} MiB at most, {:>4} MiB in {n_files} files",
        N_PAGES as f64 / spent.wall.as_secs_f64(),
        memory("VmHWM:") >> 20,
        n_bytes >> 20,
    );
    frontier.close().await.expect("it closes");
}

/// Waits until the data that was loaded at once is sorted; that is no part of a page's cost.
async fn wait_for_compaction(folder: &Path) {
    let mut before = disk(folder);
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = disk(folder);
        if now == before {
            return;
        }
        before = now;
    }
}

/// Returns the memory of this process in bytes: `VmHWM:` at most, `VmRSS:` now.
pub(crate) fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

/// Returns the number of files below a folder, and their bytes.
pub(crate) fn disk(folder: &Path) -> (u64, u64) {
    let mut sum = (0, 0);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let (n_files, n_bytes) = match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk(&path),
            Ok(metadata) => (1, metadata.len()),
            Err(_removed) => (0, 0),
        };
        sum = (sum.0 + n_files, sum.1 + n_bytes);
    }
    sum
}
