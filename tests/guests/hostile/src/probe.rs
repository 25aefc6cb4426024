//! The world beside a page, as far as a rule can look: order of maps, random numbers, clocks, environment, files, input.

use std::collections::hash_map::{HashMap, RandomState};
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::exports::crawler::rules::rules::RuleError;
use super::{emit, text};

unsafe extern "C" {
    fn getentropy(buffer: *mut u8, n_bytes: usize) -> i32;
}

/// Emits what a rule learns of the world beside its page.
pub(crate) fn probe() -> Result<(), RuleError> {
    let map: HashMap<u32, u32, RandomState> = (0..10).map(|n| (n, n)).collect();
    let order: Vec<u32> = map.keys().copied().collect();
    let random = RandomState::new().build_hasher().finish();
    let mut secure = [0_u8; 8];
    // The C library gives access to `wasi:random/random`, which std does not use.
    let failed = unsafe { getentropy(secure.as_mut_ptr(), secure.len()) };
    assert_eq!(failed, 0);
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let start = Instant::now();
    let passed = start.elapsed().as_nanos();
    let env = std::env::vars().count() + std::env::args().count();
    let nan = f64::NAN.to_bits() ^ (black_box(0.0_f64) / black_box(0.0)).to_bits();
    let files = std::fs::read_dir("/").is_ok() || std::fs::write("x", "x").is_ok();
    let mut line = String::new();
    let stdin = std::io::stdin().read_line(&mut line).unwrap_or(0);
    emit(&format!(
        "{{\"order\":{order:?},\"random\":{random},\"secure\":{secure:?},\"wall\":{wall},\"passed\":{passed},\"env\":{env},\"nan\":{nan},\"files\":{files},\"stdin\":{stdin}}}"
    ))
    .map_err(|e| RuleError::Fatal(text(&e)))
}
