//! Tests of workers that know the nodes which call them by their certificates.

use super::*;
use crawler_fetch::turns::call::{AskTurns as _, TurnRequests, WorkerProcess};
use crawler_frontier::LinkBatch;
use crawler_model::id::{Epoch, ResourceId, Run, Shard};
use crawler_model::resource::ShardId;
use crawler_worker::links::{LinkDelivery, SendLinks as _};

/// Answer to links that the caller may bring.
const NOT_HERE: &str = "shard 7/1 is not crawled here";
/// Answer to a question for turns that the caller may ask.
const NOT_SHARED: &str = "--shared-turns off";

/// A worker that asks its callers for certificates.
struct Bench {
    files: Files,
    authority: Authority,
    server: Server,
}

impl Bench {
    /// Starts a worker whose certificates come from a CA of its user.
    async fn start() -> Self {
        Self::with(Files::mutual_server).await
    }

    /// Starts a worker with a certificate of the cluster's CA.
    async fn joined() -> Self {
        Self::with(Files::node_server).await
    }

    async fn with(tls: impl FnOnce(&Files, &Authority) -> ServerTls) -> Self {
        let (files, authority) = (Files::new(), Authority::new("ca"));
        let tls = tls(&files, &authority);
        Self {
            server: Server::start(&tls, RequestSettings::default()).await,
            files,
            authority,
        }
    }

    /// Returns the calls of a caller with this URI in its certificate. Only the last ones that were returned may be
    /// used: all have the same files.
    fn calls(&self, uri: &str) -> GrpcWorkerCalls {
        let issued = self.authority.issue_to_node(uri);
        let tls = self.files.client(&self.authority, Some(&issued));
        GrpcWorkerCalls::new(tls)
    }

    /// Brings no links. Returns the reason why they are not taken.
    async fn apply(&self, calls: &GrpcWorkerCalls) -> String {
        let links = LinkDelivery {
            to: ShardId {
                resource: ResourceId(7),
                shard: Shard(1),
            },
            epoch: Epoch(1),
            run: Run(1),
            from: Shard(0),
            batch: LinkBatch {
                first: 1,
                links: Vec::new(),
            },
        };
        let sent = calls.send(&self.server.node(), links).await;
        sent.unwrap_err().to_string()
    }

    /// Asks for turns in the name of a worker. Returns the reason why there are none.
    async fn ask(&self, calls: &GrpcWorkerCalls, worker: &str) -> String {
        let asks = TurnRequests {
            from: WorkerProcess {
                worker: worker.parse().unwrap(),
                incarnation: Incarnation(1),
            },
            asks: Vec::new(),
        };
        let answer = calls.ask(&self.server.node(), asks).await;
        answer.unwrap_err().why
    }
}

#[tokio::test]
async fn r14_a_node_makes_the_calls_of_its_role_only() {
    let bench = Bench::start().await;
    let master = bench.calls("crawler://c1/master/master-1");
    bench.server.call_over(&master).await.unwrap();
    let why = bench.apply(&master).await;
    assert!(why.contains("ApplyLinks is for a worker"), "{why}");
    let worker = bench.calls("crawler://c1/worker/worker-2");
    let why = bench.apply(&worker).await;
    assert!(why.contains(NOT_HERE), "{why}");
    let why = bench.server.call_over(&worker).await.unwrap_err();
    assert!(why.contains("GetStatus is for a master"), "{why}");
}

#[tokio::test]
async fn r14_a_node_of_another_cluster_is_refused_whatever_it_knows() {
    let bench = Bench::start().await;
    let master = bench.calls("crawler://c2/master/master-1");
    let why = bench.server.call_over(&master).await.unwrap_err();
    assert!(why.contains("a node of another cluster"), "{why}");
    let worker = bench.calls("crawler://c2/worker/worker-2");
    let why = bench.apply(&worker).await;
    assert!(why.contains("a node of another cluster"), "{why}");
    // A certificate that names no node is judged by the token of the call.
    for uri in ["https://c2/worker/worker-2", "crawler://c2"] {
        let calls = bench.calls(uri);
        bench.server.call_over(&calls).await.unwrap();
        let why = bench.apply(&calls).await;
        assert!(why.contains(NOT_HERE), "{why}");
    }
}

#[tokio::test]
async fn r14_a_node_that_joined_is_called_with_a_certificate_only() {
    let bench = Bench::joined().await;
    let nobody = bench.files.client(&bench.authority, None);
    let why = bench.server.call(&nobody).await.unwrap_err();
    assert!(why.contains("this connection shows none"), "{why}");
    let nameless = bench.calls("https://a.test/");
    let why = bench.apply(&nameless).await;
    assert!(why.contains("this connection shows none"), "{why}");
    let why = bench.ask(&nameless, "worker-3").await;
    assert!(why.contains("this connection shows none"), "{why}");
    let master = bench.calls("crawler://c1/master/master-1");
    bench.server.call_over(&master).await.unwrap();
    let worker = bench.calls("crawler://c1/worker/worker-2");
    let why = bench.apply(&worker).await;
    assert!(why.contains(NOT_HERE), "{why}");
    let why = bench.server.call_over(&worker).await.unwrap_err();
    assert!(why.contains("GetStatus is for a master"), "{why}");
}

#[tokio::test]
async fn r14_turns_are_asked_for_in_the_own_name() {
    let bench = Bench::start().await;
    let calls = bench.calls("crawler://c1/worker/worker-2");
    let why = bench.ask(&calls, "worker-3").await;
    assert!(why.contains("it calls as worker-3"), "{why}");
    let why = bench.ask(&calls, "worker-2").await;
    assert!(why.contains(NOT_SHARED), "{why}");
    let calls = bench.calls("https://a.test/");
    let why = bench.ask(&calls, "worker-3").await;
    assert!(why.contains(NOT_SHARED), "{why}");
}
