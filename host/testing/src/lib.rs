//! Helpers that unit tests of several crates share, and no program depends on.

pub mod book;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(feature = "s3")]
pub mod s3;
pub mod schema;
