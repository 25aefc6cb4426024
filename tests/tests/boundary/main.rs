//! The boundary between the crawler and plugins is frozen: `plugin-sdk/wit/rules.wit` may grow, but components
//! that were built for it still run.
//!
//! It is compared with the folder `tests/golden/0.1.0`, whose README says what is in it, and how it was made.
//!
//! ```text
//! change   whether a text may take the place of an earlier one
//! golden   components that were built for the frozen text, on the host of today and on one that has grown
//! ```

use std::fs;
use std::path::PathBuf;

use crawler_tests::guests::frozen;
use crawler_tests::repository;

mod change;
mod golden;

use change::change;

const WHAT_TO_DO: &str = "what people have built for it has to run on. What is new comes by a function of an interface that \
    plugins import, or by an interface more that they may import, and raises the version of the package to 0.1.1, 0.1.2 and \
    so on. What cannot be said so is a package crawler:rules@0.2.0 in a file of its own, with bindings of its own in \
    host/plugin/src beside those of 0.1. The folder tests/golden/0.1.0 is never changed";

fn text(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{} cannot be read: {e}", path.display()))
}

fn frozen_text() -> String {
    text(frozen("rules.wit"))
}

#[test]
fn the_boundary_of_today_takes_every_component_that_was_built_for_the_frozen_one() {
    let today = text(repository().join("plugin-sdk/wit/rules.wit"));
    let version = match change(&frozen_text(), &today) {
        Ok(version) => version,
        Err(why) => panic!(
            "plugin-sdk/wit/rules.wit is no longer what was frozen as 0.1.0: {why}; {WHAT_TO_DO}"
        ),
    };
    assert_eq!(
        crawler_plugin::INTERFACE_VERSIONS,
        ("0.1.0", version.as_str()),
        "the versions that the host says it runs, in host/plugin/src/lib.rs, are the frozen one to that of rules.wit"
    );
}

/// Returns the frozen text with edits; each edited part occurs once.
#[track_caller]
fn edited(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(frozen_text(), |text, (what, with)| {
        assert_eq!(text.matches(what).count(), 1, "{what:?} is there once");
        text.replace(what, with)
    })
}

const BROKEN: &str = "what is there is not what it was";
const NEXT: (&str, &str) = ("crawler:rules@0.1.0;", "crawler:rules@0.1.1;");

#[track_caller]
fn taken(edits: &[(&str, &str)], version: &str) {
    assert_eq!(
        change(&frozen_text(), &edited(edits)),
        Ok(version.to_owned())
    );
}

#[track_caller]
fn refused(edits: &[(&str, &str)], why: &str) {
    match change(&frozen_text(), &edited(edits)) {
        Ok(version) => panic!("{edits:?} was taken, as {version}"),
        Err(said) => assert!(said.contains(why), "{edits:?} was refused as: {said}"),
    }
}

#[test]
fn what_a_component_need_not_import_may_be_added_by_a_later_version() {
    taken(&[], "0.1.0");
    taken(
        &[("/// Nouns that both sides share.", "/// Nouns.")],
        "0.1.0",
    );
    let depth = "    depth: func() -> u32;";
    let language = format!("{depth}\n    language: func() -> option<string>;");
    taken(&[(depth, &language), NEXT], "0.1.1");
    let world = "world plugin {";
    let cookies = format!(
        "interface cookies {{ use types.{{named}}; all: func() -> list<named>; }}\n{world}\n    import cookies;"
    );
    taken(&[(world, &cookies), NEXT], "0.1.1");
    // The text has one more type, and another world beside the old one.
    let types = "interface types {";
    let place = format!("{types}\n    record place {{ line: u32 }}");
    let used = "use types.{named, captures, extract-error};";
    let uses = format!("{used}\n    use types.{{place}};\n    found-at: func() -> place;");
    let login = format!(
        "interface login {{ login: func(); }}\nworld plugin-with-login {{ include plugin; export login; }}\n{world}"
    );
    taken(
        &[(types, &place), (used, &uses), (world, &login), NEXT],
        "0.1.1",
    );
}

#[test]
fn what_is_there_is_never_changed_by_any_version() {
    let check = |what: &str, with: &str| {
        refused(&[(what, with)], BROKEN);
        refused(&[(what, with), NEXT], BROKEN);
    };
    let json_schema = "        json-schema: string,\n";
    check(
        json_schema,
        "        json-schema: string,\n        key: string,\n",
    );
    check(json_schema, "");
    check(json_schema, "        json-schema: option<string>,\n");
    check(json_schema, "        schema: string,\n");
    check(
        "        retry(retry),\n",
        "        retry(retry),\n        gone(string),\n",
    );
    check("        too-large(string),\n", "");
    check(
        "enum level { debug, info, warn, error }",
        "enum level { trace, debug, info, warn, error }",
    );
    check(
        "enum level { debug, info, warn, error }",
        "enum level { info, debug, warn, error }",
    );
    check("    depth: func() -> u32;\n", "");
    check("    depth: func() -> u32;\n", "    depth: func() -> u64;\n");
    check(
        "write: func(level: level, message: string);",
        "write: func(level: level, message: string, place: string);",
    );
    check("write: func(level: level", "write: func(importance: level");
    check("    import config;\n", "");
}

#[test]
fn what_plugins_export_stays_as_it_is() {
    let root = "    root: func() -> result<_, rule-error>;\n";
    let stop = format!("{root}    stop: func();\n");
    let parse = "parse: func(rule: u32)";
    let export = "    export rules;\n";
    for (what, with) in [
        (root, stop.as_str()),
        (root, ""),
        (parse, "parse: func(rule: u32, attempt: u32)"),
        (export, "    export rules;\n    export stop: func();\n"),
        (export, ""),
    ] {
        refused(&[(what, with)], BROKEN);
        refused(&[(what, with), NEXT], BROKEN);
    }
}

#[test]
fn the_version_tells_what_a_host_has() {
    let depth = "    depth: func() -> u32;";
    let language = format!("{depth}\n    language: func() -> option<string>;");
    refused(
        &[(depth, &language)],
        "it has grown, and is still version 0.1.0",
    );
    for unreached in [
        "world two { include plugin; }\n",
        "interface cookies { clear: func(); }\n",
    ] {
        let world = "world plugin {";
        refused(
            &[(world, &format!("{unreached}{world}"))],
            "it has grown, and is still version 0.1.0",
        );
    }
    for version in ["0.2.0", "1.0.0", "0.0.9", "0.1.1-rc1"] {
        refused(
            &[("@0.1.0;", &format!("@{version};"))],
            &format!("its version is {version}"),
        );
    }
    refused(&[("@0.1.0;", ";")], "crawler:rules has no version");
    refused(
        &[("package crawler:rules@", "package crawler:rule@")],
        "not the same",
    );
    refused(
        &[("world plugin {", "world plugins {")],
        "there is no world plugin",
    );
    refused(&[("world plugin {", "world plugin {{")], "expected");
}
