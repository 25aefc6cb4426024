//! A simulation of the cluster in one thread: real masters and workers on twins of store, frontiers, fetcher
//! and rules, under a clock that stands still while anything happens. One seed is one history.
//!
//! ```text
//! fault        the kinds of what goes wrong
//! world        the seed's dice, what is cut off or late at this moment, the journal
//! store_link   what lies between a node and the store
//! site         pages of known links and items
//! rules        the rules that read them
//! web          who fetches them
//! sinks        where items go, and what is left of deleted resources
//! services     what all processes use
//! node         one process: a master or a worker
//! calls        how processes call workers
//! client       adds, changes and deletes one name, by one call after another
//! cluster      all nodes
//! times        what a whole simulation keeps
//! inject       faults, for a while
//! check        the invariants that hold at each event
//! convergence  those that hold once faults have stopped, and when nothing is left to do
//! ```

use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::Instant;

mod calls;
mod check;
mod client;
mod cluster;
mod convergence;
mod fault;
mod inject;
mod node;
mod rules;
mod services;
mod sinks;
mod site;
mod store_link;
mod tests;
mod times;
mod web;
mod world;

use cluster::Cluster;
use times::CONVERGED_BY;
use world::{Report, SimWorld};

use crawler_process::task::TaskScope;
use crawler_process::task::schedule::Schedule;

/// Runs the history of a seed.
fn run(seed: u64) -> Report {
    crawler_process::retry::seeded::begin(seed);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO");
    let world = runtime.block_on(async {
        let _order = Schedule::begin(seed);
        let world = Arc::new(SimWorld::new(seed));
        let (told, ended) = oneshot::channel();
        let (scope, past) = (TaskScope::new(), world.clone());
        scope.spawn("history", async move {
            Box::pin(history(past)).await;
            let _violated = told.send(());
        });
        tokio::select! {
            biased;
            () = world.violated() => {}
            ended = ended => if ended.is_err() { world.violation("the simulation has panicked") },
        }
        world
    });
    drop(runtime);
    world.report()
}

async fn history(world: Arc<SimWorld>) {
    let cluster = Cluster::start(world.clone()).await;
    let clients = client::start(&cluster);
    inject::inject_faults(&cluster).await;
    cluster.heal().await;
    let fault_free_since = Instant::now();
    world.note("faults have stopped");
    // Clients go on meanwhile, and drains that were begun stay.
    if cluster.has_undrained_worker() {
        convergence::ownership(&cluster, "the last fault", fault_free_since).await;
    }
    cluster.end_drains().await;
    clients.finish(&world).await;
    convergence::ownership(&cluster, "the last call", Instant::now()).await;
    convergence::settled(&cluster, &clients, fault_free_since + CONVERGED_BY).await;
    world.note("converged");
}
