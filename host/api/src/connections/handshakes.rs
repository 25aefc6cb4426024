//! TLS handshakes of a listener: each in a task of its own, so that a client that is slow, or says nothing, keeps
//! nobody from being accepted.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_rustls::TlsAcceptor;

use super::connection::Connection;
use super::{REFUSAL_DEADLINE, until_closed};
use crate::tls::{Protocol, ServerTls};
use crawler_process::task::TaskScope;

/// Connections that are ready and not taken yet; further handshakes wait with their result.
const READY_MAX: usize = 64;

/// Handshakes that are under way, and the connections that have come of them.
pub(super) struct Handshakes {
    tls: ServerTls,
    protocol: Protocol,
    /// Time that a handshake may take.
    deadline: Duration,
    ready: mpsc::Sender<Connection>,
    taken: mpsc::Receiver<Connection>,
    /// Handshakes end with the listener.
    tasks: TaskScope,
}

impl Handshakes {
    pub(super) fn new(tls: ServerTls, protocol: Protocol, deadline: Duration) -> Self {
        let (ready, taken) = mpsc::channel(READY_MAX);
        Self {
            tls,
            protocol,
            deadline,
            ready,
            taken,
            tasks: TaskScope::new(),
        }
    }

    /// Waits for the next connection whose handshake is done.
    pub(super) async fn next(&mut self) -> Connection {
        let next = self.taken.recv().await;
        next.expect("this has a sender itself")
    }

    /// Begins the handshake of a client, with the certificates that are in use now.
    pub(super) fn begin(&self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        let acceptor = TlsAcceptor::from(self.tls.config(self.protocol));
        let (ready, deadline) = (self.ready.clone(), self.deadline);
        self.tasks.spawn("TLS handshake", async move {
            let client = stream.peer_addr().ok().map(tracing::field::display);
            let handshake = acceptor.accept(stream).into_fallible();
            match tokio::time::timeout(deadline, handshake).await {
                Ok(Ok(stream)) => {
                    let connection = Connection::encrypted(stream, slot);
                    // It fails if the listener was closed meanwhile.
                    let _closed = ready.send(connection).await;
                }
                Ok(Err((error, stream))) => {
                    tracing::debug!(client, %error, "a TLS handshake failed");
                    // The client has been sent an alert that tells why. It does not matter if it reads it.
                    let closed = tokio::time::timeout(REFUSAL_DEADLINE, until_closed(stream));
                    drop(closed.await);
                }
                Err(_elapsed) => tracing::debug!(client, "a TLS handshake took too long"),
            }
        });
    }
}
