//! Way of log lines to their file: a queue that never makes a task wait, and a thread of its own that writes.
//!
//! The queue has a bound in bytes. Lines that find no room are counted, and the count is a line of the log once there is
//! room again. The thread is started after the process has given up rights, because a thread keeps those that it begins
//! with; lines from before wait in the queue.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::rotation::RotatingFile;
use crate::clock::Clock;

/// Largest number of bytes of lines that wait.
const QUEUE_MAX: usize = 8 << 20;
/// Bytes of the queue's memory that are kept when it is empty.
const IDLE_MAX: usize = 256 << 10;
/// Time that the last lines may take to be written.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);
/// Message of the line that tells of lost lines.
const LOST: &str =
    "lines of the log were lost, because they came faster than they could be written";

/// Lines that wait to be written. Clones share them.
#[derive(Clone)]
pub(super) struct LineQueue(Arc<Shared>);

struct Shared {
    max: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// Number of lines that found no room since the last time it was told.
    n_lost: u64,
    /// True if no further line is taken.
    is_closed: bool,
    /// True if all lines are written.
    is_done: bool,
}

/// Writer of one line.
pub(super) struct QueuedLine<'a>(&'a LineQueue);

impl LineQueue {
    pub(super) fn new(max: usize) -> Self {
        Self(Arc::new(Shared {
            max,
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.is_closed || state.lines.len() + line.len() > self.0.max {
            state.n_lost += 1;
            return;
        }
        state.lines.extend_from_slice(line);
        drop(state);
        self.0.changed.notify_all();
    }

    /// Waits for lines, and exchanges them for the given empty buffer. Returns the number of lines that were lost
    /// behind them; `None` if there is nothing more to come.
    fn take(&self, empty: &mut Vec<u8>) -> Option<u64> {
        let is_idle =
            |state: &mut State| state.lines.is_empty() && state.n_lost == 0 && !state.is_closed;
        let waited = self.0.changed.wait_while(self.lock(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.lines.is_empty() && state.n_lost == 0 {
            return None;
        }
        std::mem::swap(&mut state.lines, empty);
        Some(std::mem::take(&mut state.n_lost))
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.0.changed.notify_all();
    }

    fn set_done(&self) {
        self.lock().is_done = true;
        self.0.changed.notify_all();
    }

    /// Waits until all lines are written, at most this long.
    fn wait_until_done(&self, deadline: Duration) {
        let is_writing = |state: &mut State| !state.is_done;
        let waited = self
            .0
            .changed
            .wait_timeout_while(self.lock(), deadline, is_writing);
        // Whether it was in time makes no difference: the process ends.
        drop(waited);
    }
}

impl Write for QueuedLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LineQueue {
    type Writer = QueuedLine<'a>;

    fn make_writer(&'a self) -> QueuedLine<'a> {
        QueuedLine(self)
    }
}

/// Writer of the lines that wait. Dropping it writes the rest.
pub(super) struct FileWriter {
    queue: LineQueue,
    /// File, until the thread has it.
    file: Option<(RotatingFile, LostLine)>,
}

/// Line about lost lines, in the format of the log.
pub(super) struct LostLine {
    pub(super) json: bool,
    pub(super) clock: Arc<dyn Clock>,
}

impl FileWriter {
    /// Creates a writer that does not write yet, with the queue that it takes lines from.
    pub(super) fn new(file: RotatingFile, lost: LostLine) -> (Self, LineQueue) {
        let queue = LineQueue::new(QUEUE_MAX);
        let writer = Self {
            queue: queue.clone(),
            file: Some((file, lost)),
        };
        (writer, queue)
    }

    /// Returns the folder of the file, unless the thread has it already.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.file.as_ref().map(|(file, _)| file.folder())
    }

    /// Starts the thread that writes.
    pub(super) fn start(&mut self) -> io::Result<()> {
        let Some((mut file, lost)) = self.file.take() else {
            return Ok(());
        };
        let queue = self.queue.clone();
        let write = move || {
            write_all(&queue, &mut file, &lost);
            queue.set_done();
        };
        let started = thread::Builder::new().name("log".to_owned()).spawn(write);
        started.map(drop).inspect_err(|_| self.queue.set_done())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        self.queue.close();
        match self.file.take() {
            Some((mut file, lost)) => write_all(&self.queue, &mut file, &lost),
            None => self.queue.wait_until_done(FLUSH_DEADLINE),
        }
    }
}

/// Writes lines until the queue is closed and empty.
fn write_all(queue: &LineQueue, file: &mut RotatingFile, lost: &LostLine) {
    let mut lines = Vec::new();
    while let Some(n_lost) = queue.take(&mut lines) {
        file.write(&lines);
        if n_lost > 0 {
            file.write(lost.line(n_lost).as_bytes());
        }
        lines.clear();
        lines.shrink_to(IDLE_MAX);
    }
}

impl LostLine {
    fn line(&self, n: u64) -> String {
        let now = UNIX_EPOCH + Duration::from_nanos(self.clock.unix_nanos());
        let ts = humantime::format_rfc3339_micros(now).to_string();
        let target = module_path!();
        match self.json {
            true => format!(
                "{}\n",
                json!({"ts": ts, "level": "WARN", "target": target, "msg": LOST, "n": n})
            ),
            false => format!("{ts}  WARN {LOST} n={n}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;
    use tracing::dispatcher::with_default;
    use tracing_subscriber::EnvFilter;

    use super::super::rotation::FileSettings;
    use super::*;
    use crate::clock::SystemClock;

    fn lost(json: bool) -> LostLine {
        LostLine {
            json,
            clock: Arc::new(SystemClock),
        }
    }

    fn open(folder: &Path, size: u64) -> RotatingFile {
        let settings = FileSettings {
            path: folder.join("log"),
            size,
            age: Duration::from_secs(60 * 60),
            files: 100,
        };
        let opened = RotatingFile::open(settings, Arc::new(SystemClock), Box::new(io::sink()));
        opened.expect("it opens")
    }

    #[test]
    fn lines_without_room_are_counted_and_the_count_is_a_line() {
        let folder = tempfile::tempdir().unwrap();
        for json in [false, true] {
            let mut file = open(folder.path(), 1 << 20);
            let before = fs::read_to_string(folder.path().join("log")).unwrap();
            let queue = LineQueue::new(10);
            for line in ["1234\n", "5678\n", "lost\n", "lost\n", "lost\n"] {
                queue.push(line.as_bytes());
            }
            queue.close();
            write_all(&queue, &mut file, &lost(json));
            let text = fs::read_to_string(folder.path().join("log")).unwrap();
            let lines: Vec<&str> = text[before.len()..].lines().collect();
            assert_eq!(lines[..2], ["1234", "5678"]);
            assert_eq!(lines.len(), 3, "{text}");
            match json {
                true => {
                    let line: Value = serde_json::from_str(lines[2]).unwrap();
                    assert_eq!((&line["msg"], &line["n"]), (&json!(LOST), &json!(3)));
                }
                false => assert!(lines[2].ends_with(&format!("WARN {LOST} n=3")), "{text}"),
            }
        }
    }

    #[test]
    fn lines_of_many_threads_are_all_written_whole_over_rotations() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, queue) = FileWriter::new(open(folder.path(), 4_000), lost(true));
        let dispatch = super::super::dispatch(EnvFilter::new("info"), true, queue, false);
        with_default(&dispatch, || tracing::info!(n = 0, "before the thread"));
        writer.start().unwrap();
        let log = || {
            for n in 0..100 {
                tracing::info!(n, "a line");
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| with_default(&dispatch, log));
            }
        });
        drop(writer);
        let mut n_lines = 0;
        for entry in fs::read_dir(folder.path()).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in text.lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                assert!(line["ts"].is_string() && line["level"] == "INFO", "{line}");
                n_lines += 1;
            }
        }
        assert_eq!(n_lines, 401);
        assert!(fs::read_dir(folder.path()).unwrap().count() > 1);
    }

    #[test]
    fn lines_are_written_although_the_thread_was_never_started() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, queue) = FileWriter::new(open(folder.path(), 4_000), lost(false));
        queue.push(b"one\n");
        drop(writer);
        let text = fs::read_to_string(folder.path().join("log")).unwrap();
        assert_eq!(text, "one\n");
    }
}
