//! A simulation of the cluster in one thread: real masters and workers on twins of store, frontiers, fetcher
//! and rules, under a clock that stands still while anything happens. One seed is one history.
//!
//! ```text
//! fault   the kinds of what goes wrong
//! sky     the seed's dice, what is cut off or late at this moment, the journal
//! line    what lies between a node and the store
//! site    pages of known links and items, the rules that read them, and who fetches them
//! sinks   where items go, and what is left of deleted resources
//! node    one process: a master or a worker
//! reach   how processes reach workers
//! client  adds, changes and deletes one name, by one call after another
//! cluster all nodes
//! storm   faults, for a while
//! check   the invariants that hold at each event
//! rest    those that hold once faults have stopped, and at rest
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::Instant;

mod check;
mod client;
mod cluster;
mod fault;
mod line;
mod node;
mod reach;
mod rest;
mod rules;
mod sinks;
mod site;
mod sky;
mod storm;
mod tests;

use check::{Checker, Tally};
use cluster::Cluster;
use fault::Fault;
use sky::Sky;

use crawler_process::task::TaskScope;
use crawler_process::task::schedule::Schedule;

/// Lease time of the nodes of a simulation.
const LEASE_TTL: Duration = Duration::from_secs(10);
/// Time by which everything has come to rest, whatever has happened.
const REST_BY: Duration = Duration::from_secs(60 * 60);

/// Result of a simulation.
struct Report {
    /// Events, in order.
    journal: Vec<String>,
    /// First violation of an invariant.
    violation: Option<String>,
    /// Number of times that each invariant had something to judge.
    tally: Tally,
    /// Kinds of faults that occurred.
    faults: BTreeSet<Fault>,
}

/// Runs the history of a seed.
fn run(seed: u64) -> Report {
    crawler_process::retry::seeded::begin(seed);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO");
    let sky = runtime.block_on(async {
        let _order = Schedule::begin(seed);
        let sky = Arc::new(Sky::new(seed));
        let (told, ended) = oneshot::channel();
        let (scope, past) = (TaskScope::new(), sky.clone());
        scope.spawn("history", async move {
            Box::pin(history(past)).await;
            let _violated = told.send(());
        });
        tokio::select! {
            biased;
            () = sky.violated() => {}
            ended = ended => if ended.is_err() { sky.violation("the simulation has panicked") },
        }
        sky
    });
    drop(runtime);
    sky.report()
}

async fn history(sky: Arc<Sky>) {
    let cluster = Cluster::start(sky.clone()).await;
    let clients = client::start(&cluster);
    storm::rage(&cluster).await;
    cluster.heal().await;
    let calm_since = Instant::now();
    sky.note("calm");
    // Clients go on meanwhile, and drains that were begun stay.
    if cluster.has_undrained_worker() {
        rest::ownership(&cluster, "the storm", calm_since).await;
    }
    cluster.end_drains().await;
    clients.finish(&sky).await;
    rest::ownership(&cluster, "the last call", Instant::now()).await;
    rest::rest(&cluster, &clients, calm_since + REST_BY).await;
    sky.note("rest");
}
