//! `crawler top`: a terminal shows the cluster, and is left as it was found.

use std::fs;
use std::io::{PipeWriter, Write as _};
use std::path::Path;
use std::process::Command;

use crawler_tests::process::{Ended, Home, Process, program};
use crawler_tests::up::Up;
use crawler_tests::{PATIENCE, skipped, until};

/// Sequences with which a terminal begins and ends to show something else than before.
const TAKEN: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";
/// Sequences with which a terminal begins and ends to tell pasted text from keys.
const PASTES_ARE_TOLD: &str = "\u{1b}[?2004h";
const PASTES_ARE_KEYS: &str = "\u{1b}[?2004l";

/// Shows a cluster without resources in a terminal, has it ended, and checks that the terminal is as it was before.
#[track_caller]
fn ended_in_a_terminal(end: impl FnOnce(&Home, &mut PipeWriter)) -> Option<Ended> {
    if !Path::new("/usr/bin/script").exists() {
        skipped("script", "script (bsdutils) is not installed here");
        return None;
    }
    let home = Home::new();
    let up = Up::start(&home, &[]);
    let master = up.process.word_after("listening grpc=", PATIENCE);
    let program = program();
    let view = format!(
        "exec {} top --every 500ms --master http://{master}",
        program.display()
    );
    let line = format!(
        "stty rows 24 cols 80; stty -g > before; sh -c 'echo $$ > id; {view}'; code=$?; stty -g > after; exit $code"
    );
    let mut command = Command::new("script");
    command.args([
        "--quiet",
        "--flush",
        "--return",
        "--command",
        &line,
        "shown",
    ]);
    command
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env_remove("CRAWLER_TOKEN");
    let (keys, mut typed) = std::io::pipe().expect("there is room for a pipe");
    let mut process = Process::start_with(&mut command, keys);
    let read = |name: &str| fs::read(home.path().join(name)).unwrap_or_default();
    let shown = || String::from_utf8_lossy(&read("shown")).into_owned();
    // The answer of the master: there is a worker, and there are no resources.
    until("view of the cluster", PATIENCE, || {
        let shown = shown();
        let is_there = shown.contains("worker") && shown.contains("resources");
        (is_there || !process.is_running()).then_some(())
    });
    end(&home, &mut typed);
    let ended = process.wait(PATIENCE);
    let shown = shown();
    let (_, after) = shown.split_once(TAKEN).expect("the terminal was taken");
    let (view, after) = after.split_once(LEFT).expect("the terminal was left");
    assert!(view.contains(PASTES_ARE_TOLD) && view.contains(PASTES_ARE_KEYS));
    assert!(!after.contains(TAKEN) && !after.contains(LEFT), "{after:?}");
    assert!(after.contains("\u{1b}[?25h"), "{after:?}");
    assert_eq!(read("before"), read("after"));
    assert!(!read("before").is_empty());
    up.stop();
    Some(ended)
}

#[test]
fn q_ends_the_view_and_leaves_the_terminal_as_it_was() {
    let ended = ended_in_a_terminal(|_, typed| {
        typed.write_all(b"q").expect("the terminal is read");
    });
    if let Some(ended) = ended {
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let ended = ended_in_a_terminal(|home, _| {
        let id = fs::read_to_string(home.path().join("id")).expect("it was written");
        let mut kill = Command::new("kill");
        let status = kill.args(["-TERM", id.trim()]).status();
        assert!(status.expect("there is a kill").success());
    });
    if let Some(ended) = ended {
        assert_eq!(ended.code, Some(130), "{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn without_a_terminal_the_way_out_is_named() {
    let ended = Home::new().run(["top"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert_eq!(
        ended.stderr,
        "error: crawler top needs a terminal for its input and its output\n\
         hint: elsewhere, use `crawler resource list` and `crawler node list`; both take -o json\n"
    );
}
