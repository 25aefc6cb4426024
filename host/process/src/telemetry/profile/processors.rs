//! Profiles of the processor time of this process.
//!
//! A timer interrupts whichever thread runs, a hundred times for each second of processor time, and its stack
//! is recorded. It has the functions of this program, and those of the host below a rule; compiled rules have
//! no names. A thread that waits is not recorded. Without a profile in progress, this costs nothing.
//!
//! The interruption may come anywhere, also inside of an allocation, and walking a stack takes locks of the
//! libraries that allocate and unwind. Stacks are therefore not walked from inside of those libraries. The program's
//! own allocator, jemalloc, is interrupted like all other code. It holds none of those locks, because its own walks for
//! a profile of the heap are inside of the library that unwinds; and recording a stack allocates nothing.

use std::path::Path;
use std::time::SystemTime;

use pprof::{ProfilerGuard, ProfilerGuardBuilder, Report, Symbol};

use super::flame::Flame;
use super::message::{Place, ProfileMessage};
use super::{ProfileError, ProfileForm};

/// Samples for each second of processor time. It is no round number, so that sampling does not run in step
/// with events at round times.
const FREQUENCY: i32 = 99;
/// Libraries inside of which no stack is walked.
const NOT_INSIDE: [&str; 5] = ["libc", "libgcc", "pthread", "vdso", "ld-linux"];

/// A profile in progress; dropping it ends it.
pub(super) struct ProcessorProfile {
    running: ProfilerGuard<'static>,
}

impl ProcessorProfile {
    /// Begins a profile.
    pub(super) fn begin() -> Result<Self, ProfileError> {
        Self::begin_at(FREQUENCY)
    }

    fn begin_at(frequency: i32) -> Result<Self, ProfileError> {
        let running = ProfilerGuardBuilder::default()
            .frequency(frequency)
            .blocklist(&NOT_INSIDE)
            .build();
        match running {
            Ok(running) => Ok(Self { running }),
            Err(pprof::Error::Running) => Err(ProfileError::Busy),
            Err(error) => Err(ProfileError::Failed(error)),
        }
    }

    /// Ends the profile, and writes it.
    pub(super) fn end(self, form: ProfileForm) -> Result<Vec<u8>, ProfileError> {
        let report = self.running.report().build();
        let report = report.map_err(ProfileError::Failed)?;
        // The timer ends before its samples are encoded.
        drop(self);
        Ok(match form {
            ProfileForm::Pprof => encoded(&report),
            ProfileForm::FlameGraph => drawn(&report).into_bytes(),
        })
    }
}

impl std::fmt::Debug for ProcessorProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessorProfile").finish_non_exhaustive()
    }
}

/// Draws a report. Threads are the outermost functions.
fn drawn(report: &Report) -> String {
    let mut flame = Flame::default();
    let mut n_samples = 0;
    for (stack, n_seen) in &report.data {
        let n_seen = u64::try_from(*n_seen).unwrap_or_default();
        // Functions of a thread and those compiled into one another come innermost first.
        let names = stack.frames.iter().flatten().map(|symbol| symbol.name());
        let mut names: Vec<String> = names.collect();
        names.push(stack.thread_name_or_id());
        flame.add(names.iter().rev().map(String::as_str), n_seen);
        n_samples += n_seen;
    }
    let frequency = report.timing.frequency;
    let head = format!(
        "processor time in {:.1} s: {n_samples} samples, {frequency} for each second of it",
        report.timing.duration.as_secs_f64()
    );
    flame.draw(&head, "samples")
}

/// Encodes a report as a message of pprof.
fn encoded(report: &Report) -> Vec<u8> {
    let period = 1_000_000_000 / i64::from(report.timing.frequency);
    let types = [("samples", "count"), ("cpu", "nanoseconds")];
    let mut message = ProfileMessage::new(types, period);
    for (stack, n_seen) in &report.data {
        let places: Vec<Place> = stack.frames.iter().flatten().map(place).collect();
        let n_seen = i64::try_from(*n_seen).unwrap_or(i64::MAX);
        let values = [n_seen, n_seen.saturating_mul(period)];
        message.add(&places, values, Some(&stack.thread_name_or_id()));
    }
    let timing = &report.timing;
    let begun = timing.start_time.duration_since(SystemTime::UNIX_EPOCH);
    message.encode(begun.unwrap_or_default(), timing.duration)
}

fn place(symbol: &Symbol) -> Place {
    let file = symbol.filename.as_deref().map(Path::to_string_lossy);
    Place {
        name: symbol.name(),
        system_name: symbol.sys_name().into_owned(),
        file: file.unwrap_or_default().into_owned(),
        line: symbol.lineno(),
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use prost::Message as _;

    use super::super::format;
    use super::super::message::nanos;
    use super::*;

    /// Spins for a time; the test looks for its name in the profile.
    #[inline(never)]
    fn spins_for_a_profile(time: Duration) -> u64 {
        let begun = Instant::now();
        let mut n = 0_u64;
        while begun.elapsed() < time {
            for _ in 0..10_000 {
                n = black_box(n.wrapping_mul(31).wrapping_add(7));
            }
        }
        n
    }

    // It is one test, because a process has one timer.
    #[test]
    fn a_profile_names_what_ran_and_for_how_long_one_at_a_time() {
        let time = Duration::from_millis(500);
        for _ in 0..2 {
            let profile = ProcessorProfile::begin_at(499).unwrap();
            let second = ProcessorProfile::begin().unwrap_err();
            assert!(matches!(second, ProfileError::Busy), "{second:?}");
            spins_for_a_profile(time);
            let bytes = profile.end(ProfileForm::Pprof).unwrap();
            let profile = format::Profile::decode(bytes.as_slice()).unwrap();

            assert_eq!(profile.string_table[0], "");
            let text = |at: i64| profile.string_table[usize::try_from(at).unwrap()].as_str();
            let types = profile.sample_type.iter();
            let types: Vec<_> = types.map(|t| (text(t.kind), text(t.unit))).collect();
            assert_eq!(types, [("samples", "count"), ("cpu", "nanoseconds")]);
            assert_eq!(profile.period, 1_000_000_000 / 499);
            assert!(profile.duration_nanos >= nanos(time));
            let spinning = profile.sample.iter().filter(|sample| {
                let names = profile.names(sample);
                names
                    .iter()
                    .any(|name| name.contains("spins_for_a_profile"))
            });
            let mut seen = 0;
            for sample in spinning {
                assert_eq!(sample.value[1], sample.value[0] * profile.period);
                assert_eq!(text(sample.label[0].key), "thread");
                // The signal handler does not count as code that ran.
                let innermost = profile.names(sample)[0];
                assert!(!innermost.contains("perf_signal"), "{innermost}");
                seen += sample.value[1];
            }
            // Other tests run at the same time.
            assert!(seen > nanos(time) / 20, "{seen} ns of {time:?}");
        }
    }
}
