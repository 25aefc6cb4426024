//! Tests of encrypted listeners: who is admitted, what others are told, and what a new certificate changes.

use std::net::SocketAddr;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::access::Access;
use crate::client::{Client, ClientError, GrpcWorkerCalls, TlsFault};
use crate::grpc::{self, Services, WorkerService};
use crate::http;
use crate::nodes::{KnownNodes, OwnCluster};
use crate::requests::Requests;
use crate::tls::testing::{Authority, Files};
use crate::tls::{ClientTls, Reload};
use crawler_master::WorkerCalls as _;
use crawler_model::id::Incarnation;
use crawler_model::node::{CallToken, Node, Role};
use crawler_store::catalog::Catalog;
use crawler_store::keys::Keys;
use crawler_store::twin::StoreTwin;
use crawler_worker::{Crawls, ShardOwners};

mod nodes;

const PATIENCE: Duration = Duration::from_secs(20);
const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";

/// Returns the token of the worker.
fn call_token() -> CallToken {
    CallToken::of([7; 32])
}

/// Returns the cluster of the worker.
fn cluster() -> OwnCluster {
    let cluster = OwnCluster::default();
    cluster.tell("c1");
    cluster
}

/// Returns the owners of shards in a store without shards.
fn owners() -> ShardOwners {
    ShardOwners::new(Catalog::new(Arc::new(StoreTwin::new()), Keys::default()))
}

/// A worker that crawls nothing, with encrypted listeners.
struct Server {
    grpc: SocketAddr,
    http: SocketAddr,
    _scope: TaskScope,
}

impl Server {
    async fn start(tls: &ServerTls, settings: RequestSettings) -> Self {
        let scope = TaskScope::new();
        let stop = scope.stop_signal();
        let requests = Requests::new(settings);
        let (grpc, http) = (listen().await, listen().await);
        let addresses = [&grpc, &http].map(|listener| listener.local_addr().unwrap());
        let services = Services {
            master: None,
            worker: Some(WorkerService {
                crawls: Crawls::default(),
                call_token: call_token(),
                turns: None,
                owners: owners(),
                nodes: KnownNodes::new(cluster(), Some(tls)),
            }),
            joined: CancellationToken::new(),
        };
        let served = grpc::serve(
            grpc,
            services,
            Access::default(),
            requests.clone(),
            Some(tls.clone()),
            stop.clone(),
        );
        scope.spawn("grpc", async move { served.await.unwrap() });
        let served = http::serve(
            http,
            None,
            Access::default(),
            None,
            requests,
            Some(tls.clone()),
            stop,
        );
        scope.spawn("http", async move { served.await.unwrap() });
        Self {
            grpc: addresses[0],
            http: addresses[1],
            _scope: scope,
        }
    }

    /// Returns the record of the worker.
    fn node(&self) -> Node {
        Node {
            id: "worker-1".parse().unwrap(),
            role: Role::Worker,
            address: self.grpc.to_string(),
            http: String::new(),
            pprof: String::new(),
            incarnation: Incarnation(1),
            labels: [].into(),
            capacity: 1,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: call_token(),
            shares_turns: false,
            tls: true,
        }
    }

    /// Makes a call over gRPC, with a connection of its own.
    async fn call(&self, tls: &ClientTls) -> Result<(), String> {
        self.call_over(&GrpcWorkerCalls::new(tls.clone())).await
    }

    async fn call_over(&self, calls: &GrpcWorkerCalls) -> Result<(), String> {
        let status = calls.status(&self.node(), None).await;
        status.map(drop).map_err(|error| error.to_string())
    }

    /// Returns the reason why the command line cannot connect.
    async fn fault(&self, tls: &ClientTls) -> TlsFault {
        fault(self.grpc, tls).await
    }
}

/// Connects as the command line does.
async fn connect(address: SocketAddr, tls: &ClientTls) -> Result<(), ClientError> {
    let url = format!("https://{address}");
    Client::connect_any(&[url], tls).await.map(drop)
}

/// Returns the reason why the command line cannot connect.
async fn fault(address: SocketAddr, tls: &ClientTls) -> TlsFault {
    match connect(address, tls).await {
        Err(ClientError::Tls { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Opens an encrypted connection for a protocol.
async fn encrypted(
    address: SocketAddr,
    tls: &ClientTls,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let mut config = ClientConfig::clone(&tls.config().unwrap());
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await
}

async fn https(address: SocketAddr, tls: &ClientTls) -> io::Result<TlsStream<TcpStream>> {
    encrypted(address, tls, "http/1.1").await
}

/// Makes a call over HTTP. Returns the whole answer.
async fn get(address: SocketAddr, tls: &ClientTls) -> io::Result<String> {
    let mut stream = https(address, tls).await?;
    stream.write_all(REQUEST).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Returns what comes over a plain connection until the other side closes it.
async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    // A reset is as good as a close.
    drop(tokio::time::timeout(PATIENCE, read).await.expect("closed"));
    rest
}

#[tokio::test]
async fn calls_over_grpc_and_http_are_encrypted() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let server = Server::start(&files.server(&authority), RequestSettings::default()).await;
    let tls = files.client(&authority, None);
    server.call(&tls).await.unwrap();
    connect(server.grpc, &tls).await.unwrap();
    let answer = get(server.http, &tls).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
}

#[tokio::test]
async fn a_server_that_cannot_be_trusted_is_told_by_its_fault() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let server = Server::start(&files.server(&authority), RequestSettings::default()).await;
    let stranger = files.client(&Authority::new("other"), None);
    let error = connect(server.grpc, &stranger).await.unwrap_err();
    let why = format!(
        "cannot reach the master at https://{}: its certificate is from a CA that is not known here",
        server.grpc
    );
    assert_eq!(error.to_string(), why);
    assert_eq!(
        error.hint(),
        "give the certificate of its CA with --ca FILE"
    );
    assert!(!error.is_transient());
    let why = server.call(&stranger).await.unwrap_err();
    assert!(why.contains("name its CA as ca in [tls]"), "{why}");
    // A CA that was made anew has another key under the same name.
    let namesake = files.client(&Authority::new("ca"), None);
    assert_eq!(server.fault(&namesake).await, TlsFault::UnknownCa);

    let elsewhere = files.identity("server", &authority.issue_for("a.test", 2000, 4000));
    let elsewhere = ServerTls::load(elsewhere, None).unwrap();
    let server = Server::start(&elsewhere, RequestSettings::default()).await;
    let tls = files.client(&authority, None);
    let why = server.fault(&tls).await.to_string();
    assert_eq!(why, "its certificate is not for 127.0.0.1 but for a.test");
}

#[tokio::test]
async fn a_server_of_another_protocol_is_told_from_a_wrong_one() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let server = Server::start(&files.server(&authority), RequestSettings::default()).await;
    let tls = files.client(&authority, None);
    assert_eq!(fault(server.http, &tls).await, TlsFault::NoHttp2);

    // A plain server of gRPC begins with a frame, which is no TLS.
    let plain = listen().await;
    let address = plain.local_addr().unwrap();
    let requests = Requests::new(RequestSettings::default());
    let scope = TaskScope::new();
    let stop = scope.stop_signal();
    let served = grpc::serve(
        plain,
        Services::default(),
        Access::default(),
        requests,
        None,
        stop,
    );
    scope.spawn("plain", async move { served.await.unwrap() });
    assert_eq!(fault(address, &tls).await, TlsFault::NoTls);
}

#[tokio::test]
async fn under_mutual_tls_clients_show_a_certificate_of_the_ca() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let server = files.mutual_server(&authority);
    let server = Server::start(&server, RequestSettings::default()).await;
    let nobody = files.client(&authority, None);
    let required = TlsFault::CertificateRequired;
    assert_eq!(server.fault(&nobody).await, required);
    let why = server.call(&nobody).await.unwrap_err();
    assert!(why.contains(&required.to_string()), "{why}");
    get(server.http, &nobody).await.unwrap_err();

    let of_stranger = Authority::new("other").issue();
    let stranger = files.client(&authority, Some(&of_stranger));
    let fault = server.fault(&stranger).await;
    assert!(
        matches!(fault, TlsFault::CertificateRefused { .. }),
        "{fault:?}"
    );
    get(server.http, &stranger).await.unwrap_err();

    let of_friend = authority.issue();
    let friend = files.client(&authority, Some(&of_friend));
    server.call(&friend).await.unwrap();
    let answer = get(server.http, &friend).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn a_listener_knows_the_certificate_of_its_client() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let listener = listen().await;
    let address = listener.local_addr().unwrap();
    let settings = RequestSettings::default();
    let server = files.mutual_server(&authority);
    let mut connections = Connections::of_http(listener, &settings, Some(server));
    let issued = authority.issue();
    let tls = files.client(&authority, Some(&issued));
    let (stream, connection) = tokio::join!(https(address, &tls), connections.accept());
    let stream = stream.unwrap();
    let expected = Peer {
        address: Some(stream.get_ref().0.local_addr().unwrap()),
        certificate: Some(issued.der.into()),
    };
    assert_eq!(connection.peer(), expected);
}

#[tokio::test]
async fn new_connections_get_a_new_certificate_and_old_ones_go_on() {
    let (files, before, after) = (Files::new(), Authority::new("one"), Authority::new("two"));
    let tls = files.server(&before);
    let server = Server::start(&tls, RequestSettings::default()).await;
    let trusts_before = files.client(&before, None);
    let kept = GrpcWorkerCalls::new(trusts_before.clone());
    server.call_over(&kept).await.unwrap();
    // The client must not see the CA of another one.
    let others = Files::new();
    let trusts_after = others.client(&after, None);
    assert_eq!(server.fault(&trusts_after).await, TlsFault::UnknownCa);

    files.identity("server", &after.issue());
    assert_eq!(tls.reload(), Reload::Changed);
    server.call_over(&kept).await.unwrap();
    assert_eq!(server.fault(&trusts_before).await, TlsFault::UnknownCa);
    server.call(&trusts_after).await.unwrap();

    files.write("server.pem", "no certificate");
    assert!(matches!(tls.reload(), Reload::Broken(_)));
    assert_eq!(tls.reload(), Reload::Unchanged);
    server.call_over(&kept).await.unwrap();
    server.call(&trusts_after).await.unwrap();
}

#[tokio::test]
async fn clients_that_say_nothing_hold_up_nobody_and_are_closed() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let tls = files.client(&authority, None);
    let patient = RequestSettings {
        stall_timeout: 100 * PATIENCE,
        ..RequestSettings::default()
    };
    let server = Server::start(&files.server(&authority), patient).await;
    let mut silent = Vec::new();
    for address in [server.grpc, server.http] {
        for _ in 0..8 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
    }
    server.call(&tls).await.unwrap();
    get(server.http, &tls).await.unwrap();

    let impatient = RequestSettings {
        stall_timeout: Duration::from_millis(200),
        ..RequestSettings::default()
    };
    let server = Server::start(&files.server(&authority), impatient).await;
    for (address, protocol) in [(server.grpc, "h2"), (server.http, "http/1.1")] {
        let silent = TcpStream::connect(address).await.unwrap();
        assert_eq!(rest(silent).await, b"");
        // A handshake alone is not enough, unless this machine is too slow even for that.
        if let Ok(mut stream) = encrypted(address, &tls, protocol).await {
            let mut rest = Vec::new();
            let read = stream.read_to_end(&mut rest);
            drop(tokio::time::timeout(PATIENCE, read).await.expect("closed"));
        }
    }
}

#[tokio::test]
async fn what_is_not_tls_is_closed() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let server = Server::start(&files.server(&authority), RequestSettings::default()).await;
    for address in [server.grpc, server.http] {
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(REQUEST).await.unwrap();
        let answer = rest(plain).await;
        assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    }
    let plain = [format!("http://{}", server.grpc)];
    let calls = Client::connect_any(&plain, &ClientTls::default()).await;
    if let Ok(calls) = calls {
        calls
            .nodes(crawler_proto::ListNodesRequest::default())
            .await
            .unwrap_err();
    }
}

#[tokio::test]
async fn connections_beyond_the_cap_are_closed_without_a_word() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let settings = RequestSettings {
        connections: 1,
        ..RequestSettings::default()
    };
    let server = Server::start(&files.server(&authority), settings).await;
    let tls = files.client(&authority, None);
    let first = https(server.http, &tls).await.unwrap();
    let second = TcpStream::connect(server.http).await.unwrap();
    assert_eq!(rest(second).await, b"");
    drop(first);
    let again = async {
        while get(server.http, &tls).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again)
        .await
        .expect("there is room again");
}
