//! Leases. Only the answer to a renewal's own request counts: each renewal has its own stream, so that a late
//! answer to an earlier request ends with its stream.

use std::time::Duration;

use super::endpoints::Endpoints;
use super::fault::{Fault, Kind};
use crate::LeaseId;

/// Grants a lease. Its time is counted in whole seconds and is at least 1 s. The server may give it more.
pub(super) async fn grant(endpoints: &Endpoints, ttl: Duration) -> Result<LeaseId, Fault> {
    let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).max(1);
    // A lease whose answer is lost has no keys and ends by itself.
    let granted = endpoints
        .ask(|mut client| async move { client.lease_grant(seconds, None).await })
        .await?;
    Ok(LeaseId(granted.id().cast_unsigned()))
}

pub(super) async fn renew(
    endpoints: &Endpoints,
    limit: Duration,
    lease: LeaseId,
) -> Result<(), Fault> {
    let id = lease.0.cast_signed();
    let asked = endpoints.ask_within(limit, |mut client| async move {
        client.lease_keep_alive(id).await
    });
    asked.await.map(|_stream| ())
}

pub(super) async fn revoke(endpoints: &Endpoints, lease: LeaseId) -> Result<(), Fault> {
    let id = lease.0.cast_signed();
    let asked = endpoints.ask(|mut client| async move { client.lease_revoke(id).await });
    match asked.await {
        Err(fault) if fault.kind == Kind::LeaseGone => Ok(()),
        answer => answer.map(|_| ()),
    }
}
