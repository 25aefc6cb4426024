//! A fake web on loopback that does what it is told and keeps a log of every request.
//!
//! The web has a thread and a runtime of its own: a test that blocks does not slow it, and the times in its log
//! are those of the server alone.

use std::fs;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
pub use axum::http::{HeaderMap, Method, StatusCode, header};
pub use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;
use url::Url;

mod log;

pub use log::{Hit, most_at_once, shortest_pause};
use log::{Log, Open};

const BODY_MAX: usize = 64 << 20;
const ROBOTS: &str = "/robots.txt";
/// Ports below those that systems give to processes that ask for any.
const PORTS_APART: Range<u16> = 10_000..30_000;

type Handler = Arc<dyn Fn(Asked) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// Answers of a site, until it is opened.
#[derive(Clone, Default)]
pub struct Site {
    routes: Vec<(String, Handler)>,
    folder: Option<PathBuf>,
}

/// A request, as handlers see it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Method in capitals.
    pub method: Method,
    /// Path without the query.
    pub path: String,
    /// Query after the question mark; empty if there is none.
    pub query: String,
    /// Headers as received.
    pub headers: HeaderMap,
    /// Body as received.
    pub body: Bytes,
    /// Number of this request among those for its path, with any method or query, from 1.
    pub nth: usize,
}

impl Site {
    /// Makes a site where every path is 404.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers paths that no handler has with the files of a folder. A folder is its `index.html`, and its path
    /// without the last slash redirects there. The folder's robots.txt is left out: the test says what the crawler
    /// is to obey.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Answers a path with a page of HTML.
    pub fn page(self, path: &str, html: impl Into<String>) -> Self {
        let html: Arc<str> = html.into().into();
        self.handle(path, move |_| {
            let html = Arc::clone(&html);
            async move { axum::response::Html(html.to_string()) }
        })
    }

    /// Answers a path with 404, whatever the folder has.
    pub fn without(self, path: &str) -> Self {
        self.handle(path, |_| async { StatusCode::NOT_FOUND })
    }

    /// Answers a path as the handler says. A path that ends with `*` stands for all paths that start like it,
    /// except for the robots.txt; the longest path that fits is asked.
    pub fn handle<F, A, R>(mut self, path: &str, handler: F) -> Self
    where
        F: Fn(Asked) -> A + Send + Sync + 'static,
        A: Future<Output = R> + Send + 'static,
        R: IntoResponse,
    {
        let handler: Handler = Arc::new(move |asked| {
            let answer = handler(asked);
            Box::pin(async move { answer.await.into_response() })
        });
        self.routes.push((path.to_owned(), handler));
        self
    }

    /// Opens the site on a free port of 127.0.0.1.
    pub fn open(self) -> Web {
        self.open_at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Opens the site at this IP of loopback, on a port that the system does not give out by itself. A crawler
    /// refuses ports of loopback on which one of its own listeners is, at any IP.
    pub fn open_apart(self, ip: Ipv4Addr) -> Web {
        // Another process may try the same port; then the next is taken.
        static NEXT: OnceLock<AtomicU16> = OnceLock::new();
        let first = || {
            let spread = std::process::id() % u32::from(PORTS_APART.end - PORTS_APART.start);
            AtomicU16::new(PORTS_APART.start + u16::try_from(spread).expect("below a port"))
        };
        let next = NEXT.get_or_init(first);
        let n_ports = PORTS_APART.end - PORTS_APART.start;
        for _ in 0..n_ports {
            let nth = next.fetch_add(1, Ordering::Relaxed) % n_ports;
            let address = SocketAddr::from((ip, PORTS_APART.start + nth));
            if let Ok(listener) = TcpListener::bind(address) {
                return self.serve_at(listener);
            }
        }
        panic!("no port of {PORTS_APART:?} is free at {ip}");
    }

    /// Opens the site at an address: every 127.x.y.z is another host, port 0 is a free one.
    pub fn open_at(self, address: SocketAddr) -> Web {
        let listener =
            TcpListener::bind(address).unwrap_or_else(|e| panic!("no port at {address}: {e}"));
        self.serve_at(listener)
    }

    fn serve_at(self, listener: TcpListener) -> Web {
        listener
            .set_nonblocking(true)
            .expect("a new socket can be made non-blocking");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let (log, robots_log) = (Arc::new(Log::default()), Arc::new(Log::default()));
        let stop = CancellationToken::new();
        let logs = (Arc::clone(&log), Arc::clone(&robots_log));
        let serving = serve(listener, Arc::new(self), logs, stop.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime of one thread needs nothing that could be missing");
        let thread = std::thread::Builder::new()
            .name("fake-web".to_owned())
            .spawn(move || runtime.block_on(serving))
            .unwrap_or_else(|e| panic!("no thread for the fake web: {e}"));
        Web {
            address,
            log,
            robots_log,
            stop,
            thread: Some(thread),
        }
    }

    fn handler(&self, path: &str) -> Option<&Handler> {
        let fits = |route: &str| match route.strip_suffix('*') {
            Some(start) => path.starts_with(start) && path != ROBOTS,
            None => path == route,
        };
        let fitting = self.routes.iter().filter(|(route, _)| fits(route));
        fitting
            .max_by_key(|(route, _)| route.len())
            .map(|(_, handler)| handler)
    }
}

/// An open site. Dropping it closes it, and breaks the connections that are left.
pub struct Web {
    address: SocketAddr,
    log: Arc<Log>,
    robots_log: Arc<Log>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> Url {
        let text = format!("http://{}{path}", self.address);
        text.parse()
            .unwrap_or_else(|e| panic!("{text} is no URL: {e}"))
    }

    /// Returns the requests for the robots.txt so far; they are in no other log, and counted nowhere else.
    pub fn robots_log(&self) -> Vec<Hit> {
        self.robots_log.hits().clone()
    }

    /// Returns every request so far, in the order of their starts.
    pub fn log(&self) -> Vec<Hit> {
        self.log.hits().clone()
    }

    /// Number of requests for a path, with any method or query.
    pub fn count(&self, path: &str) -> usize {
        self.log
            .hits()
            .iter()
            .filter(|hit| hit.path == path)
            .count()
    }

    /// Waits until the log is as wished, and returns it.
    #[track_caller]
    pub fn wait_for(
        &self,
        what: &str,
        deadline: Duration,
        wished: impl Fn(&[Hit]) -> bool,
    ) -> Vec<Hit> {
        let (hits, came) = self.log.wait(deadline, wished);
        assert!(
            came,
            "no {what} within {deadline:?}; {} requests came",
            hits.len()
        );
        hits
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            panic!("the fake web panicked");
        }
    }
}

async fn serve(
    listener: TcpListener,
    site: Arc<Site>,
    (log, robots_log): (Arc<Log>, Arc<Log>),
    stop: CancellationToken,
) {
    let listener = tokio::net::TcpListener::from_std(listener)
        .expect("the socket is non-blocking and inside a runtime");
    let router = Router::new().fallback(move |request: Request| {
        let log = match request.uri().path() {
            ROBOTS => &robots_log,
            _ => &log,
        };
        answer(Arc::clone(&site), Arc::clone(log), request)
    });
    tokio::select! {
        served = axum::serve(listener, router).into_future() => {
            served.unwrap_or_else(|e| panic!("the fake web cannot go on: {e}"));
        }
        () = stop.cancelled() => {}
    }
}

async fn answer(site: Arc<Site>, log: Arc<Log>, request: Request) -> Response {
    let start = Instant::now();
    let (head, body) = request.into_parts();
    let (path, query) = (
        head.uri.path().to_owned(),
        head.uri.query().unwrap_or_default().to_owned(),
    );
    let (place, nth) = log.note(Hit {
        method: head.method.clone(),
        path: path.clone(),
        query: query.clone(),
        headers: head.headers.clone(),
        start,
        end: None,
        status: None,
    });
    let mut open = Open {
        log,
        place,
        status: None,
    };
    let Ok(body) = to_bytes(body, BODY_MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let response = match (site.handler(&path), &site.folder) {
        (Some(handler), _) => {
            handler(Asked {
                method: head.method,
                path,
                query,
                headers: head.headers,
                body,
                nth,
            })
            .await
        }
        (None, Some(folder)) if path != ROBOTS => file(folder, &path),
        (None, _) => StatusCode::NOT_FOUND.into_response(),
    };
    open.status = Some(response.status());
    response
}

fn file(folder: &Path, path: &str) -> Response {
    let Some(mut file) = file_of(folder, path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if file.is_dir() {
        if !path.ends_with('/') {
            let there = [(header::LOCATION, format!("{path}/"))];
            return (StatusCode::MOVED_PERMANENTLY, there).into_response();
        }
        file.push("index.html");
    }
    let content_type = match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    match fs::read(&file) {
        Ok(bytes) => ([(header::CONTENT_TYPE, content_type)], Body::from(bytes)).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the file or folder that a URL path means; `None` outside of the folder.
pub(crate) fn file_of(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut url: Url = "file:///".parse().ok()?;
    url.set_path(path);
    let below = url.to_file_path().ok()?;
    let mut file = folder.to_owned();
    for part in below.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => file.push(name),
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => return None,
        }
    }
    Some(file)
}

#[cfg(test)]
mod tests;
