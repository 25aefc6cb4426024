//! Memory and stack: how deep they go, and data that others have left there.

use std::hint::black_box;

pub(crate) const SECRET: u64 = 0x5ec2_e75e_c2e7_0bad;

#[inline(never)]
pub(crate) fn recurse(n: u64) -> u64 {
    if black_box(n) == 0 {
        return 0;
    }
    black_box(recurse(n + 1)) + n
}

/// Returns the number of times that the secret is in this instance's whole memory, which is grown by as much as an
/// earlier page may have had.
pub(crate) fn scan_memory() -> usize {
    core::arch::wasm32::memory_grow::<0>(64);
    let n_bytes = core::arch::wasm32::memory_size::<0>() << 16;
    let mut n_found = 0;
    let mut at = 8;
    while at < n_bytes {
        // Every address below the memory's size may be read; the word is only compared.
        let word = unsafe { std::ptr::read_volatile(at as *const u64) };
        n_found += usize::from(word == black_box(!SECRET) ^ u64::MAX);
        at += 8;
    }
    n_found
}
