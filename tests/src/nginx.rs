//! nginx with a folder: a process of its own on a free port, which ends with its handle.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use url::Url;

use crate::process::{Home, Process};
use crate::{PATIENCE, skipped, until};

/// Places of the program. Users have no `/usr/sbin` in their path.
const PROGRAMS: [&str; 2] = ["nginx", "/usr/sbin/nginx"];
/// Number of attempts to start: a port is free when it is chosen, but another process may use it first.
const N_STARTS: usize = 5;

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// Address of the root.
    pub base: Url,
    /// Version, as the program tells it.
    pub version: String,
    folder: PathBuf,
    _process: Process,
    _home: Home,
}

impl Server {
    /// Serves a folder. If nginx is not installed, it says so and returns `None`.
    pub fn start(folder: &Path) -> Option<Self> {
        let versions = PROGRAMS.iter().filter_map(|program| {
            let told = Command::new(program).arg("-v").output().ok()?;
            let told = String::from_utf8_lossy(&told.stderr).trim().to_owned();
            Some((*program, told))
        });
        let Some((program, version)) = versions.into_iter().next() else {
            skipped(
                "nginx",
                "nginx, which serves the pages, is not installed (Debian: apt-get install nginx-light)",
            );
            return None;
        };
        let started = (0..N_STARTS).find_map(|_| start(program, folder));
        let (port, process, home) = started.expect("nginx starts on one of the free ports");
        let base = format!("http://127.0.0.1:{port}/");
        Some(Self {
            base: base.parse().expect("it is an address"),
            version: version.replace("nginx version: ", ""),
            folder: folder.to_owned(),
            _process: process,
            _home: home,
        })
    }

    /// Number of bytes of a page.
    pub fn n_bytes(&self, url: &str) -> u64 {
        let path = url
            .strip_prefix(self.base.as_str())
            .expect("it was fetched from here");
        let mut file = self.folder.join(path);
        if file.is_dir() {
            file.push("index.html");
        }
        let found = std::fs::metadata(&file);
        found
            .unwrap_or_else(|e| panic!("{url} is no file: {e}"))
            .len()
    }
}

/// Starts the program. Returns `None` if it does not listen.
fn start(program: &str, folder: &Path) -> Option<(u16, Process, Home)> {
    let home = Home::new();
    let port = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = port.local_addr().expect("it is bound").port();
    let config = home.write("nginx.conf", &config(port, folder));
    let mut command = Command::new(program);
    command
        .args(["-e", "stderr", "-p"])
        .arg(home.path())
        .arg("-c")
        .arg(config);
    let mut process = Process::start(&mut command);
    let listens = until(
        "answer or end of nginx",
        PATIENCE,
        || match TcpStream::connect(("127.0.0.1", port)) {
            Ok(_) => Some(process.is_running()),
            Err(_) => (!process.is_running()).then_some(false),
        },
    );
    listens.then_some((port, process, home))
}

/// Returns a config that makes serving as cheap as it can be: files are sent by the kernel, connections are kept, and
/// nothing is logged or compressed. A crawler that reads slowly on a busy machine is not cut off.
fn config(port: u16, folder: &Path) -> String {
    // A server that root has started gives up its rights, and may then not read what belongs to root.
    let user = match rustix::process::geteuid().is_root() {
        true => "user root;\n",
        false => "",
    };
    let folder = folder.display();
    // A worker may open 1 024 files on many systems, and with more of them in the cache, requests hang.
    format!(
        "{user}daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; }}
    charset utf-8;
    access_log off;
    log_not_found off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    keepalive_timeout 1h;
    send_timeout 1h;
    open_file_cache max=500;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{ listen 127.0.0.1:{port}; root \"{folder}\"; }}
}}
"
    )
}
