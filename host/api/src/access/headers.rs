//! Headers by which a call shows who makes it.

use crawler_access::NodeSecret;

/// Scheme of the header `Authorization` with which a caller shows a token.
pub(super) const BEARER: &str = "Bearer";
/// Scheme with which a node shows the secret of the nodes.
pub(super) const NODE_SCHEME: &str = "Node";

/// Headers by which a call is admitted, and the certificate of its connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Headers<'a> {
    /// `Authorization`.
    pub(crate) authorization: Option<&'a [u8]>,
    /// Secret of the nodes, by a master that hands the call on.
    pub(crate) node: Option<&'a [u8]>,
    /// True if the call says that a master hands it on.
    pub(crate) is_handed_on: bool,
    /// Certificate of the connection, in DER, for which a CA of this listener vouches; `None` if it asks for none.
    pub(crate) certificate: Option<&'a [u8]>,
    /// Span of the caller. It admits nobody.
    pub(crate) trace_parent: Option<&'a [u8]>,
}

/// Returns the value of the header `Authorization` that shows this token.
pub(crate) fn bearer(token: &str) -> String {
    format!("{BEARER} {token}")
}

/// Returns the token that a value of the header `Authorization` shows.
pub(crate) fn shown_token(authorization: &[u8]) -> Option<&str> {
    let (scheme, token) = str::from_utf8(authorization).ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case(BEARER).then(|| token.trim())
}

/// Returns the value of the header `Authorization` with which a node shows the secret of the nodes.
pub(crate) fn node(secret: &NodeSecret) -> String {
    format!("{NODE_SCHEME} {}", secret.expose())
}
