//! Cost of a process from its start to its end: time, processor time and memory, as the kernel counts them.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crawler_tests::process::Process;
use crawler_tests::{PATIENCE, pass};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Time after which a crawl that has not ended is ended.
const DEADLINE: Duration = Duration::from_secs(2 * 3_600);
/// Time between two looks at the memory. The kernel keeps the peak, so only growth after the last look is lost.
const LOOK: Duration = Duration::from_millis(50);
/// Unit of times in `/proc` on Linux, on every machine.
const TICKS_PER_SECOND: u64 = 100;

/// Cost of one crawl.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Time from the start of the process to its end.
    pub(crate) wall: Duration,
    /// Time on the processors, in the process, in the kernel for it, and in processes that it started and waited for.
    pub(crate) processors: Duration,
    /// Largest number of bytes that the process had in memory.
    pub(crate) most_memory: u64,
}

/// Runs a command to its end, which must be a good one. Returns why not if it is not.
pub(crate) fn run(command: &mut Command) -> Result<Cost, String> {
    let began = Instant::now();
    let mut process = Process::start(command);
    let pid = process.id();
    let (wall, most_memory) = std::thread::scope(|scope| {
        let most_memory = scope.spawn(|| watch(&process, began));
        wait(pid);
        let wall = began.elapsed();
        (wall, most_memory.join().expect("a look does not panic"))
    });
    // It has ended and was not waited for, so the kernel still has its times.
    let processors = processor_time(pid);
    let ended = process.wait(PATIENCE);
    match ended.code {
        Some(0) => Ok(Cost {
            wall,
            processors,
            most_memory,
        }),
        code => Err(format!("it ended with {code:?}\n{}", ended.stderr)),
    }
}

/// Waits for the end of a process without taking it away.
fn wait(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.expect("it is an id of a process");
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let waited = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options));
    waited.expect("a child can be waited for");
}

/// Returns the peak of the memory of a process when it has ended, and ends it at the deadline.
fn watch(process: &Process, began: Instant) -> u64 {
    let mut most = 0;
    // A process that has ended has no memory any more.
    while let Some(peak) = peak_memory(process.id()) {
        most = peak.max(most);
        if began.elapsed() > DEADLINE {
            process.terminate();
        }
        pass(LOOK);
    }
    most
}

fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1_024)
}

/// Returns the time on the processors of a process and of those that it has waited for.
fn processor_time(pid: u32) -> Duration {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // The name of the program, in parentheses, may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let fields = fields.split_whitespace().skip(11).take(4);
    let ticks: Option<Vec<u64>> = fields.map(|field| field.parse().ok()).collect();
    let ticks = ticks.filter(|ticks| ticks.len() == 4);
    let ticks = ticks.unwrap_or_else(|| panic!("{path} has no times: {stat}"));
    Duration::from_millis(ticks.iter().sum::<u64>() * 1_000 / TICKS_PER_SECOND)
}
