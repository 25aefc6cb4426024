//! Returns freed memory to the operating system. Without this, glibc keeps the memory of large bodies in its
//! heaps, and memory that nobody uses would count as used for as long as the process runs.

/// Returns free memory. It takes some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc offers it to C only")]
pub(super) fn trim() {
    // SAFETY: malloc_trim takes any number, locks the heaps itself, and moves nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: other allocators give free memory back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn trim() {}
