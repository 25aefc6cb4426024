//! Reasons why a name gives no address.

use std::net::IpAddr;

use crate::FetchError;
use crate::address_policy::Denial;

/// Reason why a name gave no address. It travels through the client's own error.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ResolveError {
    /// The name has addresses, and none of them may be reached.
    #[error("{name} is at {address}, which may not be reached")]
    Denied {
        /// Name that was looked up.
        name: String,
        /// The first of its addresses.
        address: IpAddr,
        /// Reason why that address is denied.
        denial: Denial,
    },
    /// The system lets this process open no socket to ask with.
    #[error("{name} cannot be looked up: no more files can be opened")]
    OpenFiles {
        /// Name that was looked up.
        name: String,
    },
    /// The name has no address.
    #[error("{name} cannot be resolved: {why}")]
    Unknown {
        /// Name that was looked up.
        name: String,
        /// Message of the system.
        why: String,
    },
}

impl ResolveError {
    pub(crate) fn into_fetch_error(self) -> FetchError {
        match self {
            ResolveError::Denied {
                name,
                address,
                denial,
            } => denial.into_error(&name, address),
            ResolveError::OpenFiles { .. } => FetchError::OpenFiles,
            ResolveError::Unknown { name, why } => FetchError::Resolve { host: name, why },
        }
    }
}
