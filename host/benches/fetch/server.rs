//! One page and a robots.txt on loopback, served by a process of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use axum::Router;
use axum::http::header;
use axum::routing::get;
use axum::serve::ListenerExt as _;
use url::Url;

/// The argument that makes this program the server.
pub(crate) const SERVE: &str = "__serve";
/// As long as many pages are.
pub(crate) const PAGE_BYTES: usize = 16 << 10;

/// The server; it ends with this.
pub(crate) struct Server {
    pub(crate) base: Url,
    process: Child,
}

impl Server {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program is a file"))
            .arg(SERVE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let mut base = String::new();
        BufReader::new(process.stdout.take().expect("it is piped"))
            .read_line(&mut base)
            .expect("the server tells its address");
        let base = base.trim_end().parse().expect("the address is a URL");
        Self { base, process }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input tells the server to end.
        drop(self.process.stdin.take());
        self.process.wait().expect("the server ends");
    }
}

/// Serves until the end of the input.
#[expect(
    clippy::print_stdout,
    reason = "it tells its address to who started it"
)]
pub(crate) fn serve() {
    let line = "<p>A line of a page, as there are many.</p>\n";
    let page: &'static [u8] = line.repeat(PAGE_BYTES / line.len() + 1).into_bytes().leak();
    let page = &page[..PAGE_BYTES];
    let html = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::SET_COOKIE, "session=1; Path=/"),
    ];
    let router = Router::new()
        .route("/page", get(move || async move { (html, page) }))
        .route(
            "/robots.txt",
            get(|| async { "User-agent: *\nDisallow: /x\n" }),
        );
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
