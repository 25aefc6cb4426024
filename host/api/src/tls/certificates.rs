//! Certificates and keys of one side, as they are in files. An error names the file and its fault.
//!
//! The times of a certificate of this process are checked when it is read: every other side would refuse it.
//! Its issuer is not checked, because only the other side knows whom it trusts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, RootCertStore};

use super::{IdentityFiles, TlsError, provider};
use crawler_access::ca::{CaError, CertificateFacts};
use crawler_model::id::{Digest, RunningDigest};
use crawler_process::clock::{Clock as _, SystemClock};

/// Files of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Files {
    /// Certificate and key of this process, if it has any.
    pub(super) identity: Option<IdentityFiles>,
    /// Certificates of the CAs that vouch for the other side, in PEM.
    pub(super) authorities: Option<PathBuf>,
}

/// Bytes of the files.
pub(super) struct Contents {
    /// Certificate and key.
    identity: Option<[Vec<u8>; 2]>,
    authorities: Option<Vec<u8>>,
}

/// Certificates of one side.
pub(super) struct Certificates {
    /// Certificate and key of this process, which belong together.
    pub(super) identity: Option<Arc<CertifiedKey>>,
    /// The CAs that vouch for the other side.
    pub(super) authorities: Option<Arc<RootCertStore>>,
}

impl Files {
    /// Reads all files.
    pub(super) fn read(&self) -> Result<Contents, TlsError> {
        let identity = match &self.identity {
            Some(files) => Some([read(&files.certificate)?, read(&files.key)?]),
            None => None,
        };
        let authorities = self.authorities.as_deref().map(read).transpose()?;
        Ok(Contents {
            identity,
            authorities,
        })
    }

    /// Parses what was read.
    pub(super) fn parse(&self, contents: &Contents) -> Result<Certificates, TlsError> {
        let identity = match (&self.identity, &contents.identity) {
            (Some(files), Some([certificate, key])) => Some(identity(files, certificate, key)?),
            _ => None,
        };
        let authorities = match (&self.authorities, &contents.authorities) {
            (Some(path), Some(pem)) => Some(authorities(path, pem)?),
            _ => None,
        };
        Ok(Certificates {
            identity,
            authorities,
        })
    }
}

impl Contents {
    /// Returns a digest by which other contents are told from these.
    pub(super) fn digest(&self) -> Digest {
        let mut digest = RunningDigest::default();
        for bytes in self.identity.iter().flatten().chain(&self.authorities) {
            digest.add(&(bytes.len() as u64).to_be_bytes());
            digest.add(bytes);
        }
        digest.digest()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::Read {
        path: shown(path),
        why: error.to_string(),
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Parses a certificate and its key, and checks that they belong together.
fn identity(
    files: &IdentityFiles,
    certificate: &[u8],
    key: &[u8],
) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = chain(&files.certificate, certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::NoKey {
            path: shown(&files.key),
        },
        other => TlsError::BadKey {
            path: shown(&files.key),
            why: other.to_string(),
        },
    })?;
    let identity =
        CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            Error::InconsistentKeys(_) => TlsError::OtherKey {
                certificate: shown(&files.certificate),
                key: shown(&files.key),
            },
            Error::InvalidCertificate(_) => bad_certificate(&files.certificate, &error),
            other => TlsError::BadKey {
                path: shown(&files.key),
                why: other.to_string(),
            },
        })?;
    check_times(&files.certificate, &identity.cert, Duration::ZERO)?;
    Ok(Arc::new(identity))
}

impl IdentityFiles {
    /// Checks that certificate and key can be used, and that they still can be after this time.
    pub fn check(&self, later: Duration) -> Result<(), TlsError> {
        let (certificate, key) = (read(&self.certificate)?, read(&self.key)?);
        let identity = identity(self, &certificate, &key)?;
        check_times(&self.certificate, &identity.cert, later)
    }

    /// Returns true if the certificate is one of this host, which is a name or an address.
    pub fn is_of(&self, host: &str) -> Result<bool, TlsError> {
        let chain = chain(&self.certificate, &read(&self.certificate)?)?;
        let own = chain.first().map(ParsedCertificate::try_from).transpose();
        let own = own.map_err(|error| bad_certificate(&self.certificate, &error))?;
        let name = ServerName::try_from(host.to_owned()).ok();
        Ok(own
            .zip(name)
            .is_some_and(|(own, name)| verify_server_name(&own, &name).is_ok()))
    }
}

/// Returns the facts of all certificates of a file, of which there is at least one.
pub fn certificate_facts(path: &Path) -> Result<Vec<CertificateFacts>, TlsError> {
    let chain = chain(path, &read(path)?)?.into_iter();
    let facts = chain.map(|certificate| CertificateFacts::of_der(&certificate));
    let facts: Result<_, CaError> = facts.collect();
    facts.map_err(|error| bad_certificate(path, &error))
}

/// Parses the certificates of a file, of which there is at least one.
fn chain(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| bad_certificate(path, &error))?;
    match chain.is_empty() {
        true => Err(TlsError::NoCertificate { path: shown(path) }),
        false => Ok(chain),
    }
}

fn authorities(path: &Path, pem: &[u8]) -> Result<Arc<RootCertStore>, TlsError> {
    let mut authorities = RootCertStore::empty();
    for certificate in chain(path, pem)? {
        let added = authorities.add(certificate);
        added.map_err(|error| bad_certificate(path, &error))?;
    }
    Ok(Arc::new(authorities))
}

fn bad_certificate(path: &Path, error: &dyn std::error::Error) -> TlsError {
    TlsError::BadCertificate {
        path: shown(path),
        why: error.to_string(),
    }
}

/// Checks that a certificate is valid now, or so much later.
fn check_times(
    path: &Path,
    chain: &[CertificateDer<'static>],
    later: Duration,
) -> Result<(), TlsError> {
    let Some((own, others)) = chain.split_first() else {
        return Ok(());
    };
    let own = ParsedCertificate::try_from(own).map_err(|error| bad_certificate(path, &error))?;
    let now = Duration::from_nanos(SystemClock.unix_nanos());
    let at = UnixTime::since_unix_epoch(now + later);
    // Times are checked before the search for a CA begins, which finds none here.
    let checked = verify_server_cert_signed_by_trust_anchor(
        &own,
        &RootCertStore::empty(),
        others,
        at,
        provider().signature_verification_algorithms.all,
    );
    match checked {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Err(TlsError::Expired {
                path: shown(path),
                at: time(not_after),
            })
        }
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before, ..
        })) => Err(TlsError::NotYetValid {
            path: shown(path),
            from: time(not_before),
        }),
        _ => Ok(()),
    }
}

/// Formats a time of a certificate, such as 2031-01-01T00:00:00Z.
pub(crate) fn time(time: UnixTime) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_secs());
    humantime::format_rfc3339_seconds(time).to_string()
}
