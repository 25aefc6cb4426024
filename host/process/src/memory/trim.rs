//! Returns freed memory to the operating system. Without this, jemalloc keeps freed pages for ten seconds, and longer
//! while the process allocates little; glibc keeps some of them for good. All of them would count as used.

use super::jemalloc;

/// Returns free memory: that of the program's allocator, and on Linux that of libraries in C, which use glibc's. It
/// takes some milliseconds.
pub(super) fn trim() {
    let is_known = jemalloc::purge();
    debug_assert!(is_known, "jemalloc knows the call");
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim_libraries();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "allocators offer it to C only")]
fn trim_libraries() {
    // SAFETY: malloc_trim takes any number, locks the heaps itself, and moves nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}
