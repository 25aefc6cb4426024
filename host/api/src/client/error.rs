//! Reasons why a call of a client has no answer.

use super::tls_fault::TlsFault;
use crate::problem::{Problem, Reason};
use crawler_master::Code;

/// Reason why a call of this client has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The URL is not that of a master.
    #[error("{url:?} is not the URL of a master: {why}")]
    Url {
        /// URL as given.
        url: String,
        /// Fault of the URL.
        why: String,
    },
    /// The URL does not answer.
    #[error("cannot reach the master at {url}: {why}")]
    Unreachable {
        /// URL as given.
        url: String,
        /// Error that the connection failed with.
        why: String,
    },
    /// The URL asks for TLS, and the two sides do not come together over it.
    #[error("cannot reach the master at {url}: {fault}")]
    Tls {
        /// URL as given.
        url: String,
        /// Fault of the handshake.
        fault: TlsFault,
    },
    /// The master refused the call.
    #[error("{0}")]
    Refused(Problem),
}

impl ClientError {
    /// Returns the way out in a sentence; empty if the message says it all.
    pub fn hint(&self) -> &str {
        match self {
            ClientError::Url { .. } => {
                "write it like http://127.0.0.1:9091, or with https:// if the master speaks TLS"
            }
            ClientError::Unreachable { .. } => {
                "start one with `crawler up`, or name another with --master URL"
            }
            ClientError::Tls { fault, .. } => fault.hint(),
            ClientError::Refused(problem) => &problem.hint,
        }
    }

    /// Returns true if the same call may succeed later without anybody's help.
    pub fn is_transient(&self) -> bool {
        match self {
            ClientError::Url { .. } | ClientError::Tls { .. } => false,
            ClientError::Unreachable { .. } => true,
            ClientError::Refused(problem) => problem.code == Code::Unavailable,
        }
    }

    /// Returns true if the caller makes more calls than it may, so that the same master takes the call in a moment.
    pub(super) fn is_caller_limit(&self) -> bool {
        match self {
            ClientError::Refused(problem) => problem.reason == Some(Reason::CallerLimit),
            _ => false,
        }
    }

    /// Returns true if another master may answer the same call.
    pub(super) fn is_of_one_master(&self) -> bool {
        self.is_transient() || matches!(self, ClientError::Tls { .. })
    }
}
