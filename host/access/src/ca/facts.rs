//! Facts that a certificate states, for those who decide about renewal and for masters that renew it.

use std::net::IpAddr;

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;

use super::{CaDigest, CaError, EARLIER};
use crate::node::{Host, NodeName};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{Digest, NodeId};
use crawler_model::node::Role;

/// End of a certificate in PEM.
const END: &str = "-----END CERTIFICATE-----";

/// Facts that a certificate states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// First time at which it is valid.
    pub not_before: UnixMillis,
    /// Last time at which it is valid.
    pub not_after: UnixMillis,
    /// Hosts that it is for.
    pub hosts: Vec<Host>,
    /// URIs that it is for.
    pub uris: Vec<String>,
    /// Digest of its public key.
    pub key: Digest,
}

impl CertificateFacts {
    /// Reads the first certificate of a PEM text.
    pub fn of_pem(pem: &str) -> Result<Self, CaError> {
        Self::of_der(&der_of(pem)?)
    }

    /// Reads a certificate in DER.
    pub fn of_der(der: &[u8]) -> Result<Self, CaError> {
        Ok(Self::of(&parsed(der)?))
    }

    pub(super) fn of(certificate: &X509Certificate<'_>) -> Self {
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map(|extension| extension.value.general_names.as_slice());
        let (mut hosts, mut uris) = (Vec::new(), Vec::new());
        for name in names.unwrap_or_default() {
            match name {
                GeneralName::DNSName(name) => hosts.extend(name.parse::<Host>().ok()),
                GeneralName::IPAddress(octets) => hosts.extend(address(octets).map(Host::Ip)),
                GeneralName::URI(uri) => uris.push((*uri).to_owned()),
                _ => {}
            }
        }
        let millis = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000);
        let validity = certificate.validity();
        Self {
            not_before: millis(validity.not_before.timestamp()),
            not_after: millis(validity.not_after.timestamp()),
            hosts,
            uris,
            key: Digest::of(&certificate.public_key().subject_public_key.data),
        }
    }

    /// Returns the node that it names, or `None` if it is that of somebody else, such as a user. One that names several
    /// nodes names none.
    pub fn node(&self) -> Option<NodeName> {
        let mut nodes = self.uris.iter().filter_map(|uri| NodeName::of_uri(uri));
        let node = nodes.next()?;
        nodes.next().is_none().then_some(node)
    }

    /// True if it names this node, of whatever cluster.
    pub fn is_of(&self, role: Role, id: &NodeId) -> bool {
        self.node()
            .is_some_and(|node| node.role == role && node.id == *id)
    }

    /// Returns the time at which the CA of a cluster has issued it.
    pub fn issued_at(&self) -> UnixMillis {
        let earlier = u64::try_from(EARLIER.as_millis()).unwrap_or(u64::MAX);
        self.not_before.saturating_add(earlier)
    }

    /// True if it is valid at this time.
    pub fn is_valid_at(&self, now: UnixMillis) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }
}

/// Returns the digest of the first certificate of a PEM text, which is that of a CA.
pub fn ca_digest(pem: &str) -> Result<CaDigest, CaError> {
    Ok(Digest::of(&der_of(pem)?))
}

/// Returns the first block of a PEM text, without what stands before and behind it.
pub(super) fn first_block(pem: &str) -> Option<String> {
    let begin = pem.find("-----BEGIN CERTIFICATE-----")?;
    let (block, _rest) = pem[begin..].split_once(END)?;
    Some(format!("{block}{END}\n"))
}

/// Returns the bytes of the first certificate of a PEM text.
pub(super) fn der_of(pem: &str) -> Result<Vec<u8>, CaError> {
    let parsed = parse_x509_pem(pem.as_bytes());
    let (_rest, block) = parsed.map_err(|_| unreadable("it is not PEM"))?;
    match block.label == "CERTIFICATE" {
        true => Ok(block.contents),
        false => Err(unreadable("it is PEM of something else")),
    }
}

pub(super) fn parsed(der: &[u8]) -> Result<X509Certificate<'_>, CaError> {
    match parse_x509_certificate(der) {
        Ok((_rest, certificate)) => Ok(certificate),
        Err(error) => Err(unreadable(&error.to_string())),
    }
}

fn unreadable(why: &str) -> CaError {
    CaError::Unreadable {
        why: why.to_owned(),
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Some(octets.into());
    }
    <[u8; 16]>::try_from(octets).ok().map(IpAddr::from)
}
