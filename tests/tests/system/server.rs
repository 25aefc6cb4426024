//! A running `crawler up` with its three interfaces: command line, HTTP, gRPC.

use std::path::Path;

pub(crate) use crawler_tests::http::{Answer, block_on, text};
pub(crate) use crawler_tests::pass;
use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, guests, http, until};
use serde_json::Value;

/// A master and a worker in one process that may crawl loopback.
pub(crate) struct Server {
    pub(crate) home: Home,
    pub(crate) process: Process,
    http: String,
    grpc: String,
}

impl Server {
    /// Starts in a home of its own.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::start_in(Home::new(), &[])
    }

    /// Starts in a home of its own, with the guest `puppet` pushed.
    #[track_caller]
    pub(crate) fn with_puppet() -> Self {
        let server = Self::start();
        server.push("puppet", &[]);
        server
    }

    /// Starts with further arguments; data in the home is there again.
    #[track_caller]
    pub(crate) fn start_in(home: Home, arguments: &[&str]) -> Self {
        Self::start_at([":0", ":0"], home, arguments)
    }

    /// Kills it, and starts it again in its home and at its addresses.
    #[track_caller]
    pub(crate) fn killed_and_started_again(self) -> Self {
        self.killed_while(|_| ())
    }

    /// Kills it, changes its home while it is away, and starts it again.
    #[track_caller]
    pub(crate) fn killed_while(mut self, meanwhile: impl FnOnce(&Path)) -> Self {
        self.process.kill();
        meanwhile(self.home.path());
        Self::start_at([&self.http, &self.grpc], self.home, &[])
    }

    /// Starts at given addresses of HTTP and gRPC.
    #[track_caller]
    fn start_at([http, grpc]: [&str; 2], home: Home, arguments: &[&str]) -> Self {
        let listen = [format!("--http={http}"), format!("--grpc={grpc}")];
        let usual = ["up", &listen[0], &listen[1]];
        let allow = ["--allow-networks=127.0.0.0/8"];
        let process = home.start(usual.iter().chain(&allow).chain(arguments));
        let grpc = process.word_after("listening grpc=", PATIENCE);
        let listening = process.line("addresses", PATIENCE, |line| {
            line.contains(&grpc) && line.contains("http=")
        });
        let (_, http) = listening
            .split_once("http=")
            .expect("the line was chosen for it");
        let http = http.split(' ').next().unwrap_or_default().to_owned();
        Self {
            home,
            process,
            http,
            grpc,
        }
    }

    /// Ends it by Ctrl-C, which must succeed; its data is in its home.
    #[track_caller]
    pub(crate) fn stop(mut self) -> Home {
        self.process.interrupt();
        let ended = self.process.wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        self.home
    }

    /// Address of gRPC, as `HOST:PORT`.
    pub(crate) fn grpc(&self) -> &str {
        &self.grpc
    }

    /// Address of HTTP, as `HOST:PORT`.
    pub(crate) fn http_address(&self) -> &str {
        &self.http
    }

    /// Starts a command that calls this master.
    #[track_caller]
    pub(crate) fn command(&self, arguments: &[&str]) -> Process {
        let mut command = self.home.command(arguments);
        Process::start(command.env("CRAWLER_MASTER", format!("http://{}", self.grpc)))
    }

    /// Runs a command that calls this master.
    #[track_caller]
    pub(crate) fn cli(&self, arguments: &[&str]) -> Ended {
        self.command(arguments).wait(PATIENCE)
    }

    /// Runs a command that must succeed; returns its stdout.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.cli(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// Starts a command that calls this master, and shows it this access token.
    #[track_caller]
    pub(crate) fn command_as(&self, token: &str, arguments: &[&str]) -> Process {
        let mut command = self.home.command(arguments);
        command.env("CRAWLER_TOKEN", token);
        Process::start(command.env("CRAWLER_MASTER", format!("http://{}", self.grpc)))
    }

    /// Runs a command that calls this master, and shows it this access token.
    #[track_caller]
    pub(crate) fn cli_as(&self, token: &str, arguments: &[&str]) -> Ended {
        self.command_as(token, arguments).wait(PATIENCE)
    }

    /// Runs a command that shows this access token and must succeed; returns its stdout.
    #[track_caller]
    pub(crate) fn ok_as(&self, token: &str, arguments: &[&str]) -> String {
        let ended = self.cli_as(token, arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// Asks over HTTP, and shows this access token.
    #[track_caller]
    pub(crate) fn http_as(
        &self,
        token: Option<&str>,
        method: Method,
        path: &str,
        body: Option<&str>,
    ) -> Answer {
        let url = format!("http://{}{path}", self.http);
        let shown = token.map(|token| format!("Bearer {token}"));
        let headers = shown.as_deref().map(|shown| ("authorization", shown));
        let answer = http::try_ask(method, &url, headers.as_slice(), body);
        answer.unwrap_or_else(|e| panic!("{e}"))
    }

    /// Pushes a built guest.
    #[track_caller]
    pub(crate) fn push(&self, guest: &str, arguments: &[&str]) {
        let path = guests::guest(guest).display().to_string();
        self.ok(&[&["plugin", "push", &path], arguments].concat());
    }

    /// Adds a resource that runs the guest `puppet`, from this page.
    #[track_caller]
    pub(crate) fn add(&self, name: &str, start: &url::Url, arguments: &[&str]) {
        let start = format!("start={start}");
        let add = [
            "resource",
            "add",
            name,
            "--plugin=puppet",
            "--param",
            &start,
        ];
        self.ok(&[&add, arguments].concat());
    }

    /// Asks over HTTP, as curl would.
    #[track_caller]
    pub(crate) fn http(&self, method: Method, path: &str, body: Option<&str>) -> Answer {
        let url = format!("http://{}{path}", self.http);
        http::ask(method, &url, body)
    }

    /// Returns the body of something that must exist, byte for byte.
    #[track_caller]
    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        http::bytes(&format!("http://{}{path}", self.http))
    }

    /// Asks over HTTP for something that must exist.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        let answer = self.http(Method::GET, path, None);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer
    }

    /// Returns a resource, as HTTP shows it.
    #[track_caller]
    pub(crate) fn resource(&self, name: &str) -> Value {
        self.get(&format!("/crawler/resource/{name}")).json()
    }

    /// Waits until a resource has finished; returns it.
    #[track_caller]
    pub(crate) fn finished(&self, name: &str) -> Value {
        self.in_phase(name, "Finished")
    }

    /// Waits until a resource is in this phase; returns it.
    #[track_caller]
    pub(crate) fn in_phase(&self, name: &str, phase: &str) -> Value {
        until(&format!("{name} in phase {phase}"), PATIENCE, || {
            let resource = self.resource(name);
            let present = text(&resource["phase"]);
            assert!(present != "Failed" || phase == present, "{resource}");
            (present == phase).then_some(resource)
        })
    }

    /// Returns the items of a resource, by its name or id, in the order of their URLs.
    #[track_caller]
    pub(crate) fn items(&self, name: &str) -> Vec<Value> {
        sorted(lines(
            &self.get(&format!("/crawler/resource/{name}/items")).text,
        ))
    }

    /// Returns the items of a resource with all that is known of each, in the order of their URLs.
    #[track_caller]
    pub(crate) fn records(&self, name: &str) -> Vec<Value> {
        sorted(lines(
            &self
                .get(&format!("/crawler/resource/{name}/items?envelope"))
                .text,
        ))
    }

    /// Number of crawls of the worker.
    #[track_caller]
    pub(crate) fn load(&self) -> u64 {
        let nodes = self.get("/crawler/node").json();
        let nodes = nodes["nodes"].as_array().expect("nodes are a list").clone();
        let worker = nodes.iter().find(|node| node["id"] == "worker-1");
        worker
            .and_then(|node| node["load"].as_u64())
            .expect("the worker is listed with its load")
    }
}

/// Parses JSON lines.
#[track_caller]
pub(crate) fn lines(text: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    text.lines().map(parse).collect()
}

fn sorted(mut items: Vec<Value>) -> Vec<Value> {
    items.sort_by(|one, other| text(&one["url"]).cmp(text(&other["url"])));
    items
}
