//! Reasons why a TLS handshake failed, in words, each with the way out.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use crate::tls::{TlsError, time};

/// Reason why a client and a server do not come together over TLS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsFault {
    /// The files of this client cannot be used.
    #[error(transparent)]
    Own(TlsError),
    /// The certificate of the server is of a CA that this client does not trust.
    #[error("its certificate is from a CA that is not known here")]
    UnknownCa,
    /// The certificate of the server is for other names.
    #[error("its certificate is not for {expected}{}", others(.presented))]
    OtherName {
        /// Name by which the server was called.
        expected: String,
        /// Names of the certificate.
        presented: Vec<String>,
    },
    /// The certificate of the server is over.
    #[error("its certificate expired at {at}")]
    Expired {
        /// Last time at which it was valid.
        at: String,
    },
    /// The certificate of the server is not valid yet.
    #[error("its certificate is not valid before {from}")]
    NotYetValid {
        /// First time at which it is valid.
        from: String,
    },
    /// The certificate of the server has another fault.
    #[error("its certificate cannot be used: {why}")]
    BadCertificate {
        /// Fault of the certificate.
        why: String,
    },
    /// The certificate of the server is that of a CA.
    #[error("its certificate is that of a CA, and not that of a server")]
    IsCa,
    /// The certificate of the server names another node than the one that is called.
    #[error("its certificate is that of {found}, and not that of {wanted}")]
    OtherNode {
        /// Id of the node that the certificate names.
        found: String,
        /// Words for the node that is called.
        wanted: String,
    },
    /// The certificate of the server was revoked.
    #[error("its certificate is that of {found}, and was revoked")]
    Revoked {
        /// Id of the node that the certificate names.
        found: String,
    },
    /// The server does not speak TLS.
    #[error("it does not speak TLS")]
    NoTls,
    /// The server speaks another protocol.
    #[error("it speaks TLS, but not gRPC")]
    NoHttp2,
    /// The server asks for a certificate, and this client has none.
    #[error("it asks for a certificate of its clients")]
    CertificateRequired,
    /// The server refuses the certificate of this client.
    #[error("it refuses the certificate of this client: {why}")]
    CertificateRefused {
        /// Reason that the server gives.
        why: &'static str,
    },
    /// The server closed the connection without a reason.
    #[error("it closed the connection before it answered")]
    Closed,
    /// The connection broke.
    #[error("{why}")]
    Broken {
        /// Error of the connection.
        why: String,
    },
    /// The two sides have no version or cipher in common, or one of them breaks the protocol.
    #[error("{why}")]
    Protocol {
        /// Error of the library.
        why: String,
    },
}

impl TlsFault {
    /// Returns the fault that an error of a handshake tells of.
    pub(super) fn of(error: &io::Error) -> Self {
        let inner = error.get_ref();
        match inner.and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(error) => Self::of_protocol(error),
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::Closed,
            None => Self::Broken {
                why: error.to_string(),
            },
        }
    }

    fn of_protocol(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(fault) => Self::of_certificate(fault),
            Error::InvalidMessage(_) => Self::NoTls,
            Error::NoApplicationProtocol => Self::NoHttp2,
            Error::AlertReceived(alert) => Self::of_alert(*alert, error),
            other => Self::Protocol {
                why: other.to_string(),
            },
        }
    }

    fn of_certificate(fault: &CertificateError) -> Self {
        match fault {
            // A CA that was made anew under its old name has another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownCa,
            CertificateError::NotValidForNameContext {
                expected,
                presented,
            } => Self::OtherName {
                expected: expected.to_str().into_owned(),
                presented: presented.iter().map(|name| bare(name)).collect(),
            },
            CertificateError::ExpiredContext { not_after, .. } => Self::Expired {
                at: time(*not_after),
            },
            CertificateError::NotValidYetContext { not_before, .. } => Self::NotYetValid {
                from: time(*not_before),
            },
            // The library tells this by its name only.
            other if other.to_string().contains("CaUsedAsEndEntity") => Self::IsCa,
            other => Self::BadCertificate {
                why: other.to_string(),
            },
        }
    }

    fn of_alert(alert: AlertDescription, error: &Error) -> Self {
        let refused = |why| Self::CertificateRefused { why };
        match alert {
            AlertDescription::CertificateRequired => Self::CertificateRequired,
            AlertDescription::UnknownCA => refused("it is from a CA that is not known there"),
            AlertDescription::CertificateExpired => refused("it has expired"),
            AlertDescription::CertificateRevoked => refused("it was revoked"),
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError => refused("it cannot be used"),
            AlertDescription::NoApplicationProtocol => Self::NoHttp2,
            _ => Self::Protocol {
                why: error.to_string(),
            },
        }
    }

    /// Returns true if a new connection may succeed without anybody's help.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, TlsFault::Closed | TlsFault::Broken { .. })
    }

    /// Returns the way out for a command; empty if the message says it all.
    pub fn hint(&self) -> &'static str {
        match self {
            TlsFault::UnknownCa => "give the certificate of its CA with --ca FILE",
            TlsFault::NoTls => "write http:// instead of https:// in --master",
            TlsFault::CertificateRequired => "give one with --certificate FILE and --key FILE",
            TlsFault::CertificateRefused { .. } => {
                "give one that its client-ca vouches for, with --certificate FILE and --key FILE"
            }
            other => other.hint_for_all(),
        }
    }

    /// Returns the way out for a node; empty if the message says it all.
    pub fn hint_for_nodes(&self) -> &'static str {
        match self {
            TlsFault::UnknownCa => "name its CA as ca in [tls] of the config file",
            TlsFault::CertificateRequired => "name certificate and key in [tls] of the config file",
            TlsFault::CertificateRefused { .. } => {
                "the client-ca of [tls] there has to vouch for the certificate of [tls] here"
            }
            other => other.hint_for_all(),
        }
    }

    fn hint_for_all(&self) -> &'static str {
        match self {
            TlsFault::Own(error) => error.hint(),
            TlsFault::OtherName { .. } => {
                "call it by a name of its certificate, or give it one with this name"
            }
            TlsFault::Expired { .. } => "renew it; the server reads it again by itself",
            TlsFault::NotYetValid { .. } => "set the clocks",
            TlsFault::OtherNode { .. } => "call the process by its own address",
            TlsFault::Revoked { .. } => "start the node again with --join FILE",
            TlsFault::IsCa => "let the CA issue one for the server",
            TlsFault::NoHttp2 => "name the address of --grpc",
            _ => "",
        }
    }
}

/// Returns a name of a certificate, which the library writes as `DnsName("shop.example")` or `IpAddress(10.0.0.7)`.
fn bare(name: &str) -> String {
    let value = name.split_once('(').map_or(name, |(_kind, value)| value);
    value.trim_end_matches(')').trim_matches('"').to_owned()
}

/// Returns the names of a certificate, as the end of a sentence.
fn others(presented: &[String]) -> String {
    match presented {
        [] => ", and names no host".to_owned(),
        names => format!(" but for {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::UnixTime;

    use super::*;

    #[track_caller]
    fn check(error: Error, why: &str, hint: &str) {
        let fault = TlsFault::of(&io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!((fault.to_string().as_str(), fault.hint()), (why, hint));
    }

    #[test]
    fn a_fault_is_told_in_words_with_the_way_out() {
        check(
            CertificateError::UnknownIssuer.into(),
            "its certificate is from a CA that is not known here",
            "give the certificate of its CA with --ca FILE",
        );
        check(
            CertificateError::NotValidForNameContext {
                expected: "a.test".try_into().unwrap(),
                presented: vec![r#"DnsName("b.test")"#.into(), "IpAddress(10.0.0.1)".into()],
            }
            .into(),
            "its certificate is not for a.test but for b.test, 10.0.0.1",
            "call it by a name of its certificate, or give it one with this name",
        );
        let [before, after] = [1_700_000_000, 1_700_086_400]
            .map(|seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds)));
        check(
            CertificateError::ExpiredContext {
                time: after,
                not_after: before,
            }
            .into(),
            "its certificate expired at 2023-11-14T22:13:20Z",
            "renew it; the server reads it again by itself",
        );
        check(
            CertificateError::NotValidYetContext {
                time: before,
                not_before: after,
            }
            .into(),
            "its certificate is not valid before 2023-11-15T22:13:20Z",
            "set the clocks",
        );
        check(
            Error::AlertReceived(AlertDescription::CertificateExpired),
            "it refuses the certificate of this client: it has expired",
            "give one that its client-ca vouches for, with --certificate FILE and --key FILE",
        );
        check(
            Error::AlertReceived(AlertDescription::CertificateRequired),
            "it asks for a certificate of its clients",
            "give one with --certificate FILE and --key FILE",
        );
        check(
            Error::AlertReceived(AlertDescription::UnknownCA),
            "it refuses the certificate of this client: it is from a CA that is not known there",
            "give one that its client-ca vouches for, with --certificate FILE and --key FILE",
        );
        check(
            Error::AlertReceived(AlertDescription::NoApplicationProtocol),
            "it speaks TLS, but not gRPC",
            "name the address of --grpc",
        );
        let eof = io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof");
        assert_eq!(TlsFault::of(&eof), TlsFault::Closed);
    }
}
