//! The documentation of Rust on loopback, served from memory by a process of its own.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use url::Url;

use super::{BELOW, START};

/// The argument that makes this program the server.
pub(crate) const SERVE: &str = "__serve";

/// The server; it ends with this.
pub(crate) struct Site {
    pub(crate) base: Url,
    server: Child,
}

impl Site {
    /// None where the documentation is not installed.
    pub(crate) fn start() -> Option<Self> {
        let asked = Command::new("rustc")
            .args(["--print", "sysroot"])
            .output()
            .expect("rustc can be started");
        let sysroot = String::from_utf8_lossy(&asked.stdout);
        let folder = Path::new(sysroot.trim()).join("share/doc/rust/html");
        if !folder.join(&START[1..]).is_file() {
            return None;
        }
        let mut server = Command::new(std::env::current_exe().expect("this program is a file"))
            .arg(SERVE)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let mut base = String::new();
        BufReader::new(server.stdout.take().expect("it is piped"))
            .read_line(&mut base)
            .expect("the server tells its address");
        Some(Self {
            base: base.trim_end().parse().expect("the address is a URL"),
            server,
        })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // The end of its input tells the server to end.
        drop(self.server.stdin.take());
        self.server.wait().expect("the server ends");
    }
}

/// Serves the pages of a folder until the end of the input.
#[expect(
    clippy::print_stdout,
    reason = "it tells its address to who started it"
)]
pub(crate) fn serve(folder: &str) {
    let mut pages = HashMap::new();
    let below = Path::new(folder).join(BELOW.trim_matches('/'));
    read(Path::new(folder), &below, &mut pages);
    let pages = Arc::new(pages);
    let router = Router::new().fallback(move |request: Request| {
        let page = answer(&pages, request.uri().path());
        async move { page }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("loopback has a port");
        println!("http://{}/", listener.local_addr().expect("it is bound"));
        std::io::stdout().flush().expect("somebody reads it");
        let listener = listener.tap_io(|connection| {
            connection.set_nodelay(true).expect("it is a TCP socket");
        });
        tokio::select! {
            served = axum::serve(listener, router).into_future() => served.expect("it goes on"),
            ended = tokio::task::spawn_blocking(|| {
                std::io::copy(&mut std::io::stdin(), &mut std::io::sink())
            }) => drop(ended),
        }
    });
}

fn read(folder: &Path, below: &Path, pages: &mut HashMap<String, Bytes>) {
    let entries = std::fs::read_dir(below).expect("the folder can be read");
    for entry in entries {
        let path: PathBuf = entry.expect("the folder can be read").path();
        if path.is_dir() {
            read(folder, &path, pages);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let name = path.strip_prefix(folder).expect("it lies in the folder");
            let bytes = std::fs::read(&path).expect("the page can be read");
            pages.insert(format!("/{}", name.display()), bytes.into());
        }
    }
}

fn answer(pages: &HashMap<String, Bytes>, path: &str) -> Response {
    match pages.get(path) {
        Some(page) => {
            let html = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
            (html, page.clone()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
