//! Bytes that are no plugin, or not one that may run: every door refuses them in the same words, and nothing of
//! them stays.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use crawler_proto as proto;
use crawler_tests::guests::{self, hostile_with};
use crawler_tests::process::Home;
use crawler_tests::{PATIENCE, until};
use futures::stream;

use no_plugins::{bad, bad_plugins};

use crate::Differences;
use crate::server::{Server, failure, names, status};

mod no_plugins;

/// Returns the machine code that was compiled for a plugin of this server: it is stored on the machine, but never
/// is a plugin.
fn machine_code(server: &Server) -> Vec<u8> {
    let compiled = server.home.path().join("state/crawler/up-0/compiled");
    let mut images = names(&compiled).into_iter().filter(|name| name != "key");
    let image = images.next().expect("a pushed plugin is kept compiled");
    let bytes = fs::read(compiled.join(image)).expect("the image can be read");
    let start = bytes.windows(4).position(|window| window == b"\x7fELF");
    bytes[start.expect("machine code is an ELF image")..].to_vec()
}

async fn push_over_grpc(server: &Server, name: &str, bytes: &[u8]) -> String {
    let piece = |name: &str, chunk: &[u8]| proto::PushPluginRequest {
        r#as: name.to_owned(),
        chunk: chunk.to_vec(),
        ..proto::PushPluginRequest::default()
    };
    let pieces = bytes.chunks(1 << 20).map(|chunk| piece("", chunk));
    let pieces: Vec<_> = std::iter::once(piece(name, b"")).chain(pieces).collect();
    let mut calls = server.calls().await;
    match calls.push_plugin(stream::iter(pieces)).await {
        Ok(plugin) => format!("pushed {}", plugin.into_inner().digest),
        Err(refusal) => status(&refusal),
    }
}

/// Returns the error without the byte at which a cut component ends, because that depends on the compiler.
fn without_place(said: &str) -> String {
    match said.split_once("(at offset 0x") {
        Some((before, rest)) => {
            let after = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            format!("{before}(at offset PLACE{after}")
        }
        None => said.to_owned(),
    }
}

const WASM: &str = "application/wasm";

/// Pushes the good plugin under a new version.
fn push_good(server: &Server, version: usize) {
    let hostile = guests::guest("hostile").display().to_string();
    let push_as = format!("--as=good@{version}.0.0");
    let said = server.ok(&["plugin", "push", &hostile, &push_as]);
    assert!(
        said.starts_with(&format!("pushed good@{version}.0.0 ")),
        "{said}"
    );
}

#[tokio::test]
async fn f31_bytes_that_are_no_plugin_are_refused_at_every_door_and_leave_nothing() {
    let mut server = Server::start();
    push_good(&server, 0);
    let mut differences = Differences::default();
    let mut cases = bad_plugins(machine_code(&server));
    let size = 200_000_000;
    cases.push(bad("large.wasm", vec![0; size], ""));
    for (n, case) in cases.iter().enumerate() {
        let path = server.home.path().join(case.file);
        fs::write(&path, &case.bytes).expect("a file in the home can be written");
        let before = server.plugins();
        let (code, http, grpc, hint, why) = match case.file {
            "large.wasm" => (
                "ResourceExhausted",
                "413 RESOURCE_EXHAUSTED",
                "; build it in release mode, or raise --plugin-size",
                " | build it in release mode, or raise --plugin-size",
                "the plugin has more than 67108864 bytes".to_owned(),
            ),
            _ => (
                "InvalidArgument",
                "400 INVALID_ARGUMENT",
                "",
                "",
                format!("cannot take the plugin: {}", case.why),
            ),
        };
        let pushed = server.cli(&["plugin", "push", case.file, "--as=shop@1.0.0"]);
        differences.compare(
            &format!("plugin push {}", case.file),
            &without_place(&failure(&pushed)),
            &format!("1: cannot push {}: {why}{hint}", case.file),
        );
        let put = server.http("PUT /crawler/plugin?as=shop@1.0.0", WASM, &case.bytes);
        differences.compare(
            &format!("PUT {}", case.file),
            &without_place(&put.problem()),
            &format!("{http}: {why}{hint}"),
        );
        differences.compare(
            &format!("PushPlugin {}", case.file),
            &without_place(&push_over_grpc(&server, "shop@1.0.0", &case.bytes).await),
            &format!("{code}: {why}{grpc}"),
        );
        assert_eq!(server.plugins(), before, "{} left something", case.file);
        push_good(&server, n + 1);
        fs::remove_file(&path).expect("the file is ours");
    }
    differences.assert_none();
    assert!(server.process.is_running());
}

#[tokio::test]
async fn f31_other_bytes_under_a_name_and_version_are_refused_with_both_digests() {
    let server = Server::start();
    push_good(&server, 1);
    let digest = server.json("/crawler/plugin/good@1.0.0")["digest"].clone();
    let digest = digest.as_str().expect("a digest is text");
    let other = hostile_with("no such ", "No such ");
    fs::write(server.home.path().join("other.wasm"), &other).expect("a file can be written");
    let again = "raise the version of the plugin, in its Cargo.toml or in the rules of a script, or push with --as NAME@VERSION";
    let (list, files) = server.plugins();

    let put = server.http("PUT /crawler/plugin?as=good@1.0.0", WASM, &other);
    let problem = put.problem();
    let (start, end) = (
        format!(
            "409 ALREADY_EXISTS: plugin good@1.0.0 exists with other bytes: digest {digest}, pushed "
        ),
        format!(" | {again}"),
    );
    let pushed = problem
        .strip_prefix(&start)
        .and_then(|rest| rest.strip_suffix(&end));
    let pushed = pushed.unwrap_or_else(|| panic!("{problem}"));
    assert!(pushed.len() == 64 && pushed != digest, "{pushed}");
    let detail =
        format!("plugin good@1.0.0 exists with other bytes: digest {digest}, pushed {pushed}");
    assert_eq!(
        push_over_grpc(&server, "good@1.0.0", &other).await,
        format!("AlreadyExists: {detail}; {again}")
    );
    assert_eq!(
        failure(&server.cli(&["plugin", "push", "other.wasm", "--as=good@1.0.0"])),
        format!("1: cannot push other.wasm: {detail} | {again}")
    );
    assert_eq!(
        server.plugins(),
        (list, files),
        "nothing half-written stays"
    );
}

#[tokio::test]
async fn items_that_differ_from_those_before_are_refused_unless_that_is_meant() {
    let server = Server::start();
    push_good(&server, 1);
    let other = hostile_with(r#""required": ["title"]"#, r#""required": ["slow" ]"#);
    fs::write(server.home.path().join("other.wasm"), &other).expect("a file can be written");
    let before = server.plugins();

    let detail = "the items of good@1.1.0 differ from those of version 1.0.0: item book: \"title\" may be missing now";
    let hint = "raise the first number of its version that is not 0, or say that it is meant with --allow-breaking";
    let put = server.http("PUT /crawler/plugin?as=good@1.1.0", WASM, &other);
    assert_eq!(
        put.problem(),
        format!("412 FAILED_PRECONDITION: {detail} | {hint}")
    );
    assert_eq!(
        push_over_grpc(&server, "good@1.1.0", &other).await,
        format!("FailedPrecondition: {detail}; {hint}")
    );
    let push = ["plugin", "push", "other.wasm", "--as=good@1.1.0"];
    assert_eq!(
        failure(&server.cli(&push)),
        format!("1: cannot push other.wasm: {detail} | {hint}")
    );
    assert_eq!(server.plugins(), before, "nothing half-written stays");
    let said = server.ok(&[&push[..], &["--allow-breaking"]].concat());
    let (_, items) = said.split_once('\n').expect("what it is made of");
    let expected = "ITEM  FIELD  KIND\n\
        book  by     anything  may be missing\n\
        book  deep   anything  may be missing\n\
        book  slow   anything\n\
        book  title  string    may be missing\n";
    assert_eq!(items, expected);
    let put = server.http(
        "PUT /crawler/plugin?as=good@1.2.0&allow_breaking=true",
        WASM,
        &fs::read(guests::guest("hostile")).expect("the guest is built"),
    );
    assert_eq!(put.status, 200, "{}", put.problem());
}

/// Returns the files of plugins in a data root.
fn pushed(home: &Home) -> BTreeSet<String> {
    names(&home.path().join("data/plugins"))
}

#[test]
fn f31_bytes_that_are_no_plugin_are_refused_from_a_config_file_in_a_single_run_and_by_check() {
    let server = Server::start();
    push_good(&server, 0);
    let cases = bad_plugins(machine_code(&server));
    drop(server);
    let home = Home::new();
    let mut differences = Differences::default();
    for case in &cases {
        fs::write(home.path().join(case.file), &case.bytes).expect("a file can be written");
        let ended = home.run(["run", case.file]);
        differences.compare(
            &format!("run {}", case.file),
            &without_place(&failure(&ended)),
            &format!("1: cannot load {}: {}", case.file, case.why),
        );
        assert_eq!(ended.stdout, "", "{}", case.file);
        let ended = home.run(["plugin", "check", case.file]);
        differences.compare(
            &format!("plugin check {}", case.file),
            &without_place(&failure(&ended)),
            &format!("1: {} is no plugin: {}", case.file, case.why),
        );
        assert_eq!(ended.stdout, "", "{}", case.file);
        let file = config(&home, Path::new(case.file));
        let ended = home.run(["up", "--http=:0", "--grpc=:0", "--data=data", &file]);
        let last = ended.stderr.lines().last().unwrap_or_default();
        differences.compare(
            &format!("config file with {}", case.file),
            &without_place(last),
            &format!(
                "error: cannot push {}: cannot take the plugin: {}",
                case.file, case.why
            ),
        );
        assert_eq!(ended.code, Some(1), "{}", case.file);
        assert_eq!(pushed(&home), BTreeSet::new(), "{}", case.file);
    }
    differences.assert_none();
    let file = config(&home, &guests::guest("hostile"));
    let up = home.start(["up", "--http=:0", "--grpc=:0", "--data=data", &file]);
    up.word_after("listening grpc=", PATIENCE);
    assert_eq!(pushed(&home).len(), 1);
}

#[test]
fn a_worker_alone_takes_no_plugin_above_its_plugin_size() {
    let home = Home::new();
    let hostile = guests::guest("hostile");
    let size = fs::metadata(&hostile).expect("the guest is built").len();
    let file = config(&home, &hostile);
    let text = home.path().join("crawler-test.toml");
    let plugin = fs::read_to_string(&text).expect("it was written");
    home.write(
        "crawler-test.toml",
        &format!("{plugin}\n[[resource]]\nname = 'hostile'\n"),
    );
    let ended = home.run(["worker", "--cluster=false", "--plugin-size=4KiB", &file]);
    assert_eq!(
        failure(&ended),
        format!(
            "1: cannot load {}: {size} bytes; at most 4096 are allowed; build it in release mode, or raise --plugin-size",
            hostile.display()
        )
    );
}

/// Writes a config file that pushes one plugin. Returns the flag that names the file.
fn config(home: &Home, plugin: &Path) -> String {
    let text = format!("[[plugin]]\npath = {:?}\n", plugin.display().to_string());
    let path: PathBuf = home.write("crawler-test.toml", &text);
    let name = path.file_name().expect("the file has a name");
    format!("--config={}", name.to_string_lossy())
}

#[tokio::test]
async fn r03_a_push_beyond_the_few_is_told_to_come_again() {
    let server = Server::start_with(&["--uploads=1", "--stall-timeout=5m"]);
    let head = format!(
        "PUT /crawler/plugin HTTP/1.1\r\nhost: {}\r\ncontent-type: {WASM}\r\n\
         content-length: 1000\r\n\r\nslow",
        server.http
    );
    let put = || server.http("PUT /crawler/plugin?as=shop@1.0.0", WASM, b"no plugin");
    // An upload that comes while another is in progress is refused itself, so this may take several attempts.
    let mut slow = Vec::new();
    let refused = until("upload that is in hand", PATIENCE, || {
        let mut stream = TcpStream::connect(&server.http).expect("HTTP listens");
        stream.write_all(head.as_bytes()).expect("it is taken");
        slow.push(stream);
        Some(put()).filter(|answer| answer.status == 503)
    });
    let why = "1 plugin is being pushed, as many as --uploads allows";
    let hint = "push it again in a moment, or raise --uploads";
    assert_eq!(
        refused.problem(),
        format!("503 RESOURCE_EXHAUSTED: {why} | {hint}")
    );
    let pushed = push_over_grpc(&server, "shop@1.0.0", b"no plugin").await;
    assert_eq!(pushed, format!("ResourceExhausted: {why}; {hint}"));
    // Other requests are answered meanwhile.
    assert_eq!(server.http("GET /healthz", "", b"").status, 200);
    drop(slow);
    until("room for an upload", PATIENCE, || {
        (put().status == 400).then_some(())
    });
    push_good(&server, 1);
}
