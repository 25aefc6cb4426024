//! Profiles: `--pprof` tells where processor time goes and what takes memory, whatever runs meanwhile.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crawler_tests::http::ask;
use crawler_tests::process::Home;
use crawler_tests::web::{Method, Site};
use crawler_tests::{PATIENCE, until};
use prost::Message;
use serde_json::json;

use crate::server::Server;

/// Fields of pprof's `profile.proto` that are read.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    locations: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    functions: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    texts: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    locations: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    /// Index of a text.
    #[prost(int64, tag = "2")]
    name: i64,
}

#[cfg(target_os = "linux")]
impl Profile {
    /// Returns the names of the functions of a stack, innermost first.
    fn names(&self, sample: &Sample) -> Vec<&str> {
        let locations = sample.locations.iter();
        let locations = locations.filter_map(|id| self.locations.iter().find(|one| one.id == *id));
        let lines = locations.flat_map(|location| &location.lines);
        let functions = lines.filter_map(|line| {
            let id = line.function;
            self.functions.iter().find(|one| one.id == id)
        });
        let names = functions.map(|function| {
            let index = usize::try_from(function.name).expect("an index");
            self.texts[index].as_str()
        });
        names.collect()
    }
}

/// Starts a server with an address for profiles.
fn server() -> (Server, String) {
    let server = Server::start_in(Home::new(), &["--pprof=:0"]);
    let address = server.process.word_after("pprof=", PATIENCE);
    (server, address)
}

/// Sends a request whose answer is no text.
fn send(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .expect("it takes a request");
    stream
}

/// Returns head and body of the answer.
fn reply(mut stream: TcpStream) -> (String, Vec<u8>) {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("a whole answer");
    let end = b"\r\n\r\n";
    let head = answer.windows(end.len()).position(|part| part == end);
    let body = answer.split_off(head.expect("the head ends") + end.len());
    (String::from_utf8(answer).expect("heads are text"), body)
}

/// Starts two profiles of this length. Returns the one that is under way, and the answer of the one that was refused.
fn under_way(address: &str, subject: &str, seconds: u32) -> (TcpStream, String) {
    let path = format!("/debug/pprof/{subject}?seconds={seconds}");
    let mut both = [(); 2].map(|()| send(address, &path));
    for stream in &both {
        stream.set_nonblocking(true).expect("a mode");
    }
    let refused = until("one of two profiles to be refused", PATIENCE, || {
        both.iter().position(|stream| stream.peek(&mut [0]).is_ok())
    });
    for stream in &both {
        stream.set_nonblocking(false).expect("a mode");
    }
    if refused == 0 {
        both.swap(0, 1);
    }
    let [under_way, refused] = both;
    let (head, body) = reply(refused);
    (
        under_way,
        format!("{head}{}", String::from_utf8_lossy(&body)),
    )
}

#[test]
fn a_profile_is_taken_while_rules_run_and_changes_nothing_of_what_they_do() {
    let web = Site::new().page("/*", "x").without("/next").open();
    let (server, address) = server();
    server.push("hostile", &[]);
    // The rules do what compiled code can do at the moment of an interruption: compute, call the host, grow its
    // memory, run out of stack, be ended.
    let kinds = [
        "loop",
        "spin-on-host",
        "recurse",
        "trap",
        "alloc",
        "panic",
        "ok",
    ];
    let n_each = 12;
    let rules = vec![kinds.join(","); n_each].join(",");
    let profile = send(&address, "/debug/pprof/profile?seconds=5");
    let heap = cfg!(target_os = "linux").then(|| send(&address, "/debug/pprof/heap?seconds=5"));
    server.ok(&[
        "resource",
        "add",
        "busy",
        "--plugin=hostile",
        "--param",
        &format!("root={}", web.url("/")),
        "--param",
        &format!("rules={rules}"),
        "--limit=fuel=100000000",
        "--limit=cpu=2s",
        "--limit=timeout=20s",
        "--delay=0ms",
        "--max-attempts=1",
    ]);
    let (head, body) = reply(profile);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let profile = Profile::decode(body.as_slice()).unwrap();
    assert!(profile.duration_nanos >= 5_000_000_000, "{profile:?}");
    let seen: i64 = profile.samples.iter().map(|sample| sample.values[0]).sum();
    assert!(seen > 20, "{seen} samples");
    let is_deep = |sample: &&Sample| sample.locations.len() > 5;
    assert!(profile.samples.iter().filter(is_deep).count() > 0);
    assert!(
        profile.texts.iter().any(|text| text.contains("wasmtime")),
        "{:?}",
        profile.texts
    );
    if let Some(heap) = heap {
        let (head, body) = reply(heap);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let heap = Profile::decode(body.as_slice()).unwrap();
        assert!(heap.duration_nanos >= 5_000_000_000, "{heap:?}");
    }
    let busy = server.finished("busy");
    let counts = &busy["counts"];
    assert_eq!(
        (&counts["dead"], &counts["parsed"]),
        (&json!((kinds.len() - 1) * n_each), &json!(n_each)),
        "{counts}"
    );
    server.stop();
}

#[test]
fn profiles_are_taken_one_at_a_time_and_within_their_bounds() {
    let (server, address) = server();
    let get = |path: &str| ask(Method::GET, &format!("http://{address}{path}"), None);
    let index = get("/debug/pprof/");
    assert!(
        index.text.contains(&format!(
            "curl -o cpu.pb http://{address}/debug/pprof/profile"
        )),
        "{}",
        index.text
    );
    for seconds in ["0", "301", "-1", "1.5", "x", ""] {
        let answer = get(&format!("/debug/pprof/profile?seconds={seconds}"));
        assert_eq!(answer.status, 400, "{answer:?}");
        let expected = format!("seconds takes a whole number from 1 to 300, not {seconds:?}");
        assert!(answer.problem().ends_with(&expected), "{answer:?}");
    }
    let answer = get("/debug/pprof/profile?second=1");
    assert!(answer.text.contains("did you mean"), "{answer:?}");
    assert_eq!(get("/debug/pprof/threads").status, 404);
    let post = ask(
        Method::POST,
        &format!("http://{address}/debug/pprof/profile"),
        None,
    );
    assert_eq!(post.status, 405);

    // A caller that goes away ends its profile; one that stays keeps others out.
    let (first, refused) = under_way(&address, "profile", 300);
    for expected in [
        "HTTP/1.1 429",
        "application/problem+json",
        "a profile is being taken already",
        "ask again when that one has ended",
    ] {
        assert!(refused.contains(expected), "{refused}");
    }
    drop(first);
    until("the next profile", PATIENCE, || {
        let answer = get("/debug/pprof/profile?seconds=1");
        (answer.status == 200).then_some(())
    });

    // A stop answers the profile that is under way, with the samples so far.
    let (last, _refused) = under_way(&address, "profile", 300);
    server.stop();
    let (head, body) = reply(last);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    Profile::decode(body.as_slice()).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_heap_profile_names_the_functions_that_have_allocated() {
    /// Bytes of a body that the server holds: a sample is taken for each 512 KiB or so.
    const N_HELD: usize = 8 << 20;
    let (server, address) = server();
    let (profile, _refused) = under_way(&address, "heap", 5);
    // The end of the body does not come in the time of the profile.
    let mut upload = TcpStream::connect(server.http_address()).expect("it listens");
    write!(
        upload,
        "PUT /crawler/plugin HTTP/1.1\r\nHost: {}\r\nContent-Type: application/wasm\r\nContent-Length: {}\r\n\r\n",
        server.http_address(),
        N_HELD + 1
    )
    .expect("it takes a request");
    upload.write_all(&vec![0; N_HELD]).expect("it takes a body");
    let (head, body) = reply(profile);
    drop(upload);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let heap = Profile::decode(body.as_slice()).unwrap();
    assert!(heap.duration_nanos >= 5_000_000_000, "{heap:?}");
    let receives = |sample: &&Sample| {
        let names = heap.names(sample);
        names.iter().any(|name| name.contains("hyper"))
    };
    let held = heap.samples.iter().filter(receives);
    let n_bytes: i64 = held.map(|sample| sample.values[1]).sum();
    // It is an estimate.
    assert!(n_bytes > 1 << 20, "{n_bytes} bytes: {:?}", heap.texts);
    server.stop();
}

#[test]
#[cfg(target_os = "linux")]
fn a_heap_profile_is_written_by_a_command() {
    let (server, address) = server();
    let home = Home::new();
    let file = home.path().join("heap.svg");
    let path = file.display().to_string();
    let command = ["profile", &address, "--heap", "--seconds=1", "-o", &path];
    assert_eq!(server.ok(&command), format!("wrote {path}\n"));
    let svg = fs::read_to_string(&file).expect("it is written");
    assert!(svg.contains("memory that was allocated in "), "{svg}");
    assert!(svg.contains(" bytes</title>"), "{svg}");

    // A profile of the processors may be in progress, but no other one of the heap.
    let (long, _refused) = under_way(&address, "heap", 300);
    assert_eq!(server.cli(&command).code, Some(1));
    let of_processors = ["profile", &address, "--seconds=1", "-o", &path];
    assert_eq!(server.ok(&of_processors), format!("wrote {path}\n"));
    drop(long);
    server.stop();
}

#[test]
fn a_flame_graph_is_written_by_a_command() {
    let (server, address) = server();
    let home = Home::new();
    let file = home.path().join("cpu.svg");
    let path = file.display().to_string();
    let command = ["profile", &address, "--seconds=1", "-o", &path];
    assert_eq!(server.ok(&command), format!("wrote {path}\n"));
    let svg = fs::read_to_string(&file).expect("it is written");
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert!(svg.contains("<title>all: "), "{svg}");

    let (long, _refused) = under_way(&address, "profile", 300);
    let busy = server.cli(&command);
    assert_eq!(busy.code, Some(1), "{busy:?}");
    assert!(
        busy.stderr.contains("a profile is being taken already"),
        "{busy:?}"
    );
    assert!(
        busy.stderr.contains("ask again when that one has ended"),
        "{busy:?}"
    );
    drop(long);
    server.stop();
    let gone = home.run(command);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(
        gone.stderr.contains("start the process with --pprof"),
        "{gone:?}"
    );
}

#[test]
fn a_node_is_profiled_by_its_id() {
    let (server, address) = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cpu.svg").display().to_string();
    let taken = ["profile", "worker-1", "--seconds=1", "-o", &file];
    server.ok(&taken);
    let picture = fs::read_to_string(&file).unwrap();
    assert!(picture.contains("<svg"), "{picture}");
    let told = server
        .cli(&["profile", "worker-2", "--seconds=1", "-o", &file])
        .stderr;
    assert!(told.contains("there is no node worker-2"), "{told}");
    assert!(told.contains("crawler node list"), "{told}");
    // Nodes of other machines may have told the same address.
    let url = format!("http://{address}/debug/pprof/flamegraph?seconds=1&node=worker-2");
    let refused = ask(Method::GET, &url, None);
    assert_eq!(refused.status, 412, "{}", refused.text);
    let own = "the process at this address is master-1 and worker-1, and not worker-2";
    assert!(refused.text.contains(own), "{}", refused.text);
}

#[test]
fn a_node_without_profiles_is_told_so() {
    let server = Server::start();
    let told = server.cli(&["profile", "worker-1"]).stderr;
    assert!(told.contains("node worker-1 serves no profiles"), "{told}");
    assert!(told.contains("--pprof"), "{told}");
}
