//! Issuer of resource ids, which are unique over all masters and all time, and roughly ordered by time.
//!
//! An id is 41 bits of milliseconds, 10 bits of term, 12 bits of sequence. Milliseconds are reserved in blocks
//! by a guarded transaction on one record, so that no two issuers, and no two lives of one, ever issue the same
//! id: if a clock steps back, or a master restarts, the issuer continues from the mark. A new leader reserves
//! anew, so that its ids are larger than those that others have issued meanwhile. The term distinguishes
//! issuers for a person who reads an id; uniqueness does not depend on it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::catalog::{Catalog, encode};
use super::{Guard, Outcome, Revision, StoreError, Txn};
use crawler_model::id::ResourceId;
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;

/// 2025-01-01 in milliseconds since 1970; 41 bits from there reach into 2094.
const FIRST_MS: u64 = 1_735_689_600_000;
const MS_BITS: u32 = 41;
const TERM_BITS: u32 = 10;
const SEQUENCE_BITS: u32 = 12;

/// Length of one reservation: the range that a restart may skip, and the interval between writes of the record.
const BLOCK_MS: u64 = 10_000;

/// Largest number of lost races in a row, more than masters could cause.
const TRIES_MAX: u32 = 20;

/// Issuer of ids. Each process has one, with its own blocks.
pub struct IdIssuer {
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    block: Mutex<Option<Block>>,
}

/// Record of the reservations: no id of a time before `reserved_until` is issued again.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Reservation {
    /// Milliseconds up to which all ids are reserved.
    reserved_until: u64,
    /// Term of the issuer that reserved last.
    term: u64,
}

#[derive(Debug)]
struct Block {
    /// Time of the next id.
    ms: u64,
    sequence: u64,
    /// End of the block, exclusive.
    end: u64,
    term: u64,
    /// Revision of the leadership that the block was reserved under.
    lead: Revision,
}

impl IdIssuer {
    /// Creates an issuer. It reserves nothing until the first id is requested.
    pub fn new(catalog: Catalog, clock: Arc<dyn Clock>) -> Self {
        Self {
            catalog,
            clock,
            block: Mutex::new(None),
        }
    }

    /// Returns an id that was never issued before, larger than all that were issued under an earlier
    /// leadership, or under this one.
    pub async fn next(&self, lead: Revision) -> Result<ResourceId, StoreError> {
        let mut block = self.block.lock().await;
        let now = self.now();
        let present = block.as_mut().filter(|block| block.lead == lead);
        if let Some(issued) = present.and_then(|block| block.take(now)) {
            return Ok(issued);
        }
        let term = block.as_ref().map(|block| block.term);
        let mut reserved = self.reserve(term, lead).await?;
        let issued = reserved.take(reserved.ms);
        *block = Some(reserved);
        Ok(issued.expect("a fresh block has an id at its first millisecond"))
    }

    fn now(&self) -> u64 {
        self.clock.unix_millis().saturating_sub(FIRST_MS)
    }

    /// Reserves a block that nobody else has. `term` is that of this issuer, if it has one already.
    async fn reserve(&self, term: Option<u64>, lead: Revision) -> Result<Block, StoreError> {
        let key = self.catalog.keys().ids();
        let mut backoff = Backoff::new(Duration::from_millis(2), Duration::from_millis(200));
        for _ in 0..TRIES_MAX {
            let reservation = self.catalog.read::<Reservation>(&key).await?;
            let (guard, reserved, last_term) = match reservation {
                Some(reservation) => (
                    Guard::RevisionIs(key.clone(), reservation.revision),
                    reservation.value.reserved_until,
                    Some(reservation.value.term),
                ),
                None => (Guard::Absent(key.clone()), 0, None),
            };
            let ms = self.now().max(reserved);
            let end = ms.saturating_add(BLOCK_MS);
            if end >= 1 << MS_BITS {
                let why = "no ids are left: its time is beyond 2094".to_owned();
                return Err(StoreError::Record { key, why });
            }
            let next_term = last_term.map_or(0, |last| (last + 1) % (1 << TERM_BITS));
            let term = term.unwrap_or(next_term);
            let reservation = Reservation {
                reserved_until: end,
                term,
            };
            let txn = Txn::new()
                .guard(guard)
                .put(key.clone(), encode(&reservation));
            match self.catalog.store().commit(txn).await? {
                Outcome::Done(_) => {
                    return Ok(Block {
                        ms,
                        sequence: 0,
                        end,
                        term,
                        lead,
                    });
                }
                // If the block was reserved although the answer was lost, it stays unused, which does no harm.
                Outcome::Lost(_) | Outcome::Unknown => {}
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
        Err(StoreError::Unavailable {
            why: format!("{TRIES_MAX} reservations of ids were overtaken by others"),
        })
    }
}

impl Block {
    /// Returns the next id: at `now` or, if the clock stands or steps back, after the last one.
    fn take(&mut self, now: u64) -> Option<ResourceId> {
        if now > self.ms {
            (self.ms, self.sequence) = (now, 0);
        } else if self.sequence >= 1 << SEQUENCE_BITS {
            (self.ms, self.sequence) = (self.ms + 1, 0);
        }
        if self.ms >= self.end {
            return None;
        }
        let id = (((self.ms << TERM_BITS) | self.term) << SEQUENCE_BITS) | self.sequence;
        self.sequence += 1;
        Some(ResourceId(id))
    }
}

impl std::fmt::Debug for IdIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdIssuer")
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::embedded::{EmbeddedStore, Settings};
    use crate::keys::Keys;

    const DAY_MS: u64 = 86_400_000;
    const LEAD: Revision = Revision(1);

    /// Clock that shows the time it is set to.
    struct FakeClock(AtomicU64);

    impl FakeClock {
        fn new() -> Arc<Self> {
            Arc::new(Self(AtomicU64::new(FIRST_MS + 1000 * DAY_MS)))
        }

        fn step_back(&self, ms: u64) {
            self.0.fetch_sub(ms, Ordering::Relaxed);
        }

        fn advance(&self, ms: u64) {
            self.0.fetch_add(ms, Ordering::Relaxed);
        }
    }

    impl Clock for FakeClock {
        fn unix_nanos(&self) -> u64 {
            self.0.load(Ordering::Relaxed) * 1_000_000
        }
    }

    fn open(folder: &tempfile::TempDir) -> Catalog {
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        Catalog::new(Arc::new(store), Keys::default())
    }

    #[tokio::test]
    async fn s08_ten_thousand_ids_from_three_masters_all_differ() {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, clock) = (open(&folder), FakeClock::new());
        let masters = (0..3).map(|_| IdIssuer::new(catalog.clone(), clock.clone()));
        let issued = masters.map(|master| async move {
            let mut ids = Vec::new();
            for _ in 0..10_000 {
                ids.push(master.next(LEAD).await.unwrap());
            }
            assert!(ids.is_sorted());
            ids
        });
        let issued = futures::future::join_all(issued).await.concat();
        let different: HashSet<ResourceId> = issued.iter().copied().collect();
        assert_eq!(different.len(), 30_000);
        assert!(issued.iter().all(|id| id.0 < 1 << 63));
    }

    #[tokio::test]
    async fn s08_ids_are_ordered_by_time_over_masters() {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, clock) = (open(&folder), FakeClock::new());
        let masters = [0, 1].map(|_| IdIssuer::new(catalog.clone(), clock.clone()));
        let mut last = ResourceId(0);
        for n in 0..10 {
            let id = masters[n % 2].next(LEAD).await.unwrap();
            assert!(id > last, "{id} after {last}");
            last = id;
            // This is more than the masters' blocks together, which may lie ahead of the clock.
            clock.advance(3 * BLOCK_MS);
        }
    }

    #[tokio::test]
    async fn s08_ids_grow_with_each_lead_whoever_has_it_and_however_the_clock_stands() {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, clock) = (open(&folder), FakeClock::new());
        let masters = [0, 1].map(|_| IdIssuer::new(catalog.clone(), clock.clone()));
        let mut last = ResourceId(0);
        for lead in 0..10 {
            for _ in 0..3 {
                let id = masters[lead % 2].next(Revision(lead as u64)).await.unwrap();
                assert!(id > last, "lead {lead}: {id} after {last}");
                last = id;
            }
        }
    }

    #[tokio::test]
    async fn f18_ids_grow_when_the_clock_steps_back_a_day_and_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let clock = FakeClock::new();
        let mut last = ResourceId(0);
        for life in 0..5 {
            let catalog = open(&folder);
            let issuer = IdIssuer::new(catalog, clock.clone());
            for n in 0..10_000 {
                let id = issuer.next(LEAD).await.unwrap();
                assert!(id > last, "life {life}, id {n}: {id} after {last}");
                last = id;
                if n == 5000 {
                    clock.step_back(DAY_MS);
                }
            }
            clock.step_back(DAY_MS);
        }
    }

    #[tokio::test]
    async fn f18_a_full_sequence_goes_on_in_the_next_millisecond() {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, clock) = (open(&folder), FakeClock::new());
        let issuer = IdIssuer::new(catalog, clock);
        let mut ids = Vec::new();
        for _ in 0..(1 << SEQUENCE_BITS) + 1 {
            ids.push(issuer.next(LEAD).await.unwrap().0);
        }
        let ms = |id: u64| id >> (TERM_BITS + SEQUENCE_BITS);
        assert_eq!(ms(ids[0]), ms(ids[(1 << SEQUENCE_BITS) - 1]));
        assert_eq!(ms(ids[0]) + 1, ms(ids[1 << SEQUENCE_BITS]));
    }

    #[tokio::test]
    async fn a_clock_beyond_the_last_id_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let clock = FakeClock::new();
        clock.advance(1 << MS_BITS);
        let error = IdIssuer::new(open(&folder), clock)
            .next(LEAD)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("no ids are left"), "{error}");
    }
}
