//! Rows of one group: all so far, and those that are open.

use crate::captures::NONE;
use crate::steps;

#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Row of the parent group, for each row.
    pub(super) parents: Vec<u32>,
    /// Open rows; the innermost is last.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    row: u32,
    /// Number of the element in the page.
    element: usize,
    /// True if the end of the row is not reported, because nothing can lie in it or nothing asks for it. The row
    /// is over as soon as another element begins.
    is_closed: bool,
}

impl Rows {
    /// Begins a row with this element.
    pub(super) fn begin(&mut self, parent: u32, element: usize, is_closed: bool) {
        self.drop_closed(element);
        let row = u32::try_from(self.parents.len()).unwrap_or(NONE);
        self.parents.push(parent);
        self.open.push(Open {
            row,
            element,
            is_closed,
        });
    }

    /// Ends the row of this element. Elements end in the opposite order of their beginnings.
    pub(super) fn end(&mut self, element: usize) {
        self.drop_closed(element);
        if self.open.last().is_some_and(|open| open.element == element) {
            self.open.pop();
        }
    }

    /// Returns the row that begins with this element.
    pub(super) fn of(&self, element: usize) -> Option<u32> {
        self.open
            .last()
            .filter(|open| open.element == element)
            .map(|open| open.row)
    }

    /// Returns the innermost row that this element lies in; an element never lies in its own row.
    pub(super) fn around(&mut self, element: usize) -> Option<u32> {
        self.drop_closed(element);
        self.open
            .iter()
            .rev()
            .inspect(|_| steps::add(1))
            .find(|open| open.element != element)
            .map(|open| open.row)
    }

    fn drop_closed(&mut self, element: usize) {
        while self
            .open
            .last()
            .is_some_and(|open| open.is_closed && open.element != element)
        {
            steps::add(1);
            self.open.pop();
        }
    }
}

/// Record of rows, and of the outside of rows, in which something was captured.
#[derive(Debug, Default)]
pub(super) struct Seen {
    rows: Vec<u64>,
    outside: bool,
}

impl Seen {
    pub(super) fn has(&self, row: u32) -> bool {
        if row == NONE {
            return self.outside;
        }
        let word = self.rows.get(row as usize / 64).copied().unwrap_or(0);
        word >> (row % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, row: u32) {
        if row == NONE {
            self.outside = true;
            return;
        }
        let word = row as usize / 64;
        if word >= self.rows.len() {
            self.rows.resize(word + 1, 0);
        }
        self.rows[word] |= 1 << (row % 64);
    }
}
