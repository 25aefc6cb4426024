//! What host work costs a rule, in fuel: by formula and never by time, so that the same page costs
//! the same everywhere.
//!
//! The guest's own fuel is counted by the compiled code, which host calls cannot reach into. The
//! host's share is counted here; a call is ended as soon as the share alone, or at its end the sum,
//! is above limit `fuel`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entering and leaving a host call: half a microsecond, in instructions.
pub(crate) const PER_CALL: u64 = 1_000;
/// Copying a byte and checking that it is UTF-8.
pub(crate) const PER_BYTE: u64 = 1;
/// Looking up one entry of a list to wait for, and asking it: a tenth of a microsecond.
pub(crate) const PER_POLLED: u64 = 200;
/// Reading a byte of JSON.
pub(crate) const PER_JSON_BYTE: u64 = 8;
/// Parsing a URL and checking a request.
pub(crate) const PER_REQUEST: u64 = 2_000;

/// The host's share of one call's fuel. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(crate) fn charge(&self, fuel: u64) {
        self.0.fetch_add(fuel, Ordering::Relaxed);
    }

    /// One host call that moves this many bytes.
    pub(crate) fn charge_call(&self, n_bytes: usize) {
        self.charge(PER_CALL + PER_BYTE * n_bytes as u64);
    }

    pub(crate) fn used(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
