//! The bytes that one crawl uses, as far as they are counted: bodies on their way in and in flight, and the
//! memories of running calls. It is one atomic number, changed when memory is taken and given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that one crawl uses. Clones share one account.
#[derive(Debug, Clone, Default)]
pub struct Account {
    bytes: Arc<AtomicU64>,
}

impl Account {
    /// Counts `bytes` until the returned value is dropped.
    pub fn reserve(&self, bytes: u64) -> MemoryReservation {
        let mut held = MemoryReservation {
            account: self.clone(),
            bytes: 0,
        };
        held.set(bytes);
        held
    }

    /// Returns the number of bytes that are held.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Part of an account, counted until it is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    account: Account,
    bytes: u64,
}

impl MemoryReservation {
    /// Changes the part to `bytes`.
    pub fn set(&mut self, bytes: u64) {
        let all = &self.account.bytes;
        match bytes.checked_sub(self.bytes) {
            Some(more) => all.fetch_add(more, Ordering::Relaxed),
            None => all.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
        };
        self.bytes = bytes;
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts_until_it_is_dropped() {
        let account = Account::default();
        let same = account.clone();
        let body = account.reserve(100);
        let mut call = same.reserve(0);
        call.set(50);
        assert_eq!((account.bytes(), same.bytes()), (150, 150));
        call.set(20);
        assert_eq!(account.bytes(), 120);
        drop(body);
        assert_eq!(account.bytes(), 20);
        drop(call);
        assert_eq!(account.bytes(), 0);
    }
}
