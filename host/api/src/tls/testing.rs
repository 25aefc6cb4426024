//! Certificates for tests: CAs that are made on the spot, and what they issue, in files.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType,
    date_time_ymd,
};
use tempfile::TempDir;

use super::{ClientTls, IdentityFiles, ServerTls};

/// A CA.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) der: Vec<u8>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap());
        Self {
            issuer: issuer.unwrap(),
        }
    }

    /// Returns the certificate of the CA, in DER.
    pub(crate) fn der(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// Issues a certificate for 127.0.0.1.
    pub(crate) fn issue(&self) -> Issued {
        self.issue_for("127.0.0.1", 2000, 4000)
    }

    /// Issues a certificate for a name or an address that is valid between these years.
    pub(crate) fn issue_for(&self, name: &str, from: i32, to: i32) -> Issued {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        self.sign(&params)
    }

    /// Issues a certificate for 127.0.0.1 that names a node by its URI.
    pub(crate) fn issue_to_node(&self, uri: &str) -> Issued {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let uri = SanType::URI(uri.try_into().unwrap());
        params.subject_alt_names.push(uri);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Issued {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().to_vec(),
        }
    }
}

/// Folder with files of certificates.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a certificate and its key, in place of those that were there under this name.
    pub(crate) fn identity(&self, name: &str, issued: &Issued) -> IdentityFiles {
        IdentityFiles {
            certificate: self.write(&format!("{name}.pem"), &issued.certificate),
            key: self.write(&format!("{name}.key"), &issued.key),
        }
    }

    pub(crate) fn authority(&self, name: &str, authority: &Authority) -> PathBuf {
        self.write(&format!("{name}.pem"), &authority.issuer.pem())
    }

    /// Returns a listener's side with a certificate of this CA. Clients show none.
    pub(crate) fn server(&self, authority: &Authority) -> ServerTls {
        let identity = self.identity("server", &authority.issue());
        ServerTls::load(identity, None).unwrap()
    }

    /// Returns a listener's side that asks clients for certificates of the same CA.
    pub(crate) fn mutual_server(&self, authority: &Authority) -> ServerTls {
        let identity = self.identity("server", &authority.issue());
        let client_ca = self.authority("client-ca", authority);
        ServerTls::load(identity, Some(client_ca)).unwrap()
    }

    /// Returns a listener's side with the certificate that a worker got from this CA.
    pub(crate) fn node_server(&self, authority: &Authority) -> ServerTls {
        let issued = authority.issue_to_node("crawler://c1/worker/worker-1");
        let identity = self.identity("node", &issued);
        let ca = self.authority("cluster-ca", authority);
        ServerTls::of_node(identity, ca).unwrap()
    }

    /// Returns a client that trusts this CA, and shows what was issued to it.
    pub(crate) fn client(&self, trusted: &Authority, shown: Option<&Issued>) -> ClientTls {
        let identity = shown.map(|shown| self.identity("client", shown));
        let ca = self.authority("ca", trusted);
        ClientTls::of_node(ca, identity).unwrap()
    }
}
