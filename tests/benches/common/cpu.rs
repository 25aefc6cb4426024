//! Processor time of a process, as the kernel tells it.

use std::fs;
use std::time::Duration;

/// Unit of times in `/proc` on Linux, on every machine.
const TICKS_PER_SECOND: u64 = 100;

/// Returns the time on the processors, in the process and in the kernel for it.
pub(crate) fn used(pid: u32) -> Duration {
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
