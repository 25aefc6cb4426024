//! Tools of whole-system tests: a fake web that keeps a log, the documentation of Rust as a real site with a known
//! truth, processes that are always reaped, and built guests.
//!
//! Helpers panic with a message that says what was expected: a test has nothing better to do. None of them needs a
//! runtime, and each may be called from within one.
//!
//! ```no_run
//! use crawler_tests::process::Home;
//! use crawler_tests::web::Site;
//! use crawler_tests::{PATIENCE, guests};
//!
//! let web = Site::new().page("/", "<h1>Hello</h1>").open();
//! let home = Home::new();
//! let mut up = home.start(["up", "--http=:0", "--grpc=:0"]);
//! let address = up.word_after("http=", PATIENCE);
//! let added = home.run(["plugin", "push", guests::guest("books").to_str().unwrap()]);
//! assert_eq!(added.code, Some(0), "{}", added.stderr);
//! web.wait_for("a request for /", PATIENCE, |log| log.iter().any(|hit| hit.path == "/"));
//! up.interrupt();
//! assert_eq!(up.wait(PATIENCE).code, Some(0));
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod cargo;
pub mod certificates;
pub mod child;
pub mod chromium;
pub mod closure;
pub mod cluster;
pub mod counts;
pub mod edited_site;
pub mod etcd;
pub mod faults;
pub mod faulty;
pub mod faulty_store;
pub mod guests;
pub mod http;
pub mod mariadb;
pub mod nats;
pub mod nginx;
pub mod parts;
pub mod peers;
pub mod postgres;
pub mod process;
pub mod prometheus;
pub mod proxy;
pub mod python;
pub mod random;
pub mod rustdoc;
pub mod tmpfs;
pub mod twin;
pub mod up;
pub mod web;

/// Deadline for short work: long enough for a busy machine, so that missing it is a fault.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the folder of the repository.
pub fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("the tests have a folder of their own in the repository")
        .to_owned()
}

/// Returns true if loops run in full, as `tests/run soak NAME` asks, and false if they are shortened.
pub fn soak() -> bool {
    setting("CRAWLER_SOAK").is_some_and(|value| value == "1")
}

/// Time that a timed loop runs, if `tests/run soak NAME TIME` gives one.
pub fn soak_time() -> Option<Duration> {
    let seconds = number("CRAWLER_SOAK_SECONDS", 0);
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// Returns a setting of a benchmark that is a whole number.
pub fn number(name: &str, default: u64) -> u64 {
    setting(name).map_or(default, |value| {
        let parsed = value.to_str().and_then(|text| text.parse().ok());
        parsed.unwrap_or_else(|| panic!("{name} is {value:?}, and takes a whole number"))
    })
}

/// Prints that something could not be tested here. `tests/run` counts these lines, and fails if `TESTS_REQUIRE`
/// has the name, which is one of [`parts`].
#[expect(clippy::print_stdout, reason = "the line is read by tests/run")]
#[track_caller]
pub fn skipped(name: &str, why: &str) {
    let mut all = parts::OF_TESTS.iter().chain(&parts::OF_OTHERS);
    assert!(
        all.any(|part| *part == name),
        "{name} is skipped without a name in tests/src/parts.rs: {why}"
    );
    println!("skipped: {name}: {why}");
}

/// Asks again and again until there is an answer. It is for states that nothing announces; for a log line or a
/// request to the fake web, wait at its source.
#[track_caller]
pub fn until<T>(what: &str, deadline: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < deadline, "no {what} within {deadline:?}");
        pause();
    }
}

/// Lets time pass, to check that something does *not* happen meanwhile.
pub fn pass(time: Duration) {
    let start = Instant::now();
    until("end of the wait", time + PATIENCE, || {
        (start.elapsed() >= time).then_some(())
    });
}

#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at a state that nothing announces"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Returns a folder that a variable names, such as `CARGO_HOME`, or the one of this name in the home of whoever runs the
/// tests.
pub fn folder_of(variable: &str, name: &str) -> PathBuf {
    let in_home = || PathBuf::from(setting("HOME").unwrap_or_default()).join(name);
    setting(variable).map_or_else(in_home, PathBuf::from)
}

/// Returns true if this program was started as a benchmark. `cargo test --all-targets` runs it as well. A benchmark of
/// the program as it is shipped needs `CRAWLER_BIN`; without it, this panics with the command that sets it.
#[track_caller]
pub fn is_benchmark(name: &str) -> bool {
    let is_benchmark = std::env::args().any(|argument| argument == "--bench");
    assert!(
        !is_benchmark || setting("CRAWLER_BIN").is_some(),
        "CRAWLER_BIN has to name a program that was built as for a release; tests/run bench {name} builds it"
    );
    is_benchmark
}

/// Returns a variable of the environment; an empty one counts as missing.
#[expect(
    clippy::disallowed_methods,
    reason = "tests/run names what it has built in the environment"
)]
pub fn setting(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
