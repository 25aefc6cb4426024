//! Reasons why items are not in their stream, and what a user can do.

use std::error::Error;
use std::{fmt, io};

use async_nats::client::RequestErrorKind;
use async_nats::{ConnectError, ConnectErrorKind, RequestError, rustls};

use crawler_sink::SinkError;

/// Cause of an error, as far as it decides what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The server cannot be reached, or the connection is lost.
    Away,
    /// The connection cannot be protected.
    Tls,
    /// The user may not do this.
    Denied,
    /// No stream takes the subject.
    NoStream,
    /// There was no acknowledgement in time.
    Slow,
    /// Messages of other shards had all the room for bytes on their way.
    Busy,
    /// The stream or the server has no room left.
    Full,
    /// The stream takes the items for another reason not.
    Refused,
}

impl Cause {
    /// Returns the state of the stream, and the way out.
    fn advice(self) -> &'static str {
        match self {
            Self::Away => "the server cannot be reached or closed the connection",
            Self::Tls => {
                "the connection cannot be protected by TLS; check the name of the host, and ca"
            }
            Self::Denied => {
                "the server refuses the user; check the secret, and the right to publish"
            }
            Self::NoStream => "no stream takes the subject; items wait until there is one",
            Self::Slow => {
                "the stream does not acknowledge items in time; look for load there, or give it a longer timeout"
            }
            Self::Busy => {
                "other shards use the connection; look for load at the server, or give it a longer timeout"
            }
            Self::Full => "the stream has no room left; items wait until there is some",
            Self::Refused => "the stream refuses items",
        }
    }

    /// Returns true if the next write had better be on another connection. What is denied may be one subject; if it is all,
    /// the connection itself knows.
    pub(crate) fn is_of_connection(self) -> bool {
        match self {
            Self::Away | Self::Tls | Self::Slow => true,
            Self::Denied | Self::NoStream | Self::Busy | Self::Full | Self::Refused => false,
        }
    }
}

/// Error of an operation on a server.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) cause: Cause,
    /// Words of the server or of the client.
    said: Option<String>,
}

impl Trouble {
    /// Returns the trouble with this cause about which nothing else is known.
    pub(crate) fn of(cause: Cause) -> Self {
        Self { cause, said: None }
    }

    /// Returns the trouble with this cause, and the words of the server or of the client.
    pub(crate) fn told(cause: Cause, said: impl Into<String>) -> Self {
        Self {
            cause,
            said: Some(said.into()),
        }
    }

    /// Returns the trouble of a connection that could not be made.
    pub(crate) fn of_connect(error: &ConnectError) -> Self {
        let cause = match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                Cause::Denied
            }
            ConnectErrorKind::Tls => Cause::Tls,
            // The client tells of a handshake that failed as of any other error of a connection.
            _ if is_of_tls(error) => Cause::Tls,
            ConnectErrorKind::ServerParse
            | ConnectErrorKind::Dns
            | ConnectErrorKind::TimedOut
            | ConnectErrorKind::Io
            | ConnectErrorKind::MaxReconnects => Cause::Away,
        };
        Self::told(cause, error.to_string())
    }

    /// Returns the trouble of a message that was not acknowledged.
    pub(crate) fn of_request(error: &RequestError, subject: &str) -> Self {
        match error.kind() {
            RequestErrorKind::NoResponders => Self::told(Cause::NoStream, subject),
            RequestErrorKind::TimedOut => Self::of(Cause::Slow),
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                Self::told(Cause::Refused, error.to_string())
            }
            RequestErrorKind::Other => Self::told(Cause::Away, error.to_string()),
        }
    }

    /// Returns the error of a write to a server. All troubles pass when their cause does, so the items are kept.
    pub(crate) fn into_sink_error(self, server: &str) -> SinkError {
        SinkError::Retry {
            message: format!("cannot publish items to {server}: {self}"),
            source: None,
        }
    }
}

/// Returns true if the error, or one of its causes, is about TLS.
fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(|error| {
        // The source of an error of input or output is not the error within, but the source of that one.
        let within = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        error.is::<rustls::Error>() || within.is_some_and(|within| within.is::<rustls::Error>())
    })
}

/// Writes the state of the stream, and what was said about it.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cause.advice())?;
        match &self.said {
            Some(said) => write!(f, " ({said})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_certificate_is_told_apart_from_a_lost_connection() {
        let wrong = rustls::CertificateError::UnknownIssuer;
        let wrong = rustls::Error::InvalidCertificate(wrong);
        let wrong = io::Error::new(io::ErrorKind::InvalidData, wrong);
        let lost = io::Error::from(io::ErrorKind::ConnectionReset);
        for (source, expected) in [(wrong, Cause::Tls), (lost, Cause::Away)] {
            let error = ConnectError::with_source(ConnectErrorKind::Io, source);
            assert_eq!(Trouble::of_connect(&error).cause, expected, "{error}");
        }
    }
}
