//! Number of allocations of this process, as the program's allocator counts them.

use std::ffi::CStr;

use super::jemalloc;

/// Name of the call of jemalloc after which its numbers are those of now.
const REFRESH: &CStr = c"epoch";
/// Names of the numbers of small and of large allocations of all arenas: 4096 is `MALLCTL_ARENAS_ALL`.
const COUNTS: [&CStr; 2] = [
    c"stats.arenas.4096.small.nrequests",
    c"stats.arenas.4096.large.nrequests",
];

/// Returns the number of allocations since the start of the process, or `None` if the program has another allocator. A
/// thread tells its last ones a moment later.
pub fn count() -> Option<u64> {
    let is_known = jemalloc::write_number(REFRESH, 1);
    debug_assert!(is_known, "jemalloc knows the call");
    let [small, large] = COUNTS.map(jemalloc::read);
    // An allocator that is not used counts nothing.
    Some(small? + large?).filter(|n| *n > 0)
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
