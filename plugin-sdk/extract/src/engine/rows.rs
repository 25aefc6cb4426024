//! The rows of one group: all so far, and those that are open.

use crate::captures::NONE;
use crate::steps;

#[derive(Debug, Default)]
pub(super) struct Rows {
    /// For each row that of the parent group.
    pub(super) parents: Vec<u32>,
    /// The innermost last.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    row: u32,
    /// Of the elements of the page, which one.
    element: usize,
    /// Nobody will say when it ends, because nothing can lie in it or nothing asks. It is over as soon as
    /// another element begins.
    is_closed: bool,
}

impl Rows {
    /// A row that begins with this element.
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

    /// Elements end in the opposite order of their beginnings.
    pub(super) fn end(&mut self, element: usize) {
        self.drop_closed(element);
        if self.open.last().is_some_and(|open| open.element == element) {
            self.open.pop();
        }
    }

    /// The row that this element is.
    pub(super) fn of(&self, element: usize) -> Option<u32> {
        self.open
            .last()
            .filter(|open| open.element == element)
            .map(|open| open.row)
    }

    /// The innermost row that this element lies in; it never lies in itself.
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

/// For each row, and for what is outside of rows, whether something was there.
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
