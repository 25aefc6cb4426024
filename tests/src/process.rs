//! The `crawler` program as a user starts it: processes with a folder of their own, whose output is kept, and
//! which end with their handle.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::{PATIENCE, cargo, pause, repository, setting, until};

mod stream;

use stream::Stream;

/// Number of lines of output that a failure shows.
const N_SHOWN: usize = 40;

/// Path of the program: `CRAWLER_BIN`, or built once.
pub fn program() -> PathBuf {
    if let Some(path) = setting("CRAWLER_BIN") {
        return path.into();
    }
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        // The selection is that of the tests, so that no library is compiled twice. There are no examples, but
        // with them cargo counts the features that tests ask libraries for.
        let selection = [
            "--workspace",
            "--all-features",
            "--bin=crawler",
            "--examples",
        ];
        let files = cargo::build(&repository(), &selection);
        let program =
            |(_, file): &(String, PathBuf)| file.file_name() == Some(OsStr::new("crawler"));
        files
            .into_iter()
            .find(program)
            .expect("cargo names the program that it has built")
            .1
    };
    BUILT.get_or_init(build).clone()
}

/// A temporary folder in which processes run: their data, state and config are there by default. Processes that
/// share a store share a home.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Makes an empty folder.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("crawler-test-").tempdir();
        Self {
            folder: folder.unwrap_or_else(|e| panic!("no temporary folder: {e}")),
        }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file there, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text)
            .unwrap_or_else(|e| panic!("{} cannot be written: {e}", path.display()));
        path
    }

    /// Returns the program with these arguments, not started: for further settings, then [`Process::start`].
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        self.command_of(&program(), arguments)
    }

    /// Returns another program with these arguments, such as one of another version.
    pub fn command_of<A: AsRef<OsStr>>(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env_remove("CRAWLER_TOKEN")
            .env("NO_COLOR", "1");
        command
    }

    /// Starts the program and lets it run.
    #[track_caller]
    pub fn start<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Process {
        Process::start(&mut self.command(arguments))
    }

    /// Runs the program to its end, which must come within [`PATIENCE`].
    #[track_caller]
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        self.start(arguments).wait(PATIENCE)
    }

    /// Runs the program to its end, which must be a good one; returns what it wrote to stdout.
    #[track_caller]
    pub fn ok<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> String {
        let mut process = self.start(arguments);
        let ended = process.wait(PATIENCE);
        assert_eq!(
            ended.code,
            Some(0),
            "{} failed:\n{}",
            process.name,
            ended.stderr
        );
        ended.stdout
    }
}

/// End of a process.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Exit code. `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Whole output to stdout.
    pub stdout: String,
    /// Whole output to stderr.
    pub stderr: String,
}

/// A running process, and the group of those that it starts. Dropping it kills and reaps them; when
/// the test panics, the end of its stderr is shown.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdout: Stream,
    stderr: Stream,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a command in a process group of its own, without input, keeping its output.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::start_with(command, Stdio::null())
    }

    /// Starts a command with this input.
    #[track_caller]
    pub fn start_with(command: &mut Command, input: impl Into<Stdio>) -> Self {
        let words = [command.get_program()]
            .into_iter()
            .chain(command.get_args());
        let words: Vec<_> = words
            .map(|word| {
                Path::new(word)
                    .file_name()
                    .unwrap_or(word)
                    .to_string_lossy()
            })
            .collect();
        let name = words.join(" ");
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{name} does not start: {e}"));
        let stdout = Stream::read(child.stdout.take().expect("stdout is piped"));
        let stderr = Stream::read(child.stderr.take().expect("stderr is piped"));
        Self {
            name,
            child,
            stdout,
            stderr,
            ended: None,
        }
    }

    /// Id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lines written to stdout so far.
    pub fn stdout(&self) -> Vec<String> {
        self.stdout.lines().lines.clone()
    }

    /// Lines written to stderr so far.
    pub fn stderr(&self) -> Vec<String> {
        self.stderr.lines().lines.clone()
    }

    /// Lines written to stderr after the first `n_lines`.
    pub fn stderr_from(&self, n_lines: usize) -> Vec<String> {
        let lines = self.stderr.lines();
        lines.lines.iter().skip(n_lines).cloned().collect()
    }

    /// Waits for a line of stderr, even one written before, and returns it.
    #[track_caller]
    pub fn line(&self, what: &str, deadline: Duration, wanted: impl Fn(&str) -> bool) -> String {
        self.stderr
            .find(deadline, wanted)
            .unwrap_or_else(|| self.give_up(what, deadline))
    }

    /// Waits for a line of stdout, even one written before, and returns it.
    #[track_caller]
    pub fn answer(&self, what: &str, deadline: Duration, wanted: impl Fn(&str) -> bool) -> String {
        self.stdout
            .find(deadline, wanted)
            .unwrap_or_else(|| self.give_up(what, deadline))
    }

    /// Waits for a line of stderr with these characters and returns the word right after them: for `listening
    /// grpc=127.0.0.1:4000 http=…` and `grpc=` it is the address.
    #[track_caller]
    pub fn word_after(&self, mark: &str, deadline: Duration) -> String {
        let line = self.line(mark, deadline, |line| line.contains(mark));
        let rest = line.split_once(mark).map_or("", |(_, rest)| rest);
        rest.trim_start()
            .split([' ', ',', '"'])
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends SIGTERM, as a service manager does.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Stops the process, as a long pause of the machine would. All of its threads are stopped when this returns.
    #[track_caller]
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let stopped = || self.is_stopped().then_some(());
        until("process that stands still", PATIENCE, stopped);
    }

    /// Returns true if none of its threads runs, also if the process is gone.
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        threads.into_iter().flatten().flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state comes behind the name, which may contain anything.
            let state = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.chars().next());
            state.is_none_or(|state| matches!(state, 'T' | 'Z' | 'X'))
        })
    }

    /// Lets a stopped process go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the process at any point of its work, as a crash does, and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait(PATIENCE);
    }

    /// Returns true if the process has not ended.
    pub fn is_running(&mut self) -> bool {
        self.look().is_none()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self, deadline: Duration) -> Ended {
        let start = Instant::now();
        let status = loop {
            match self.look() {
                Some(status) => break status,
                None if start.elapsed() > deadline => self.give_up("end", deadline),
                None => pause(),
            }
        };
        Ended {
            code: status.code(),
            stdout: self.stdout.all(),
            stderr: self.stderr.all(),
        }
    }

    fn look(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self
                .child
                .try_wait()
                .unwrap_or_else(|e| panic!("{} is lost: {e}", self.name));
        }
        self.ended
    }

    fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            kill_process(Pid::from_child(&self.child), signal)
                .unwrap_or_else(|e| panic!("{} cannot be sent {signal:?}: {e}", self.name));
        }
    }

    #[track_caller]
    fn give_up<T>(&self, what: &str, deadline: Duration) -> T {
        panic!(
            "{}: no {what} within {deadline:?} or before its output ended",
            self.name
        )
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "tells why a test failed")]
    fn drop(&mut self) {
        if self.look().is_none() {
            // An error means that it ended at this very moment; the wait finds out.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            let lines = self.stderr();
            let end = &lines[lines.len().saturating_sub(N_SHOWN)..];
            eprintln!(
                "--- the end of stderr of {}\n{}\n---",
                self.name,
                end.join("\n")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn an_end_brings_code_and_output() {
        let ended = shell("echo one; echo two >&2; exit 3").wait(PATIENCE);
        assert_eq!(
            (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
            (Some(3), "one\n", "two\n")
        );
    }

    #[test]
    fn a_line_is_waited_for_and_its_word_taken() {
        let mut process =
            shell("echo 'up grpc=127.0.0.1:4000, http=127.0.0.1:5000' >&2; exec sleep 3600");
        assert_eq!(process.word_after("grpc=", PATIENCE), "127.0.0.1:4000");
        assert_eq!(process.word_after("http=", PATIENCE), "127.0.0.1:5000");
        assert!(process.is_running());
        process.kill();
        assert_eq!(process.wait(PATIENCE).code, None);
    }

    #[test]
    #[should_panic(expected = "no such line within")]
    fn the_end_of_the_output_ends_the_wait_for_a_line() {
        shell("echo other >&2").line("such line", Duration::from_secs(3_600), |line| {
            line == "this"
        });
    }

    #[test]
    fn a_dropped_process_is_gone_with_those_that_it_started() {
        let process = shell("sleep 3600 & echo $! ; wait");
        let grandchild = process.answer("process id", PATIENCE, |_| true);
        drop(process);
        let proc_entry = PathBuf::from(format!("/proc/{grandchild}/stat"));
        until("end of the grandchild", PATIENCE, || {
            let stat = std::fs::read_to_string(&proc_entry).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        });
    }

    #[test]
    fn a_frozen_process_waits_until_it_is_thawed() {
        let mut process = shell("echo ready; exec sleep 3600");
        process.answer("ready", PATIENCE, |_| true);
        process.freeze();
        let stat = PathBuf::from(format!("/proc/{}/stat", process.id()));
        let stat = std::fs::read_to_string(&stat).unwrap();
        assert!(stat.contains(") T "), "{stat}");
        assert!(process.is_running());
        process.thaw();
        process.terminate();
        assert_eq!(process.wait(PATIENCE).code, None);
    }
}
