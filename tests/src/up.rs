//! A running `crawler up` that may crawl loopback, called as a user calls it.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::process::{Ended, Home, Process};
use crate::{PATIENCE, until};

/// A master and a worker in one process.
pub struct Up {
    /// The process.
    pub process: Process,
    master: String,
    folder: std::path::PathBuf,
}

impl Up {
    /// Starts it in a home; data of an earlier start is there again.
    #[track_caller]
    pub fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::try_start(home, arguments)
            .unwrap_or_else(|ended| panic!("up ended before it listened:\n{}", ended.stderr))
    }

    /// Starts it. Returns its end if it ends before it listens.
    #[track_caller]
    pub fn try_start(home: &Home, arguments: &[&str]) -> Result<Self, Ended> {
        let mut process = Process::start(&mut Self::command(home, arguments));
        let mark = "listening grpc=";
        let line = until("address or end of up", PATIENCE, || {
            let lines = process.stderr();
            let listening = lines.into_iter().find(|line| line.contains(mark));
            listening
                .map(Some)
                .or((!process.is_running()).then_some(None))
        });
        if line.is_none() {
            return Err(process.wait(PATIENCE));
        }
        let master = format!("http://{}", process.word_after(mark, PATIENCE));
        Ok(Self {
            process,
            master,
            folder: home.path().to_owned(),
        })
    }

    /// Returns the command that starts it, for further settings.
    pub fn command(home: &Home, arguments: &[&str]) -> Command {
        let usual = [
            "up",
            "--http=:0",
            "--grpc=:0",
            "--data=data",
            "--state=state",
        ];
        let allow = ["--allow-networks=127.0.0.0/8"];
        home.command(usual.iter().chain(&allow).chain(arguments))
    }

    /// Returns a command that calls this master.
    pub fn client<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(crate::process::program());
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("NO_COLOR", "1")
            .env("CRAWLER_MASTER", &self.master);
        command
    }

    /// Runs a command that calls this master.
    #[track_caller]
    pub fn cli<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        Process::start(&mut self.client(arguments)).wait(PATIENCE)
    }

    /// Runs a command that must succeed; returns its stdout.
    #[track_caller]
    pub fn ok<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> String {
        let ended = self.cli(arguments);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    }

    /// Returns a resource as JSON.
    #[track_caller]
    pub fn resource(&self, name: &str) -> Value {
        let text = self.ok(["resource", "get", name, "-o", "json"]);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e} in {text:?}"))
    }

    /// Waits until a resource is as wished; panics at once if its run cannot go on.
    #[track_caller]
    pub fn wait_for(
        &self,
        name: &str,
        what: &str,
        deadline: Duration,
        wished: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = Value::Null;
        let started = std::time::Instant::now();
        loop {
            let seen = self.resource(name);
            if wished(&seen) {
                return seen;
            }
            assert_ne!(seen["phase"], "Failed", "no {what}: {seen}");
            assert!(
                started.elapsed() < deadline,
                "no {what} within {deadline:?}: {seen}, before it {last}"
            );
            last = seen;
            crate::pause();
        }
    }

    /// Waits until the run of a resource is over.
    #[track_caller]
    pub fn finished(&self, name: &str, deadline: Duration) -> Value {
        self.wait_for(name, "end of the run", deadline, |seen| {
            seen["phase"] == "Finished"
        })
    }

    /// Ends it by Ctrl-C, which must succeed.
    #[track_caller]
    pub fn stop(mut self) {
        self.process.interrupt();
        let ended = self.process.wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}
