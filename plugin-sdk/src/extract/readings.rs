//! All that was read of one page. What is here stays as long as the page does, so that structs may borrow from it.

use std::any::TypeId;
use std::cell::OnceCell;
use std::rc::Rc;

use super::reading::Reading;
use crate::Result;

/// By what they were read for: a list that only grows, and that has a handful at most.
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
    /// What was read for this; it is read now unless it was before.
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
