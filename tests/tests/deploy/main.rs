//! The files of `host/deploy`: the program knows every option and key in them, and the formats of others are kept, as
//! far as this machine can tell.
//!
//! No test starts a container, a cluster of Kubernetes or a unit of systemd.

use std::ffi::OsString;
use std::fs;

use crawler::cli::{Cli, Command};
use crawler::config::Environment;
use crawler_tests::repository;
use serde::Deserialize as _;
use serde_json::Value;

mod chart;
mod compose;
mod credentials;
mod image;
mod monitoring;
mod notify;
mod package;
mod units;

/// Place of the config file on the machines that the files describe.
const CONFIG: &str = "--config=/etc/crawler/crawler.toml";

/// Reads a file below `host/deploy`.
fn read(name: &str) -> String {
    let file = repository().join("host/deploy").join(name);
    fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// Parses the documents of a YAML file. Empty ones are left out.
fn yaml(text: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(text).map(|document| {
        let mut value =
            serde_yaml::Value::deserialize(document).unwrap_or_else(|e| panic!("{e} in:\n{text}"));
        // A table that is merged may bring a merge of its own.
        loop {
            let before = value.clone();
            value.apply_merge().expect("tables are merged");
            if value == before {
                break;
            }
        }
        serde_json::to_value(value).expect("keys are texts")
    });
    documents.filter(|document| !document.is_null()).collect()
}

/// Returns the texts of a list.
#[track_caller]
fn texts(list: &Value) -> Vec<String> {
    let list = list
        .as_array()
        .unwrap_or_else(|| panic!("{list} is no list"));
    let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
    list.iter().map(text).collect()
}

/// Checks that the program accepts a command line. Where it names the config file, that file has the text `config`.
#[track_caller]
fn check_command(words: &[String], config: &str) -> Command {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let file = folder.path().join("crawler.toml");
    fs::write(&file, config).expect("the file can be written");
    let named = words.iter().map(|word| match word == CONFIG {
        true => format!("--config={}", file.display()),
        false => word.clone(),
    });
    let line = ["crawler".to_owned()].into_iter().chain(named);
    match Cli::parse(line.map(OsString::from), &Environment::default()) {
        Ok(cli) => cli.command,
        Err(error) => panic!("{words:?} is not accepted: {error:#}\n{config}"),
    }
}

/// Checks a command line with a health check, the path of the program first.
#[track_caller]
fn check_health(words: &[String]) {
    assert_eq!(words[0], "/usr/bin/crawler");
    let command = check_command(&words[1..], "");
    assert!(matches!(command, Command::Client(_)), "{command:?}");
}

#[test]
#[should_panic(expected = "is not accepted")]
fn an_option_that_the_program_does_not_have_is_found() {
    check_command(&["master".to_owned(), "--leader".to_owned()], "");
}

#[test]
#[should_panic(expected = "is not accepted")]
fn a_key_that_the_program_does_not_have_is_found() {
    check_command(
        &["master".to_owned(), CONFIG.to_owned()],
        "[etcd]\nurl = 'a'\n",
    );
}
