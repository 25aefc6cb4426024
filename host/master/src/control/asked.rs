//! Callers of changes, as the master records them.

use crawler_model::id::RequestId;

/// A call that changes something, for its record and its event.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Id of the request; the same however often the call is sent.
    pub request: &'a RequestId,
    /// Name of the caller; empty if the master itself asks.
    pub by: &'a str,
}

impl<'a> From<&'a RequestId> for Asked<'a> {
    fn from(request: &'a RequestId) -> Self {
        Self { request, by: "" }
    }
}
