//! The tutorial of the SDK, run as it is written: each command in one shell, in a network of its own, so that the
//! ports that it names are free.

use std::fs;
use std::time::Instant;

use crawler_tests::repository;

use crate::pages::blocks::{self, Command, blocks};
use crate::pages::output::is_as_shown;
use crate::pages::shell::{Shell, Stage};

/// A step of the tutorial.
#[derive(Debug)]
enum Step {
    /// A command, and its output.
    Command(Command),
    /// A change of files.
    Patch(String),
}

fn steps(text: &str) -> Vec<Step> {
    let blocks = blocks(text).into_iter();
    let steps = blocks.flat_map(|block| match block.info.as_str() {
        blocks::RUN => block.commands().into_iter().map(Step::Command).collect(),
        "diff" => vec![Step::Patch(block.lines.join("\n"))],
        _ => Vec::new(),
    });
    steps.collect()
}

#[track_caller]
fn take(shell: &mut Shell, step: &Step) {
    match step {
        Step::Patch(patch) => {
            shell.ok(&format!("patch -p0 <<'END'\n{patch}\nEND"));
        }
        Step::Command(Command { typed, prints }) => match typed.strip_suffix(" &") {
            Some(server) => {
                shell.serve(server);
                shell.wait_for_servers();
                assert!(prints.is_empty(), "{typed} is shown with an output");
            }
            None => {
                let output = shell.run(typed);
                let printed = output.lines.join("\n");
                assert!(
                    is_as_shown(prints, &output.lines),
                    "{step:?} prints otherwise:\n{printed}"
                );
                let fails = prints.iter().any(|line| line.starts_with("error: "));
                let code = output.code;
                assert_eq!(code != 0, fails, "{step:?} ends with {code}:\n{printed}");
            }
        },
    }
}

#[test]
fn the_tutorial_is_true() {
    let text = repository().join("plugin-sdk/src/tutorial.md");
    let steps = steps(&fs::read_to_string(text).expect("the SDK has a tutorial"));
    assert!(steps.len() > 20, "{steps:?}");
    let Some(stage) = Stage::new("tutorial", &["etcd", "patch"]) else {
        return;
    };
    let Some(mut shell) = stage.open("tutorial", "work", &[]) else {
        return;
    };
    for step in &steps {
        let started = Instant::now();
        take(&mut shell, step);
        if let Step::Command(Command { typed, .. }) = step {
            println!("{:>6.1} s {typed}", started.elapsed().as_secs_f64());
        }
    }
    shell.stop();
    shell.end();
}
