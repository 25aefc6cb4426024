//! One connection of a listener, plain or encrypted.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

/// Length in bytes of the preface with which every HTTP/2 client begins.
const PREFACE: usize = 24;

/// A connection, which counts until it is dropped.
pub(crate) struct Connection {
    /// Plain or encrypted bytes.
    stream: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    _slot: OwnedSemaphorePermit,
    /// Number of bytes that must have come by a time; `None` once they have come.
    first: Option<(usize, Pin<Box<Sleep>>)>,
}

/// The client at the other end of a connection. Every request that came on the connection has it among its
/// extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peer {
    /// Address of the client. `None` if the client has gone already.
    pub address: Option<SocketAddr>,
    /// Certificate that the client has shown, in DER; a CA of `client-ca` of `[tls]` vouches for it. `None` if
    /// the listener asks for none.
    pub certificate: Option<Arc<[u8]>>,
}

impl Connection {
    pub(super) fn plain(stream: TcpStream, slot: OwnedSemaphorePermit) -> Self {
        Self {
            stream: Either::Left(stream),
            _slot: slot,
            first: None,
        }
    }

    pub(super) fn encrypted(stream: TlsStream<TcpStream>, slot: OwnedSemaphorePermit) -> Self {
        Self {
            stream: Either::Right(Box::new(stream)),
            _slot: slot,
            first: None,
        }
    }

    /// Returns the client.
    pub(crate) fn peer(&self) -> Peer {
        match &self.stream {
            Either::Left(stream) => Peer {
                address: stream.peer_addr().ok(),
                certificate: None,
            },
            Either::Right(stream) => {
                let (stream, session) = stream.get_ref();
                let certificate = session.peer_certificates().and_then(|shown| shown.first());
                Peer {
                    address: stream.peer_addr().ok(),
                    certificate: certificate.map(|shown| Arc::from(&**shown)),
                }
            }
        }
    }

    /// Returns the connection, which is closed unless the beginning of HTTP/2 comes within this time.
    pub(super) fn begins_within(mut self, time: Duration) -> Self {
        self.first = Some((PREFACE, Box::pin(tokio::time::sleep(time))));
        self
    }
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
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer()
    }
}
