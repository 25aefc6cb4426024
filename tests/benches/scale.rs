//! Growth of a cluster: many registered workers and resources on one real etcd, with real masters.
//!
//! ```text
//! tests/run bench scale
//! CRAWLER_BIN=PROGRAM cargo bench -p crawler-tests --bench scale
//! ```
//!
//! Workers are simulated: each has its registration under a lease that it keeps, watches its own assignments and
//! no others, and reports its totals; none crawls. Resources are written straight to the store, in the records of
//! the program, before the masters start. Settings, with their defaults:
//!
//! ```text
//! CRAWLER_SCALE_WORKERS=1000        registered workers
//! CRAWLER_SCALE_RESOURCES=100000    resources, each assigned
//! CRAWLER_SCALE_MASTERS=2           masters, of which one leads
//! CRAWLER_SCALE_CALLS=40            additions, bare puts and changes that are timed
//! CRAWLER_SCALE_CHURN_SECONDS=1800  changes without a pause for the size of etcd's database
//! CRAWLER_SCALE_LEASE_SECONDS=10    how long a silent node counts as there
//! ```
//!
//! Each figure stands beside its goal. Figures that are compared were measured in one run on one machine.

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::time::Duration;

use crawler_tests::number;

#[path = "scale/cluster.rs"]
mod cluster;
#[path = "common/cpu.rs"]
mod cpu;
#[path = "scale/measure.rs"]
mod measure;
#[path = "scale/proc.rs"]
mod proc;
#[path = "scale/profile.rs"]
mod profile;
#[path = "scale/seed.rs"]
mod seed;
#[path = "scale/table.rs"]
mod table;
#[path = "scale/workers.rs"]
mod workers;

/// Size and duration of the benchmark.
#[derive(Debug, Clone, Copy)]
struct Size {
    n_workers: u64,
    n_resources: u64,
    n_masters: u64,
    n_calls: u64,
    churn: Duration,
    lease: Duration,
}

fn main() {
    // `cargo test --all-targets` runs this program as well.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let size = Size {
        n_workers: number("CRAWLER_SCALE_WORKERS", 1_000),
        n_resources: number("CRAWLER_SCALE_RESOURCES", 100_000),
        n_masters: number("CRAWLER_SCALE_MASTERS", 2).max(1),
        n_calls: number("CRAWLER_SCALE_CALLS", 40).max(1),
        churn: Duration::from_secs(number("CRAWLER_SCALE_CHURN_SECONDS", 1_800)),
        lease: Duration::from_secs(number("CRAWLER_SCALE_LEASE_SECONDS", 10).max(2)),
    };
    println!("{size:?}");
    let Some(mut cluster) = cluster::Cluster::begin(size) else {
        return;
    };
    let mut table = table::Table::default();
    measure::memory(&mut cluster, &mut table, "at the first rest");
    measure::passes(&mut cluster, &mut table);
    measure::profile(&mut cluster);
    measure::changes(&mut cluster, &mut table);
    measure::additions(&mut cluster, &mut table);
    measure::take_over(&mut cluster, &mut table);
    measure::churn(&mut cluster, &mut table);
    measure::memory(&mut cluster, &mut table, "at the end");
    table.print();
}
