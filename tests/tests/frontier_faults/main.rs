//! Faults of the storage below a frontier: read-only, full, gone, damaged, another's, slow, out of order. Each is
//! a named state that is seen from outside, nothing is lost by it, and if the cause goes away the crawl goes on by
//! itself.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stdout,
    reason = "the states that were seen are part of the result"
)]

mod owner;
mod reads;
mod root;
mod shard;
mod store;
