//! Attacks of single clients on the listeners, repeated until they are told to end.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crawler_process::task::TaskScope;
use crawler_tests::random::Random;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Attack of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attack {
    /// The client connects to HTTP and says nothing.
    IdleHttp,
    /// The client connects to gRPC and says nothing.
    IdleGrpc,
    /// The client sends the head of a request byte by byte.
    SlowHead,
    /// The client pushes a large plugin in small pieces.
    SlowUpload,
    /// The client sends as much JSON as allowed, deep or wide.
    HugeJson,
    /// The client sends messages that do not decode.
    RandomProtobuf,
    /// The client follows a stream and reads nothing of it.
    StalledReader,
    /// The client announces a body and sends its first byte.
    StalledBody,
}

/// Delay between two attacks of one client, which limits its share of the machine.
const PAUSE: Duration = Duration::from_millis(200);
/// Time in which all clients have come.
const COME_WITHIN: Duration = Duration::from_secs(3);
/// Delay between two pieces of a slow request.
const SLOW: Duration = Duration::from_millis(500);
/// Largest number of bytes of a request that is not an upload.
const REQUEST_MAX: usize = 4 << 20;
const JSON: &str = "application/json";
const METHODS: [&str; 7] = [
    "CrawlerMaster/AddResource",
    "CrawlerMaster/ListUrls",
    "CrawlerMaster/PushPlugin",
    "CrawlerMaster/ReadItems",
    "CrawlerWorker/ApplyLinks",
    "CrawlerWorker/GetStatus",
    "CrawlerWorker/TakeTurns",
];

/// The listeners, and the outcomes of the attacks.
pub(crate) struct Flood {
    http: String,
    grpc: String,
    client: reqwest::Client,
    outcomes: Mutex<BTreeMap<(Attack, String), u64>>,
}

impl Flood {
    pub(crate) fn new(http: &str, grpc: &str) -> Self {
        crawler_tests::http::install_crypto();
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .http2_prior_knowledge()
            .timeout(Duration::from_secs(60));
        Self {
            http: http.to_owned(),
            grpc: grpc.to_owned(),
            client: client.build().expect("a client without TLS can be made"),
            outcomes: Mutex::default(),
        }
    }

    /// Starts `n` clients that attack until `scope` is stopped.
    pub(crate) fn begin(self: &Arc<Self>, attack: Attack, n: usize, scope: &TaskScope) {
        for nth in 0..n {
            let (flood, stop) = (self.clone(), scope.stop_signal());
            scope.spawn(format!("{attack:?} {nth}"), async move {
                let mut random = Random::seeded(nth as u64);
                let attacks = async {
                    // The clients come one after the other, as clients of many machines do.
                    tokio::time::sleep(upto(COME_WITHIN, &mut random)).await;
                    loop {
                        let outcome = flood.once(attack, &mut random).await;
                        flood.count(attack, outcome);
                        tokio::time::sleep(PAUSE).await;
                    }
                };
                stop.run_until_cancelled(Box::pin(attacks)).await;
            });
        }
    }

    /// Number of attacks of this kind that have ended.
    pub(crate) fn n_outcomes(&self, attack: Attack) -> u64 {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = outcomes.iter().filter(|((kind, _), _)| *kind == attack);
        of_kind.map(|(_, n)| n).sum()
    }

    /// Returns the outcomes of the attacks, one a line.
    pub(crate) fn told(&self) -> String {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = outcomes.iter();
        let lines = lines.map(|((attack, outcome), n)| format!("{attack:?}: {outcome}: {n}\n"));
        lines.collect()
    }

    fn count(&self, attack: Attack, outcome: io::Result<String>) {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => format!("{:?}", error.kind()),
        };
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        *outcomes.entry((attack, outcome)).or_default() += 1;
    }

    async fn once(&self, attack: Attack, random: &mut Random) -> io::Result<String> {
        match attack {
            Attack::IdleHttp => answer(TcpStream::connect(&self.http).await?).await,
            Attack::IdleGrpc => answer(TcpStream::connect(&self.grpc).await?).await,
            Attack::SlowHead => self.slow_head().await,
            Attack::SlowUpload => self.slow_upload().await,
            Attack::HugeJson => self.huge_json(random).await,
            Attack::RandomProtobuf => self.random_protobuf(random).await,
            Attack::StalledReader => self.stalled_reader(random).await,
            Attack::StalledBody => {
                let stream = self.post("POST /crawler/resource", JSON, 1 << 20).await?;
                answer(stream).await
            }
        }
    }

    async fn slow_head(&self) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.http).await?;
        stream
            .write_all(b"GET /crawler/node HTTP/1.1\r\nx: ")
            .await?;
        loop {
            tokio::time::sleep(SLOW).await;
            stream.write_all(b"x").await?;
        }
    }

    async fn slow_upload(&self) -> io::Result<String> {
        let size = 60 << 20;
        let stream = self
            .post("PUT /crawler/plugin", "application/wasm", size)
            .await?;
        let (reading, mut writing) = stream.into_split();
        let piece = vec![0; 64 << 10];
        let slowly = async {
            loop {
                writing.write_all(&piece).await?;
                tokio::time::sleep(SLOW).await;
            }
        };
        tokio::select! {
            error = slowly => error,
            answer = answer(reading) => answer,
        }
    }

    async fn huge_json(&self, random: &mut Random) -> io::Result<String> {
        let piece = [&b"["[..], b"{\"a\":", b"[0,", b"\"\\u0000\",", b"1e9,"];
        let piece = piece[random.below(piece.len() as u64) as usize];
        let mut body = br#"{"name":"x","params":["#.to_vec();
        body.extend(piece.iter().cycle().take(REQUEST_MAX - 100));
        let mut stream = self
            .post("POST /crawler/resource", JSON, body.len() + 1)
            .await?;
        // A server that refuses does not read all of it.
        drop(stream.write_all(&body).await);
        answer(stream).await
    }

    async fn random_protobuf(&self, random: &mut Random) -> io::Result<String> {
        let method = METHODS[random.below(METHODS.len() as u64) as usize];
        let max = if random.below(8) == 0 {
            REQUEST_MAX
        } else {
            4 << 10
        };
        let length = random.below(max as u64) as usize;
        // One message in four lies about its length.
        let told = if random.below(4) == 0 {
            random.below(1 << 32)
        } else {
            length as u64
        };
        let mut body = vec![0];
        body.extend((told as u32).to_be_bytes());
        body.extend((0..length).map(|_| random.below(256) as u8));
        let request = self
            .client
            .post(format!("http://{}/{method}", self.grpc))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(body);
        let Ok(answer) = request.send().await else {
            return Ok("broken".to_owned());
        };
        let status = answer.headers().get("grpc-status");
        let status = status.and_then(|status| status.to_str().ok());
        Ok(format!("status {}", status.unwrap_or("after the answer")))
    }

    async fn stalled_reader(&self, random: &mut Random) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.http).await?;
        let path = "/crawler/resource/traps/logs?follow";
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.http);
        stream.write_all(head.as_bytes()).await?;
        let mut first = [0; 12];
        stream.read_exact(&mut first).await?;
        let status = String::from_utf8_lossy(&first[9..]).into_owned();
        if status == "200" {
            self.count(Attack::StalledReader, Ok("follows".to_owned()));
            // Nothing more is read for a while.
            tokio::time::sleep(Duration::from_secs(20) + upto(COME_WITHIN, random)).await;
        }
        Ok(status)
    }

    /// Sends the head of a request, and the first byte of its body.
    async fn post(&self, line: &str, kind: &str, length: usize) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.http).await?;
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: {kind}\r\n\
             content-length: {length}\r\n\r\n ",
            self.http
        );
        stream.write_all(head.as_bytes()).await?;
        Ok(stream)
    }
}

fn upto(time: Duration, random: &mut Random) -> Duration {
    Duration::from_millis(random.below(time.as_millis() as u64))
}

/// Waits until the other side closes. Returns the status of its answer, if there was one.
async fn answer(mut stream: impl tokio::io::AsyncRead + Unpin) -> io::Result<String> {
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer);
    match text.strip_prefix("HTTP/1.1 ") {
        Some(answer) => Ok(answer.chars().take(3).collect()),
        None => read.map(|_| "closed".to_owned()),
    }
}
