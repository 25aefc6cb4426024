//! A shell that a test types commands into, as a reader of a page does.
//!
//! It runs in a network of its own, so that the ports that a page names are free, and in a folder that looks like
//! that of the repository after a build. Servers get a terminal of their own: they run beside the shell, from
//! the folder of the repository, and end with it.

use std::fs;
use std::io::{PipeWriter, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crawler_tests::process::{Home, Process, program};
use crawler_tests::{PATIENCE, repository, skipped, until};

/// Deadline of a command, which may build a plugin and the SDK first.
const DEADLINE: Duration = Duration::from_secs(600);
/// Reads commands that end with a zero byte, and marks the end of each with its exit code. The output of errors
/// is part of the output.
const READ_AND_RUN: &str = r#"shopt -s expand_aliases
exec 3<&0 </dev/null 2>&1
while IFS= read -r -d '' -u 3 typed; do
    eval "$typed" 3<&-
    printf '\n@@ended with %d\n' $?
done
"#;
/// File with this script.
const TERMINAL: &str = "terminal.sh";
/// Beginning of the line that marks the end of a command.
const MARK: &str = "@@ended with ";
/// Beginnings of lines that cargo prints while it builds.
const OF_CARGO: [&str; 6] = [
    "Compiling ",
    "Finished ",
    "Updating ",
    "Locking ",
    "Adding ",
    "Blocking ",
];

/// Folders that the shells of one page share.
pub(crate) struct Stage {
    home: Home,
    /// Plugins of several pages have one name, and are built in one folder.
    _alone: MutexGuard<'static, ()>,
}

/// Output and exit code of a command.
#[derive(Debug)]
pub(crate) struct Output {
    /// Lines of stdout and stderr, without those of cargo.
    pub(crate) lines: Vec<String>,
    /// Exit code.
    pub(crate) code: i32,
}

/// A running shell.
pub(crate) struct Shell {
    process: Process,
    input: PipeWriter,
    logs: PathBuf,
    repository: PathBuf,
    /// Logs of the servers that are not known to be ready.
    starting: Vec<PathBuf>,
    n_servers: usize,
}

impl Stage {
    /// Makes the folders. `None`, after saying so, if one of these programs is not installed.
    pub(crate) fn new(page: &str, programs: &[&str]) -> Option<Self> {
        for needed in ["bash", "unshare", "ip"].iter().chain(programs) {
            if !is_installed(needed) {
                skipped(page, &format!("there is no {needed}"));
                return None;
            }
        }
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = Self {
            home: Home::new(),
            _alone: alone,
        };
        for folder in ["bin", "logs", "work", "work/crawler/target/release"] {
            fs::create_dir_all(stage.path(folder)).expect("the home is empty");
        }
        // The links stand for `cargo build --release` and for the copy of its program.
        for link in ["bin/crawler", "work/crawler/target/release/crawler"] {
            symlink(program(), stage.path(link)).expect("a link is made");
        }
        for entry in fs::read_dir(repository()).expect("the repository can be read") {
            let entry = entry.expect("the repository can be read");
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && name != "target" {
                let link = stage.path("work/crawler").join(name);
                symlink(entry.path(), link).expect("a link is made");
            }
        }
        stage.home.write(TERMINAL, READ_AND_RUN);
        // A refusal over HTTP fails the command, and no meter of progress is printed.
        stage.home.write(".curlrc", "silent\nshow-error\nfail\n");
        Some(stage)
    }

    /// Path of a file or folder of the stage.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Opens a shell in a network of its own, in a folder below `work`. `None`, after saying so, if this machine
    /// allows none.
    pub(crate) fn open(&self, page: &str, folder: &str, further: &[&str]) -> Option<Shell> {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--net"])
            .args(further)
            .arg("bash")
            .arg(self.path(TERMINAL));
        let mut shell = self.start(&mut command, folder);
        let is_up = shell.try_run("ip link set lo up");
        if is_up.is_none_or(|output| output.code != 0) {
            skipped(page, "no network of its own can be had here");
            return None;
        }
        Some(shell)
    }

    /// Opens a shell in a network that another shell has named with `ip netns`, with file systems that it may
    /// mount for itself. It begins in the root of all folders.
    #[track_caller]
    pub(crate) fn open_in(&self, other: &Shell, network: &str) -> Shell {
        let mut command = Command::new("nsenter");
        command
            .args(["--preserve-credentials", "--user", "--net", "--mount"])
            .arg(format!("--target={}", other.process.id()))
            .args(["ip", "netns", "exec", network])
            .args(["unshare", "--mount", "bash"])
            .arg(self.path(TERMINAL));
        self.start(&mut command, "work/crawler")
    }

    #[track_caller]
    fn start(&self, command: &mut Command, folder: &str) -> Shell {
        let (reader, input) = std::io::pipe().expect("a pipe is made");
        let cargo = Path::new(env!("CARGO"))
            .parent()
            .expect("cargo lies in a folder");
        let path = crawler_tests::setting("PATH").unwrap_or_default();
        let mut folders = vec![self.path("bin"), cargo.to_owned()];
        folders.extend(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).expect("paths of folders have no colon");
        command
            .current_dir(self.path(folder))
            .env("PATH", path)
            .env("XDG_STATE_HOME", self.path("state"))
            // The SDK lies at the same place each time, so that it is compiled once.
            .env(
                "XDG_CACHE_HOME",
                Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"),
            )
            .env("CURL_HOME", self.home.path())
            .env("CARGO_TARGET_DIR", repository().join("plugins/target"))
            .env("CARGO_NET_OFFLINE", "true")
            .env("NO_COLOR", "1")
            .env_remove("CRAWLER_MASTER")
            // Numbers of seconds are written with a point.
            .env("LC_ALL", "C.UTF-8");
        Shell {
            process: Process::start_with(command, reader),
            input,
            logs: self.path("logs"),
            repository: self.path("work/crawler"),
            starting: Vec::new(),
            n_servers: 0,
        }
    }
}

impl Shell {
    /// Types a command, and waits for its end.
    #[track_caller]
    pub(crate) fn run(&mut self, typed: &str) -> Output {
        let output = self.try_run(typed);
        output.unwrap_or_else(|| panic!("the shell ends at: {typed}"))
    }

    /// Types a command that must succeed.
    #[track_caller]
    pub(crate) fn ok(&mut self, typed: &str) -> Output {
        let output = self.run(typed);
        let shown = output.lines.join("\n");
        assert_eq!(output.code, 0, "{typed} fails:\n{shown}");
        output
    }

    /// Types a command. `None` if the shell ends.
    #[track_caller]
    fn try_run(&mut self, typed: &str) -> Option<Output> {
        let n_before = self.process.stdout().len();
        write!(self.input, "{typed}\0").ok()?;
        let code = until(&format!("end of: {typed}"), DEADLINE, || {
            let is_running = self.process.is_running();
            let lines = self.process.stdout();
            let mut marks = lines.iter().skip(n_before);
            let code = marks.find_map(|line| code_in(line));
            code.map(Some).or((!is_running).then_some(None))
        })?;
        let lines = self.process.stdout().into_iter().skip(n_before);
        let lines = lines.take_while(|line| code_in(line).is_none());
        let is_of_cargo = |line: &String| {
            let line = line.trim_start();
            OF_CARGO.iter().any(|word| line.starts_with(word))
        };
        let mut lines: Vec<String> = lines.filter(|line| !is_of_cargo(line)).collect();
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        Some(Output { lines, code })
    }

    /// Starts a server in a terminal of its own, in the folder of the repository.
    #[track_caller]
    pub(crate) fn serve_from_repository(&mut self, typed: &str) {
        let folder = self.repository.display().to_string();
        self.ok(&format!("pushd {folder} >/dev/null"));
        self.serve(typed);
        self.ok("popd >/dev/null");
    }

    /// Starts a server in the folder of the shell.
    #[track_caller]
    pub(crate) fn serve(&mut self, typed: &str) {
        let log = self
            .logs
            .join(format!("{}-{}", self.process.id(), self.n_servers));
        self.n_servers += 1;
        self.ok(&format!("{typed} >{} 2>&1 &", log.display()));
        self.starting.push(log);
    }

    /// Waits until the logs of all servers say that they are ready, as a person at the terminal would.
    #[track_caller]
    pub(crate) fn wait_for_servers(&mut self) {
        for log in std::mem::take(&mut self.starting) {
            let started = Instant::now();
            until("server that is ready", 2 * PATIENCE, || {
                let text = fs::read_to_string(&log).unwrap_or_default();
                let is_late = started.elapsed() > PATIENCE;
                assert!(!is_late, "a server does not get ready:\n{text}");
                is_ready(&text).then_some(())
            });
        }
    }

    /// Types a command that kills a server, and waits until the server is gone, with its ports.
    #[track_caller]
    pub(crate) fn kill(&mut self, typed: &str) {
        let n_before = self.n_running();
        self.ok(typed);
        until(&format!("end of a server after: {typed}"), PATIENCE, || {
            (self.n_running() < n_before).then_some(())
        });
    }

    #[track_caller]
    fn n_running(&mut self) -> usize {
        let jobs = self.ok("jobs -pr");
        jobs.lines
            .iter()
            .filter(|line| line.parse::<u32>().is_ok())
            .count()
    }

    /// Tells all servers to end, without waiting.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        self.run("kill $(jobs -p) 2>/dev/null");
    }

    /// Waits until all servers have ended.
    #[track_caller]
    pub(crate) fn end(mut self) {
        self.run("wait");
        drop(self.input);
        self.process.wait(PATIENCE);
    }
}

/// Returns the exit code in the line that marks the end of a command; `None` for every other line.
fn code_in(line: &str) -> Option<i32> {
    line.strip_prefix(MARK)?.parse().ok()
}

/// Returns true if the log of a server says that it answers: the bundled shop, etcd, or a node of the crawler. A
/// master knows besides who leads, so that the one that is started first does.
fn is_ready(log: &str) -> bool {
    let is_node = log.contains("listening") && log.contains("joined node=");
    let is_undecided = log.contains("joined node=master") && !log.contains(" leads");
    is_node && !is_undecided || log.contains("is open at") || log.contains("ready to serve")
}

fn is_installed(program: &str) -> bool {
    let mut which = Command::new("sh");
    let found = which
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|found| found.status.success())
}
