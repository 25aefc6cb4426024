//! Certificates of a cluster with mutual TLS.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Writes a CA and a certificate for 127.0.0.1 into a folder, and the config file `crawler.toml` that names them.
pub fn write(home: &Path) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(
        params,
        KeyPair::generate().expect("a certificate can be made"),
    )
    .expect("a certificate can be made");
    let key = KeyPair::generate().expect("a certificate can be made");
    let params =
        CertificateParams::new(["127.0.0.1".to_owned()]).expect("a certificate can be made");
    let certificate = params
        .signed_by(&key, &authority)
        .expect("a certificate can be made");
    let config = "[tls]\ncertificate = \"node.pem\"\nkey = \"node.key\"\nclient-ca = \"ca.pem\"\nca = \"ca.pem\"\n";
    for (name, text) in [
        ("ca.pem", authority.pem()),
        ("node.pem", certificate.pem()),
        ("node.key", key.serialize_pem()),
        ("crawler.toml", config.to_owned()),
    ] {
        fs::write(home.join(name), text).expect("a certificate can be made");
    }
}
