//! Runs of many seeds, each a history of its own.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::check::{CheckedEvent, Tally};
use super::fault::Fault;
use super::{Report, run};

/// Number of seeds of a usual run.
const USUAL: u64 = 50;
/// Seeds that have each shown a fault once.
const TELLING: [u64; 7] = [169, 453, 508, 1_643, 3_537, 4_650, 29_952];
/// Number of events before a violation that are shown.
const SHOWN: usize = 300;

/// Formats a violation for the person who looks for the fault.
fn show(seed: u64, report: &Report) -> Option<String> {
    let Report {
        journal, violation, ..
    } = report;
    let violation = violation.as_ref()?;
    // Statistics that workers report are left out.
    let told = journal.iter().filter(|line| !line.contains("/status/"));
    let told: Vec<&str> = told.map(String::as_str).collect();
    let last = told.len().saturating_sub(SHOWN);
    Some(format!(
        "{}\n\nseed {seed}: {violation}\nagain: SIM_SEED={seed} cargo test --workspace --all-features --lib app::sim::tests::histories",
        told[last..].join("\n"),
    ))
}

/// Runs these seeds, as many at a time as there are processors; the first violation ends the run.
fn run_all(seeds: impl IntoIterator<Item = u64>) -> (Tally, BTreeSet<Fault>) {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let next = AtomicUsize::new(0);
    let came: Mutex<(Tally, BTreeSet<Fault>)> = Mutex::default();
    let found: Mutex<Option<String>> = Mutex::default();
    let n = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n {
            scope.spawn(|| {
                loop {
                    let seed = seeds.get(next.fetch_add(1, Ordering::Relaxed));
                    let Some(&seed) = seed.filter(|_| found.lock().unwrap().is_none()) else {
                        return;
                    };
                    let report = run(seed);
                    let mut came = came.lock().unwrap();
                    came.0.add(&report.tally);
                    came.1.extend(&report.faults);
                    drop(came);
                    if let Some(shown) = show(seed, &report) {
                        found.lock().unwrap().get_or_insert(shown);
                    }
                }
            });
        }
    });
    if let Some(found) = found.into_inner().unwrap() {
        panic!("{found}");
    }
    came.into_inner().unwrap()
}

/// Tries `n` more seeds after those that were tried before; the file holds the next seed.
fn go_on(n: u64, file: &Path, try_seeds: impl Fn(Range<u64>)) {
    let first = match std::fs::read_to_string(file) {
        Ok(text) => match text.trim().parse() {
            Ok(next) => next,
            Err(error) => panic!("{} does not hold the next seed: {error}", file.display()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 1 + USUAL,
        Err(error) => panic!("{}: {error}", file.display()),
    };
    let mut next = first;
    while next < first + n {
        let end = (next + 100).min(first + n);
        try_seeds(next..end);
        std::fs::write(file, end.to_string()).unwrap();
        println!("seeds {first} to {} keep all invariants", end - 1);
        next = end;
    }
}

/// Returns a variable of the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "a test takes its orders from the environment"
)]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn one_seed_is_one_history() {
    let (first, second) = (run(3), run(3));
    assert!(first.journal.len() > 100, "nothing happens");
    for (n, (one, other)) in first.journal.iter().zip(&second.journal).enumerate() {
        assert_eq!(one, other, "line {n}");
    }
    assert_eq!(first.journal.len(), second.journal.len());
    assert_ne!(first.journal, run(4).journal);
}

#[test]
fn seeds_go_on_where_an_earlier_run_of_them_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seed");
    let tried = |n| {
        let tried: Mutex<Vec<u64>> = Mutex::default();
        let run = std::panic::AssertUnwindSafe(|| {
            go_on(n, &file, |seeds| {
                assert!(!seeds.contains(&300), "seed 300 violates something");
                tried.lock().unwrap().extend(seeds);
            });
        });
        let is_kept = std::panic::catch_unwind(run).is_ok();
        (tried.into_inner().unwrap(), is_kept)
    };
    assert_eq!(tried(120), ((51..171).collect(), true));
    // Seeds that were interrupted or violated are tried again.
    assert_eq!(tried(150), ((171..271).collect(), false));
    assert_eq!(tried(20), ((271..291).collect(), true));
    assert_eq!(tried(10), (vec![], false));
}

#[test]
fn histories_keep_all_invariants() {
    let number = |name| asked(name).and_then(|text| text.parse::<u64>().ok());
    match (number("SIM_SEED"), number("SIM_SEEDS"), asked("SIM_FILE")) {
        (Some(seed), _, _) => _ = run_all([seed]),
        (None, Some(n), Some(file)) => {
            go_on(n, Path::new(&file), |seeds| _ = run_all(seeds));
        }
        (None, Some(n), None) => _ = run_all(1..1 + n),
        (None, None, _) => {
            let (tally, faults) = run_all((1..1 + USUAL).chain(TELLING));
            let never = CheckedEvent::ALL.iter().filter(|what| !tally.has(**what));
            let never: Vec<_> = never.collect();
            assert!(never.is_empty(), "in no history: {never:?}");
            let without: Vec<_> = Fault::ALL.iter().filter(|f| !faults.contains(f)).collect();
            assert!(without.is_empty(), "no history has {without:?}");
        }
    }
}
