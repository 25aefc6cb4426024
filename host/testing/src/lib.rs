//! Helpers that unit tests of several crates share, and no program depends on.

pub mod book;
