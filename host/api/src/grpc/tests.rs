//! Clients that send too much, or are too many.

use std::net::SocketAddr;
use std::sync::Arc;

use proto::crawler_worker_client::CrawlerWorkerClient;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use super::*;
use crate::client::GrpcWorkerCalls;
use crate::metadata::CALL_TOKEN;
use crate::requests::RequestSettings;
use crawler_fetch::turns::call::{MAX_ASKS, WorkerProcess};
use crawler_model::id::Incarnation;
use crawler_process::task::TaskScope;
use crawler_process::telemetry::chain;
use crawler_store::catalog::Catalog;
use crawler_store::keys::Keys;
use crawler_store::twin::StoreTwin;
use crawler_worker::links::MAX_LINKS;

mod reference;

const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a worker that crawls nothing.
async fn worker(settings: RequestSettings) -> (SocketAddr, TaskScope) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let scope = TaskScope::new();
    let services = Services {
        master: None,
        worker: Some(WorkerService {
            crawls: Crawls::default(),
            call_token: call_token(),
            turns: Some(turns()),
            owners: owners(),
            nodes: KnownNodes::default(),
        }),
        joined: CancellationToken::new(),
    };
    let served = serve(
        listener,
        services,
        Access::default(),
        Requests::new(settings),
        None,
        scope.stop_signal(),
    );
    scope.spawn("server", async move { served.await.unwrap() });
    (address, scope)
}

/// Returns the owners of shards in a store without shards.
fn owners() -> ShardOwners {
    ShardOwners::new(Catalog::new(Arc::new(StoreTwin::new()), Keys::default()))
}

fn client(address: SocketAddr) -> CrawlerWorkerClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    CrawlerWorkerClient::new(endpoint.connect_lazy())
}

/// Returns turns of a worker that nobody reaches.
fn turns() -> Turns {
    let own = WorkerProcess {
        worker: "worker-1".parse().unwrap(),
        incarnation: Incarnation(1),
    };
    Turns::new(own, Arc::new(GrpcWorkerCalls::default()))
}

/// Returns a call about `n` hosts from a caller who knows the token.
fn asks(n: usize) -> Request<proto::TakeTurnsRequest> {
    let ask = |n| proto::TurnAsk {
        host: format!("h{n}.test"),
        delay_ms: 1_000,
        wanted: true,
        ..proto::TurnAsk::default()
    };
    let mut request = Request::new(proto::TakeTurnsRequest {
        worker: "worker-2".to_owned(),
        incarnation: 2,
        asks: (0..n).map(ask).collect(),
    });
    let shown = call_token().expose().parse().unwrap();
    request.metadata_mut().insert(CALL_TOKEN, shown);
    request
}

fn call_token() -> CallToken {
    CallToken::of([7; 32])
}

/// Returns a call with `n_bytes` of links from a caller who knows the token.
fn links(n_bytes: usize) -> Request<proto::ApplyLinksRequest> {
    let mut request = Request::new(proto::ApplyLinksRequest {
        resource_id: 7,
        shard: 1,
        epoch: 1,
        run: 1,
        first: 1,
        links: vec![proto::ShardLink {
            url: format!("http://a.test/{}", "a".repeat(n_bytes)),
            rule: "page".to_owned(),
            ..proto::ShardLink::default()
        }],
        ..proto::ApplyLinksRequest::default()
    });
    let shown = call_token().expose().parse().unwrap();
    request.metadata_mut().insert(CALL_TOKEN, shown);
    request
}

/// Returns a question for the crawls from a caller who knows the token.
fn status() -> Request<proto::WorkerStatusRequest> {
    let mut request = Request::new(proto::WorkerStatusRequest::default());
    let shown = call_token().expose().parse().unwrap();
    request.metadata_mut().insert(CALL_TOKEN, shown);
    request
}

#[tokio::test]
async fn r03_messages_beyond_the_budget_are_refused_then_served() {
    let (address, _scope) = worker(RequestSettings {
        memory: 1 << 20,
        ..RequestSettings::default()
    })
    .await;
    let mut client = client(address);
    for _ in 0..3 {
        let refused = client.apply_links(links(2 << 20)).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().contains("--request-memory"), "{refused}");
        let served = client.apply_links(links(1 << 10)).await.unwrap_err();
        assert_eq!(served.message(), "shard 7/1 is not crawled here");
    }
}

#[tokio::test]
async fn r03_links_are_bounded_before_they_are_decoded() {
    let (address, _scope) = worker(RequestSettings::default()).await;
    let mut client = client(address);
    let mut many = links(0);
    many.get_mut().links = vec![proto::ShardLink::default(); MAX_LINKS + 1];
    let refused = client.apply_links(many).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert_eq!(refused.message(), "more than 500 links at once");
    let refused = client.apply_links(links(LINKS_MAX)).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    // The largest request of a rule fits with all that goes with it.
    let mut largest = links(0);
    largest.get_mut().links[0].body = Some(vec![0; REQUEST_BYTES_MAX]);
    let served = client.apply_links(largest).await.unwrap_err();
    assert_eq!(served.message(), "shard 7/1 is not crawled here");
}

#[tokio::test]
async fn r03_grpc_connections_beyond_the_cap_are_told_why() {
    let (address, _scope) = worker(RequestSettings {
        connections: 1,
        ..RequestSettings::default()
    })
    .await;
    let mut first = client(address);
    first.get_status(status()).await.unwrap();
    let refused = client(address).get_status(status()).await.unwrap_err();
    assert!(
        chain(&refused).contains("--connections"),
        "{}",
        chain(&refused)
    );
    first.get_status(status()).await.unwrap();
    drop(first);
    let again = async {
        while client(address).get_status(status()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again)
        .await
        .expect("there is room again");
}

#[tokio::test]
async fn r03_a_grpc_connection_that_says_nothing_is_closed() {
    let (address, _scope) = worker(RequestSettings {
        stall_timeout: Duration::from_millis(200),
        ..RequestSettings::default()
    })
    .await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut answer = Vec::new();
    let read = silent.read_to_end(&mut answer);
    // A reset is as good as a close.
    drop(tokio::time::timeout(PATIENCE, read).await.expect("closed"));
    // A client that has begun may be silent for longer.
    let mut client = client(address);
    client.get_status(status()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.get_status(status()).await.unwrap();
}

/// The token is checked before any of the links is read.
#[tokio::test]
async fn r14_links_are_taken_from_callers_who_know_the_token() {
    let (address, _scope) = worker(RequestSettings::default()).await;
    let mut client = client(address);
    let mut stranger = links(1 << 10);
    stranger.metadata_mut().remove(CALL_TOKEN);
    let refused = client.apply_links(stranger).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    let mut wrong = links(1 << 10);
    let other = CallToken::of([8; 32]).expose().parse().unwrap();
    wrong.metadata_mut().insert(CALL_TOKEN, other);
    let refused = client.apply_links(wrong).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    let known = client.apply_links(links(1 << 10)).await.unwrap_err();
    assert_eq!(known.message(), "shard 7/1 is not crawled here");
}

#[tokio::test]
async fn every_call_of_a_worker_is_for_callers_who_know_the_token() {
    let (address, _scope) = worker(RequestSettings::default()).await;
    let mut client = client(address);
    let refused = client
        .get_status(proto::WorkerStatusRequest::default())
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    let refused = client.read_logs(proto::WorkerLogsRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    client.get_status(status()).await.unwrap();
}

#[tokio::test]
async fn r14_turns_are_for_callers_who_know_the_token() {
    let (address, _scope) = worker(RequestSettings::default()).await;
    let mut client = client(address);
    let mut stranger = asks(1);
    stranger.metadata_mut().remove(CALL_TOKEN);
    let refused = client.take_turns(stranger).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    let mut wrong = asks(1);
    let other = CallToken::of([8; 32]).expose().parse().unwrap();
    wrong.metadata_mut().insert(CALL_TOKEN, other);
    let refused = client.take_turns(wrong).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    let answer = client.take_turns(asks(2)).await.unwrap().into_inner();
    // The worker does not know yet whether it owns the hosts.
    let [first, second] = &answer.answers[..] else {
        panic!("{answer:?}");
    };
    assert!(first.turns == 0 && first.after_ms > 0, "{first:?}");
    assert_eq!(first, second);
}

#[tokio::test]
async fn r03_calls_about_turns_have_bounds() {
    let (address, _scope) = worker(RequestSettings::default()).await;
    let mut client = client(address);
    let refused = client.take_turns(asks(MAX_ASKS + 1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert_eq!(refused.message(), "more than 1024 hosts at once");
    let mut slow = asks(1);
    slow.get_mut().asks[0].delay_ms = u64::MAX;
    let refused = client.take_turns(slow).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let mut nameless = asks(1);
    nameless.get_mut().asks[0].host = String::new();
    let refused = client.take_turns(nameless).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let answer = client.take_turns(asks(MAX_ASKS)).await.unwrap();
    assert_eq!(answer.into_inner().answers.len(), MAX_ASKS);
}
