//! The setup of wasmtime. It is the same in the process that compiles and in the one that runs, because code
//! compiled under one setup is refused under another.

use std::num::NonZeroUsize;

use wasmtime::{
    Config, InstanceAllocationStrategy, PoolingAllocationConfig, WasmBacktraceDetails, WasmFeatures,
};

/// Core instances that one component may have: adapters and shims count, and a Python component has 38.
pub(crate) const CORE_INSTANCES_PER_COMPONENT: u32 = 64;
/// Memories that one component may have: JavaScript toolchains need three.
pub(crate) const MEMORIES_PER_COMPONENT: u32 = 4;
/// Tables that one component may have.
pub(crate) const TABLES_PER_COMPONENT: u32 = 8;
/// Elements of one table: Python needs 6 000.
const TABLE_ELEMENTS: usize = 20_000;
/// Address space that is set aside for one memory. The limiter of a call bounds what the call may use.
const MEMORY_MAX: usize = 1 << 30;
/// Bytes of a memory that stay mapped between two calls of one slot: this costs a little clearing and saves
/// page faults.
const KEEP_RESIDENT: usize = 4 << 20;
/// Bytes of a table that stay mapped. Giving pages back stops all threads for a moment, for each table.
const KEEP_RESIDENT_TABLE: usize = 64 << 10;
const WASM_STACK: usize = 512 << 10;
const ASYNC_STACK: usize = 2 << 20;
/// Number of frames of a backtrace.
const N_FRAMES: NonZeroUsize = NonZeroUsize::new(20).expect("twenty is not zero");

/// Placement of the memories of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryMode {
    /// Address space is set aside for each memory, so that compiled code needs no bounds checks.
    Reserved,
    /// Address space is short: memories grow by moving, and compiled code checks bounds.
    Moving,
}

impl MemoryMode {
    pub(crate) const ALL: [MemoryMode; 2] = [MemoryMode::Reserved, MemoryMode::Moving];

    /// Returns the name that the compiling process is given.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            MemoryMode::Reserved => "reserved",
            MemoryMode::Moving => "moving",
        }
    }
}

/// Returns the settings that decide what compiled code looks like and what it may do.
pub(crate) fn config(memory_mode: MemoryMode) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .concurrency_support(false)
        .cranelift_nan_canonicalization(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(ASYNC_STACK)
        .wasm_backtrace_max_frames(Some(N_FRAMES))
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .memory_init_cow(true)
        .shared_memory(false)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        .wasm_features(WasmFeatures::THREADS, false);
    if memory_mode == MemoryMode::Moving {
        config
            .memory_may_move(true)
            .memory_reservation(0)
            .memory_reservation_for_growth(1 << 20)
            .memory_guard_size(64 << 10);
    }
    config
}

/// Divisor of the memory that calls may use: the quotient is the share that memories of finished calls may
/// keep.
const WARM_SHARE: u64 = 8;

/// Returns a pool in which `n` components have room at the same time, whatever they are made of, and whose
/// calls may use `call_memory` bytes together.
pub(crate) fn pool(n: u32, call_memory: u64) -> InstanceAllocationStrategy {
    let mut pool = PoolingAllocationConfig::new();
    // `pagemap_scan` is off: it passes over pages that were swapped out, so that a call could see what an
    // earlier one wrote there.
    pool.total_component_instances(n)
        .total_stacks(n)
        .total_core_instances(n.saturating_mul(CORE_INSTANCES_PER_COMPONENT))
        .total_memories(n.saturating_mul(MEMORIES_PER_COMPONENT))
        .total_tables(n.saturating_mul(TABLES_PER_COMPONENT))
        .max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT)
        .max_memories_per_component(MEMORIES_PER_COMPONENT)
        .max_tables_per_component(TABLES_PER_COMPONENT)
        .max_memories_per_module(1)
        .max_tables_per_module(TABLES_PER_COMPONENT)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(MEMORY_MAX)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT_TABLE)
        .max_unused_warm_slots(n_warm(n, call_memory));
    InstanceAllocationStrategy::Pooling(pool)
}

/// Returns the number of memories of finished calls that the pool keeps for the next ones.
fn n_warm(n: u32, call_memory: u64) -> u32 {
    let n_warm = call_memory / WARM_SHARE / KEEP_RESIDENT as u64;
    u32::try_from(n_warm).unwrap_or(u32::MAX).clamp(1, n.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_memories_are_a_part_of_what_calls_may_use() {
        for (n, call_memory, expected) in [
            (64, 4 << 30, 64),
            (64, 512 << 20, 16),
            (64, 64 << 20, 2),
            (64, 0, 1),
            (1, 4 << 30, 1),
        ] {
            assert_eq!(n_warm(n, call_memory), expected, "{n} {call_memory}");
        }
    }
}
