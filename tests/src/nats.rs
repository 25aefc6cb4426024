//! A server of NATS with JetStream as a process of its own, on a free port and with a temporary folder. A test can kill,
//! freeze and restart it; it ends with its handle.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::process::Process;
use crate::{PATIENCE, setting, skipped, until};

/// Number of attempts to start: a port is free when it is chosen, but another process may use it first.
const N_STARTS: usize = 5;
/// Line of a server that takes connections.
const READY: &str = "Server is ready";

/// A running server.
#[derive(Debug)]
pub struct Nats {
    program: PathBuf,
    arguments: Vec<String>,
    port: u16,
    process: Mutex<Option<Process>>,
    folder: TempDir,
}

impl Nats {
    /// Starts a server without streams, with further arguments. If there is no program, it says so and returns `None`.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let program = program()?;
        let started = (0..N_STARTS).find_map(|_| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
            let port = listener.local_addr().expect("it is bound").port();
            drop(listener);
            let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"));
            let server = Self {
                program: program.clone(),
                arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
                port,
                process: Mutex::new(None),
                folder,
            };
            server.try_start().then_some(server)
        });
        Some(started.expect("the server starts on one of the free ports"))
    }

    /// URL of the server, without a user.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) {
        if let Some(mut process) = self.process().take() {
            process.kill();
        }
    }

    /// Starts it again after a kill, and waits until it takes connections.
    pub fn restart(&self) {
        until("start of NATS", PATIENCE, || self.try_start().then_some(()));
    }

    /// Stops it in the middle of whatever it does. Connections stay open, and nobody answers.
    pub fn freeze(&self) {
        let process = self.process();
        process.as_ref().expect("it runs").freeze();
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        let process = self.process();
        process.as_ref().expect("it runs").thaw();
    }

    /// Starts the program. Returns false if it ends before it is ready.
    fn try_start(&self) -> bool {
        let mut command = Command::new(&self.program);
        command
            .current_dir(self.folder.path())
            .args([
                "-a",
                "127.0.0.1",
                "-p",
                &self.port.to_string(),
                "-js",
                "-sd",
            ])
            .arg(self.folder.path().join("store"))
            .args(&self.arguments);
        let mut process = Process::start(&mut command);
        let is_ready = until("state of NATS", PATIENCE, || {
            if process.stderr().iter().any(|line| line.contains(READY)) {
                return Some(true);
            }
            (!process.is_running()).then_some(false)
        });
        if is_ready {
            *self.process() = Some(process);
        }
        is_ready
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the program, or `None` if it is not there. `tests/run` unpacks the package where it is not installed: installing
/// it would start a service.
fn program() -> Option<PathBuf> {
    const NAME: &str = "nats-server";
    let unpacked = setting("CRAWLER_NATS").map(|folder| Path::new(&folder).join(NAME));
    let installed = Path::new("/usr/sbin").join(NAME);
    let named = [unpacked, Some(NAME.into()), Some(installed)];
    let mut there = named.into_iter().flatten().filter(|program| {
        let told = Command::new(program).arg("--version").output();
        told.is_ok_and(|told| told.status.success())
    });
    let found = there.next();
    if found.is_none() {
        skipped(
            "nats",
            "NATS is not installed (Debian: the package nats-server)",
        );
    }
    found
}
