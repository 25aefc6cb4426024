//! Chromium with a profile of its own, driven by a script in Node.js, as a reader would use a page.

use std::io::{PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Home, Process};
use crate::{PATIENCE, skipped};

/// Names of the program.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Runs the cases of a script that needs no browser, if Node.js is there.
#[track_caller]
pub fn node_test(script: &Path) {
    let Some(node) = node() else {
        return;
    };
    let home = Home::new();
    let script = script.display().to_string();
    run(&mut home.command_of(&node, ["--test", script.as_str()]));
}

/// Runs a script to its end, which must be a success. It gets the path of Chromium, a folder for the profile, and these
/// arguments. If a program is missing, it says so and does nothing.
#[track_caller]
pub fn walk(script: &Path, arguments: &[&str]) {
    let home = Home::new();
    if let Some(mut command) = command(&home, script, arguments) {
        run(&mut command);
    }
}

/// A script that goes on for as long as a test asks it: each line of its input is a question, and a line of its output
/// is the answer, behind the number of the question and a space. Dropping it ends the browser too.
#[derive(Debug)]
pub struct Dialogue {
    process: Process,
    questions: PipeWriter,
    n_asked: usize,
    /// Folder of the profile.
    _home: Home,
}

impl Dialogue {
    /// Starts a script, which gets the arguments that [`walk`] gives one. If a program is missing, it says so and
    /// returns `None`.
    #[track_caller]
    pub fn start(script: &Path, arguments: &[&str]) -> Option<Self> {
        let home = Home::new();
        let mut command = command(&home, script, arguments)?;
        let (input, questions) =
            std::io::pipe().unwrap_or_else(|e| panic!("no pipe for the questions: {e}"));
        let process = Process::start_with(&mut command, input);
        Some(Self {
            process,
            questions,
            n_asked: 0,
            _home: home,
        })
    }

    /// Asks a question, which is one line, and returns the answer.
    #[track_caller]
    pub fn ask(&mut self, question: &str) -> String {
        self.n_asked += 1;
        writeln!(self.questions, "{question}")
            .unwrap_or_else(|e| panic!("the script takes no question: {e}"));
        let number = format!("{} ", self.n_asked);
        let what = format!("answer to {question}");
        let is_answer = |line: &str| line.starts_with(&number);
        let line = self.process.answer(&what, PATIENCE, is_answer);
        line[number.len()..].to_owned()
    }

    /// Ends the input of the script, whose end must be a success.
    #[track_caller]
    pub fn close(self) {
        let Self {
            mut process,
            questions,
            n_asked: _,
            _home,
        } = self;
        drop(questions);
        let ended = process.wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}

/// Returns the command of a script that uses Chromium. If a program is missing, it says so and returns `None`.
fn command(home: &Home, script: &Path, arguments: &[&str]) -> Option<Command> {
    let node = node()?;
    let Some(chromium) = found(&PROGRAMS) else {
        skipped(
            "chromium",
            "Chromium, which shows the page, is not installed (Debian: apt-get install chromium)",
        );
        return None;
    };
    let profile = home.path().join("profile");
    let paths = [script, &chromium, &profile].map(|path| path.display().to_string());
    let paths = paths.iter().map(String::as_str);
    Some(home.command_of(&node, paths.chain(arguments.iter().copied())))
}

#[track_caller]
fn run(command: &mut Command) {
    let ended = Process::start(command).wait(2 * PATIENCE);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
}

/// Returns Node.js, or says that it is missing.
fn node() -> Option<PathBuf> {
    let node = found(&["node"]);
    if node.is_none() {
        skipped("node", "Node.js, which runs the scripts, is not installed");
    }
    node
}

/// Returns the first of these programs that tells its version.
fn found(programs: &[&str]) -> Option<PathBuf> {
    let tells = |program: &&&str| {
        let told = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        told.is_ok_and(|told| told.status.success())
    };
    programs.iter().find(tells).map(PathBuf::from)
}
