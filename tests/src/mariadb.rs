//! MariaDB as a process of its own, with a temporary folder. A test can kill and restart it; it ends with its handle.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::process::Process;
use crate::{PATIENCE, skipped, until};

/// Places of the server. Users have no `/usr/sbin` in their path.
const PROGRAMS: [&str; 2] = ["/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd"];
/// End of the line of a server that takes connections.
const READY: &str = "ready for connections";

/// A running server, which listens on a socket in its folder. Its user is `root`, without a password.
#[derive(Debug)]
pub struct MariaDb {
    program: &'static str,
    process: Mutex<Option<Process>>,
    folder: TempDir,
}

impl MariaDb {
    /// Starts a server with new tables. If MariaDB is not installed, it says so and returns `None`.
    pub fn start() -> Option<Self> {
        let found = PROGRAMS
            .into_iter()
            .find(|program| Path::new(program).exists());
        let Some(program) = found else {
            let why = "MariaDB is not installed here (Debian: apt-get install mariadb-server)";
            skipped("mariadb", why);
            return None;
        };
        let folder = tempfile::Builder::new().prefix("crawler-my-").tempdir();
        let folder = folder.unwrap_or_else(|e| panic!("no temporary folder: {e}"));
        let server = Self {
            program,
            process: Mutex::new(None),
            folder,
        };
        let mut command = Command::new("mariadb-install-db");
        command.args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]);
        let ended = Process::start(server.at_home(&mut command)).wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
        server.restart();
        Some(server)
    }

    /// URL of one of its databases, for this user.
    pub fn url(&self, user: &str, database: &str) -> String {
        let socket = self.folder.path().join("s");
        format!(
            "mysql://{user}@localhost/{database}?socket={}",
            socket.display()
        )
    }

    /// Folder with the tables of a database.
    pub fn folder(&self, database: &str) -> PathBuf {
        self.folder.path().join("data").join(database)
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) {
        if let Some(mut process) = self.process().take() {
            process.kill();
        }
    }

    /// Starts it again after a kill, and waits until it takes connections.
    pub fn restart(&self) {
        let started = until("start of MariaDB", PATIENCE, || {
            let mut command = Command::new(self.program);
            command.args([
                "--no-defaults",
                "--skip-networking",
                "--innodb-flush-log-at-trx-commit=2",
            ]);
            let socket = self.folder.path().join("s");
            command.arg(format!("--socket={}", socket.display()));
            let mut process = Process::start(self.at_home(&mut command));
            let is_ready = until("state of MariaDB", PATIENCE, || {
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

    fn at_home<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let data = self.folder.path().join("data");
        command.arg(format!("--datadir={}", data.display()));
        // A server that starts removes what others have in a folder for temporary tables.
        command.arg(format!("--tmpdir={}", self.folder.path().display()));
        if rustix::process::getuid().is_root() {
            command.arg("--user=root");
        }
        command.current_dir(self.folder.path())
    }
}
