//! Settings of the embedded store.

/// Bounds of the embedded store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Bytes by which the log grows before it is replaced by a snapshot.
    pub snapshot_bytes: u64,
    /// Bytes of the latest changes that are kept for watches that begin in the past.
    pub history_bytes: usize,
    /// Number of changes that one watch may lag behind; beyond that, it is told to start over.
    pub n_watch_buffer: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            snapshot_bytes: 16 << 20,
            history_bytes: 8 << 20,
            n_watch_buffer: 4096,
        }
    }
}
