//! A demo that is interrupted, and the traces that must be gone then.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crawler_tests::process::{Home, Process};
use crawler_tests::until;

use crate::SOON;
use crate::proc::{left_over, ports_of, until_it_listens};

/// The demo with a temporary folder of its own.
pub(crate) struct Demo {
    pub(crate) home: Home,
    pub(crate) process: Process,
}

impl Demo {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(crate) fn start_with(change: impl FnOnce(&mut Command)) -> Self {
        let home = Home::new();
        fs::create_dir(home.path().join("tmp")).unwrap();
        let mut command = home.command(["demo"]);
        command.env("TMPDIR", home.path().join("tmp"));
        change(&mut command);
        let process = Process::start(&mut command);
        until_it_listens(&process);
        Self { home, process }
    }

    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home.path().join("tmp")).unwrap();
        let folders = entries.map(|entry| entry.unwrap().path());
        let is_demo = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("crawler-demo-")
        };
        folders.filter(is_demo).collect()
    }

    /// Presses Ctrl-C; everything must be gone then. Returns the exit code.
    pub(crate) fn interrupt(mut self) -> i32 {
        let ports = ports_of(&[self.process.id()]);
        self.process.interrupt();
        let ended = self.process.wait(SOON);
        self.check_nothing_is_left(&ports);
        assert_eq!(self.folders(), Vec::<PathBuf>::new(), "{}", ended.stderr);
        let code = ended
            .code
            .unwrap_or_else(|| panic!("a signal ended it: {}", ended.stderr));
        assert!([0, 130].contains(&code), "code {code}: {}", ended.stderr);
        code
    }

    pub(crate) fn check_nothing_is_left(&self, ports: &BTreeSet<u16>) {
        let gone = "end of all that it has started";
        until(gone, Duration::from_secs(3), || {
            let left = left_over(self.home.path(), self.process.id());
            left.is_empty().then_some(())
        });
        for port in ports {
            let connected = TcpStream::connect(("127.0.0.1", *port));
            assert!(connected.is_err(), "somebody listens on {port}");
        }
    }
}
