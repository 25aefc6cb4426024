//! Meter that decides when to look at the clock: after a fixed amount of work, since a look costs as much as a
//! small tag.

use std::time::Duration;

use super::ExtractError;
use crate::clock::Clock;
use crate::steps;

/// Steps between two looks. A step is one byte read, or one name compared.
const UNCLOCKED: usize = 64 << 10;
/// Bytes of the page between two looks.
const PIECE: usize = 4 << 10;

/// Counts work, and remembers when time is used up.
pub(super) struct Meter {
    clock: Clock,
    n_steps: usize,
    /// Position in the page at which the clock is looked at next.
    next: usize,
    too_slow: Option<ExtractError>,
}

impl Meter {
    pub(super) fn new(deadline: Duration) -> Self {
        Self {
            clock: Clock::new(deadline),
            n_steps: 0,
            next: 0,
            too_slow: None,
        }
    }

    pub(super) fn add(&mut self, n_steps: usize) {
        steps::add(n_steps);
        self.n_steps += n_steps;
        if self.n_steps > UNCLOCKED {
            self.n_steps = 0;
            self.look();
        }
    }

    /// Records that the page is read up to here.
    pub(super) fn reach(&mut self, at: usize) {
        if at >= self.next {
            self.next = at + PIECE;
            self.look();
        }
    }

    pub(super) fn look(&mut self) {
        if self.too_slow.is_none() && self.clock.is_over() {
            let deadline = self.clock.deadline;
            self.too_slow = Some(ExtractError::TooSlow { deadline });
        }
    }

    /// Returns true if time is used up. It stays so.
    pub(super) fn is_over(&self) -> bool {
        self.too_slow.is_some()
    }

    pub(super) fn into_result(self) -> Result<(), ExtractError> {
        self.too_slow.map_or(Ok(()), Err)
    }
}
