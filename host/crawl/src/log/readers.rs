//! Readers of a log: the position of each, and the number of lines that it has missed.

use std::collections::BTreeMap;

/// Id of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReaderId(u64);

/// Position of a reader.
pub(super) struct Position {
    /// Number below which the reader has read or missed all lines.
    pub(super) next: u64,
    /// Number of the line to stop before. If `None`, the reader follows until the crawl is over.
    pub(super) end: Option<u64>,
    /// Number of lines that were dropped before they were read, since the reader was told so.
    pub(super) n_missed: u64,
}

impl Position {
    /// Returns true if the line of this number is one of those that the reader is still to read.
    pub(super) fn expects(&self, number: u64) -> bool {
        number >= self.next && self.end.is_none_or(|end| number < end)
    }
}

/// Positions of the readers of a log. A reader is removed by whoever has added it.
#[derive(Default)]
pub(super) struct Readers {
    positions: BTreeMap<ReaderId, Position>,
    /// Number of readers that were ever added.
    n_added: u64,
}

impl Readers {
    /// Adds a reader at this position.
    pub(super) fn add(&mut self, position: Position) -> ReaderId {
        let id = ReaderId(self.n_added);
        self.n_added += 1;
        self.positions.insert(id, position);
        id
    }

    pub(super) fn remove(&mut self, id: ReaderId) {
        self.positions.remove(&id);
    }

    pub(super) fn position(&mut self, id: ReaderId) -> Option<&mut Position> {
        self.positions.get_mut(&id)
    }

    /// Moves readers along with lines: those from `first` on have got numbers that are larger by `shift`.
    pub(super) fn shift(&mut self, first: u64, shift: u64) {
        for position in self.positions.values_mut() {
            if position.next >= first {
                position.next += shift;
            }
            position.end = position.end.map(|end| end + shift);
        }
    }

    /// Counts a line that is dropped for lack of room, for all readers that have not read it.
    pub(super) fn count_dropped(&mut self, number: u64) {
        for position in self.positions.values_mut() {
            if position.expects(number) {
                position.next = number + 1;
                position.n_missed += 1;
            }
        }
    }
}
