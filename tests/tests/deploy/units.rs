//! Units of systemd: their commands, and what systemd itself says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command as Program;

use crawler::cli::Command;
use crawler_tests::skipped;

use super::{check_command, read};

const UNITS: [&str; 3] = [
    "crawler-master.service",
    "crawler-up.service",
    "crawler-worker@.service",
];
/// Config file of nodes that listen on addresses that others reach, as the examples do.
const TLS: &str = "[tls]\ncertificate = 'node.pem'\nkey = 'node.key'\nca = 'ca.pem'\n";

fn unit(name: &str) -> String {
    read(&format!("systemd/{name}"))
}

/// Returns the values of a key, in their order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let value = |line: &'a str| line.strip_prefix(key)?.strip_prefix('=');
    unit.lines().filter_map(value).collect()
}

/// Returns the options that the example of `/etc/default/crawler` shows, by the names of their variables.
fn examples() -> BTreeMap<String, String> {
    let text = read("systemd/crawler.default");
    let shown = text.lines().filter_map(|line| {
        let (name, options) = line.strip_prefix("#CRAWLER_")?.split_once('=')?;
        Some((
            format!("$CRAWLER_{name}"),
            options.trim_matches('"').to_owned(),
        ))
    });
    shown.collect()
}

#[test]
fn units_start_commands_that_the_program_knows() {
    let examples = examples();
    let mut used = BTreeSet::new();
    for name in UNITS {
        let unit = unit(name);
        let start = values(&unit, "ExecStart");
        let [start] = start.as_slice() else {
            panic!("{name} starts {start:?}");
        };
        let mut words = Vec::new();
        for word in start.replace("%i", "1").split(' ') {
            if word.starts_with('$') {
                let options = examples.get(word);
                let options = options.unwrap_or_else(|| panic!("{word} has no example"));
                words.extend(options.split(' ').map(str::to_owned));
                used.insert(word.to_owned());
            } else {
                words.push(word.to_owned());
            }
        }
        assert_eq!(words.remove(0), "/usr/bin/crawler");
        let command = check_command(&words, TLS);
        let is_server = matches!(
            command,
            Command::Up(_) | Command::Master(_) | Command::Worker(_)
        );
        assert!(is_server, "{command:?}");
    }
    let shown: BTreeSet<String> = examples.into_keys().collect();
    assert_eq!(used, shown);
}

#[test]
fn units_let_the_program_do_what_it_has_to() {
    for name in UNITS {
        let unit = unit(name);
        let one = |key: &str| match values(&unit, key).as_slice() {
            [value] => (*value).to_owned(),
            values => panic!("{name} has {key} as {values:?}"),
        };
        // The program tells when it is ready, however long etcd is away.
        assert_eq!(one("Type"), "notify");
        assert_eq!(one("TimeoutStartSec"), "infinity");
        assert!(!one("WatchdogSec").is_empty());
        // Rules are compiled to machine code, and the program confines itself.
        assert_eq!(one("MemoryDenyWriteExecute"), "no");
        assert!(one("SystemCallFilter").contains("landlock_restrict_self seccomp"));
        let stop = one("TimeoutStopSec");
        let stop: u64 = stop.trim_end_matches('s').parse().unwrap();
        // The default of --drain-timeout, the end of the parts of a process, and its last spans.
        assert!(stop > 15 + 45 + 8, "{stop}");
    }
}

#[test]
fn systemd_knows_every_line_of_the_units() {
    let folder = tempfile::tempdir().unwrap();
    let mut verify = Program::new("systemd-analyze");
    verify.args(["verify", "--man=no"]);
    for name in UNITS {
        // The program of a unit has to be there.
        let text = unit(name).replace("/usr/bin/crawler", "/bin/true");
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        verify.arg(file);
    }
    let ended = match verify.output() {
        Ok(ended) => ended,
        Err(error) => {
            skipped("systemd-analyze", &format!("it does not start ({error})"));
            return;
        }
    };
    // An unknown line is a message, and no failure.
    let said = String::from_utf8_lossy(&ended.stderr);
    let is_about_us = |line: &&str| line.contains("crawler");
    let about_us: Vec<&str> = said.lines().filter(is_about_us).collect();
    assert!(about_us.is_empty(), "{}", about_us.join("\n"));
    assert!(ended.status.success(), "{said}");
}
