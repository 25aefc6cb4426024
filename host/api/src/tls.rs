//! TLS of listeners and of clients: certificates in files, which may change while the process runs.
//!
//! ```text
//! certificates  reads the files, and says what is wrong with them
//! current       a value that is made of files, and made again when they have changed
//! server        the side of listeners
//! client        the side of clients
//! pinned        verifies the first master of a node that has no CA yet
//! identity      the node that a certificate names
//! ```
//!
//! Cryptography is that of ring, which every configuration names: the default provider of the process is never
//! used.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

mod certificates;
mod client;
mod current;
mod pinned;
mod server;
#[cfg(test)]
pub(crate) mod testing;

pub use certificates::certificate_facts;
pub(crate) use certificates::time;
pub use client::ClientTls;
pub use current::Reload;
pub(crate) use server::Protocol;
pub use server::ServerTls;

/// Name of HTTP/2 in the handshake.
pub(crate) const HTTP2: &[u8] = b"h2";
/// Name of HTTP/1.1 in the handshake.
const HTTP1: &[u8] = b"http/1.1";

/// Files with a certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFiles {
    /// The certificate, and those between it and the CA, in PEM.
    pub certificate: PathBuf,
    /// The private key of the certificate, in PEM.
    pub key: PathBuf,
}

/// Reason why certificates cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {why}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the system.
        why: String,
    },
    /// A file has no certificate.
    #[error("{path} has no certificate in PEM")]
    NoCertificate {
        /// Path of the file.
        path: String,
    },
    /// A file has a certificate that cannot be used.
    #[error("{path} has a certificate that cannot be used: {why}")]
    BadCertificate {
        /// Path of the file.
        path: String,
        /// Fault of the certificate.
        why: String,
    },
    /// A certificate is over.
    #[error("the certificate in {path} expired at {at}")]
    Expired {
        /// Path of the file.
        path: String,
        /// Last time at which the certificate was valid.
        at: String,
    },
    /// A certificate is not valid yet.
    #[error("the certificate in {path} is not valid before {from}")]
    NotYetValid {
        /// Path of the file.
        path: String,
        /// First time at which the certificate is valid.
        from: String,
    },
    /// A file has no private key.
    #[error("{path} has no private key in PEM")]
    NoKey {
        /// Path of the file.
        path: String,
    },
    /// A file has a private key that cannot be used.
    #[error("{path} has a private key that cannot be used: {why}")]
    BadKey {
        /// Path of the file.
        path: String,
        /// Fault of the key.
        why: String,
    },
    /// The key belongs to another certificate.
    #[error("the key in {key} is not that of the certificate in {certificate}")]
    OtherKey {
        /// Path of the certificate.
        certificate: String,
        /// Path of the key.
        key: String,
    },
    /// The system has no CA certificates.
    #[error("this system has no CA certificates: {why}")]
    NoSystemCa {
        /// Reason that the system gives.
        why: String,
    },
    /// This process was told no CA by which it could verify others.
    #[error("this process has no CA by which it could verify the other side")]
    NobodyVouches,
}

impl TlsError {
    /// Returns the way out; empty if the message says it all.
    pub fn hint(&self) -> &'static str {
        match self {
            TlsError::Read { .. } => "name a file that this user may read",
            TlsError::NoCertificate { .. } | TlsError::BadCertificate { .. } => {
                "name a file with -----BEGIN CERTIFICATE-----, the certificate first and those of its CAs behind it"
            }
            TlsError::Expired { .. } => "renew the certificate",
            TlsError::NotYetValid { .. } => "wait, or set the clock of this machine",
            TlsError::NoKey { .. } | TlsError::BadKey { .. } => {
                "name a file with a key that is not encrypted, such as -----BEGIN PRIVATE KEY-----"
            }
            TlsError::OtherKey { .. } => "name the key with which the certificate was requested",
            TlsError::NoSystemCa { .. } => "name a file of CA certificates with --ca",
            TlsError::NobodyVouches => {
                "name the CA of the other nodes as ca in [tls] of the config file"
            }
        }
    }
}

/// Returns the cryptography of every connection.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

#[cfg(test)]
mod tests;
