//! TLS of clients: of the command line towards masters, and of nodes towards other nodes.
//!
//! A command trusts the CAs of the system unless it is told others. Nodes trust the CA that they are told and no
//! other: a certificate that anybody can buy must not admit a stranger to a cluster.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use super::certificates::{Certificates, Files};
use super::current::Current;
use super::pinned::PinnedCa;
use super::{HTTP2, IdentityFiles, TlsError, provider};
use crawler_access::ca::CaDigest;
use crawler_access::revoked_nodes::RevokedNodes;

/// Certificates of a client: the CAs that it trusts, and the certificate that it shows. Clones share them. The
/// default has none and calls plain servers only.
#[derive(Clone, Default)]
pub struct ClientTls {
    certificates: Source,
    /// Certificates of servers that are void.
    revoked: RevokedNodes,
}

/// Origin of the configuration of a client.
#[derive(Clone, Default)]
enum Source {
    /// There is none.
    #[default]
    Nowhere,
    /// Files have the certificates.
    Files(Arc<Current<Arc<ClientConfig>>>),
    /// The configuration does not change.
    Fixed(Arc<ClientConfig>),
}

impl ClientTls {
    /// Reads the certificates of a node. Other nodes are verified by the CA certificates in `ca`; those that ask
    /// for a certificate are shown that of this node.
    pub fn of_node(ca: PathBuf, identity: Option<IdentityFiles>) -> Result<Self, TlsError> {
        let files = Files {
            identity,
            authorities: Some(ca),
        };
        Self::load(files)
    }

    /// Reads the certificates of a command. Without `ca`, masters are verified by the CAs that the system trusts.
    pub fn of_command(
        ca: Option<PathBuf>,
        identity: Option<IdentityFiles>,
    ) -> Result<Self, TlsError> {
        let files = Files {
            identity,
            authorities: ca,
        };
        Self::load(files)
    }

    /// Returns the certificates of a node that has none yet. It trusts the CA whose certificate has this digest, which
    /// the masters show, and no other.
    pub fn joining(ca: CaDigest) -> Self {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring has the ciphers of every version")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(PinnedCa::new(ca)));
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Self {
            certificates: Source::Fixed(Arc::new(config)),
            revoked: RevokedNodes::default(),
        }
    }

    fn load(files: Files) -> Result<Self, TlsError> {
        let current = Current::load(files, config)?;
        Ok(Self {
            certificates: Source::Files(Arc::new(current)),
            revoked: RevokedNodes::default(),
        })
    }

    /// Returns the same certificates, with which no server is called whose certificate was revoked.
    #[must_use]
    pub fn without(self, revoked: RevokedNodes) -> Self {
        Self { revoked, ..self }
    }

    /// Returns the certificates of servers that are void.
    pub(crate) fn revoked(&self) -> &RevokedNodes {
        &self.revoked
    }

    /// Returns the configuration of a new connection, with the files as they are now. If they have changed and
    /// cannot be used, those before stay in use. This reads files.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        match &self.certificates {
            Source::Nowhere => Err(TlsError::NobodyVouches),
            Source::Fixed(config) => Ok(config.clone()),
            Source::Files(current) => {
                current.reload().log();
                Ok(current.value())
            }
        }
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("is_plain", &matches!(self.certificates, Source::Nowhere))
            .finish_non_exhaustive()
    }
}

fn config(certificates: Certificates) -> Result<Arc<ClientConfig>, TlsError> {
    let authorities = match certificates.authorities {
        Some(authorities) => authorities,
        None => of_system()?,
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of every version")
        .with_root_certificates(authorities);
    let mut config = match certificates.identity {
        Some(identity) => {
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity)))
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Ok(Arc::new(config))
}

/// Returns the CAs that the system trusts, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
fn of_system() -> Result<Arc<RootCertStore>, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut authorities = RootCertStore::empty();
    let (n_good, _n_bad) = authorities.add_parsable_certificates(found.certs);
    if n_good > 0 {
        return Ok(Arc::new(authorities));
    }
    let why = found.errors.first().map(ToString::to_string);
    Err(TlsError::NoSystemCa {
        why: why.unwrap_or_else(|| "none was found".to_owned()),
    })
}
