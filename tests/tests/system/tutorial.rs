//! The tutorial of the SDK, run as it is written: each command in one shell, in a network of its own, so that the
//! ports that it names are free.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crawler_tests::process::{Home, Process, program};
use crawler_tests::{repository, skipped};

/// Deadline of the tutorial, which includes builds of plugins.
const DEADLINE: Duration = Duration::from_secs(900);
/// Beginnings of the lines that cargo prints while it builds.
const OF_CARGO: [&str; 6] = [
    "Compiling ",
    "Finished ",
    "Updating ",
    "Locking ",
    "Adding ",
    "Blocking ",
];

/// A step of the tutorial.
#[derive(Debug)]
enum Step {
    /// A command, and its output.
    Command { typed: String, prints: Vec<String> },
    /// A change of files.
    Patch(String),
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let block = lines.by_ref().take_while(|line| *line != "```");
        match line {
            "```console" => commands(block, &mut steps),
            "```diff" => {
                let patch = block.map(|line| format!("{line}\n"));
                steps.push(Step::Patch(patch.collect()));
            }
            "```text" => block.for_each(drop),
            _ => {
                drop(block);
                continue;
            }
        }
    }
    steps
}

fn commands<'a>(block: impl Iterator<Item = &'a str>, steps: &mut Vec<Step>) {
    for line in block {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(typed), _) => steps.push(Step::Command {
                typed: typed.to_owned(),
                prints: Vec::new(),
            }),
            (None, Some(Step::Command { prints, .. })) => prints.push(line.to_owned()),
            (None, _) => panic!("a console block begins with what is printed: {line}"),
        }
    }
}

/// Brings the network up, and waits until the log of a process says that it is ready, as a person at the terminal
/// would.
const IS_THERE: &str = r#"ip link set lo up || exit 77
is_there() {
    for _ in $(seq 600); do
        grep -qE 'is open at|ready to serve' "$1" && return
        grep -q 'listening' "$1" && grep -q 'joined node=' "$1" && return
        sleep 0.1
    done
    cat "$1"
    return 1
}
"#;

/// Returns a shell script of all steps, which marks the start of each output and the exit code.
fn script(steps: &[Step]) -> String {
    let mut script = IS_THERE.to_owned();
    for (n, step) in steps.iter().enumerate() {
        let run = match step {
            Step::Patch(patch) => format!("patch -p0 <<'END'\n{patch}END\n"),
            Step::Command { typed, .. } => match typed.strip_suffix(" &") {
                Some(typed) => format!("{typed} >$LOGS/{n} 2>&1 &\nis_there $LOGS/{n}\n"),
                None => format!("{typed}\n"),
            },
        };
        // The code of a pipe is that of its last command, as in a terminal.
        write!(
            script,
            "echo; echo @@{n}\n{run}code=$?; echo; echo @@{n}=$code $EPOCHREALTIME\n"
        )
        .expect("a text takes it");
    }
    script + "kill $(jobs -p) 2>/dev/null\nwait\n"
}

/// Returns the output of step `n`, its exit code, and the time of its end, in seconds.
fn output(all: &str, n: usize) -> Option<(Vec<&str>, i32, f64)> {
    let (_, from) = all.split_once(&format!("\n@@{n}\n"))?;
    let (printed, code) = from.split_once(&format!("\n@@{n}="))?;
    let (code, ended) = code.lines().next()?.split_once(' ')?;
    let (code, ended) = (code.parse().ok()?, ended.parse().ok()?);
    let lines = printed.lines();
    let mut lines: Vec<&str> = lines
        .filter(|line| {
            !OF_CARGO
                .iter()
                .any(|word| line.trim_start().starts_with(word))
        })
        .collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    Some((lines, code, ended))
}

/// Returns true if lines are as the tutorial shows them: a line `…` stands for any lines, and `…` within a line
/// for any text.
fn is_as_told(told: &[String], lines: &[&str]) -> bool {
    match told.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=lines.len()).any(|n| is_as_told(rest, &lines[n..]))
        }
        Some((first, rest)) => lines.split_first().is_some_and(|(line, lines)| {
            is_line_as_told(first, line.trim_end()) && is_as_told(rest, lines)
        }),
    }
}

fn is_line_as_told(told: &str, line: &str) -> bool {
    let mut parts = told.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut line) = line.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return line.is_empty();
    };
    for part in parts {
        match line.find(part) {
            Some(at) => line = &line[at + part.len()..],
            None => return false,
        }
    }
    line.ends_with(last)
}

fn has(program: &str) -> bool {
    let mut which = Command::new("sh");
    let found = which
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|found| found.status.success())
}

#[test]
fn the_tutorial_is_true() {
    for needed in ["etcd", "unshare", "ip", "patch"] {
        if !has(needed) {
            return skipped("tutorial", &format!("there is no {needed}"));
        }
    }
    let text = repository().join("plugin-sdk/src/tutorial.md");
    let steps = steps(&fs::read_to_string(text).expect("the SDK has a tutorial"));
    assert!(steps.len() > 20, "{steps:?}");
    let home = Home::new();
    for folder in ["bin", "logs", "work"] {
        fs::create_dir(home.path().join(folder)).expect("the home is empty");
    }
    std::os::unix::fs::symlink(program(), home.path().join("bin/crawler")).expect("a link is made");
    let path = format!(
        "{}:{}",
        home.path().join("bin").display(),
        Path::new(env!("CARGO"))
            .parent()
            .expect("it lies in a folder")
            .display()
    );
    let script = home.write("tutorial.sh", &script(&steps));
    let mut shell = Command::new("unshare");
    shell
        .args(["--map-root-user", "--net", "bash", "-c"])
        .arg(format!(r#"PATH="{path}:$PATH"; . "$0" 2>&1"#))
        .arg(&script)
        .current_dir(home.path().join("work"))
        .env("LOGS", home.path().join("logs"))
        .env("XDG_STATE_HOME", home.path().join("state"))
        .env("CARGO_TARGET_DIR", repository().join("plugins/target"))
        .env("CARGO_NET_OFFLINE", "true")
        .env("NO_COLOR", "1")
        // Numbers of seconds are written with a point.
        .env("LC_ALL", "C.UTF-8");
    let ended = Process::start(&mut shell).wait(DEADLINE);
    if ended.code == Some(77) || ended.stdout.is_empty() && ended.code != Some(0) {
        return skipped("tutorial", "no network of its own can be had here");
    }
    let mut before = None;
    for (n, step) in steps.iter().enumerate() {
        let Some((lines, code, ended_at)) = output(&ended.stdout, n) else {
            panic!("{step:?} does not end:\n{}", ended.stdout);
        };
        let told = match step {
            Step::Patch(_) => &["…".to_owned()][..],
            Step::Command { prints, .. } => prints,
        };
        let fails = told.iter().any(|line| line.starts_with("error: "));
        let shown = lines.join("\n");
        assert!(
            is_as_told(told, &lines),
            "{step:?} prints otherwise:\n{shown}"
        );
        assert_eq!(code != 0, fails, "{step:?} ends with {code}:\n{shown}");
        let took = before.map_or(0.0, |before| ended_at - before);
        before = Some(ended_at);
        if let Step::Command { typed, .. } = step {
            println!("{took:>6.1} s {typed}");
        }
    }
}
