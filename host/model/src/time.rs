//! Moments, as records and messages hold them.

/// Milliseconds since 1970.
pub type UnixMillis = u64;
