//! Encrypted connections of clients.
//!
//! The certificates are read again for each connection if their files have changed, so a client that runs for long
//! goes on with those of today.

use std::future::Future;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::AsyncBufReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::ConnectError;
use tower::Service;

use super::tls_fault::TlsFault;
use super::transport::CONNECT_DEADLINE;
use crate::tls::{ClientTls, HTTP2};
use crawler_access::ca::CertificateFacts;
use crawler_access::revoked_nodes::RevokedNodes;
use crawler_model::id::NodeId;
use crawler_model::node::Role;

/// Time for which the first bytes of a server are waited for after the handshake. They come at once, unless the
/// server waits for this client to speak first.
const FIRST_BYTES: Duration = Duration::from_secs(2);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Encrypted = TokioIo<TlsStream<TcpStream>>;

/// Process that is meant to answer. A certificate that names a node has to name this one: the CA of the cluster
/// issues certificates for the hosts that nodes ask for, so a host alone does not tell who answers. One that names no
/// node was made by its user, who decides what it is for.
#[derive(Debug, Clone)]
pub(super) enum Callee {
    /// Any node.
    Node,
    /// Another program, which takes what nodes tell of themselves.
    Receiver,
    /// A master.
    Master,
    /// The worker with this id.
    Worker(NodeId),
}

impl Callee {
    /// Refuses a certificate in DER that names another node, or that was revoked. A client that does not know yet what was
    /// revoked goes on.
    fn check(&self, certificate: &[u8], revoked: &RevokedNodes) -> Result<(), TlsFault> {
        let Ok(facts) = CertificateFacts::of_der(certificate) else {
            return Ok(());
        };
        let Some(node) = facts.node() else {
            return Ok(());
        };
        if revoked.is_void(&node.id, facts.issued_at()) == Some(true) {
            let found = node.id.to_string();
            return Err(TlsFault::Revoked { found });
        }
        let is_meant = match self {
            Callee::Node | Callee::Receiver => true,
            Callee::Master => node.role == Role::Master,
            Callee::Worker(id) => node.role == Role::Worker && node.id == *id,
        };
        match is_meant {
            true => Ok(()),
            false => Err(TlsFault::OtherNode {
                found: node.id.to_string(),
                wanted: match self {
                    Callee::Worker(id) => id.to_string(),
                    Callee::Master | Callee::Node | Callee::Receiver => "a master".to_owned(),
                },
            }),
        }
    }
}

/// Opens encrypted connections with the certificates of a client.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: ClientTls,
    callee: Callee,
}

impl Connector {
    pub(super) fn new(tls: ClientTls, callee: Callee) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        Self { tcp, tls, callee }
    }
}

impl Service<Uri> for Connector {
    type Response = Encrypted;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Encrypted, ConnectError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        let ready = Service::<Uri>::poll_ready(&mut self.tcp, context);
        ready.map_err(|error| ConnectError(error.into()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.tcp.call(uri.clone());
        let opened = open(connecting, uri, self.tls.clone(), self.callee.clone());
        let in_time = async {
            match tokio::time::timeout(CONNECT_DEADLINE, opened).await {
                Ok(opened) => opened.map_err(ConnectError),
                Err(_elapsed) => {
                    let seconds = CONNECT_DEADLINE.as_secs();
                    let late = format!("no connection within {seconds} s");
                    Err(ConnectError(late.into()))
                }
            }
        };
        in_time.boxed()
    }
}

async fn open<E: Into<BoxError>>(
    connecting: impl Future<Output = Result<TokioIo<TcpStream>, E>>,
    uri: Uri,
    tls: ClientTls,
    callee: Callee,
) -> Result<Encrypted, BoxError> {
    let stream = match connecting.await {
        Ok(stream) => stream.into_inner(),
        Err(error) => return Err(error.into()),
    };
    let revoked = tls.revoked().clone();
    let config = crawler_process::task::blocking(move || tls.config()).await?;
    let config = config.map_err(TlsFault::Own)?;
    let name = server_name(&uri)?;
    let handshake = TlsConnector::from(config).connect(name, stream);
    let mut stream = handshake.await.map_err(|error| TlsFault::of(&error))?;
    let session = stream.get_ref().1;
    if session.alpn_protocol() != Some(HTTP2) {
        return Err(TlsFault::NoHttp2.into());
    }
    if let Some(certificate) = session.peer_certificates().and_then(<[_]>::first) {
        callee.check(certificate, &revoked)?;
    }
    // A server judges the certificate of its client only after the handshake of the client is done.
    let first = tokio::time::timeout(FIRST_BYTES, stream.fill_buf()).await;
    let is_end = first.map(|first| first.map(<[u8]>::is_empty));
    match is_end {
        Ok(Ok(true)) => Err(TlsFault::Closed.into()),
        Ok(Err(error)) => Err(TlsFault::of(&error).into()),
        Ok(Ok(false)) | Err(_) => Ok(TokioIo::new(stream)),
    }
}

/// Returns the name that the certificate of the server must have.
fn server_name(uri: &Uri) -> Result<ServerName<'static>, BoxError> {
    let host = uri.host().unwrap_or_default();
    let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    Ok(ServerName::try_from(literal.unwrap_or(host).to_owned())?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tls::testing::Authority;
    use crawler_access::revoked_nodes;
    use crawler_process::task::TaskScope;
    use crawler_store::catalog::Catalog;
    use crawler_store::keys::Keys;
    use crawler_store::twin::StoreTwin;

    #[test]
    fn a_certificate_that_names_another_node_is_refused() {
        let authority = Authority::new("cluster");
        let worker = authority.issue_to_node("crawler://0f/worker/worker-1").der;
        let master = authority.issue_to_node("crawler://0f/master/master-1").der;
        let callee = |id: &str| Callee::Worker(id.parse().unwrap());
        let none = RevokedNodes::default();
        Callee::Node.check(&worker, &none).unwrap();
        Callee::Master.check(&master, &none).unwrap();
        callee("worker-1").check(&worker, &none).unwrap();
        for (callee, certificate) in [
            (Callee::Master, &worker),
            (callee("worker-2"), &worker),
            (callee("master-1"), &master),
        ] {
            let refused = callee.check(certificate, &none).unwrap_err();
            let is_other = matches!(refused, TlsFault::OtherNode { .. });
            assert!(is_other, "{callee:?}: {refused}");
        }
        // One that its user has made names no node.
        Callee::Master.check(&authority.issue().der, &none).unwrap();
    }

    #[tokio::test]
    async fn a_server_whose_certificate_was_revoked_is_refused() {
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        let id = "worker-1".parse().unwrap();
        revoked_nodes::revoke(&catalog, &id, 1_800_000_000_000)
            .await
            .unwrap();
        let scope = TaskScope::new();
        let (revoked, task) = RevokedNodes::new(catalog, scope.stop_signal());
        let authority = Authority::new("cluster");
        let [first, second] = ["worker-1", "worker-2"]
            .map(|id| authority.issue_to_node(&format!("crawler://0f/worker/{id}")));
        let check = |shown: &[u8]| Callee::Node.check(shown, &revoked);
        check(&first.der).unwrap();
        scope.spawn("revoked nodes", task);
        let known = async {
            while check(&first.der).is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), known)
            .await
            .expect("known");
        let refused = check(&first.der).unwrap_err().to_string();
        assert_eq!(
            refused,
            "its certificate is that of worker-1, and was revoked"
        );
        check(&second.der).unwrap();
    }
}
