//! Keys with their values, as readers and watches get them.

use bytes::Bytes;

/// Largest number of bytes of one value; larger ones are refused before anything is written.
pub const VALUE_MAX: usize = 256 << 10;

/// Number of a write. 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

/// Id of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(pub u64);

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Full key.
    pub key: String,
    /// Value, as written.
    pub value: Bytes,
    /// Revision of the write that created the key.
    pub created: Revision,
    /// Revision of the last write to the key.
    pub revision: Revision,
}

/// All keys with a prefix at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Entries in the order of their keys.
    pub entries: Vec<Entry>,
    /// Revision of that moment; a watch from here misses nothing.
    pub revision: Revision,
}

/// Event that a watch reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The key was written.
    Put(Entry),
    /// The key was deleted, or its lease ended.
    Delete {
        /// Full key.
        key: String,
        /// Revision of the deletion.
        revision: Revision,
    },
    /// Changes were missed: the reader lists again and compares. The watch then continues with later changes.
    StartOver,
}
