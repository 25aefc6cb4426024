//! Tests of clients that send too much, send too slowly, or are too many.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;
use crate::http::request::json_body;
use crate::problem::Problem;
use crate::requests::{RequestSettings, Requests};

const PATIENCE: Duration = Duration::from_secs(20);
/// Stall that a test waits for.
const SHORT: Duration = Duration::from_millis(200);

struct Server {
    address: SocketAddr,
    /// Lets one request to `/hold` be answered.
    release: Arc<Notify>,
    /// Notified when a request to `/hold` has its body.
    held: Arc<Notify>,
    _scope: TaskScope,
}

impl Server {
    async fn start(settings: RequestSettings) -> Self {
        let (release, held) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let length = |request: Request| async move {
            let body = json_body(request, "{}").await?;
            Ok::<_, Problem>(body.len().to_string())
        };
        let hold = {
            let (release, held) = (release.clone(), held.clone());
            move |request: Request| async move {
                let body = json_body(request, "{}").await?;
                held.notify_one();
                release.notified().await;
                Ok::<_, Problem>(body.len().to_string())
            }
        };
        let requests = Requests::new(settings.clone());
        let router = Router::new()
            .route("/hold", post(hold))
            .route("/length", post(length))
            .route("/", get(|| async { "here" }))
            .layer(requests.of_http());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Connections::of_http(listener, &settings, None);
        let scope = TaskScope::new();
        let stop = scope.stop_signal();
        scope.spawn("server", async move {
            let served = serve(connections, router, settings.stall_timeout, stop);
            served.await.unwrap();
        });
        Self {
            address,
            release,
            held,
            _scope: scope,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn post(&self, path: &str, n_bytes: usize) -> String {
        let mut stream = self.connect().await;
        let head = head(path, n_bytes);
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that refuses the request may not read all of it.
        drop(stream.write_all(&vec![b' '; n_bytes]).await);
        rest(stream).await
    }
}

fn head(path: &str, n_bytes: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {n_bytes}\r\n\r\n"
    )
}

/// Returns everything that comes until the other side closes.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    // Bytes that came before a reset count.
    drop(tokio::time::timeout(PATIENCE, read).await.expect("it ends"));
    String::from_utf8(answer).unwrap()
}

#[track_caller]
fn check_ok(answer: &str, body: &str) {
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
}

#[track_caller]
fn check_come_again(answer: &str, setting: &str) {
    assert!(
        answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{answer}"
    );
    assert!(
        answer.to_lowercase().contains("retry-after: 1\r\n"),
        "{answer}"
    );
    assert!(answer.contains("RESOURCE_EXHAUSTED"), "{answer}");
    assert!(answer.contains(setting), "{answer}");
}

#[tokio::test]
async fn r03_bodies_beyond_the_budget_are_refused_until_it_is_free() {
    let settings = RequestSettings {
        memory: 1 << 20,
        ..RequestSettings::default()
    };
    let largest = settings.largest_body() as usize;
    let server = Server::start(settings).await;
    let held = async {
        let answer = server.post("/hold", largest).await;
        check_ok(&answer, &largest.to_string());
    };
    let meanwhile = async {
        server.held.notified().await;
        check_come_again(&server.post("/length", 100 << 10).await, "--request-memory");
        // Small requests still pass.
        check_ok(&server.post("/length", 40 << 10).await, "40960");
        server.release.notify_one();
    };
    tokio::join!(held, meanwhile);
    check_ok(&server.post("/length", 100 << 10).await, "102400");
    // A request that is too large by itself gets the same answer.
    check_come_again(
        &server.post("/length", largest + 1).await,
        "--request-memory",
    );
    check_ok(&server.post("/length", largest).await, &largest.to_string());
}

#[tokio::test]
async fn r03_slow_heads_and_bodies_are_cut() {
    let server = Server::start(RequestSettings {
        stall_timeout: SHORT,
        ..RequestSettings::default()
    })
    .await;
    let silent = server.connect().await;
    let mut slow = server.connect().await;
    slow.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nx-slow: ")
        .await
        .unwrap();
    let mut body = server.connect().await;
    body.write_all(head("/length", 10).as_bytes())
        .await
        .unwrap();
    body.write_all(b"{").await.unwrap();
    let (silent, slow, body) = tokio::join!(rest(silent), rest(slow), rest(body));
    assert_eq!(silent, "");
    assert!(!slow.contains("200 OK"), "{slow}");
    assert!(
        body.starts_with("HTTP/1.1 408 Request Timeout\r\n"),
        "{body}"
    );
    assert!(body.contains("--stall-timeout"), "{body}");
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    check_ok(&rest(stream).await, "here");
}

#[tokio::test]
async fn r03_connections_beyond_the_cap_are_refused_others_go_on() {
    let server = Server::start(RequestSettings {
        connections: 2,
        ..RequestSettings::default()
    })
    .await;
    let (mut first, second) = (server.connect().await, server.connect().await);
    for _ in 0..3 {
        check_come_again(&rest(server.connect().await).await, "--connections");
    }
    first
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    drop(second);
    check_ok(&rest(first).await, "here");
    let again = async {
        loop {
            let mut stream = server.connect().await;
            let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
            drop(stream.write_all(request).await);
            let answer = rest(stream).await;
            if answer.contains("200 OK") {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, again)
        .await
        .expect("there is room again");
}
