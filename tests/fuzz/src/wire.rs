//! A fetcher and a server on loopback, which reports each request as it came in.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use crawler_fetch::address_policy::AddressPolicy;
use crawler_fetch::http::{FetchSettings, HttpFetcher};
use crawler_fetch::throttle::{Requester, Throttle, ThrottleSettings};
use crawler_fetch::{Fetch as _, FetchError, FetchRequest};
use crawler_model::settings::Robots;
use crawler_process::clock::SystemClock;
use crawler_process::memory::Account;
use tokio::runtime::{Builder, Runtime};

const USER_AGENT: &str = "fuzz/1";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// Deadline for calls that take no time on loopback, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

static SHARED: LazyLock<Mutex<Wire>> = LazyLock::new(|| Mutex::new(Wire::new()));

struct Wire {
    runtime: Runtime,
    fetcher: HttpFetcher,
    address: SocketAddr,
    heard: Receiver<String>,
}

/// Sends a request, and returns the lines that the server got: the first one first, the others sorted.
pub(super) fn send(
    method: &str,
    headers: Vec<(String, String)>,
) -> Result<Vec<String>, FetchError> {
    // A failure in another thread is reported there.
    let wire = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let request = FetchRequest {
        url: format!("http://{}/a?b", wire.address)
            .parse()
            .expect("it is a URL"),
        names_port: true,
        method: method.to_owned().into(),
        headers,
        identity: None,
        cookies: None,
        body: None,
        max_url_length: 1 << 10,
        max_body: 1 << 10,
        max_file: None,
        delay: Some(Duration::ZERO),
        random_delay: Duration::ZERO,
        host_rate: Default::default(),
        validators: None,
        asks_site: false,
        tape: None,
        proxy: None,
        credentials: Default::default(),
        accept_status: Default::default(),
        content_types: Default::default(),
        robots: Robots::Ignore,
        robots_store: None,
        max_crawl_delay: Duration::ZERO,
        account: Account::default(),
        requester: Requester::waiting(),
        slot: None,
    };
    let fetched = wire.runtime.block_on(wire.fetcher.fetch(request));
    fetched.map_err(|failure| failure.error)?;
    let request = wire
        .heard
        .recv_timeout(PATIENCE)
        .expect("the server got it");
    let more = wire.heard.try_recv();
    assert!(
        more.is_err(),
        "{request:?} is more than one request: {more:?}"
    );
    Ok(in_order(lines(&request)))
}

/// Returns the lines of a request with these headers and those that the client adds.
pub(super) fn expected(method: &str, headers: &[(String, String)]) -> Vec<String> {
    let has = |wanted: &str| {
        headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    let address = SHARED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .address;
    let mut lines = vec![
        format!("{method} /a?b HTTP/1.1"),
        format!("host: {address}"),
        "accept-encoding: gzip, br, zstd, deflate".to_owned(),
    ];
    for (name, default) in [("accept", "*/*"), ("user-agent", USER_AGENT)] {
        if !has(name) {
            lines.push(format!("{name}: {default}"));
        }
    }
    let given = headers.iter();
    lines.extend(given.map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase())));
    in_order(lines)
}

/// Returns the lines of the head; the client may add that there is no body.
fn lines(request: &str) -> Vec<String> {
    let head = request
        .strip_suffix("\r\n\r\n")
        .expect("nothing follows the head");
    let lines = head.split("\r\n").map(str::to_owned);
    lines.filter(|line| line != "content-length: 0").collect()
}

fn in_order(mut lines: Vec<String>) -> Vec<String> {
    lines[1..].sort_unstable();
    lines
}

impl Wire {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        let (tell, heard) = sync_channel(16);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tell = tell.clone();
                std::thread::spawn(move || serve(stream, &tell));
            }
        });
        let address_policy =
            AddressPolicy::new(vec!["127.0.0.0/8".parse().expect("it is a network")]);
        let throttle = ThrottleSettings {
            max_adaptive_delay: Duration::ZERO,
            ..ThrottleSettings::default()
        };
        let settings = FetchSettings {
            user_agent: USER_AGENT.to_owned(),
            timeout: PATIENCE,
            ..FetchSettings::default()
        };
        let (address_policy, throttle) =
            (Arc::new(address_policy), Arc::new(Throttle::new(throttle)));
        let fetcher = HttpFetcher::new(settings, address_policy, throttle, Arc::new(SystemClock));
        // One thread runs beside the one that waits, so that work left by an exchange is done at once.
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Self {
            runtime: runtime.expect("there is a thread"),
            fetcher: fetcher.expect("its settings are sound"),
            address,
            heard,
        }
    }
}

/// Answers requests until the client closes the connection.
fn serve(mut stream: TcpStream, tell: &SyncSender<String>) {
    let mut request = Vec::new();
    let mut read = [0; 8 << 10];
    while let Ok(n @ 1..) = stream.read(&mut read) {
        request.extend_from_slice(&read[..n]);
        if request.windows(4).any(|octets| octets == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&request).into_owned();
            request.clear();
            if tell.send(text).is_err() || stream.write_all(ANSWER).is_err() {
                return;
            }
        }
    }
}
