//! The connections of one listener: how many there may be, and what clients beyond that are told.
//!
//! A connection beyond the bound is refused in the protocol of the listener, and closed. A refusal costs
//! little, lasts a second at most, and few are under way at once. An encrypted listener only closes it, because
//! the client reads nothing before its handshake.
//!
//! ```text
//! connection  one connection, plain or encrypted, and its client
//! handshakes  the way from an accepted client to an encrypted connection
//! ```

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::handshakes::Handshakes;
use super::problem::Problem;
use super::requests::RequestSettings;
use super::tls::{Protocol, ServerTls};
use crawler_model::number;
use crawler_process::task::TaskScope;

mod connection;
mod handshakes;

pub(super) use self::connection::Connection;
pub use self::connection::Peer;

/// Time that a client has to read its refusal.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(1);
/// Clients that are refused at once; clients beyond that are refused without waiting.
const REFUSALS_MAX: usize = 64;
/// Pause after the system could not accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Connections of a listener.
pub(super) struct Connections {
    entrance: Entrance,
    /// `None` if connections are not encrypted.
    handshakes: Option<Handshakes>,
}

/// Port of a listener, with the bound of its connections.
struct Entrance {
    listener: TcpListener,
    max: usize,
    slots: Arc<Semaphore>,
    /// Bytes that a refused client is sent; empty if it is sent none.
    refusal: Bytes,
    refusing: Arc<Semaphore>,
    refusals: TaskScope,
}

impl Connections {
    /// Creates a listener that refuses connections beyond the bound in HTTP/1.
    pub(super) fn of_http(
        listener: TcpListener,
        settings: &RequestSettings,
        tls: Option<ServerTls>,
    ) -> Self {
        Self::new(listener, settings, http_refusal, tls, Protocol::Http)
    }

    /// Creates a listener that refuses connections beyond the bound in HTTP/2.
    pub(super) fn of_grpc(
        listener: TcpListener,
        settings: &RequestSettings,
        tls: Option<ServerTls>,
    ) -> Self {
        Self::new(listener, settings, grpc_refusal, tls, Protocol::Grpc)
    }

    fn new(
        listener: TcpListener,
        settings: &RequestSettings,
        refusal: fn(&Problem) -> Vec<u8>,
        tls: Option<ServerTls>,
        protocol: Protocol,
    ) -> Self {
        let max = settings.connections;
        let refusal = match tls {
            Some(_) => Bytes::new(),
            None => {
                let present = number(max as u64, "connection");
                let detail =
                    format!("this listener has {present}, as many as --connections allows");
                let hint = "try again in a moment, or raise --connections";
                refusal(&Problem::passing(detail, hint)).into()
            }
        };
        Self {
            entrance: Entrance {
                listener,
                max,
                slots: Arc::new(Semaphore::new(max)),
                refusal,
                refusing: Arc::new(Semaphore::new(REFUSALS_MAX)),
                refusals: TaskScope::new(),
            },
            handshakes: tls.map(|tls| Handshakes::new(tls, protocol, settings.stall_timeout)),
        }
    }

    /// Waits for the next connection that there is room for. An encrypted one has its handshake behind it.
    pub(super) async fn accept(&mut self) -> Connection {
        let Some(handshakes) = &mut self.handshakes else {
            let (stream, slot) = self.entrance.next().await;
            return Connection::plain(stream, slot);
        };
        loop {
            tokio::select! {
                biased;
                connection = handshakes.next() => return connection,
                // Both are cancel-safe: a client is accepted only if it is the result.
                (stream, slot) = self.entrance.next() => handshakes.begin(stream, slot),
            }
        }
    }

    /// Returns the connections as a stream. Each is closed unless the beginning of HTTP/2 comes within this
    /// time.
    pub(super) fn incoming(self, time: Duration) -> BoxStream<'static, io::Result<Connection>> {
        let incoming = stream::unfold(self, move |mut connections| async move {
            let connection = connections.accept().await.begins_within(time);
            Some((Ok(connection), connections))
        });
        incoming.boxed()
    }
}

impl Entrance {
    /// Waits for the next client that there is room for, and refuses the others.
    async fn next(&self) -> (TcpStream, OwnedSemaphorePermit) {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                // The connection has gone again.
                Err(error) if is_of_the_client(&error) => continue,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections for a moment");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            match Arc::clone(&self.slots).try_acquire_owned() {
                Ok(slot) => {
                    // Without it small answers wait for the client's acknowledgements.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection broke as it began");
                        continue;
                    }
                    return (stream, slot);
                }
                Err(_) => self.refuse(stream),
            }
        }
    }

    fn refuse(&self, mut stream: TcpStream) {
        tracing::debug!(max = self.max, "refused a connection");
        if self.refusal.is_empty() {
            return;
        }
        let refusal = self.refusal.clone();
        let Ok(permit) = Arc::clone(&self.refusing).try_acquire_owned() else {
            // A new connection accepts this many bytes at once; if not, it is closed all the same. The
            // runtime has not found out yet that it can be written to, so the socket is written to directly.
            drop(
                stream
                    .into_std()
                    .and_then(|mut stream| stream.write(&refusal)),
            );
            return;
        };
        self.refusals.spawn("refusal of a connection", async move {
            let told = tokio::time::timeout(REFUSAL_DEADLINE, async {
                stream.write_all(&refusal).await?;
                until_closed(stream).await
            });
            // It does not matter if the client has read it.
            drop(told.await);
            drop(permit);
        });
    }
}

/// Sends nothing more, and waits until the client has closed its side. A client that is still sending would lose what
/// it was sent last if the connection were closed.
async fn until_closed(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

fn http_refusal(problem: &Problem) -> Vec<u8> {
    let body = problem.to_json().to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         retry-after: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        Problem::RETRY_AFTER.as_secs(),
        body.len()
    )
    .into_bytes()
}

/// Returns a settings frame, with which every server begins, and a GOAWAY frame with the reason as its debug
/// data.
fn grpc_refusal(problem: &Problem) -> Vec<u8> {
    const SETTINGS: u8 = 4;
    const GOAWAY: u8 = 7;
    const ENHANCE_YOUR_CALM: u32 = 11;
    let frame = |kind: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
        let head = [length[1], length[2], length[3], kind, 0, 0, 0, 0, 0];
        [&head, payload].concat()
    };
    let message = format!("{}; {}", problem.detail, problem.hint);
    let last_stream = [0; 4];
    let away = [
        &last_stream,
        &ENHANCE_YOUR_CALM.to_be_bytes()[..],
        message.as_bytes(),
    ]
    .concat();
    [frame(SETTINGS, &[]), frame(GOAWAY, &away)].concat()
}

#[cfg(test)]
mod tests;
