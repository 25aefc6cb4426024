//! Readings of one page. They stay as long as the page does, so that structs may borrow from them.

use std::any::TypeId;
use std::cell::OnceCell;
use std::rc::Rc;

use super::reading::Reading;
use crate::Result;

/// Readings by the types they were made for: a list that only grows, and has a handful of entries at most.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    first: OnceCell<Box<Entry>>,
}

#[derive(Debug)]
struct Entry {
    id: TypeId,
    reading: Rc<Reading>,
    next: OnceCell<Box<Entry>>,
}

impl Readings {
    /// Returns the reading for this type, and makes it at the first call.
    pub(super) fn get_or_read(
        &self,
        id: TypeId,
        read: impl FnOnce() -> Result<Reading>,
    ) -> Result<&Rc<Reading>> {
        let mut end = &self.first;
        while let Some(entry) = end.get() {
            if entry.id == id {
                return Ok(&entry.reading);
            }
            end = &entry.next;
        }
        let reading = Rc::new(read()?);
        let next = OnceCell::new();
        let entry = end.get_or_init(|| Box::new(Entry { id, reading, next }));
        Ok(&entry.reading)
    }
}
