//! Params that plugins declare, in each language: a check tells them, and a resource that does not fit is refused.

use crawler_tests::guests;
use crawler_tests::process::Home;

use super::tools::{javascript, python};
use crate::server::Server;

/// Sentence about the param of a new plugin.
const ABOUT: &str = "Address of the first list page";

/// Returns the lines of a check, with single spaces.
fn lines(checked: &str) -> Vec<String> {
    let words = checked.lines().map(str::split_whitespace);
    let words = words.map(|words| words.collect::<Vec<_>>().join(" "));
    words.collect()
}

/// Table of the params of a plugin: name, default or whether it has to be given, and sentence.
const TABLES: [(&str, &[&str]); 4] = [
    (
        "books",
        &[
            "PARAM DEFAULT",
            "start http://127.0.0.1:8000/catalogue/page-1.html Address of the first list page",
        ],
    ),
    (
        "login",
        &[
            "PARAM DEFAULT",
            "password has to be given Password of the account",
            "start has to be given Address of the first page of orders",
            "user has to be given Account name",
        ],
    ),
    (
        "rustdoc",
        &[
            "PARAM DEFAULT",
            "below may be missing Prefixes of the paths that belong to the site, separated alike; the folders of start if not given",
            "start has to be given Addresses of the starting pages, separated by commas or white space",
        ],
    ),
    ("puppet", &["params any"]),
];

/// Checks that a text has the table of a plugin's params, and that it ends there.
#[track_caller]
fn check_table(name: &str, shown: &str, table: &[&str]) {
    let shown = lines(shown);
    let begin = shown.iter().position(|line| line == table[0]);
    let begin = begin.unwrap_or_else(|| panic!("{name}: {shown:?}"));
    let end = begin + table.len();
    assert_eq!(shown[begin..end], *table, "{name}");
    // Shapes of items are another table, whose head follows.
    let next = shown.get(end).map_or("", String::as_str);
    assert!(["", "ITEM FIELD KIND"].contains(&next), "{name}: {next}");
}

#[test]
fn a_check_tells_which_params_have_to_be_given() {
    let home = Home::new();
    for (name, table) in TABLES {
        let guest = guests::guest(name).display().to_string();
        let shown = home.ok(["plugin", "check", &guest]);
        check_table(name, &shown, table);
    }
}

#[test]
fn a_pushed_plugin_is_shown_with_its_params() {
    let server = Server::start();
    for (name, table) in TABLES {
        server.push(name, &[]);
        check_table(name, &server.ok(&["plugin", "get", name]), table);
    }
}

#[test]
fn a_resource_that_does_not_fit_a_script_is_refused() {
    let server = Server::start();
    for (tools, lang) in [(javascript(), "js"), (python(), "python")] {
        let Some(tools) = tools else { continue };
        let (home, name) = (&server.home, format!("kiosk-{lang}"));
        home.ok(["plugin", "new", &name, "--lang", lang]);
        let folder = home.path().join(&name);
        tools.ok(home, &folder, &["plugin", "build"]);
        let checked = tools.ok(home, &folder, &["plugin", "check", "plugin.wasm"]);
        let checked = lines(&checked);
        let row = format!("start has to be given {ABOUT}");
        assert!(checked.contains(&row), "{lang}: {checked:?}");

        let master = format!("--master=http://{}", server.grpc());
        tools.ok(home, &folder, &["plugin", "push", "plugin.wasm", &master]);
        let plugin = format!("plugin {name}@0.1.0");
        let start = "--param=start=http://127.0.0.1:1/";
        for (params, why) in [
            (&[][..], format!("{plugin} needs the param start ({ABOUT})")),
            (
                &[start, "--param=strat=x"][..],
                format!("{plugin} has no param \"strat\""),
            ),
        ] {
            let refused = server.cli(&[&["resource", "add", &name], params].concat());
            assert_eq!(refused.code, Some(1), "{}", refused.stderr);
            assert!(refused.stderr.contains(&why), "{}", refused.stderr);
        }
        server.ok(&["resource", "add", &name, start]);
    }
}
