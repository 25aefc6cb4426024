//! A web server on loopback in a process of its own: the benchmark's program, started once more.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use axum::Router;
use axum::serve::ListenerExt as _;
use url::Url;

/// Argument that makes the program the server.
pub(crate) const SERVE: &str = "__serve";

/// Server that ends when this is dropped.
pub(crate) struct Server {
    pub(crate) base: Url,
    process: Child,
}

impl Server {
    /// Starts the server; the arguments tell what it serves.
    pub(crate) fn start(arguments: &[&OsStr]) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program is a file"))
            .arg(SERVE)
            .args(arguments)
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
pub(crate) fn serve(router: Router) {
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
            ended = crawler_process::task::spawn_blocking(|| {
                std::io::copy(&mut std::io::stdin(), &mut std::io::sink())
            }) => drop(ended),
        }
    });
}
