//! The process that answers the requests of a benchmark, so that its work is not counted as that of the crawler.

use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use super::folder::{Folder, MAX_FILES};
use super::host_number;
use super::messages::{Message, ServerSettings};
use super::pages::Pages;
use super::visits::{Answer, Visits};
use super::web::{Found, Web};
use crate::random::SplitMix64;
use crawler_process::task::blocking;
use crawler_process::telemetry::chain;

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// A web that is served.
struct Served {
    pages: Pages,
    visits: Visits,
    settings: ServerSettings,
    port: u16,
}

/// Serves until the end of the input. Returns the exit code of the process.
pub fn child_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // This fails only if the process that crawls is gone; then nobody is left to report to.
            let _unread = tell(&Message::Failed(chain(error.as_ref())));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> anyhow::Result<()> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let settings = serde_json::from_str(&line).context("cannot read what to serve")?;
    let runtime = tokio::runtime::Runtime::new()?;
    let served = runtime.block_on(serve_until_end(settings));
    // The crawl is over: connections that are still open carry no request.
    runtime.shutdown_background();
    tell(&Message::Served(served?.visits.figures()))
}

async fn serve_until_end(settings: ServerSettings) -> anyhow::Result<Arc<Served>> {
    let pages = match &settings.folder {
        Some(folder) => Pages::Folder(Folder::read(folder, MAX_FILES)?),
        None => Pages::MadeUp(Web::new(settings.web.clone())),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.context("cannot listen on loopback")?;
    let port = listener.local_addr()?.port();
    let (n_hosts, n_pages) = (pages.n_hosts(), pages.n_pages());
    let served = Arc::new(Served {
        visits: Visits::new(n_hosts, n_pages, settings.promised),
        pages,
        settings,
        port,
    });
    tell(&Message::Serving {
        port,
        n_hosts,
        n_pages: n_pages as u64,
    })?;
    let router = Router::new()
        .fallback(get(answer))
        .with_state(Arc::clone(&served));
    let listener = listener.tap_io(|connection| {
        // A connection that refuses the option works too, with slower answers.
        let _slower = connection.set_nodelay(true);
    });
    tokio::select! {
        serving = axum::serve(listener, router).into_future() => serving?,
        ended = blocking(|| io::copy(&mut io::stdin(), &mut io::sink())) => drop(ended??),
    }
    Ok(served)
}

async fn answer(State(served): State<Arc<Served>>, headers: HeaderMap, uri: Uri) -> Response {
    let name = headers
        .get(header::HOST)
        .and_then(|name| name.to_str().ok());
    let Some(host) = name.and_then(host_number) else {
        return with_status(StatusCode::MISDIRECTED_REQUEST);
    };
    let path = uri.path();
    let found = served.pages.find(host, path);
    let kind = match found {
        Found::Robots => Answer::Robots,
        Found::Page(_) | Found::Redirect(_) | Found::Forbidden | Found::Nothing => Answer::Page,
    };
    let Some(_visit) = served.visits.begin(host, kind) else {
        return with_status(StatusCode::MISDIRECTED_REQUEST);
    };
    // Even a sleep of no time may last until the next tick of the timer.
    if !served.settings.latency.is_zero() {
        tokio::time::sleep(served.latency(host, path)).await;
    }
    match found {
        Found::Page(page) => served.page(page).await,
        Found::Redirect(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Found::Robots => {
            let robots = served.pages.robots(served.settings.crawl_delay);
            ([(header::CONTENT_TYPE, TEXT)], robots).into_response()
        }
        Found::Forbidden => {
            served.visits.forbid();
            with_status(StatusCode::FORBIDDEN)
        }
        Found::Nothing => with_status(StatusCode::NOT_FOUND),
    }
}

impl Served {
    async fn page(&self, page: u32) -> Response {
        if self.pages.fails_first(page) && self.visits.fail(page) {
            return with_status(StatusCode::SERVICE_UNAVAILABLE);
        }
        match self.pages.body(page, self.port).await {
            Ok(body) => {
                self.visits.serve(page);
                ([(header::CONTENT_TYPE, HTML)], body).into_response()
            }
            // The page is not served, and the report says so.
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }

    /// Returns the time until an answer begins: the same for the same seed and address.
    fn latency(&self, host: u32, path: &str) -> Duration {
        let letters = path.bytes().map(u64::from);
        let parts: Vec<u64> = std::iter::once(host.into()).chain(letters).collect();
        let mut random = SplitMix64::of_parts(self.settings.web.seed, &parts);
        let latency = self.settings.latency;
        latency / 2 + latency * random.below(1_001) / 1_000
    }
}

fn with_status(status: StatusCode) -> Response {
    let body = status.canonical_reason().unwrap_or_default();
    (status, [(header::CONTENT_TYPE, TEXT)], body).into_response()
}

fn tell(message: &Message) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(message)?)?;
    Ok(stdout.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::host_name;
    use crate::bench::messages::{Promised, VisitFigures};
    use crate::bench::web::WebSettings;

    fn served() -> Arc<Served> {
        let settings = ServerSettings {
            web: WebSettings {
                seed: 1,
                n_hosts: 2,
                n_pages: 400,
                errors: "50%".parse().unwrap(),
                redirects: "0%".parse().unwrap(),
            },
            folder: None,
            latency: Duration::from_millis(20),
            crawl_delay: Duration::from_secs(1),
            promised: Promised {
                after_robots: Duration::ZERO,
                after_page: Duration::from_secs(60),
            },
        };
        let pages = Pages::MadeUp(Web::new(settings.web.clone()));
        Arc::new(Served {
            visits: Visits::new(2, pages.n_pages(), settings.promised),
            pages,
            settings,
            port: 40_000,
        })
    }

    async fn status(served: &Arc<Served>, host: &str, path: &str) -> u16 {
        let headers = [(header::HOST, host.parse().unwrap())]
            .into_iter()
            .collect();
        let answer = answer(State(Arc::clone(served)), headers, path.parse().unwrap());
        answer.await.status().as_u16()
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_those_of_the_web_and_are_counted() {
        let served = served();
        let Pages::MadeUp(web) = &served.pages else {
            panic!("it is made up");
        };
        let links = web.links(0, served.port);
        let is_failing = |path: &&String| matches!(web.find(0, path), Found::Page(page) if web.fails_first(page));
        let failing = links.iter().find(is_failing);
        let failing = failing.expect("half of all pages fail first");
        let host = host_name(0);
        assert_eq!(status(&served, &host, "/robots.txt").await, 200);
        // After a robots.txt this visitor has promised nothing, after all other answers a minute.
        assert_eq!(status(&served, &host, "/").await, 200);
        assert_eq!(status(&served, &host, failing).await, 503);
        assert_eq!(status(&served, &host, failing).await, 200);
        assert_eq!(status(&served, &host, "/private/1.html").await, 403);
        assert_eq!(status(&served, &host, "/missing/1.html").await, 404);
        // Another host has had no answer yet.
        assert_eq!(status(&served, &host_name(1), "/").await, 200);
        assert_eq!(status(&served, "h2.bench.test", "/").await, 421);
        let expected = VisitFigures {
            requests: 7,
            served: 3,
            early: 4,
            forbidden: 1,
        };
        assert_eq!(served.visits.figures(), expected);
    }

    #[test]
    fn answers_take_as_long_for_the_same_seed() {
        let served = served();
        let latencies: Vec<Duration> = (0..1_000)
            .map(|n| served.latency(0, &format!("/{n}")))
            .collect();
        let range = Duration::from_millis(10)..=Duration::from_millis(30);
        assert!(latencies.iter().all(|latency| range.contains(latency)));
        let average = latencies.iter().sum::<Duration>() / 1_000;
        let is_average = Duration::from_millis(19)..Duration::from_millis(21);
        assert!(is_average.contains(&average), "{average:?}");
        assert_eq!(latencies[7], served.latency(0, "/7"));
        assert_ne!(latencies[7], served.latency(1, "/7"));
    }
}
