//! Figures of the kernel about a process.

use std::fs;
use std::time::{Duration, Instant};

use crawler_tests::{PATIENCE, pass};

/// Unit of times in `/proc` on Linux, on every machine.
const TICKS_PER_SECOND: u64 = 100;
/// Largest use of the processor, in ticks, of a quiet leader, which renews its lease and answers nobody.
const QUIET_TICKS: u64 = 3;
const LOOK: Duration = Duration::from_millis(500);
/// Number of quiet looks in a row; the leader waits for answers of etcd in between.
const N_QUIET: u32 = 4;

/// Returns the time on the processors, in the process and in the kernel for it.
pub(crate) fn cpu(pid: u32) -> Duration {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // The name of the program, in parentheses, may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|n| n.parse::<u64>().ok());
    let ticks = ticks().zip(ticks()).map(|(user, system)| user + system);
    let ticks = ticks.unwrap_or_else(|| panic!("{path} has no times: {stat}"));
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}

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
    let (mut before, mut n_quiet) = (cpu(pid), 0);
    loop {
        pass(LOOK);
        let now = cpu(pid);
        let used = now.saturating_sub(before);
        match used.as_millis() < u128::from(QUIET_TICKS * 1_000 / TICKS_PER_SECOND) {
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
