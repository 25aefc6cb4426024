//! Slots of the file of a cache: which piece is in which of them, and which piece goes for a new one.
//!
//! Pieces go in turn, but one that was read since the last turn stays for another one (the algorithm CLOCK). Reads soon
//! after a piece was fetched do not count: a scan reads a piece block by block, and never again. So it does not displace
//! pieces that are read again and again.
//!
//! A slot that is being written belongs to the writer: it is not found, and it is not given to another piece.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::PIECE_BYTES;

/// Part of all slots, as a divisor: a read that comes before so many were claimed after a piece is soon.
const SOON: usize = 8;

/// Slots of a file.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Largest number of slots.
    max: usize,
    /// Slots that were ever used, by their numbers.
    all: Vec<Slot>,
    /// Numbers of slots that were used and are free again.
    free: Vec<usize>,
    /// Number of the slot whose turn it is next.
    hand: usize,
    /// Number of slots that were claimed since the beginning.
    n_claims: usize,
    /// Tables of which pieces are cached, by their names.
    tables: HashMap<Arc<str>, Table>,
}

#[derive(Debug)]
enum Slot {
    /// Slot that is free, or that is being written.
    Empty,
    Piece {
        table: Arc<str>,
        number: u64,
        checksum: u32,
        /// Number of claims when the piece was kept.
        kept_at: usize,
        /// True if the piece was read since the last turn, and not only soon after it was kept.
        is_recent: bool,
    },
}

#[derive(Debug)]
struct Table {
    n_bytes: u64,
    /// Slots of the pieces, by the numbers of the pieces.
    slots: BTreeMap<u64, usize>,
}

/// A piece that was found, and its place.
#[derive(Debug)]
pub(super) struct Found {
    /// Number of the piece in its table.
    pub(super) number: u64,
    pub(super) slot: usize,
    pub(super) checksum: u32,
    pub(super) n_bytes: usize,
}

impl Slots {
    /// Creates slots that are all free.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    /// Returns the size of a table in bytes and those of its pieces with these numbers that are there. They count as
    /// read, unless they were kept a moment ago. `None` if no piece of the table is there. The range must not be reversed.
    pub(super) fn find(&mut self, table: &str, numbers: Range<u64>) -> Option<(u64, Vec<Found>)> {
        let soon = self.max / SOON;
        let table = self.tables.get(table)?;
        let mut all_found = Vec::new();
        for (&number, &slot) in table.slots.range(numbers) {
            if let Slot::Piece {
                checksum,
                kept_at,
                is_recent,
                ..
            } = &mut self.all[slot]
            {
                *is_recent |= self.n_claims - *kept_at > soon;
                let n_bytes = table.n_bytes.saturating_sub(number * PIECE_BYTES);
                all_found.push(Found {
                    number,
                    slot,
                    checksum: *checksum,
                    n_bytes: n_bytes.min(PIECE_BYTES) as usize,
                });
            }
        }
        Some((table.n_bytes, all_found))
    }

    /// Returns a slot for a new piece, which belongs to the caller until it is given to [`keep`](Self::keep) or
    /// [`give_back`](Self::give_back). `None` if the piece is there already, or all slots are being written.
    pub(super) fn claim(&mut self, table: &str, number: u64) -> Option<usize> {
        let of_table = self.tables.get(table);
        if of_table.is_some_and(|of_table| of_table.slots.contains_key(&number)) {
            return None;
        }
        self.n_claims += 1;
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let n_slots = self.all.len();
        if n_slots < self.max {
            self.all.push(Slot::Empty);
            return Some(n_slots);
        }
        // After one round, no piece counts as recent.
        for _ in 0..2 * n_slots {
            let slot = self.hand;
            self.hand = (slot + 1) % n_slots;
            let stays = match &mut self.all[slot] {
                Slot::Piece { is_recent, .. } => std::mem::take(is_recent),
                Slot::Empty => true,
            };
            if !stays {
                self.clear(slot);
                return Some(slot);
            }
        }
        None
    }

    /// Records that a slot has a piece of a table, which is given with its size.
    pub(super) fn keep(
        &mut self,
        slot: usize,
        (table, table_bytes): (&str, u64),
        number: u64,
        checksum: u32,
    ) {
        // All slots of a table share its name.
        let known = self.tables.get_key_value(table);
        let table = known.map_or_else(|| Arc::from(table), |(name, _)| Arc::clone(name));
        let entry = self.tables.entry(Arc::clone(&table));
        let of_table = entry.or_insert_with(|| Table {
            n_bytes: table_bytes,
            slots: BTreeMap::new(),
        });
        // Another task may have fetched the same piece meanwhile.
        if of_table.slots.contains_key(&number) {
            self.free.push(slot);
            return;
        }
        of_table.slots.insert(number, slot);
        self.all[slot] = Slot::Piece {
            table,
            number,
            checksum,
            kept_at: self.n_claims,
            is_recent: false,
        };
    }

    /// Frees a slot that could not be written.
    pub(super) fn give_back(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// Frees the slot of a piece whose bytes were wrong, unless the slot has another piece by now.
    pub(super) fn discard(&mut self, table: &str, found: &Found) {
        let of_table = self.tables.get(table);
        let slot = of_table.and_then(|of_table| of_table.slots.get(&found.number));
        if slot == Some(&found.slot) {
            self.clear(found.slot);
            self.free.push(found.slot);
        }
    }

    /// Frees all slots of a table.
    pub(super) fn forget(&mut self, table: &str) {
        let Some(table) = self.tables.remove(table) else {
            return;
        };
        for slot in table.slots.into_values() {
            self.all[slot] = Slot::Empty;
            self.free.push(slot);
        }
    }

    /// Empties a slot that has a piece.
    fn clear(&mut self, slot: usize) {
        let cleared = std::mem::replace(&mut self.all[slot], Slot::Empty);
        let Slot::Piece { table, number, .. } = cleared else {
            return;
        };
        let Some(of_table) = self.tables.get_mut(&table) else {
            return;
        };
        of_table.slots.remove(&number);
        if of_table.slots.is_empty() {
            self.tables.remove(&table);
        }
    }
}
