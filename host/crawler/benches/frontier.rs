//! The durable frontier: the cost of a commit compared with the database alone, the cost of a large one, and
//! whether the files that it leaves on the disk stay flat.
//!
//! ```text
//! cargo bench -p crawler --bench frontier                  all but growth and kinds
//! cargo bench -p crawler --bench frontier -- growth        ten minutes
//! cargo bench -p crawler --bench frontier -- commits|sizes|hosts|refill|kinds
//! ```
//!
//! The measure is a ratio: both sides of each run in one process or one after the other on the same machine.

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use tokio::runtime::Builder;

#[path = "frontier/commits.rs"]
mod commits;
#[path = "frontier/growth.rs"]
mod growth;
#[path = "frontier/hosts.rs"]
mod hosts;
#[path = "frontier/kinds.rs"]
mod kinds;
#[path = "frontier/refill.rs"]
mod refill;
#[path = "frontier/sizes.rs"]
mod sizes;
#[path = "frontier/work.rs"]
mod work;

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(32)
        .build()
        .expect("a runtime starts");
    match arguments.as_slice() {
        [] => {
            runtime.block_on(commits::run());
            sizes::run();
            runtime.block_on(hosts::run());
            runtime.block_on(refill::run());
        }
        [name] if name == "commits" => runtime.block_on(commits::run()),
        [name] if name == "sizes" => sizes::run(),
        [name, n_known, n_hosts] if name == sizes::ONE => {
            let n_known = n_known.parse().expect("a number of URLs");
            let n_hosts = n_hosts.parse().expect("a number of hosts");
            runtime.block_on(sizes::one(n_known, n_hosts));
        }
        [name] if name == "hosts" => runtime.block_on(hosts::run()),
        [name] if name == "refill" => runtime.block_on(refill::run()),
        [name] if name == "kinds" => kinds::run(),
        [name, kind] if name == kinds::ONE => runtime.block_on(kinds::one(kind)),
        [name] if name == "growth" => runtime.block_on(growth::run()),
        other => println!("no such benchmark: {other:?}"),
    }
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}
