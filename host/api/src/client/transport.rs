//! Connections of clients, and what their failures say.

use std::error::Error;
use std::time::Duration;

use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use super::connector::{Callee, Connector};
use super::tls_fault::TlsFault;
use crate::tls::ClientTls;

/// Time that a connection may take, with its handshake.
pub(super) const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

const KEEPALIVE: Duration = Duration::from_secs(10);

/// Bytes of one answer; a page of resources can be large.
pub(super) const ANSWER_MAX: usize = 64 << 20;

/// Server that is called, and how its connections are made.
#[derive(Clone)]
pub(super) struct Server {
    endpoint: Endpoint,
    /// Certificates of this client; `None` if the URL does not ask for TLS.
    tls: Option<ClientTls>,
    callee: Callee,
}

impl Server {
    /// Parses a URL with `http://`, or `https://` for TLS.
    pub(super) fn at(
        url: String,
        tls: &ClientTls,
        callee: Callee,
    ) -> Result<Self, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(url)?
            .connect_timeout(CONNECT_DEADLINE)
            .tcp_nodelay(true);
        let endpoint = match has_pings(&callee) {
            true => endpoint
                .http2_keep_alive_interval(KEEPALIVE)
                .keep_alive_timeout(KEEPALIVE)
                .keep_alive_while_idle(true),
            false => endpoint,
        };
        let is_encrypted = endpoint.uri().scheme_str() == Some("https");
        Ok(Self {
            endpoint,
            tls: is_encrypted.then(|| tls.clone()),
            callee,
        })
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<Channel, tonic::transport::Error> {
        match &self.tls {
            Some(tls) => {
                Channel::connect(
                    Connector::new(tls.clone(), self.callee.clone()),
                    self.endpoint.clone(),
                )
                .await
            }
            None => self.endpoint.connect().await,
        }
    }

    /// Returns a connection that is opened by the first call, and again when it breaks.
    pub(super) fn connect_lazy(&self) -> Channel {
        match &self.tls {
            Some(tls) => Channel::new(
                Connector::new(tls.clone(), self.callee.clone()),
                self.endpoint.clone(),
            ),
            None => self.endpoint.connect_lazy(),
        }
    }
}

/// Returns true if a connection is kept alive by pings. Servers of other programs end one on which they come more often
/// than they expect, which is mostly once in 5 minutes.
fn has_pings(callee: &Callee) -> bool {
    !matches!(callee, Callee::Receiver)
}

/// Failure of a connection.
pub(super) struct ConnectionFailure {
    /// Innermost cause: the part that a person can act on, such as "connection refused".
    pub(super) why: String,
    /// Fault of the handshake, if that is the cause.
    pub(super) tls: Option<TlsFault>,
}

impl ConnectionFailure {
    /// Returns the failure that an error of a connection tells of.
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut error = error;
        loop {
            if let Some(fault) = error.downcast_ref::<TlsFault>() {
                return Self {
                    why: fault.to_string(),
                    tls: Some(fault.clone()),
                };
            }
            match error.source() {
                Some(cause) => error = cause,
                None => break,
            }
        }
        Self {
            why: error.to_string(),
            tls: None,
        }
    }

    /// Returns what a node tells of the failure: its cause, and the way out if there is one.
    pub(super) fn for_nodes(self) -> String {
        match self.tls.map(|fault| fault.hint_for_nodes()) {
            Some(hint) if !hint.is_empty() => format!("{}; {hint}", self.why),
            _ => self.why,
        }
    }
}

/// Returns the failure of the connection if the status was made by this side and not by the other.
pub(super) fn transport_failure(status: &Status) -> Option<ConnectionFailure> {
    Error::source(status).map(ConnectionFailure::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_pinged_and_receivers_of_others_are_not() {
        let worker = Callee::Worker("worker-1".parse().unwrap());
        for node in [Callee::Node, Callee::Master, worker] {
            assert!(has_pings(&node), "{node:?}");
        }
        assert!(!has_pings(&Callee::Receiver));
    }
}
