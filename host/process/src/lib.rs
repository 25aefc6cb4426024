//! Parts that every process of the crawler has: clock, rights, tasks, retries, rates, memory, stages and log.
//!
//! Nothing here knows what a crawl is. The modules do not depend on each other, except that the log tells its
//! lines' time by the clock, and that the memory is made free by a task.

pub mod clock;
pub mod confine;
pub mod limiter;
pub mod memory;
pub mod retry;
pub mod stage;
pub mod task;
pub mod telemetry;
