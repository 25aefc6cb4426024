//! Parts that every process of the crawler has: clock, rights, tasks, retries, spans of time, rates, memory, stages,
//! counts, traces and log.
//!
//! Nothing here knows what a crawl is. The modules do not depend on each other, except that the log tells its
//! lines' time by the clock, that the memory is made free by a task,
//! that it is counted how often a crawl is put back, that spans are counted, that stages are spans of a trace, and that
//! a profile asks the allocator, whose calls are those of the memory.

pub mod clock;
pub mod confine;
pub mod doubling_span;
pub mod limiter;
pub mod memory;
pub mod metrics;
pub mod retry;
pub mod stage;
pub mod task;
pub mod telemetry;
pub mod traces;
