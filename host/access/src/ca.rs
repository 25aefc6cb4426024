//! The cluster's own CA: it issues the certificates by which nodes know each other.
//!
//! ```text
//! authority  the CA as a master gets at it: read or made when it is first needed
//! sealing    keeps the private key in the store so that only masters with the sealing key can read it
//! request    the certificate signing requests of nodes
//! facts      what a certificate states
//! ```
//!
//! The CA is made once, by one compare-and-set, so that masters that start together agree. A record that does not open
//! is an error: a second CA would cut the cluster in two. Certificates are valid for [`LIFE`], so that nodes renew
//! them, and nobody has to keep a list of revoked ones for long.

use std::fmt;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber, date_time_ymd,
};
use serde::{Deserialize, Serialize};

use super::node::{Host, NodeName};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::Digest;
use crawler_store::StoreError;

mod authority;
mod facts;
mod request;
mod sealing;

pub use authority::Authority;
pub use facts::{CertificateFacts, ca_digest};
pub use request::{NodeKey, NodeRequest, REQUEST_MAX, RequestError};
pub use sealing::{SEALING_KEY_MIN, SealingKey};

/// Time for which a certificate of a node is valid.
pub const LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Time by which certificates are valid before they are issued, for clocks that are late.
const EARLIER: Duration = Duration::from_secs(5 * 60);
/// Time for which the certificate of a CA that is made here is valid: ten years.
const CA_LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// Length of a serial number in bytes.
const SERIAL_LENGTH: usize = 16;

/// Reason why the CA cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    /// This master was not told how to get at a CA.
    #[error("this master issues no certificates")]
    NotConfigured,
    /// The sealing key is too short.
    #[error("the sealing key has {n_bytes} bytes, and needs at least {SEALING_KEY_MIN}")]
    ShortKey {
        /// Number of bytes of the file.
        n_bytes: usize,
    },
    /// The private key in the store does not open.
    #[error(
        "the key of the cluster's CA does not open: the CA was made with another sealing key, or its record was changed"
    )]
    Sealed,
    /// The key in a file is not that of the certificate.
    #[error("the key of the cluster's CA is not that of its certificate")]
    OtherKey,
    /// The certificate in a file is not that of a CA.
    #[error("the certificate of the cluster's CA is not that of a CA")]
    NoCa,
    /// The certificate of the CA is not valid now.
    #[error("the certificate of the cluster's CA is not valid now")]
    CaExpired,
    /// A certificate does not parse.
    #[error("the certificate cannot be read: {why}")]
    Unreadable {
        /// Fault of the certificate.
        why: String,
    },
    /// A certificate is from another CA.
    #[error("the certificate is not from the CA of this cluster")]
    Foreign,
    /// A certificate is not valid now.
    #[error("the certificate is not valid now")]
    Expired,
    /// A certificate, a key or a request cannot be made or read.
    #[error("cannot make a certificate")]
    Making(#[from] rcgen::Error),
    /// The store did not answer.
    #[error("cannot read the CA of the cluster")]
    Store(#[from] StoreError),
}

impl CaError {
    /// Returns the way out; empty if the message says it all.
    pub fn hint(&self) -> &'static str {
        match self {
            CaError::NotConfigured => {
                "name a file with sealing-key in [cluster] of the config file of the masters, or files with ca and ca-key"
            }
            CaError::ShortKey { .. } => "make one with `openssl rand -out FILE 32`",
            CaError::Sealed => {
                "name the file with which the first master was started as sealing-key in [cluster]"
            }
            CaError::OtherKey | CaError::NoCa => {
                "name the certificate of the CA as ca and its key as ca-key in [cluster]"
            }
            CaError::CaExpired => "renew the certificate of the CA; compare the clocks",
            CaError::Foreign | CaError::Expired => {
                "make a join token with `crawler node join-token add`, and start the node with --join FILE"
            }
            CaError::Unreadable { .. } | CaError::Making(_) => "",
            CaError::Store(_) => "try again",
        }
    }
}

/// Digest of the certificate of a CA, which a join token carries.
pub type CaDigest = Digest;

/// Origin of the private key of the CA.
pub enum CaSource {
    /// The store has it, sealed with this key.
    Sealed(Box<SealingKey>),
    /// Files have it.
    Files {
        /// Certificate of the CA, in PEM.
        certificate: String,
        /// Private key of the CA, in PEM.
        key: String,
    },
}

impl fmt::Debug for CaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CaSource::Sealed(_) => "Sealed(..)",
            CaSource::Files { .. } => "Files(..)",
        })
    }
}

/// Record of the CA in the store. Its private key is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CaRecord {
    /// Certificate, in PEM.
    certificate: String,
    /// Nonce and sealed private key. The certificate is their context.
    #[serde(with = "hex")]
    sealed_key: Vec<u8>,
    /// Time at which it was made.
    made_at: UnixMillis,
}

impl CaRecord {
    /// Makes a CA for this cluster.
    fn make(cluster: &str, key: &SealingKey, now: UnixMillis) -> Result<Self, CaError> {
        let pair = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("crawler cluster {cluster}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_validity(&mut params, now, CA_LIFE);
        params.serial_number = Some(serial());
        let certificate = params.self_signed(&pair)?;
        Ok(Self {
            sealed_key: key.seal(pair.serialize_pem().as_bytes(), certificate.der()),
            certificate: certificate.pem(),
            made_at: now,
        })
    }

    /// Returns the private key in PEM.
    fn open(&self, key: &SealingKey) -> Result<String, CaError> {
        let der = facts::der_of(&self.certificate)?;
        let opened = key.open(&self.sealed_key, &der).ok_or(CaError::Sealed)?;
        String::from_utf8(opened).map_err(|_| CaError::Sealed)
    }
}

/// The CA, with its private key.
pub struct ClusterCa {
    cluster: String,
    pem: String,
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

/// Certificate that was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The certificate and that of its CA, in PEM.
    pub chain: String,
    /// Last time at which it is valid.
    pub not_after: UnixMillis,
    /// Serial number, in hexadecimal digits.
    pub serial: String,
}

impl ClusterCa {
    /// Puts a certificate and its private key together, both in PEM, and checks that they make a CA.
    fn new(
        cluster: String,
        certificate: &str,
        key: &str,
        now: UnixMillis,
    ) -> Result<Self, CaError> {
        let der = facts::der_of(certificate)?;
        let pair = KeyPair::from_pem(key)?;
        check_fits(&der, &pair, now)?;
        // Nodes get and trust this one, whatever else is in the file.
        let pem = facts::first_block(certificate).ok_or(CaError::NoCa)?;
        let issuer = Issuer::from_ca_cert_pem(&pem, pair)?;
        Ok(Self {
            cluster,
            pem,
            der,
            issuer,
        })
    }

    /// Returns the certificate of the CA, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the digest of the certificate of the CA.
    pub fn digest(&self) -> CaDigest {
        Digest::of(&self.der)
    }

    /// Returns the identity of the cluster that this CA is of.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Issues a certificate for a node, which others reach at these hosts. Of the request, only the key counts.
    pub fn issue(
        &self,
        node: &NodeName,
        hosts: &[Host],
        request: &NodeRequest,
        now: UnixMillis,
    ) -> Result<Issued, CaError> {
        let hosts = hosts.iter().map(ToString::to_string);
        let mut params = CertificateParams::new(hosts.collect::<Vec<_>>())?;
        params
            .subject_alt_names
            .push(SanType::URI(node.uri().try_into()?));
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, node.id.as_str());
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        let serial = serial();
        params.serial_number = Some(serial.clone());
        let not_after = set_validity(&mut params, now, LIFE);
        let certificate = params.signed_by(&request.key, &self.issuer)?;
        Ok(Issued {
            chain: format!("{}{}", certificate.pem(), self.pem),
            not_after,
            serial: hex::encode(serial.to_bytes()),
        })
    }

    /// Returns the facts of a certificate in DER, if this CA has issued it and it is valid now.
    pub fn check_issued(&self, der: &[u8], now: UnixMillis) -> Result<CertificateFacts, CaError> {
        let (shown, own) = (facts::parsed(der)?, facts::parsed(&self.der)?);
        let signed = shown.verify_signature(Some(own.public_key()));
        signed.map_err(|_| CaError::Foreign)?;
        let facts = CertificateFacts::of(&shown);
        match facts.is_valid_at(now) {
            true => Ok(facts),
            false => Err(CaError::Expired),
        }
    }
}

impl fmt::Debug for ClusterCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCa")
            .field("digest", &self.digest())
            .finish_non_exhaustive()
    }
}

/// Checks that a certificate in DER is that of a CA, valid now, and that this is its key.
fn check_fits(der: &[u8], pair: &KeyPair, now: UnixMillis) -> Result<(), CaError> {
    let certificate = facts::parsed(der)?;
    if !certificate.is_ca() {
        return Err(CaError::NoCa);
    }
    if pair.subject_public_key_info() != certificate.public_key().raw {
        return Err(CaError::OtherKey);
    }
    match CertificateFacts::of(&certificate).is_valid_at(now) {
        true => Ok(()),
        false => Err(CaError::CaExpired),
    }
}

/// Sets the times between which a certificate is valid, and returns the last of them.
fn set_validity(params: &mut CertificateParams, now: UnixMillis, life: Duration) -> UnixMillis {
    let at = |seconds: u64| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    let now = now / 1_000;
    let until = now + life.as_secs();
    params.not_before = at(now.saturating_sub(EARLIER.as_secs()));
    params.not_after = at(until);
    until * 1_000
}

/// Returns a random serial number, which is above zero.
fn serial() -> SerialNumber {
    let mut bytes: [u8; SERIAL_LENGTH] = rand::random();
    // The first bit is that of the sign, and a first byte of zero would be left out.
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    SerialNumber::from_slice(&bytes)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
