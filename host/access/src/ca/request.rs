//! Certificate signing requests: those that a node makes, and those that a master judges.
//!
//! The public key and the hosts of a request count; everything else in a certificate is decided by the master. A request
//! for more is refused, so that nobody believes to have got it.

use std::fmt;

use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKey, PublicKeyData as _, SanType,
};

use super::CaError;
use crate::node::Host;
use crawler_model::id::{Digest, NodeId};

/// Largest request in bytes.
pub const REQUEST_MAX: usize = 16 << 10;
/// Length in bytes of a public key of P-256 that is not compressed.
const KEY_LENGTH: usize = 65;

/// Private key of a node. It never leaves the machine.
pub struct NodeKey(KeyPair);

/// A request that a master has parsed, and whose signature shows that its sender has the private key.
#[derive(Debug)]
pub struct NodeRequest {
    hosts: Vec<Host>,
    pub(super) key: PublicKey,
}

/// Reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It does not parse, or its signature is wrong.
    #[error("the certificate signing request cannot be used: {0}")]
    Unreadable(String),
    /// The key is of another kind.
    #[error("the certificate signing request has a key that is not ECDSA P-256")]
    Key,
    /// It asks for a certificate that could issue others.
    #[error("the certificate signing request asks for a certificate of a CA")]
    Ca,
    /// It asks for a name that nodes do not have.
    #[error(
        "the certificate signing request asks for a name that is neither a host nor an IP address"
    )]
    Name,
    /// It asks for the name of another host.
    #[error("the certificate signing request asks for {0}, which is not the host of this node")]
    Host(String),
}

impl NodeKey {
    /// Makes a key.
    pub fn generate() -> Result<Self, CaError> {
        Ok(Self(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?))
    }

    /// Reads a key in PEM.
    pub fn of_pem(pem: &str) -> Result<Self, CaError> {
        Ok(Self(KeyPair::from_pem(pem)?))
    }

    /// Returns the key in PEM, for the file that keeps it.
    pub fn to_pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// Returns the digest of the public key.
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.der_bytes())
    }

    /// Returns a request for a certificate of this node, in PEM.
    pub fn request(&self, id: &NodeId, host: &Host) -> Result<String, CaError> {
        let mut params = CertificateParams::new([host.to_string()])?;
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, id.as_str());
        Ok(params.serialize_request(&self.0)?.pem()?)
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeKey(..)")
    }
}

impl NodeRequest {
    /// Parses a request in PEM, and refuses one that asks for what no node gets.
    pub fn parse(pem: &str) -> Result<Self, RequestError> {
        if pem.len() > REQUEST_MAX {
            let why = format!("it has more than {REQUEST_MAX} bytes");
            return Err(RequestError::Unreadable(why));
        }
        let parsed = CertificateSigningRequestParams::from_pem(pem);
        let CertificateSigningRequestParams { params, public_key } =
            parsed.map_err(|error| RequestError::Unreadable(error.to_string()))?;
        let signs = [KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let is_ca = matches!(params.is_ca, IsCa::Ca(_))
            || signs.iter().any(|usage| params.key_usages.contains(usage));
        if is_ca {
            return Err(RequestError::Ca);
        }
        let is_p256 = public_key.algorithm() == &PKCS_ECDSA_P256_SHA256
            && public_key.der_bytes().len() == KEY_LENGTH;
        if !is_p256 {
            return Err(RequestError::Key);
        }
        let hosts = params.subject_alt_names.iter().map(|name| match name {
            SanType::DnsName(name) => name
                .as_str()
                .parse::<Host>()
                .map_err(|_| RequestError::Name),
            SanType::IpAddress(address) => Ok(Host::Ip(*address)),
            _ => Err(RequestError::Name),
        });
        Ok(Self {
            hosts: hosts.collect::<Result<_, _>>()?,
            key: public_key,
        })
    }

    /// Refuses a request for other hosts than these.
    pub fn check_hosts(&self, allowed: &[Host]) -> Result<(), RequestError> {
        match self.hosts.iter().find(|host| !allowed.contains(host)) {
            Some(host) => Err(RequestError::Host(host.to_string())),
            None => Ok(()),
        }
    }

    /// Returns the digest of the public key, by which a request that comes again is known.
    pub fn key_digest(&self) -> Digest {
        Digest::of(self.key.der_bytes())
    }
}

#[cfg(test)]
mod tests {
    use rcgen::BasicConstraints;

    use super::*;

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    /// Returns the request that these changes of the parameters make.
    fn request(change: impl FnOnce(&mut CertificateParams)) -> String {
        let mut params = CertificateParams::new(["10.0.0.1".to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        params.serialize_request(&key).unwrap().pem().unwrap()
    }

    #[test]
    fn a_request_of_a_node_is_for_its_host_only() {
        let key = NodeKey::generate().unwrap();
        let id = "worker-1".parse().unwrap();
        let request = key.request(&id, &host("10.0.0.1")).unwrap();
        let request = NodeRequest::parse(&request).unwrap();
        request.check_hosts(&[host("10.0.0.1")]).unwrap();
        assert_eq!(
            request.check_hosts(&[host("10.0.0.2")]),
            Err(RequestError::Host("10.0.0.1".to_owned()))
        );
        let again = NodeKey::of_pem(&key.to_pem()).unwrap();
        let again = again.request(&id, &host("node-1.example")).unwrap();
        let again = NodeRequest::parse(&again).unwrap();
        assert_eq!(again.key_digest(), request.key_digest());
        assert_eq!(key.digest(), request.key_digest());
        again.check_hosts(&[host("10.0.0.1")]).unwrap_err();
    }

    #[test]
    fn a_request_for_a_ca_is_refused() {
        let ca = request(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
        assert_eq!(NodeRequest::parse(&ca).unwrap_err(), RequestError::Ca);
        let signs = request(|params| params.key_usages = vec![KeyUsagePurpose::KeyCertSign]);
        assert_eq!(NodeRequest::parse(&signs).unwrap_err(), RequestError::Ca);
    }

    #[test]
    fn a_request_for_the_name_of_another_node_is_refused() {
        let other = request(|params| {
            let uri = "crawler://0f/master/master-1".try_into().unwrap();
            params.subject_alt_names.push(SanType::URI(uri));
        });
        assert_eq!(NodeRequest::parse(&other).unwrap_err(), RequestError::Name);
        let star = request(|params| {
            let name = "*.example".try_into().unwrap();
            params.subject_alt_names.push(SanType::DnsName(name));
        });
        assert_eq!(NodeRequest::parse(&star).unwrap_err(), RequestError::Name);
    }

    #[test]
    fn a_request_that_its_key_has_not_signed_is_refused() {
        let good = request(|_| {});
        NodeRequest::parse(&good).unwrap();
        // The lowest bit of a letter of the subject: the request parses as before, and only the signature is wrong.
        let mut bytes = good.into_bytes();
        let first_line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let at = first_line + 51;
        let digit = BASE64.iter().position(|digit| *digit == bytes[at]).unwrap();
        bytes[at] = BASE64[digit ^ 1];
        let changed = String::from_utf8(bytes).unwrap();
        let error = NodeRequest::parse(&changed).unwrap_err().to_string();
        assert!(error.contains("signature"), "{error}");
        let long = "x".repeat(REQUEST_MAX + 1);
        assert!(matches!(
            NodeRequest::parse(&long).unwrap_err(),
            RequestError::Unreadable(_)
        ));
    }

    #[test]
    fn a_key_of_a_node_is_not_printed() {
        assert_eq!(format!("{:?}", NodeKey::generate().unwrap()), "NodeKey(..)");
    }
}
