//! The sites: one page and a robots.txt under every name, and the shortest time that any of them was left alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;

use super::LATENCY;

/// Path that tells [`Spacing`] and begins it anew.
const SPACING: &str = "/__spacing";

/// Times of the requests since they were last asked for.
#[derive(Default)]
struct Spacing {
    /// End of the last answer of each name, or the time of the request before that.
    last: HashMap<String, Instant>,
    shortest: Option<Duration>,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Spacing>>);

impl Log {
    fn spacing(&self) -> MutexGuard<'_, Spacing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request, and answers it after a while.
    async fn answer<R>(&self, headers: &HeaderMap, answer: R) -> R {
        let host = headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let now = Instant::now();
        {
            let mut spacing = self.spacing();
            // A request before the end of the last answer comes too soon as well.
            if let Some(last) = spacing.last.insert(host.to_owned(), now) {
                let gap = now.duration_since(last);
                spacing.shortest = Some(spacing.shortest.map_or(gap, |least| least.min(gap)));
            }
        }
        tokio::time::sleep(LATENCY).await;
        let ended = Instant::now();
        self.spacing().last.insert(host.to_owned(), ended);
        answer
    }
}

/// Returns the router of all sites.
pub(crate) fn router() -> Router {
    let robots = |State(log): State<Log>, headers: HeaderMap| async move {
        log.answer(&headers, "user-agent: *\ndisallow: /private")
            .await
    };
    let page = |State(log): State<Log>, headers: HeaderMap| async move {
        log.answer(&headers, Html("<a href='/'>home</a>")).await
    };
    let spacing = |State(log): State<Log>| async move {
        let spacing = std::mem::take(&mut *log.spacing());
        let shortest = spacing.shortest.map(|shortest| shortest.as_micros());
        shortest
            .map_or_else(String::new, |shortest| shortest.to_string())
            .into_response()
    };
    Router::new()
        .route("/robots.txt", get(robots))
        .route(SPACING, get(spacing))
        .fallback(page)
        .with_state(Log::default())
}

/// Returns the shortest time between an answer and the next request to the same name since the last call. `None` if no
/// name was asked twice.
pub(crate) async fn shortest_gap(port: u16) -> Option<Duration> {
    let client = reqwest::Client::builder().no_proxy().build();
    let client = client.expect("it has no odd settings");
    let asked = client.get(format!("http://127.0.0.1:{port}{SPACING}"));
    let answer = asked.send().await.expect("the server is there");
    let text = answer.text().await.expect("it is whole");
    let micros = (!text.is_empty()).then(|| text.parse().expect("it is a number"));
    micros.map(Duration::from_micros)
}
