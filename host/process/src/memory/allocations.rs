//! Number of allocations of this process, as the program's allocator counts them.

use super::jemalloc;

/// Returns the number of allocations since the start of the process, or `None` if the program has another allocator. A
/// thread tells its last ones a moment later.
pub fn count() -> Option<u64> {
    let is_known = jemalloc::refresh();
    debug_assert!(is_known, "jemalloc knows the call");
    // An allocator that is not used counts nothing.
    Some(jemalloc::n_small()? + jemalloc::n_large()?).filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_of_jemalloc_are_counted() {
        let before = count().unwrap_or_default();
        for _ in 0..100 {
            // Large enough that no thread keeps it for itself.
            allocate(1 << 20);
        }
        let n = count().unwrap_or_default() - before;
        assert!(n >= 100, "{n}");
    }

    /// Allocates this many bytes by jemalloc, which is not the allocator of tests, and frees them.
    #[expect(unsafe_code, reason = "allocators offer it to C only")]
    fn allocate(n_bytes: usize) {
        // SAFETY: a null pointer is not freed, and any other one is freed once.
        unsafe {
            let allocated = tikv_jemalloc_sys::malloc(n_bytes);
            assert!(!allocated.is_null());
            tikv_jemalloc_sys::free(allocated);
        }
    }
}
