//! A running `crawler up` and its three interfaces; each answers with one line of text.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;

use crawler_proto::crawler_master_client::CrawlerMasterClient;
use crawler_tests::PATIENCE;
use crawler_tests::process::{Ended, Home, Process};
use serde_json::Value;
use tonic::transport::Channel;

/// A master and a worker on free ports, with a folder of their own.
pub(crate) struct Server {
    pub(crate) home: Home,
    pub(crate) process: Process,
    pub(crate) http: String,
    pub(crate) grpc: String,
}

/// An HTTP answer as it was received.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(flags: &[&str]) -> Self {
        Self::start_in(Home::new(), flags)
    }

    /// Starts in a home that has something in it.
    pub(crate) fn start_in(home: Home, flags: &[&str]) -> Self {
        let usual = ["up", "--http=:0", "--grpc=:0", "--data=data"];
        let allow = ["--allow-networks=127.0.0.0/8"];
        let process = home.start(usual.iter().chain(&allow).chain(flags));
        let line = process.line("ports", PATIENCE, |line| line.contains("listening grpc="));
        let word = |mark: &str| {
            let (_, rest) = line.split_once(mark).expect("the line names both ports");
            rest.split(' ').next().unwrap_or_default().to_owned()
        };
        Self {
            http: word("http="),
            grpc: word("grpc="),
            home,
            process,
        }
    }

    /// Runs a command that calls this master.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Ended {
        let mut command = self.home.command(arguments);
        command.env("CRAWLER_MASTER", format!("http://{}", self.grpc));
        Process::start(&mut command).wait(PATIENCE)
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.cli(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// Sends a request as it is written and reads the answer, even if the server does not read the request to its
    /// end.
    pub(crate) fn http(&self, line: &str, kind: &str, body: &[u8]) -> Answer {
        let kind = match kind {
            "" => String::new(),
            kind => format!("content-type: {kind}\r\n"),
        };
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{kind}content-length: {}\r\n\r\n",
            self.http,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.http).expect("HTTP listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a deadline above zero is taken");
        let mut sending = stream.try_clone().expect("a socket can be shared");
        let mut text = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || {
                // A server that refuses early does not read the rest.
                let _sent = sending
                    .write_all(head.as_bytes())
                    .and_then(|()| sending.write_all(body));
            });
            // Bytes received before a reset are the answer.
            let _end = stream.read_to_end(&mut text);
            let _closed = stream.shutdown(std::net::Shutdown::Both);
        });
        Answer::parse(&String::from_utf8_lossy(&text))
    }

    #[track_caller]
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.http(&format!("GET {path}"), "", b"");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).expect("answers are JSON")
    }

    pub(crate) async fn calls(&self) -> CrawlerMasterClient<Channel> {
        CrawlerMasterClient::connect(format!("http://{}", self.grpc))
            .await
            .expect("gRPC listens")
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.home.path().join("data")
    }

    /// Returns the plugins, as the list shows them and as files.
    pub(crate) fn plugins(&self) -> (Value, BTreeSet<String>) {
        (
            self.json("/crawler/plugin"),
            names(&self.data().join("plugins")),
        )
    }

    /// Bytes of memory that the process uses.
    pub(crate) fn memory(&self) -> u64 {
        self.status("VmRSS")
    }

    /// Largest number of bytes of memory that the process ever used.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.status("VmHWM")
    }

    fn status(&self, what: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.expect("the process lives");
        let line = status.lines().find_map(|line| line.strip_prefix(what));
        let kib = line.and_then(|line| line.trim_start_matches(':').trim().strip_suffix(" kB"));
        let kib: u64 = kib
            .and_then(|kib| kib.parse().ok())
            .expect("it is told in kB");
        kib << 10
    }
}

impl Answer {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let kind = lines.find_map(|line| line.strip_prefix("content-type: "));
        Self {
            status: status.and_then(|status| status.parse().ok()).unwrap_or(0),
            kind: kind.unwrap_or_default().to_owned(),
            body: body.to_owned(),
        }
    }

    /// Formats a problem document as `STATUS CODE: DETAIL | HINT`; anything else is shown unchanged.
    pub(crate) fn problem(&self) -> String {
        let document: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let text = |name: &str| document[name].as_str().unwrap_or("-").to_owned();
        if self.kind != "application/problem+json" || document["status"] != self.status {
            return format!("{} {} {}", self.status, self.kind, self.body);
        }
        let (code, detail, hint) = (text("code"), text("detail"), text("hint"));
        format!("{} {code}: {detail}{}", self.status, hinted(&hint))
    }
}

/// Formats a gRPC status as `CODE: MESSAGE`.
pub(crate) fn status(status: &tonic::Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}

/// Formats the error of a failed command as `CODE: MESSAGE | HINT`.
pub(crate) fn failure(ended: &Ended) -> String {
    let code = ended.code.map_or("signal".to_owned(), |c| c.to_string());
    let said = ended.stderr.trim_end().trim_start_matches("error: ");
    format!("{code}: {}", said.replace("\nhint: ", " | "))
}

pub(crate) fn hinted(hint: &str) -> String {
    match hint {
        "" => String::new(),
        hint => format!(" | {hint}"),
    }
}

/// Returns the files of a folder; nothing if there is no folder.
pub(crate) fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
