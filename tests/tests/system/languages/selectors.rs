//! A selector that cannot be followed: each command that loads the plugin tells the line that has it.

use std::fs;
use std::path::Path;

use crawler_tests::process::{Home, Process};

use super::tools::{Tools, javascript, python};
use crate::devtools::BUILD;
use crate::server::Server;

/// Checks the first words of the error that each command ends with. The folder is that of a plugin in whose `rules`
/// the selector is wrong.
#[track_caller]
fn check(tools: &Tools, server: &Server, folder: &Path, rules: &str) {
    let master = format!("--master=http://{}", server.grpc());
    let commands: [(&[&str], &str); 3] = [
        (&["plugin", "check"], "./plugin.wasm is no plugin: "),
        (
            &["plugin", "push", ".", &master],
            "cannot push ./plugin.wasm: ",
        ),
        (
            &["run", ".", "--param=start=http://127.0.0.1:1/"],
            "cannot load ./plugin.wasm: ",
        ),
    ];
    for (command, what) in commands {
        let ended = tools.ended(&server.home, folder, command);
        assert_eq!(ended.code, Some(1), "{command:?}: {}", ended.stderr);
        let error = format!("error: ./{rules}: {what}");
        let said = &ended.stderr;
        assert!(said.contains(&error), "{command:?}, {error}: {said}");
    }

    let home = Home::new();
    let shown = folder.display();
    home.write(
        "crawler.toml",
        &format!("[[plugin]]\npath = {:?}\n", shown.to_string()),
    );
    let mut command = home.command(["up", "--http=:0", "--grpc=:0"]);
    let ended = Process::start(command.env("PATH", tools.path())).wait(BUILD);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let error = format!("{shown}/{rules}: cannot push ");
    assert!(ended.stderr.contains(&error), "{error}: {}", ended.stderr);
}

#[test]
fn a_wrong_selector_is_told_with_its_file_and_line() {
    let server = Server::start();
    for (tools, lang, file) in [
        (javascript(), "js", "src/rules.js"),
        (python(), "python", "src/rules.py"),
    ] {
        let Some(tools) = tools else { continue };
        let name = format!("kiosk-{lang}");
        server.home.ok(["plugin", "new", &name, "--lang", lang]);
        let folder = server.home.path().join(name);
        let rules = folder.join(file);
        let good = fs::read_to_string(&rules).expect("it was made");
        let bad = good.replace("text(\"h1\")", "text(\"h1 +\")");
        let line = bad.lines().position(|line| line.contains("h1 +"));
        let line = line.expect("it is changed") + 1;
        fs::write(&rules, bad).expect("it is changed");
        check(tools, &server, &folder, &format!("{file}:{line}"));
    }
}
