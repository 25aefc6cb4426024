//! The commands of the README and of the book: each block of the console is typed into a shell as it stands, or
//! has a reason in `pages/excuses.rs` why it is not.
//!
//! A page that is run has all of its blocks run, in their order. The ports and addresses of the pages are free,
//! because each page has a network of its own; the three machines of a page are three networks behind a switch.

use std::fs;
use std::time::{Duration, Instant};

use crawler_tests::{PATIENCE, pass, repository};

pub(crate) mod blocks;
mod excuses;
mod machines;
pub(crate) mod output;
pub(crate) mod shell;

use blocks::{Command, blocks};
use output::{is_as_shown, without_measures};
use shell::{Shell, Stage};

const INSTALL: &str = "host/docs/src/guide/install.md";
const FIRST_CRAWL: &str = "host/docs/src/guide/first-crawl.md";
const BY_HAND: &str = "host/docs/src/guide/by-hand.md";
const DECLARATIVE: &str = "host/docs/src/guide/declarative.md";
const MANY_MACHINES: &str = "host/docs/src/guide/many-machines.md";

/// Pages whose blocks of the console are run, each by a test below.
const RUN: [&str; 5] = [INSTALL, FIRST_CRAWL, BY_HAND, DECLARATIVE, MANY_MACHINES];

/// Beginnings of commands that run until they are ended. The pages give each a terminal of its own, in the
/// folder of the repository.
const SERVERS: [&str; 6] = [
    "crawler demo --site-only",
    "target/release/crawler demo --site-only",
    "crawler up",
    "crawler master",
    "crawler worker",
    "etcd",
];

/// Beginnings of commands that change nothing, and whose answers depend on what goes on meanwhile. They are
/// asked again until the answer is as shown, as a person does who reads and types between two commands.
const QUESTIONS: [&str; 5] = [
    "crawler frontier",
    "crawler node list",
    "crawler resource get",
    "crawler resource hosts",
    "curl 127.0.0.1:8081",
];

/// Time between two such questions.
const PAUSE: Duration = Duration::from_millis(200);

fn read(page: &str) -> String {
    fs::read_to_string(repository().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// Types all commands of a page or of a part of it.
#[track_caller]
fn type_all(shell: &mut Shell, text: &str) {
    for block in blocks(text) {
        if block.info == blocks::RUN {
            for command in block.commands() {
                type_one(shell, &command);
            }
        }
    }
}

#[track_caller]
#[expect(clippy::print_stdout, reason = "tells how long each command takes")]
fn type_one(shell: &mut Shell, command: &Command) {
    shell.wait_for_servers();
    if is_one_of(&command.typed, &SERVERS) {
        shell.serve_from_repository(&command.typed);
        return;
    }
    if command.typed.starts_with("kill ") {
        shell.kill(&command.typed);
        return;
    }
    let asked = Instant::now();
    loop {
        let output = shell.run(&command.typed);
        let shown = without_measures(&command.prints);
        let is_as_told = shown.is_empty() || is_as_shown(&shown, &without_measures(&output.lines));
        if is_as_told && output.code == 0 {
            println!("{:>6.1} s {}", asked.elapsed().as_secs_f64(), command.typed);
            return;
        }
        let is_final = !is_one_of(&command.typed, &QUESTIONS) || asked.elapsed() > PATIENCE;
        assert!(
            !is_final,
            "{} ends with {} and prints:\n{}\nThe page shows:\n{}",
            command.typed,
            output.code,
            output.lines.join("\n"),
            command.prints.join("\n")
        );
        pass(PAUSE);
    }
}

fn is_one_of(typed: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| {
        let rest = typed.strip_prefix(beginning);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
    })
}

#[test]
fn the_commands_of_a_first_crawl_run() {
    let Some(stage) = Stage::new("first-crawl", &[]) else {
        return;
    };
    let Some(mut shell) = stage.open("first-crawl", "work/crawler", &[]) else {
        return;
    };
    type_all(&mut shell, &read(INSTALL));
    type_all(&mut shell, &read(FIRST_CRAWL));
    let items = fs::read_to_string(stage.path("work/shop/items.jsonl")).expect("items are there");
    assert_eq!(items.lines().count(), 400);
    shell.stop();
    shell.end();
}

#[test]
fn the_commands_of_a_crawl_by_hand_run() {
    let Some(stage) = Stage::new("by-hand", &["curl", "pgrep"]) else {
        return;
    };
    // The page kills by name: processes have a space of their own.
    let further = ["--pid", "--fork", "--mount-proc"];
    let Some(mut shell) = stage.open("by-hand", "work/crawler", &further) else {
        return;
    };
    type_all(&mut shell, &read(BY_HAND));
    let data = stage.path("work/crawler/crawler-data");
    assert!(data.is_dir(), "{} is missing", data.display());
    shell.stop();
    shell.end();
}

#[test]
fn the_commands_of_crawls_in_files_run() {
    let Some(stage) = Stage::new("declarative", &["sed"]) else {
        return;
    };
    let Some(mut shell) = stage.open("declarative", "work/crawler", &[]) else {
        return;
    };
    type_all(&mut shell, &read(DECLARATIVE));
    shell.stop();
    shell.end();
}

/// Heading of the part of the page about clusters whose commands are typed on three machines.
const ON_THREE_MACHINES: &str = "\n## On three machines\n";

#[test]
fn the_commands_of_a_cluster_on_one_machine_run() {
    let Some(stage) = Stage::new("many-machines", &["etcd"]) else {
        return;
    };
    let Some(mut shell) = stage.open("many-machines", "work/crawler", &[]) else {
        return;
    };
    let page = read(MANY_MACHINES);
    let (one, _three) = page
        .split_once(ON_THREE_MACHINES)
        .expect("the part is there");
    shell.ok("alias crawler=$PWD/target/release/crawler");
    type_all(&mut shell, one);
    shell.stop();
    shell.end();
}

#[test]
fn the_commands_of_a_cluster_on_three_machines_run() {
    let Some(stage) = Stage::new("three-machines", &["etcd", "nsenter"]) else {
        return;
    };
    let Some(mut switch) = stage.open("three-machines", "work", &["--mount"]) else {
        return;
    };
    let Some(mut machines) = machines::open(&stage, &mut switch) else {
        return;
    };
    let page = read(MANY_MACHINES);
    let (_one, three) = page
        .split_once(ON_THREE_MACHINES)
        .expect("the part is there");
    machines[0].ok("crawler plugin new ../shop");
    let run = blocks(three)
        .into_iter()
        .filter(|block| block.info == blocks::RUN);
    for block in run {
        // A block that names the address of machine 1 is typed on each machine, with its own.
        let is_for_all = block.lines.iter().any(|line| line.contains(" IP=10.0.0.1"));
        let n_machines = if is_for_all { machines.len() } else { 1 };
        for (machine, n) in machines.iter_mut().zip(1..).take(n_machines) {
            for mut command in block.commands() {
                command.typed = on_machine(&command.typed, n);
                type_one(machine, &command);
            }
        }
        machines.iter_mut().for_each(Shell::wait_for_servers);
    }
    let nodes = machines[0].ok("crawler node list").lines.join("\n");
    let count = |word: &str| nodes.matches(word).count();
    assert_eq!(
        (count(" master "), count(" worker "), count(" leader ")),
        (3, 3, 1),
        "{nodes}"
    );
    let who =
        "crawler resource get shop -o json | grep -o '\"owner\": *\"[^\"]*\"' | sort -u | wc -l";
    let three = Command {
        typed: who.to_owned(),
        prints: vec!["3".to_owned()],
    };
    type_one(&mut machines[0], &three);
    machines.iter_mut().for_each(Shell::stop);
    machines.into_iter().for_each(Shell::end);
}

/// Returns a command with the number and the address of a machine in place of those of machine 1, where it sets
/// them.
fn on_machine(typed: &str, n: usize) -> String {
    match typed.split_once("IP=10.0.0.1") {
        Some((before, "")) => {
            let before = before.replace("N=1", &format!("N={n}"));
            format!("{before}IP=10.0.0.{n}")
        }
        _ => typed.to_owned(),
    }
}
