//! Starts the turns of hosts that a worker of a cluster shares with the others.

use std::sync::Arc;

use super::stop::spawn_until_stopped;
use crawler_api::client::GrpcWorkerCalls;
use crawler_api::tls::ClientTls;
use crawler_fetch::http::HttpFetcher;
use crawler_fetch::turns::Turns;
use crawler_fetch::turns::call::WorkerProcess;
use crawler_model::node::Node;
use crawler_process::task::TaskScope;
use crawler_store::catalog::Catalog;
use crawler_worker::peers;

/// Shares the turns of a worker until `scope` is stopped, if its registration says so. The fetcher asks for
/// them from here on, with the certificates in `tls`. The returned turns are for the listener, where other
/// workers ask.
pub(super) fn begin(
    node: &Node,
    catalog: &Catalog,
    fetch: &HttpFetcher,
    tls: &ClientTls,
    scope: &TaskScope,
) -> Option<Turns> {
    if !node.shares_turns {
        return None;
    }
    let own = WorkerProcess {
        worker: node.id.clone(),
        incarnation: node.incarnation,
    };
    let turns = Turns::new(own, Arc::new(GrpcWorkerCalls::new(tls.clone())));
    fetch.share_turns(turns.clone());
    let follow = peers::follow(catalog.clone(), turns.clone());
    spawn_until_stopped(scope, "workers that share turns", follow);
    let asking = turns.clone();
    spawn_until_stopped(scope, "turns", async move { asking.run().await });
    Some(turns)
}
