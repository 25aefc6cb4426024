//! Confinement by the operating system, tested with a guest that has escaped: a host function of this test
//! does what no host function of the crawler does, as if a plugin had found a hole in the sandbox.
//!
//! The test binary runs itself as the process that is confined; [`MODE`] tells it how. The hole is linked
//! here, so that no build of the crawler has it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crawler_process::confine::{self, MissingPart, PathAccess};
use rustix::process::{Pid, Resource, getrlimit, setrlimit, test_kill_process};
use wasmtime::{Engine, Linker, Module, Store};

/// Variable with the mode: `none`, `compiler` or `worker`.
const MODE: &str = "CRAWLER_TEST_CONFINED";
/// Variable with the folder of the process.
const FOLDER: &str = "CRAWLER_TEST_FOLDER";
/// Variable with the address of a server that answers.
const SERVER: &str = "CRAWLER_TEST_SERVER";
/// Variable with the id of the process that started it.
const PARENT: &str = "CRAWLER_TEST_PARENT";
const CRAWLER: &str = env!("CARGO_BIN_EXE_crawler");
/// Deadline of operations that take a moment.
const PATIENCE: Duration = Duration::from_secs(30);
/// Guest that calls the hole with each number below `$n`.
const GUEST: &str = r#"(module
    (import "hole" "attempt" (func $attempt (param i32)))
    (func (export "run") (param $n i32) (local $i i32)
        (loop $next
            (call $attempt (local.get $i))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $i) (local.get $n))))))"#;

type Attempt = fn() -> io::Result<()>;

const ATTEMPTS: [(&str, Attempt); 15] = [
    ("thread", || {
        std::thread::spawn(|| ()).join().unwrap();
        Ok(())
    }),
    ("memory", || {
        assert_eq!(
            vec![1_u8; 64 << 20]
                .iter()
                .map(|n| u64::from(*n))
                .sum::<u64>(),
            64 << 20
        );
        Ok(())
    }),
    ("read /etc/passwd", || {
        std::fs::read("/etc/passwd").map(drop)
    }),
    ("list /", || std::fs::read_dir("/").map(drop)),
    ("read its folder", || {
        std::fs::read(format!("{}/there", told(FOLDER))).map(drop)
    }),
    ("write its folder", || {
        std::fs::write(format!("{}/made", told(FOLDER)), "")
    }),
    ("connect", || TcpStream::connect(told(SERVER)).map(drop)),
    ("listen", || TcpListener::bind("127.0.0.1:0").map(drop)),
    ("send datagrams", || {
        UdpSocket::bind("127.0.0.1:0").map(drop)
    }),
    ("local sockets", || UnixStream::pair().map(drop)),
    ("look up a name", || {
        ("localhost", 1).to_socket_addrs().map(drop)
    }),
    ("start a program", || {
        Command::new("/bin/true").status().map(drop)
    }),
    ("start the crawler", || {
        Command::new(CRAWLER)
            .arg("version")
            .stdout(Stdio::null())
            .status()
            .map(drop)
    }),
    ("signal the parent", || {
        Ok(test_kill_process(
            Pid::from_raw(told(PARENT).parse().unwrap()).unwrap(),
        )?)
    }),
    ("set a limit", || {
        Ok(setrlimit(Resource::Core, getrlimit(Resource::Core))?)
    }),
];

#[expect(
    clippy::disallowed_methods,
    reason = "a test process has no other settings to be told by"
)]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn told(name: &str) -> String {
    setting(name).unwrap()
}

#[test]
fn child_whose_guest_got_out() {
    let Some(mode) = setting(MODE) else {
        return;
    };
    println!();
    let missing = match mode.as_str() {
        "compiler" => confine::compiler(),
        "worker" => confine::process(&PathAccess {
            read: Vec::new(),
            write: vec![told(FOLDER).into()],
            execute: vec![CRAWLER.into()],
        }),
        _ => Vec::new(),
    };
    for MissingPart { part, .. } in missing {
        println!("missing\t{part}");
    }
    // The guest is compiled in the confined process, on several threads, as plugins are.
    let engine = Engine::default();
    let module = Module::new(&engine, wat::parse_str(GUEST).unwrap()).unwrap();
    let mut linker = Linker::new(&engine);
    let attempt = |n: u32| {
        let (name, attempt) = ATTEMPTS[n as usize];
        match attempt() {
            Ok(()) => println!("{name}\tdone"),
            Err(error) => println!("{name}\t{error}"),
        }
    };
    linker.func_wrap("hole", "attempt", attempt).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let run = instance
        .get_typed_func::<u32, ()>(&mut store, "run")
        .unwrap();
    run.call(&mut store, ATTEMPTS.len() as u32).unwrap();
}

/// Returns the result of each attempt under this confinement; `None` if the kernel lacks a part of it.
#[expect(
    clippy::print_stdout,
    reason = "what was not tested is told in the log of the tests"
)]
fn attempts(mode: &str) -> Option<BTreeMap<String, String>> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("there"), "").unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_whose_guest_got_out", "--nocapture"])
        .env(MODE, mode)
        .env(FOLDER, folder.path())
        .env(PARENT, std::process::id().to_string())
        .env(SERVER, server.local_addr().unwrap().to_string())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let lines = stdout.lines().filter_map(|line| line.split_once('\t'));
    let mut said: BTreeMap<String, String> = lines
        .map(|(name, what)| (name.to_owned(), what.to_owned()))
        .collect();
    if let Some(part) = said.remove("missing") {
        println!("skipped: confinement: this kernel lacks {part} for {mode}");
        return None;
    }
    assert_eq!(said.len(), ATTEMPTS.len(), "{stdout}");
    Some(said)
}

#[track_caller]
fn check(mode: &str, denied: &[&str]) {
    let Some(said) = attempts(mode) else {
        return;
    };
    for (name, what) in said {
        let is_denied = ["Operation not permitted", "Permission denied"]
            .iter()
            .any(|words| what.starts_with(words));
        let expected = denied.contains(&name.as_str());
        assert!(
            is_denied == expected && (is_denied || what == "done"),
            "{mode}: {name}: {what}"
        );
    }
}

#[test]
fn a_process_that_is_not_confined_reaches_all() {
    check("none", &[]);
}

#[test]
fn a_guest_that_gets_out_of_the_compiler_reaches_nothing() {
    let said = attempts("compiler");
    let Some(said) = said else { return };
    for (name, what) in said {
        match name.as_str() {
            "thread" | "memory" => assert_eq!(what, "done", "{name}"),
            // Resolvers have error messages of their own.
            "look up a name" => assert_ne!(what, "done"),
            _ => assert!(
                what.starts_with("Operation not permitted"),
                "{name}: {what}"
            ),
        }
    }
}

#[test]
fn a_guest_that_gets_out_of_a_worker_has_its_folders_only() {
    check(
        "worker",
        &[
            "read /etc/passwd",
            "list /",
            "start a program",
            "signal the parent",
        ],
    );
}

/// Returns a line of `/proc/PID/status`.
fn status(child: &Child, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

/// Waits until `is_there` holds and the child sleeps.
fn until(child: &Child, is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !(is_there() && status(child, "State").starts_with('S')) {
        assert!(began.elapsed() < PATIENCE, "it does not get there");
        std::thread::yield_now();
    }
}

#[test]
fn the_compiling_process_is_confined_before_it_reads() {
    for (word, no_new_privs, filter) in [("on", "1", "2"), ("off", "0", "0")] {
        let mut child = Command::new(CRAWLER)
            .args(["__compile", "reserved", "1073741824", "60", word])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let limits = format!("/proc/{}/limits", child.id());
        until(&child, || {
            let limits = std::fs::read_to_string(&limits).unwrap();
            let core = limits
                .lines()
                .find(|line| line.starts_with("Max core file size"));
            core.unwrap().split_whitespace().nth(4) == Some("0")
                && status(&child, "Seccomp") == filter
        });
        assert_eq!(status(&child, "NoNewPrivs"), no_new_privs, "{word}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Starts `crawler up`, waits until it listens, and returns its log lines and its `no_new_privs`.
fn up(folder: &Path, further: &[&str]) -> (String, String) {
    let mut child = Command::new(CRAWLER)
        .args([
            "up",
            "--http=:0",
            "--grpc=:0",
            "--data=data",
            "--state=state",
        ])
        .args(further)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        log.push_str(&line);
        log.push('\n');
        if line.contains("listening") {
            break;
        }
    }
    let no_new_privs = status(&child, "NoNewPrivs");
    child.kill().unwrap();
    child.wait().unwrap();
    (log, no_new_privs)
}

#[test]
fn the_setting_turns_confinement_off_and_the_log_tells() {
    let folder = tempfile::tempdir().unwrap();
    let (log, no_new_privs) = up(folder.path(), &[]);
    assert!(!log.contains("not confined"), "{log}");
    assert_eq!(no_new_privs, "1");
    let off = "not confined, as set by --confinement off";
    let (log, no_new_privs) = up(folder.path(), &["--confinement=off"]);
    assert!(log.contains(off), "{log}");
    assert_eq!(no_new_privs, "0");
    std::fs::write(
        folder.path().join("crawler.toml"),
        "confinement = \"off\"\n",
    )
    .unwrap();
    assert!(up(folder.path(), &[]).0.contains(off));
    assert_eq!(up(folder.path(), &["--confinement=on"]).1, "1");
}
