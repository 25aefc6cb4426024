//! The connections of one listener: how many there may be, and what clients beyond that are told.
//!
//! A connection beyond the bound is refused in the protocol of the listener, and closed. A refusal costs
//! little, lasts a second at most, and few are under way at once.

use std::future::Future;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tonic::transport::server::{Connected, TcpConnectInfo};

use super::problem::Problem;
use super::requests::RequestSettings;
use crawler_model::number;
use crawler_process::task::TaskScope;

/// Time that a client has to read its refusal.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(1);
/// Clients that are refused at once; clients beyond that are refused without waiting.
const REFUSALS_MAX: usize = 64;
/// Pause after the system could not accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Length in bytes of the preface with which every HTTP/2 client begins.
const PREFACE: usize = 24;

/// Connections of a listener.
pub(super) struct Connections {
    listener: TcpListener,
    max: usize,
    slots: Arc<Semaphore>,
    refusal: Bytes,
    refusing: Arc<Semaphore>,
    refusals: TaskScope,
}

/// A connection, which counts until it is dropped.
pub(super) struct Connection {
    stream: TcpStream,
    _slot: OwnedSemaphorePermit,
    /// Number of bytes that must have come by a time; `None` once they have come.
    first: Option<(usize, Pin<Box<Sleep>>)>,
}

impl Connections {
    /// Creates a listener that refuses connections beyond the bound in HTTP/1.
    pub(super) fn of_http(listener: TcpListener, settings: &RequestSettings) -> Self {
        Self::new(listener, settings, http_refusal)
    }

    /// Creates a listener that refuses connections beyond the bound in HTTP/2.
    pub(super) fn of_grpc(listener: TcpListener, settings: &RequestSettings) -> Self {
        Self::new(listener, settings, grpc_refusal)
    }

    fn new(
        listener: TcpListener,
        settings: &RequestSettings,
        refusal: fn(&Problem) -> Vec<u8>,
    ) -> Self {
        let max = settings.connections;
        let present = number(max as u64, "connection");
        let detail = format!("this listener has {present}, as many as --connections allows");
        let problem = Problem::passing(detail, "try again in a moment, or raise --connections");
        Self {
            listener,
            max,
            slots: Arc::new(Semaphore::new(max)),
            refusal: refusal(&problem).into(),
            refusing: Arc::new(Semaphore::new(REFUSALS_MAX)),
            refusals: TaskScope::new(),
        }
    }

    /// Waits for the next connection that there is room for.
    pub(super) async fn accept(&self) -> Connection {
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
                    return Connection {
                        stream,
                        _slot: slot,
                        first: None,
                    };
                }
                Err(_) => self.refuse(stream),
            }
        }
    }

    /// Returns the connections as a stream. Each is closed unless the beginning of HTTP/2 comes within this
    /// time.
    pub(super) fn incoming(self, time: Duration) -> BoxStream<'static, io::Result<Connection>> {
        let incoming = stream::unfold(self, move |connections| async move {
            let connection = connections.accept().await.begins_within(time);
            Some((Ok(connection), connections))
        });
        incoming.boxed()
    }

    fn refuse(&self, mut stream: TcpStream) {
        tracing::debug!(max = self.max, "refused a connection");
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
                stream.shutdown().await?;
                // A client that is still sending would lose the answer if the connection were closed.
                let mut rest = [0; 1024];
                while stream.read(&mut rest).await? > 0 {}
                io::Result::Ok(())
            });
            // It does not matter if the client has read it.
            drop(told.await);
            drop(permit);
        });
    }
}

impl Connection {
    /// Returns the address of the client. `None` if the client has gone already.
    pub(super) fn client(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }

    fn begins_within(mut self, time: Duration) -> Self {
        self.first = Some((PREFACE, Box::pin(tokio::time::sleep(time))));
        self
    }
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

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let n_before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let Some((n_missing, deadline)) = &mut this.first else {
            return read;
        };
        if read.is_pending() {
            if deadline.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let late = io::Error::new(io::ErrorKind::TimedOut, "the client said nothing");
            return Poll::Ready(Err(late));
        }
        *n_missing = n_missing.saturating_sub(buffer.filled().len() - n_before);
        if *n_missing == 0 {
            this.first = None;
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}
