//! Limits on the URLs of one host that are taken.

/// Maximum numbers of URLs of one host in flight, by the state of the host. If `None`, no URL of such hosts
/// is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeLimits {
    /// Limit for a ready host: everything that must be known before its pages are fetched is known.
    pub ready: Option<u32>,
    /// Limit for any other host that has answered and has not failed since.
    pub answered: Option<u32>,
    /// Limit for a host that was never reached, or has failed since.
    pub unreached: Option<u32>,
}

impl TakeLimits {
    /// Creates the same limit for all.
    pub fn all(per_host: u32) -> Self {
        Self {
            ready: Some(per_host),
            answered: Some(per_host),
            unreached: Some(per_host),
        }
    }
}
