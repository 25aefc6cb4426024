//! Calls of the program's allocator, jemalloc: named values that are read or written, and named actions.
//!
//! A call takes a value of one size only, and refuses all others.

use std::ffi::CStr;
use std::ptr::null_mut;

/// Reads a number. Returns `None` if the allocator does not tell it.
#[expect(unsafe_code, reason = "allocators offer it to C only")]
pub(crate) fn read(name: &CStr) -> Option<u64> {
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
#[expect(unsafe_code, reason = "allocators offer it to C only")]
pub(crate) fn act(name: &CStr) -> bool {
    // SAFETY: the name ends with a zero, and this call neither reads nor writes a value.
    let code =
        unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    code == 0
}

/// Writes a number. Returns false if the allocator refuses it.
pub(crate) fn write_number(name: &CStr, number: u64) -> bool {
    write(name, number)
}

/// Writes a switch. Returns false if the allocator refuses it.
pub(crate) fn write_switch(name: &CStr, is_on: bool) -> bool {
    write(name, is_on)
}

/// Writes a text, which the allocator reads during the call only. Returns false if it refuses the text.
#[cfg(target_os = "linux")]
pub(crate) fn write_text(name: &CStr, text: &CStr) -> bool {
    write(name, text.as_ptr())
}

/// Writes a value of a type that the call may have: the functions above choose it.
#[expect(unsafe_code, reason = "allocators offer it to C only")]
fn write<T: Copy>(name: &CStr, mut value: T) -> bool {
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
