//! Output of a process, kept line by line, so that a test can wait for a line.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The output of a process, read by a thread, line by line.
#[derive(Debug)]
pub(super) struct Stream(Arc<(Mutex<Lines>, Condvar)>);

#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<String>,
    closed: bool,
}

impl Stream {
    pub(super) fn read(pipe: impl Read + Send + 'static) -> Self {
        let shared = Arc::new((Mutex::new(Lines::default()), Condvar::new()));
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line)
                    .trim_end_matches(['\r', '\n'])
                    .to_owned();
                lock(&theirs.0).lines.push(text);
                theirs.1.notify_all();
                line.clear();
            }
            lock(&theirs.0).closed = true;
            theirs.1.notify_all();
        });
        Self(shared)
    }

    pub(super) fn lines(&self) -> MutexGuard<'_, Lines> {
        lock(&self.0.0)
    }

    /// Returns the first wanted line; `None` if the deadline or the end of the output comes first.
    pub(super) fn find(&self, deadline: Duration, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let found = |lines: &Lines| lines.lines.iter().find(|line| wanted(line)).cloned();
        let lines = self.wait_while(deadline, |lines| !lines.closed && found(lines).is_none());
        found(&lines)
    }

    /// Returns everything, once the process has ended. Output that a grandchild holds open is not waited for.
    pub(super) fn all(&self) -> String {
        let lines = self.wait_while(Duration::from_secs(5), |lines| !lines.closed);
        lines.lines.iter().flat_map(|line| [line, "\n"]).collect()
    }

    fn wait_while(
        &self,
        deadline: Duration,
        more: impl Fn(&Lines) -> bool,
    ) -> MutexGuard<'_, Lines> {
        let waited = self
            .0
            .1
            .wait_timeout_while(self.lines(), deadline, |lines| more(lines));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}
