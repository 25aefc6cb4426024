//! Verifies the first master that a node calls, before the node has the CA of its cluster.
//!
//! Masters show their certificate with that of the CA. The join token has the digest of the latter, so the node finds
//! it among what is shown, and verifies the certificate of the master by it and by nothing else.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::provider;
use crawler_access::ca::CaDigest;

/// Trust in one CA, of which only the digest is known.
#[derive(Debug)]
pub(super) struct PinnedCa {
    digest: CaDigest,
    provider: Arc<CryptoProvider>,
}

impl PinnedCa {
    pub(super) fn new(digest: CaDigest) -> Self {
        Self {
            digest,
            provider: provider(),
        }
    }
}

impl ServerCertVerifier for PinnedCa {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_pinned = |shown: &&CertificateDer<'_>| CaDigest::of(shown) == self.digest;
        let Some(ca) = intermediates.iter().find(is_pinned) else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone())?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone());
        let verifier = verifier
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tls::testing::Authority;

    /// Verifies a leaf for 127.0.0.1 with this chain, as a node whose token has the digest of this CA.
    fn check(
        pinned: &Authority,
        leaf: &[u8],
        chain: &[&Authority],
        name: &str,
    ) -> Result<(), Error> {
        let chain: Vec<_> = chain
            .iter()
            .map(|ca| CertificateDer::from(ca.der()))
            .collect();
        let verifier = PinnedCa::new(CaDigest::of(&pinned.der()));
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let verified =
            verifier.verify_server_cert(&CertificateDer::from(leaf), &chain, &name, &[], now);
        verified.map(drop)
    }

    #[test]
    fn only_the_pinned_ca_vouches_for_a_master() {
        let (own, other) = (Authority::new("own"), Authority::new("other"));
        let (leaf, foreign) = (own.issue().der, other.issue().der);
        check(&own, &leaf, &[&own], "127.0.0.1").unwrap();
        check(&own, &leaf, &[&other, &own], "127.0.0.1").unwrap();
        // It shows the pinned CA, which has not issued its certificate.
        check(&own, &foreign, &[&own], "127.0.0.1").unwrap_err();
        check(&own, &foreign, &[&own, &other], "127.0.0.1").unwrap_err();
        // It shows another CA, or none.
        check(&own, &foreign, &[&other], "127.0.0.1").unwrap_err();
        check(&own, &leaf, &[], "127.0.0.1").unwrap_err();
    }

    #[test]
    fn a_master_is_verified_by_its_name_and_times_too() {
        let own = Authority::new("own");
        check(&own, &own.issue().der, &[&own], "127.0.0.2").unwrap_err();
        let expired = own.issue_for("127.0.0.1", 2000, 2001).der;
        check(&own, &expired, &[&own], "127.0.0.1").unwrap_err();
    }

    #[test]
    fn the_certificate_of_the_ca_itself_is_no_master() {
        let own = Authority::new("own");
        check(&own, &own.der(), &[&own], "127.0.0.1").unwrap_err();
    }
}
