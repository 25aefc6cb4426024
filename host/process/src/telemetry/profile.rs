//! Profiles of the processor time of this process, in the format of pprof or as a flame graph.
//!
//! A timer interrupts whichever thread runs, a hundred times for each second of processor time, and its stack
//! is recorded. It has the functions of this program, and those of the host below a rule; compiled rules have
//! no names. A thread that waits is not recorded. Without a profile in progress, this costs nothing.
//!
//! The interruption may come anywhere, also inside of an allocation, and walking a stack takes locks of the
//! libraries that allocate and unwind. Stacks are therefore not walked from inside of those libraries. The program's
//! own allocator, jemalloc, is interrupted like all other code: it holds none of those locks, and
//! recording a stack allocates nothing.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use pprof::{ProfilerGuard, ProfilerGuardBuilder, Report};
use prost::Message as _;

mod flame;
mod format;

use flame::Flame;

/// Samples for each second of processor time. It is no round number, so that sampling does not run in step
/// with events at round times.
const FREQUENCY: i32 = 99;
/// Libraries inside of which no stack is walked.
const NOT_INSIDE: [&str; 5] = ["libc", "libgcc", "pthread", "vdso", "ld-linux"];

/// Reason why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A profile is in progress: a process has one timer.
    #[error("a profile is being taken already")]
    Busy,
    /// The system does not allow it.
    #[error("cannot take a profile")]
    Failed(#[source] pprof::Error),
}

/// Form in which a profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileForm {
    /// Message of pprof, which `go tool pprof` reads.
    Pprof,
    /// Flame graph: a picture in SVG.
    FlameGraph,
}

/// A profile in progress; dropping it ends it.
pub struct Profile {
    running: ProfilerGuard<'static>,
}

impl Profile {
    /// Begins a profile.
    pub fn begin() -> Result<Self, ProfileError> {
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

    /// Ends the profile, and writes it. The first call looks up names, which takes seconds: call it on a thread that
    /// may block.
    pub fn end(self, form: ProfileForm) -> Result<Vec<u8>, ProfileError> {
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

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").finish_non_exhaustive()
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
    flame.draw(&format!(
        "processor time in {:.1} s: {n_samples} samples, {frequency} for each second of it",
        report.timing.duration.as_secs_f64()
    ))
}

/// Encodes a report as a message of pprof. Each place has one function and one location.
fn encoded(report: &Report) -> Vec<u8> {
    let mut strings = Strings::default();
    let period = 1_000_000_000 / i64::from(report.timing.frequency);
    let value_type = |strings: &mut Strings, kind: &str, unit: &str| format::ValueType {
        kind: strings.index(kind),
        unit: strings.index(unit),
    };
    let thread = strings.index("thread");
    let mut profile = format::Profile {
        sample_type: vec![
            value_type(&mut strings, "samples", "count"),
            value_type(&mut strings, "cpu", "nanoseconds"),
        ],
        time_nanos: nanos(
            report
                .timing
                .start_time
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default(),
        ),
        duration_nanos: nanos(report.timing.duration),
        period_type: Some(value_type(&mut strings, "cpu", "nanoseconds")),
        period,
        ..format::Profile::default()
    };
    let mut places: HashMap<(String, String, u32), u64> = HashMap::new();
    for (stack, n_seen) in &report.data {
        let mut location_id = Vec::new();
        for symbol in stack.frames.iter().flatten() {
            let file = symbol.filename.as_deref().map(Path::to_string_lossy);
            let file = file.unwrap_or_default().into_owned();
            let place = (symbol.name(), file, symbol.lineno());
            let next = places.len() as u64 + 1;
            let id = *places
                .entry(place)
                .or_insert_with_key(|(name, file, line)| {
                    let line = i64::from(*line);
                    profile.function.push(format::Function {
                        id: next,
                        name: strings.index(name),
                        system_name: strings.index(&symbol.sys_name()),
                        filename: strings.index(file),
                    });
                    profile.location.push(format::Location {
                        id: next,
                        line: vec![format::Line {
                            function_id: next,
                            line,
                        }],
                    });
                    next
                });
            location_id.push(id);
        }
        let n_seen = i64::try_from(*n_seen).unwrap_or(i64::MAX);
        profile.sample.push(format::Sample {
            location_id,
            value: vec![n_seen, n_seen.saturating_mul(period)],
            label: vec![format::Label {
                key: thread,
                text: strings.index(&stack.thread_name_or_id()),
            }],
        });
    }
    profile.string_table = strings.table;
    profile.encode_to_vec()
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Table of texts: each is written once, and named by its index. The first is empty.
struct Strings {
    table: Vec<String>,
    places: HashMap<String, i64>,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            table: vec![String::new()],
            places: [(String::new(), 0)].into(),
        }
    }
}

impl Strings {
    fn index(&mut self, text: &str) -> i64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = i64::try_from(self.table.len()).unwrap_or(i64::MAX);
        self.table.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;

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

    /// Returns the names of a stack, innermost first.
    fn names<'a>(profile: &'a format::Profile, sample: &format::Sample) -> Vec<&'a str> {
        let locations = sample.location_id.iter();
        let names = locations.map(|id| {
            let location = profile.location.iter().find(|l| l.id == *id).unwrap();
            let function = location.line[0].function_id;
            let function = profile.function.iter().find(|f| f.id == function).unwrap();
            profile.string_table[usize::try_from(function.name).unwrap()].as_str()
        });
        names.collect()
    }

    // It is one test, because a process has one timer.
    #[test]
    fn a_profile_names_what_ran_and_for_how_long_one_at_a_time() {
        let time = Duration::from_millis(500);
        for _ in 0..2 {
            let profile = Profile::begin_at(499).unwrap();
            let second = Profile::begin().unwrap_err();
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
                let names = names(&profile, sample);
                names
                    .iter()
                    .any(|name| name.contains("spins_for_a_profile"))
            });
            let mut seen = 0;
            for sample in spinning {
                assert_eq!(sample.value[1], sample.value[0] * profile.period);
                assert_eq!(text(sample.label[0].key), "thread");
                // The signal handler does not count as code that ran.
                let innermost = names(&profile, sample)[0];
                assert!(!innermost.contains("perf_signal"), "{innermost}");
                seen += sample.value[1];
            }
            // Other tests run at the same time.
            assert!(seen > nanos(time) / 20, "{seen} ns of {time:?}");
        }
    }
}
