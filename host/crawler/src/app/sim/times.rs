//! Times that a whole simulation keeps.

use std::time::Duration;

/// Lease time of the nodes of a simulation.
pub(super) const LEASE_TTL: Duration = Duration::from_secs(10);
/// Time by which nothing is left to do, whatever has happened.
pub(super) const CONVERGED_BY: Duration = Duration::from_secs(60 * 60);
