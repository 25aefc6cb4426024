//! Clients that send too much, or are too many.

use std::net::SocketAddr;

use proto::crawler_worker_client::CrawlerWorkerClient;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use super::*;
use crate::api::client::CALL_TOKEN;
use crate::api::requests::RequestSettings;
use crate::task::TaskScope;
use crate::telemetry::chain;

const PATIENCE: Duration = Duration::from_secs(20);

/// A worker that crawls nothing.
async fn worker(settings: RequestSettings) -> (SocketAddr, TaskScope) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let scope = TaskScope::new();
    let services = Services {
        master: None,
        worker: Some(WorkerDoor {
            crawls: Crawls::default(),
            call_token: call_token(),
        }),
    };
    let served = serve(
        listener,
        services,
        Requests::new(settings),
        scope.stop_signal(),
    );
    scope.spawn("server", async move { served.await.unwrap() });
    (address, scope)
}

fn client(address: SocketAddr) -> CrawlerWorkerClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    CrawlerWorkerClient::new(endpoint.connect_lazy())
}

fn call_token() -> CallToken {
    CallToken::of([7; 32])
}

/// Links of so many bytes, from somebody who may bring some.
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
async fn r03_grpc_connections_beyond_the_cap_are_told_why() {
    let (address, _scope) = worker(RequestSettings {
        connections: 1,
        ..RequestSettings::default()
    })
    .await;
    let request = || proto::WorkerStatusRequest::default();
    let mut first = client(address);
    first.get_status(request()).await.unwrap();
    let refused = client(address).get_status(request()).await.unwrap_err();
    assert!(
        chain(&refused).contains("--connections"),
        "{}",
        chain(&refused)
    );
    first.get_status(request()).await.unwrap();
    drop(first);
    let again = async {
        while client(address).get_status(request()).await.is_err() {
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
    // Whether it was closed or reset is the same to us.
    drop(tokio::time::timeout(PATIENCE, read).await.expect("closed"));
    // A client that has begun may be silent for longer.
    let mut client = client(address);
    let request = || proto::WorkerStatusRequest::default();
    client.get_status(request()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.get_status(request()).await.unwrap();
}

/// Before any of their links is read, and with what else a worker answers as it was.
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
    let status = proto::WorkerStatusRequest::default();
    client.get_status(status).await.unwrap();
}
