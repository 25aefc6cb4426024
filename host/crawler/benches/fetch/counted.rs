//! The system's allocator, with a count of allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static N: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTED: Counted = Counted;

struct Counted;

#[expect(unsafe_code, reason = "an allocator can be written in no other way")]
// SAFETY: all is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the number of allocations since the process began.
pub(crate) fn n_allocations() -> u64 {
    N.load(Ordering::Relaxed)
}
