//! Room for calls: one slot of the pool for each, and a budget of memory for all of them together.
//!
//! A call takes as much of the budget as its limit `memory` lets it use, and waits if less is left. Calls
//! enter in the order in which they came, so many calls that need little cannot keep out one that needs much.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Unit of the budget, in bytes.
const UNIT: u64 = 1 << 20;

/// Room for the calls of one engine.
pub(super) struct Budget {
    slots: Semaphore,
    /// Number of slots in all.
    all_slots: u64,
    memory: Semaphore,
    /// Number of units in all.
    all: u64,
}

/// Permit of one call, until it is dropped.
pub(super) struct CallPermit<'a> {
    _slot: SemaphorePermit<'a>,
    _memory: SemaphorePermit<'a>,
}

/// Error of a call that would wait for ever.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the call may use {wanted} MiB of memory, and all calls of this process together {all} MiB, which is half of --memory; raise --memory, or lower --limit memory of the resource"
)]
pub(super) struct TooLarge {
    wanted: u64,
    all: u64,
}

impl Budget {
    /// Creates room for `n_calls` at once, which together may use this many bytes.
    pub(super) fn new(n_calls: u32, bytes: u64) -> Self {
        // Nobody has more than this, and a semaphore takes no more at once.
        let all = (bytes / UNIT).clamp(1, u64::from(u32::MAX));
        Self {
            slots: Semaphore::new(n_calls.max(1) as usize),
            all_slots: n_calls.max(1).into(),
            memory: Semaphore::new(usize::try_from(all).unwrap_or(usize::MAX >> 3)),
            all,
        }
    }

    /// Waits until there is room for a call that may use this many bytes.
    pub(super) async fn enter(&self, bytes: u64) -> Result<CallPermit<'_>, TooLarge> {
        let wanted = bytes.div_ceil(UNIT);
        let units = u32::try_from(wanted).ok().filter(|_| wanted <= self.all);
        let units = units.ok_or(TooLarge {
            wanted,
            all: self.all,
        })?;
        let memory = self.memory.acquire_many(units).await;
        let slot = self.slots.acquire().await;
        Ok(CallPermit {
            _memory: memory.expect("the semaphore is never closed"),
            _slot: slot.expect("the semaphore is never closed"),
        })
    }

    /// Returns the slots that are taken, and all of them.
    pub(super) fn slots(&self) -> (u64, u64) {
        let n_free = self.slots.available_permits() as u64;
        (self.all_slots.saturating_sub(n_free), self.all_slots)
    }

    /// Returns the bytes that are taken, and all of them.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let n_free = self.memory.available_permits() as u64;
        let n_taken = self.all.saturating_sub(n_free);
        (n_taken * UNIT, self.all * UNIT)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt as _;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn calls_share_a_budget_of_bytes_and_wait_for_their_turn() {
        let budget = Budget::new(64, 100 * MIB + 1);
        let enter = |mib| budget.enter(mib * MIB).now_or_never();
        let large = enter(60).expect("there is room").unwrap();
        let small = enter(40).expect("there is room").unwrap();
        assert!(enter(1).is_none(), "all 100 MiB are taken");
        drop(small);
        assert!(enter(41).is_none());
        let _next = enter(40).expect("there is room").unwrap();
        assert_eq!(budget.bytes(), (100 * MIB, 100 * MIB));
        assert_eq!(budget.slots(), (2, 64));
        drop(large);
        assert!(enter(60).is_some());
    }

    #[tokio::test]
    async fn a_large_call_is_not_passed_over_by_small_ones() {
        let budget = Budget::new(64, 100 * MIB);
        let first = budget.enter(10 * MIB).await.unwrap();
        let mut large = pin!(budget.enter(100 * MIB));
        assert!(futures::poll!(&mut large).is_pending());
        let mut small = pin!(budget.enter(MIB));
        assert!(futures::poll!(&mut small).is_pending(), "it came later");
        drop(first);
        let large = large.await.unwrap();
        assert!(futures::poll!(&mut small).is_pending());
        drop(large);
        small.await.unwrap();
    }

    #[tokio::test]
    async fn no_more_calls_get_in_than_the_pool_has_slots() {
        let budget = Budget::new(1, 100 * MIB);
        let first = budget.enter(MIB).await.unwrap();
        assert!(budget.enter(MIB).now_or_never().is_none());
        drop(first);
        assert!(budget.enter(MIB).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_call_that_never_had_room_is_told_the_setting() {
        let budget = Budget::new(64, 400 * MIB);
        let refused = budget.enter(640 * MIB).await.err().unwrap();
        assert_eq!(
            refused.to_string(),
            "the call may use 640 MiB of memory, and all calls of this process together 400 MiB, which is half of --memory; raise --memory, or lower --limit memory of the resource"
        );
        assert!(budget.enter(400 * MIB).await.is_ok());
        assert!(budget.enter(u64::MAX).await.is_err());
    }
}
