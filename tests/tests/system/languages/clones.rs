//! A plugin in git: its clone is built and tested in the home of another person, where nothing of the author's is.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crawler_tests::process::{Ended, Home, Process, program};
use crawler_tests::{folder_of, repository, setting};

use super::tools::{Tools, javascript, python};
use crate::devtools::{BUILD, fetch_crates};

/// Variables of this test that a person's shell has too. Others, such as those that tell cargo a folder, are left out.
const KEPT: [&str; 4] = ["CRAWLER_TEST_RUN", "LC_ALL", "RUSTUP_TOOLCHAIN", "TMPDIR"];
/// Identity of a commit, which nobody has set up.
const IDENTITY: [&str; 6] = [
    "-c",
    "user.name=An author",
    "-c",
    "user.email=author@a.test",
    "-c",
    "commit.gpgsign=false",
];
/// Parts of cargo's home that all people of this machine share: crates, and where they come from.
const SHARED: [&str; 3] = ["config.toml", "git", "registry"];

/// A home with caches of its own. Toolchains and crates are those of this machine, so that nothing is fetched.
struct Person {
    home: Home,
    path: OsString,
}

impl Person {
    fn new(tools: &Tools) -> Self {
        let home = Home::new();
        let cargo = home.path().join(".cargo");
        fs::create_dir(&cargo).expect("the home is empty");
        for part in SHARED {
            let real = folder_of("CARGO_HOME", ".cargo").join(part);
            if real.exists() {
                symlink(real, cargo.join(part)).expect("a link is made");
            }
        }
        Self {
            home,
            path: tools.path().to_owned(),
        }
    }

    /// Runs a program in a folder of the home, in an environment of the person's own.
    fn ended(&self, program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Ended {
        let home = self.home.path();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env_clear();
        for name in KEPT {
            if let Some(value) = setting(name) {
                command.env(name, value);
            }
        }
        command
            .env("PATH", &self.path)
            .env("HOME", home)
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("CARGO_HOME", home.join(".cargo"))
            .env("CARGO_NET_OFFLINE", "true")
            .env("RUSTUP_HOME", folder_of("RUSTUP_HOME", ".rustup"))
            .env("NO_COLOR", "1");
        Process::start(&mut command).wait(BUILD)
    }

    #[track_caller]
    fn ok(&self, program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Ended {
        let ended = self.ended(program, arguments, folder);
        let said = format!("{arguments:?}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(0), "{said}");
        ended
    }

    #[track_caller]
    fn crawler(&self, arguments: &[&str], folder: &Path) -> Ended {
        self.ok(program(), arguments, folder)
    }

    #[track_caller]
    fn git(&self, arguments: &[&str], folder: &Path) -> String {
        let words = [&IDENTITY[..], arguments].concat();
        self.ok("git", &words, folder).stdout
    }
}

/// Makes a plugin, commits it, and clones it into the home of another person, who tries its saved calls. Returns that
/// person and the clone, of which no file names a folder of this machine.
fn tested_clone(lang: &str, tools: &Tools) -> (Person, PathBuf) {
    let author = Person::new(tools);
    let own = author.home.path();
    author.crawler(&["plugin", "new", "kiosk", "--lang", lang], own);
    let folder = own.join("kiosk");
    author.git(&["init", "--quiet"], &folder);
    author.git(&["add", "--all"], &folder);
    author.git(&["commit", "--quiet", "--message=rules"], &folder);

    let other = Person::new(tools);
    let origin = folder.display().to_string();
    other.git(&["clone", "--quiet", &origin, "kiosk"], other.home.path());
    let places = [
        own.to_owned(),
        other.home.path().to_owned(),
        repository(),
        env!("CARGO_TARGET_TMPDIR").into(),
        folder_of("CARGO_HOME", ".cargo"),
    ];
    // Nothing of the author is there any more.
    drop(author);
    let clone = other.home.path().join("kiosk");
    let tested = other.crawler(&["plugin", "test"], &clone).stdout;
    for call in ["detail ", "list ", "root "] {
        let mut rows = tested.lines().filter(|line| line.starts_with(call));
        assert!(rows.any(|row| row.ends_with("same")), "{tested}");
    }
    let listed = other.git(&["ls-files"], &clone);
    let files: Vec<&str> = listed.lines().collect();
    assert!(files.contains(&"pages/list.html"), "{files:?}");
    for file in files {
        let bytes = fs::read(clone.join(file)).expect("git has checked it out");
        let text = String::from_utf8_lossy(&bytes);
        for place in &places {
            let place = place.display().to_string();
            assert!(!text.contains(&place), "{lang}: {file} names {place}");
        }
    }
    // What was built is of no interest to git.
    let status = other.git(&["status", "--porcelain"], &clone);
    let new = status.lines().find(|line| line.starts_with("??"));
    assert_eq!(new, None, "{lang}");
    (other, clone)
}

#[test]
fn a_clone_in_rust_is_tested_in_another_home() {
    fetch_crates();
    let (person, clone) = tested_clone("rust", &Tools::none());
    let natively = person.ok("cargo", &["test"], &clone).stdout;
    let passed = "test saved_calls_give_what_they_gave ... ok";
    assert!(natively.contains(passed), "{natively}");
    // The guide opens where there is nothing but the clone.
    let package = "--package=crawler-plugin-sdk";
    person.ok("cargo", &["doc", "--no-deps", package], &clone);
    let guide = clone.join("target/doc/crawler_plugin_sdk");
    for chapter in ["tutorial", "cookbook", "from_scrapy"] {
        let page = guide.join(chapter).join("index.html");
        assert!(page.is_file(), "{}", page.display());
    }

    // The next plugin finds everything but its own rules compiled.
    let own = person.home.path();
    person.crawler(&["plugin", "new", "stall"], own);
    let began = Instant::now();
    let built = person.crawler(&["plugin", "build"], &own.join("stall"));
    let seconds = began.elapsed().as_secs_f64();
    println!("{seconds:>6.1} s the first build of a second plugin (goal: 20 s)");
    let compiled = built.stderr.lines().map(str::trim_start);
    let compiled: Vec<&str> = compiled
        .filter(|line| line.starts_with("Compiling "))
        .collect();
    let own_rules = |line: &&str| line.starts_with("Compiling stall v");
    assert!(compiled.iter().all(own_rules), "{compiled:?}");
    assert_eq!(compiled.len(), 1, "{}", built.stderr);
}

#[test]
fn a_clone_of_a_script_is_tested_in_another_home() {
    for (lang, tools) in [("js", javascript()), ("python", python())] {
        let Some(tools) = tools else { continue };
        tested_clone(lang, tools);
    }
}
