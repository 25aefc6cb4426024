//! A panic of a process whose log goes to a file. The hook is one for all tests of a process, so this test has a process
//! of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawler_process::telemetry::{self, FileSettings, Settings};

/// True once the hook that was there before has seen the panic. The usual one writes to stderr.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

#[test]
fn a_panic_is_in_the_file_and_told_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let settings = Settings {
        file: Some(FileSettings {
            path: path.clone(),
            size: 1_000_000,
            age: Duration::from_secs(3_600),
            files: 2,
        }),
        ..Settings::default()
    };
    std::panic::set_hook(Box::new(|_| IS_TOLD.store(true, Ordering::Relaxed)));
    let mut log = telemetry::init(&settings, "info").unwrap();
    log.start().unwrap();
    let line = line!() + 1;
    let panicked = std::panic::catch_unwind(|| panic!("on purpose, in {}", "a test"));
    assert!(panicked.is_err());
    assert!(IS_TOLD.load(Ordering::Relaxed));
    drop(log);
    let text = std::fs::read_to_string(&path).unwrap();
    for part in [
        "panicked",
        r#"reason="on purpose, in a test""#,
        &format!("panics.rs:{line}:"),
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}
