//! Figures of the kernel about a process.

use std::fs;
use std::time::{Duration, Instant};

use crawler_tests::{PATIENCE, pass};

use crate::cpu;

/// Largest use of the processor between two looks of a quiet leader, which renews its lease and answers nobody.
const QUIET: Duration = Duration::from_millis(30);
const LOOK: Duration = Duration::from_millis(500);
/// Number of quiet looks in a row; the leader waits for answers of etcd in between.
const N_QUIET: u32 = 4;

/// Returns bytes of memory: now, and at the most so far.
pub(crate) fn memory(pid: u32) -> (u64, u64) {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or_else(|| panic!("{path} has no {name}")) * 1_024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Waits until a process has nothing to do; returns the processor time it has used by then.
pub(crate) fn quiet(pid: u32) -> Duration {
    let begun = Instant::now();
    let (mut before, mut n_quiet) = (cpu::used(pid), 0);
    loop {
        pass(LOOK);
        let now = cpu::used(pid);
        let used = now.saturating_sub(before);
        match used < QUIET {
            true => n_quiet += 1,
            false => n_quiet = 0,
        }
        if n_quiet == N_QUIET {
            return now;
        }
        assert!(
            begun.elapsed() < PATIENCE * 10,
            "the leader never has nothing to do"
        );
        before = now;
    }
}
