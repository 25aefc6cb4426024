//! PostgreSQL as a process of its own, with a temporary folder. A test can kill and restart it; it ends with its handle.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::process::Process;
use crate::tmpfs::Tmpfs;
use crate::{PATIENCE, skipped, until};

/// Folder of the versions that Debian has installed.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Line of a server that takes connections.
const READY: &str = "database system is ready to accept connections";

/// A running server, which listens on a socket in its folder. Its user is `postgres`, without a password.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    /// User and group that it runs as: it refuses to run as root.
    user: Option<(u32, u32)>,
    /// True if transactions are on the disk before they are answered.
    is_durable: bool,
    process: Mutex<Option<Process>>,
    folder: TempDir,
}

impl Postgres {
    /// Starts a server with a new database, which forgets when the machine crashes. If PostgreSQL is not installed, it says so
    /// and returns `None`.
    pub fn start() -> Option<Self> {
        Self::start_with(false)
    }

    /// Starts a server as one in operation: transactions are on the disk before they are answered.
    pub fn start_durable() -> Option<Self> {
        Self::start_with(true)
    }

    fn start_with(is_durable: bool) -> Option<Self> {
        let Some(programs) = programs() else {
            let why = "PostgreSQL is not installed here (Debian: apt-get install postgresql)";
            skipped("postgres", why);
            return None;
        };
        let user = rustix::process::getuid().is_root().then(user);
        // Another user cannot look into the folder of `tests/run`.
        let folder = tempfile::Builder::new()
            .prefix("crawler-pg-")
            .tempdir_in("/tmp");
        let folder = folder.unwrap_or_else(|e| panic!("no temporary folder: {e}"));
        let server = Self {
            programs,
            user,
            is_durable,
            process: Mutex::new(None),
            folder,
        };
        server.give(server.folder.path());
        let mut command = server.command("initdb");
        command.args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "-D",
        ]);
        let ended = Process::start(command.arg(server.data())).wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "initdb failed: {}", ended.stderr);
        server.restart();
        Some(server)
    }

    /// URL of one of its databases.
    pub fn url(&self, database: &str) -> String {
        let folder = self.folder.path().display().to_string();
        format!(
            "postgres://postgres@{}:5432/{database}",
            folder.replace('/', "%2F")
        )
    }

    /// Mounts a small disk for tables in its folder. Returns `None` if the test may not mount one.
    pub fn disk(&self, size: &str) -> Option<Tmpfs> {
        let disk = Tmpfs::mount(&self.folder.path().join("disk"), size)?;
        self.give(disk.path());
        Some(disk)
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) {
        if let Some(mut process) = self.process().take() {
            process.kill();
        }
    }

    /// Starts it again after a kill, and waits until it takes connections.
    pub fn restart(&self) {
        let started = until("start of PostgreSQL", PATIENCE, || {
            let mut command = self.command("postgres");
            command
                .arg("-D")
                .arg(self.data())
                .arg("-k")
                .arg(self.folder.path());
            let fsync = if self.is_durable {
                "fsync=on"
            } else {
                "fsync=off"
            };
            let settings = ["listen_addresses=", fsync, "timezone=UTC"];
            for setting in settings {
                command.args(["-c", setting]);
            }
            let mut process = Process::start(&mut command);
            // It refuses to start while processes of the killed one are there.
            let is_ready = until("state of PostgreSQL", PATIENCE, || {
                if process.stderr().iter().any(|line| line.contains(READY)) {
                    return Some(true);
                }
                (!process.is_running()).then_some(false)
            });
            is_ready.then_some(process)
        });
        *self.process() = Some(started);
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a folder to the user of the server.
    fn give(&self, folder: &Path) {
        if let Some((user, group)) = self.user {
            chown(folder, Some(user), Some(group))
                .unwrap_or_else(|e| panic!("{} cannot be given away: {e}", folder.display()));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

/// Folder of the programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(Path::new(VERSIONS)).ok()?;
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let installed =
        folders.filter(|folder| folder.join("postgres").exists() && folder.join("initdb").exists());
    installed.max()
}

/// User and group that Debian's package has made.
fn user() -> (u32, u32) {
    let id = |option: &str| {
        let ended = Process::start(Command::new("id").args([option, "postgres"])).wait(PATIENCE);
        let id = ended.stdout.trim().parse();
        id.unwrap_or_else(|_| panic!("there is no user postgres: {}", ended.stderr))
    };
    (id("-u"), id("-g"))
}
