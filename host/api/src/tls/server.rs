//! TLS of listeners.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::SingleCertAndKey;
use tokio_util::sync::CancellationToken;

use super::certificates::{Certificates, Files};
use super::current::{Current, Reload};
use super::{HTTP1, HTTP2, IdentityFiles, TlsError, provider};

/// Interval between two looks at the files.
const INTERVAL: Duration = Duration::from_secs(30);

/// Protocol of a listener, which the handshake agrees on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// gRPC, over HTTP/2.
    Grpc,
    /// HTTP/1.1.
    Http,
}

/// Duty of clients to show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Showing {
    /// Every client has to.
    Required,
    /// A client that shows one has to show a good one; commands with an access token have none.
    Optional,
}

/// Certificates of the listeners of a process. Clones share them.
#[derive(Clone)]
pub struct ServerTls {
    current: Arc<Current<Configs>>,
    /// True if the certificate is one of the cluster's own CA.
    is_of_cluster: bool,
}

/// Configurations of new connections.
#[derive(Clone)]
struct Configs {
    grpc: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads the certificate that listeners show, and the CA certificates in `client_ca`. If these are given,
    /// clients have to show a certificate that one of them vouches for.
    pub fn load(identity: IdentityFiles, client_ca: Option<PathBuf>) -> Result<Self, TlsError> {
        let files = Files {
            identity: Some(identity),
            authorities: client_ca,
        };
        let current = Arc::new(Current::load(files, required)?);
        Ok(Self {
            current,
            is_of_cluster: false,
        })
    }

    /// Reads the certificate that a node got from the CA of its cluster, and that of the CA. Clients may show a
    /// certificate, and one that is shown has to be of this CA.
    pub fn of_node(identity: IdentityFiles, ca: PathBuf) -> Result<Self, TlsError> {
        let files = Files {
            identity: Some(identity),
            authorities: Some(ca),
        };
        let current = Arc::new(Current::load(files, optional)?);
        Ok(Self {
            current,
            is_of_cluster: true,
        })
    }

    /// True if the certificate is one that a node got from the CA of its cluster.
    pub(crate) fn is_of_cluster(&self) -> bool {
        self.is_of_cluster
    }

    /// Looks at the files, and uses them for new connections if they have changed and are good. This reads
    /// files.
    pub fn reload(&self) -> Reload {
        self.current.reload()
    }

    /// Looks at the files every 30 seconds until `stop` is cancelled.
    pub async fn keep_current(self, stop: CancellationToken) {
        let pause = || tokio::time::sleep(INTERVAL);
        while stop.run_until_cancelled(pause()).await.is_some() {
            let tls = self.clone();
            match crawler_process::task::blocking(move || tls.reload()).await {
                Ok(reload) => reload.log(),
                Err(_the_process_ends) => return,
            }
        }
    }

    /// Returns the configuration of a new connection.
    pub(crate) fn config(&self, protocol: Protocol) -> Arc<ServerConfig> {
        let configs = self.current.value();
        match protocol {
            Protocol::Grpc => configs.grpc,
            Protocol::Http => configs.http,
        }
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

fn required(certificates: Certificates) -> Result<Configs, TlsError> {
    configs(&certificates, Showing::Required)
}

fn optional(certificates: Certificates) -> Result<Configs, TlsError> {
    configs(&certificates, Showing::Optional)
}

fn configs(certificates: &Certificates, showing: Showing) -> Result<Configs, TlsError> {
    Ok(Configs {
        grpc: config(certificates, showing, HTTP2)?,
        http: config(certificates, showing, HTTP1)?,
    })
}

fn config(
    certificates: &Certificates,
    showing: Showing,
    protocol: &[u8],
) -> Result<Arc<ServerConfig>, TlsError> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of every version");
    let builder = match &certificates.authorities {
        Some(authorities) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(authorities.clone(), provider());
            let verifier = match showing {
                Showing::Required => verifier,
                Showing::Optional => verifier.allow_unauthenticated(),
            };
            let verifier = verifier.build();
            builder.with_client_cert_verifier(verifier.expect("there is at least one CA"))
        }
        None => builder.with_no_client_auth(),
    };
    let identity = certificates.identity.clone();
    let identity = identity.expect("a listener has a certificate");
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}
