//! The cost of host work in fuel of the rule: by formula and never by time, so that the same page costs the
//! same everywhere.
//!
//! Compiled code counts the guest's own fuel, and host calls cannot change that count. The host's share is
//! counted here. A call is ended as soon as the share alone, or at its end the sum, is above limit `fuel`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cost of entering and leaving a host call: half a microsecond, in instructions.
pub(crate) const PER_CALL: u64 = 1_000;
/// Cost of copying a byte and checking that it is UTF-8.
pub(crate) const PER_BYTE: u64 = 1;
/// Cost of looking up one entry of a list to wait for, and polling it: a tenth of a microsecond.
pub(crate) const PER_POLLED: u64 = 200;
/// Cost of reading a byte of JSON.
pub(crate) const PER_JSON_BYTE: u64 = 8;
/// Cost of parsing a URL and checking a request.
pub(crate) const PER_REQUEST: u64 = 2_000;

/// Host's share of one call's fuel. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(crate) fn charge(&self, fuel: u64) {
        self.0.fetch_add(fuel, Ordering::Relaxed);
    }

    /// Charges one host call that moves this many bytes.
    pub(crate) fn charge_call(&self, n_bytes: usize) {
        self.charge(PER_CALL + PER_BYTE * n_bytes as u64);
    }

    pub(crate) fn used(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
