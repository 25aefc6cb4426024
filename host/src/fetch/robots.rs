//! robots.txt: what a site wants left alone, and how slowly it wants to be asked (RFC 9309).

pub use rules::{MAX_BYTES, RuleLine, Rules};

mod pattern;
mod rules;
