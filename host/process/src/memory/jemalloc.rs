//! Calls of the program's allocator, jemalloc: each is a function, so that no other name than the right one reaches it.
//!
//! A call takes a value of one size only, and refuses all others.

#![expect(unsafe_code, reason = "allocators offer it to C only")]

use std::ffi::CStr;
use std::ptr::null_mut;

/// Gives the free pages of all arenas back to the operating system: 4096 is `MALLCTL_ARENAS_ALL`. Returns false if the
/// allocator refuses it.
pub(crate) fn purge() -> bool {
    // SAFETY: the action gives back pages that nobody uses.
    unsafe { act(c"arena.4096.purge") }
}

/// Has the numbers that are read be those of now. Returns false if the allocator refuses it.
pub(crate) fn refresh() -> bool {
    // SAFETY: the value is a number of 64 bits, and says nothing.
    unsafe { write(c"epoch", 1_u64) }
}

/// Returns the number of small allocations of all arenas so far. Returns `None` if the allocator does not tell it.
pub(crate) fn n_small() -> Option<u64> {
    // SAFETY: the value is a number of 64 bits.
    unsafe { read(c"stats.arenas.4096.small.nrequests") }
}

/// Returns the number of large allocations of all arenas so far. Returns `None` if the allocator does not tell it.
pub(crate) fn n_large() -> Option<u64> {
    // SAFETY: the value is a number of 64 bits.
    unsafe { read(c"stats.arenas.4096.large.nrequests") }
}

/// Forgets the samples so far. Returns false if the allocator refuses it.
pub(crate) fn forget_samples() -> bool {
    // SAFETY: the action forgets samples, and touches no memory that is in use.
    unsafe { act(c"prof.reset") }
}

/// Lets the allocator take samples, or lets it take none. Returns false if it refuses that.
pub(crate) fn take_samples(is_on: bool) -> bool {
    // SAFETY: the value is a switch.
    unsafe { write(c"prof.active", is_on) }
}

/// Writes the samples of memory in use into the file at this path, which the allocator reads during the call only. Returns
/// false if it refuses that.
#[cfg(target_os = "linux")]
pub(crate) fn write_samples(path: &CStr) -> bool {
    // SAFETY: the value is the address of a text that ends with a zero and lives longer than the call.
    unsafe { write(c"prof.dump", path.as_ptr()) }
}

/// Reads a number. Returns `None` if the allocator does not tell it.
///
/// # Safety
///
/// The name is that of a number of 64 bits.
unsafe fn read(name: &CStr) -> Option<u64> {
    let (mut value, mut length) = (0_u64, size_of::<u64>());
    // SAFETY: the name ends with a zero, and the call writes one number of that size, unless it fails.
    let code = unsafe {
        tikv_jemalloc_sys::mallctl(
            name.as_ptr(),
            (&raw mut value).cast(),
            &mut length,
            null_mut(),
            0,
        )
    };
    (code == 0).then_some(value)
}

/// Does what needs no value. Returns false if the allocator refuses it.
///
/// # Safety
///
/// The name is that of an action which leaves memory that is in use as it is. There are others: `arena.<i>.destroy` frees it.
unsafe fn act(name: &CStr) -> bool {
    // SAFETY: the name ends with a zero, and this call neither reads nor writes a value.
    let code =
        unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    code == 0
}

/// Writes a value. Returns false if the allocator refuses it.
///
/// # Safety
///
/// The name is that of a value of this type: the allocator compares sizes only, and may read a number as an address.
unsafe fn write<T: Copy>(name: &CStr, mut value: T) -> bool {
    // SAFETY: the name ends with a zero, and the call reads one value of that size, which lives longer; it refuses a
    // value of another size.
    let code = unsafe {
        tikv_jemalloc_sys::mallctl(
            name.as_ptr(),
            null_mut(),
            null_mut(),
            (&raw mut value).cast(),
            size_of::<T>(),
        )
    };
    code == 0
}
