//! Memory of one call: bytes summed over all memories and tables. A bound on each of them could be evaded by
//! their number.

use wasmtime::ResourceLimiter;

use crawler_process::memory::{Account, MemoryReservation};

/// Cost of one element of a table: a pointer.
const TABLE_ELEMENT_BYTES: usize = 8;
const MAX_CORE_INSTANCES: usize = super::super::engine::CORE_INSTANCES_PER_COMPONENT as usize;
const MAX_MEMORIES: usize = super::super::engine::MEMORIES_PER_COMPONENT as usize;
const MAX_TABLES: usize = super::super::engine::TABLES_PER_COMPONENT as usize;

/// Refuses growth beyond limit `memory`, and remembers that it did.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: usize,
    used: usize,
    peak: usize,
    /// Growth that was granted last, taken back if it fails for want of room.
    last_grant: usize,
    /// Number of bytes that the last refused growth would have led to.
    refused: Option<usize>,
    /// Memory that is used, readable by others.
    held: MemoryReservation,
}

impl MemoryLimiter {
    pub(crate) fn new(limit: u64, account: &Account) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            used: 0,
            peak: 0,
            last_grant: 0,
            refused: None,
            held: account.reserve(0),
        }
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak as u64
    }

    pub(crate) fn refused(&self) -> Option<usize> {
        self.refused
    }

    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let more = desired.saturating_sub(current);
        let total = self.used.saturating_add(more);
        if total > self.limit {
            self.refused = Some(total);
            self.last_grant = 0;
            return false;
        }
        self.used = total;
        self.held.set(total as u64);
        self.last_grant = more;
        self.peak = self.peak.max(total);
        true
    }

    fn take_back(&mut self) {
        self.used -= self.last_grant;
        self.held.set(self.used as u64);
        self.last_grant = 0;
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(
            current.saturating_mul(TABLE_ELEMENT_BYTES),
            desired.saturating_mul(TABLE_ELEMENT_BYTES),
        ))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.take_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        MAX_CORE_INSTANCES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_and_tables_share_one_budget() {
        let account = Account::default();
        let mut limiter = MemoryLimiter::new(1_000, &account);
        assert!(limiter.memory_growing(0, 600, None).unwrap());
        assert!(limiter.table_growing(0, 50, None).unwrap());
        assert!(!limiter.memory_growing(0, 1, None).unwrap());
        assert_eq!(limiter.refused(), Some(1_001));
        assert_eq!((limiter.peak(), account.bytes()), (1_000, 1_000));
        drop(limiter);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn growth_that_failed_for_want_of_room_is_given_back() {
        let account = Account::default();
        let mut limiter = MemoryLimiter::new(1_000, &account);
        assert!(limiter.memory_growing(100, 1_000, None).unwrap());
        limiter
            .memory_grow_failed(wasmtime::Error::msg("no room"))
            .unwrap();
        assert_eq!(account.bytes(), 0);
        assert!(limiter.memory_growing(100, 1_100, None).unwrap());
    }
}
