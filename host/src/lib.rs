//! A crawler whose crawl rules are WebAssembly components.

pub mod clock;
pub mod model;
pub mod retry;
pub mod task;
pub mod telemetry;
