//! Form of a lookup, whoever is asked for the addresses.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::resolve::error::ResolveError;

/// Function that looks up the addresses of a name.
pub(crate) type LookUp = Arc<dyn Fn(String) -> BoxFuture<'static, Found> + Send + Sync>;
pub(crate) type Found = Result<Resolved, ResolveError>;

/// The addresses of a name.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) addresses: Vec<IpAddr>,
    /// Time for which they are valid according to their records.
    pub(crate) ttl: Duration,
}
