//! The log of a test, kept in memory.

use std::io::Write;
use std::sync::{Arc, Mutex, Once};

use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Lines of a log, in the format that people read. Clones share them.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Logs what this thread tells until the guard is dropped.
    pub fn of_this_thread(filter: &str) -> (Self, DefaultGuard) {
        let log = Self::default();
        let guard = tracing::dispatcher::set_default(&log.dispatch(filter, false));
        (log, guard)
    }

    /// Returns a subscriber that writes into this log.
    pub fn dispatch(&self, filter: &str, json: bool) -> Dispatch {
        // One subscriber wants everything. Otherwise a callsite that a thread without a subscriber reaches
        // first would be disabled in all threads.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            let all = tracing_subscriber::registry();
            tracing::subscriber::set_global_default(all).expect("no other test sets one");
        });
        super::dispatch(EnvFilter::new(filter), json, self.clone(), false)
    }

    /// Returns the lines so far.
    pub fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Returns the lines that a closure logs.
pub fn told(filter: &str, tell: impl FnOnce()) -> Vec<String> {
    let (log, _guard) = Log::of_this_thread(filter);
    tell();
    log.lines()
}
