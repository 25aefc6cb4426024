//! `GET /metrics`: the metrics of this process, as text of OpenMetrics, for Prometheus.
//!
//! The metrics are those of the process that is asked, and of no other. Names of resources of all namespaces are in them, so
//! a master that asks for tokens tells them to readers of the whole cluster only. A worker knows no access tokens: it
//! asks for a token that is in a file of its own, and without that file answers nobody where other machines reach it.
//!
//! The text is made by one task at a time, on a thread for blocking work. Callers that come meanwhile wait for it, and
//! callers that come right after it was made get the same text, so that many of them cost little more than one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::response::Answer;
use crate::CALL_DEADLINE;
use crate::access::methods::{Method, Needs};
use crate::access::shown_token;
use crate::problem::Problem;
use crawler_master::Code;
use crawler_model::access::Right;
use crawler_model::id::Digest;
use crawler_process::task::spawn_blocking;

/// Access that the metrics of a master need.
pub(super) static READS_METRICS: Method = Method {
    name: "Metrics",
    needs: Needs::WholeCluster(Right::Read),
};

/// Type of the text.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Time for which a text is given to further callers.
const FRESH: Duration = Duration::from_millis(250);

/// Source of the metrics of a process.
pub trait Scrape: Send + Sync + 'static {
    /// Returns the metrics as text of OpenMetrics. The call may take some milliseconds, and is made on a thread for
    /// blocking work.
    fn scrape(&self) -> Result<String, fmt::Error>;
}

/// Rule of a worker for the callers of its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAccess {
    /// Whoever reaches the listener reads them.
    Open,
    /// A caller has to show the token with this digest.
    Token(Digest),
    /// Nobody reads them.
    Closed,
}

/// Metrics of a process at its HTTP listener. Clones share the text.
#[derive(Clone)]
pub struct Metrics {
    source: Arc<dyn Scrape>,
    /// Rule of a worker. A master asks for access tokens as for its calls.
    access: MetricsAccess,
    last: Arc<Mutex<Option<(Instant, Bytes)>>>,
}

impl Metrics {
    /// Creates the metrics of this source. `access` is the rule of a worker.
    pub fn new(source: Arc<dyn Scrape>, access: MetricsAccess) -> Self {
        Self {
            source,
            access,
            last: Arc::default(),
        }
    }

    /// Answers a caller whose right was checked.
    pub(super) async fn answer(&self) -> Answer {
        let text = tokio::time::timeout(CALL_DEADLINE, self.text()).await;
        let text = text.unwrap_or_else(|_elapsed| {
            let detail = format!("no metrics within {} s", CALL_DEADLINE.as_secs());
            Err(Problem::new(Code::Unavailable, detail, "ask again"))
        });
        let head = [
            (header::CONTENT_TYPE, OPEN_METRICS),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        Ok((head, text?).into_response())
    }

    /// Answers a caller of a worker, if it may read the metrics.
    pub(super) async fn answer_of_worker(&self, headers: &HeaderMap) -> Answer {
        self.check(headers)?;
        self.answer().await
    }

    /// Returns the text, made anew unless it was made a moment ago.
    async fn text(&self) -> Result<Bytes, Problem> {
        let mut last = self.last.clone().lock_owned().await;
        if let Some((made_at, text)) = &*last
            && made_at.elapsed() < FRESH
        {
            return Ok(text.clone());
        }
        // It may be megabytes, and is not kept beside the next one.
        *last = None;
        let source = self.source.clone();
        // The lock goes along: callers that go away do not make another text begin beside this one.
        let made = spawn_blocking(move || {
            let text = Bytes::from(source.scrape()?);
            // The time is that of its end: callers that waited for a slow one share it.
            *last = Some((Instant::now(), text.clone()));
            Ok::<_, fmt::Error>(text)
        });
        let internal = |why: String| Problem::new(Code::Internal, why, "");
        match made.await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => Err(internal(format!("metrics cannot be written: {error}"))),
            Err(panic) => Err(internal(panic.to_string())),
        }
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let expected = match self.access {
            MetricsAccess::Open => return Ok(()),
            MetricsAccess::Token(expected) => expected,
            MetricsAccess::Closed => {
                return Err(Problem::new(
                    Code::PermissionDenied,
                    "other machines reach this worker, and there is no token for its metrics",
                    "start it with --metrics-token FILE",
                ));
            }
        };
        let shown = headers.get(header::AUTHORIZATION);
        let shown = shown.and_then(|value| shown_token(value.as_bytes()));
        // The digests of two tokens tell nothing of how many of their first bytes are the same.
        match shown.is_some_and(|token| Digest::of(token.as_bytes()) == expected) {
            true => Ok(()),
            false => Err(Problem::new(
                Code::Unauthenticated,
                "the metrics of this worker need a token",
                "show the one of its --metrics-token as `Authorization: Bearer TOKEN`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    use axum::http::HeaderValue;

    use super::*;

    /// Tells how often it was asked.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl Scrape for Counting {
        fn scrape(&self) -> Result<String, fmt::Error> {
            let n = self.0.fetch_add(1, Ordering::Relaxed);
            Ok(format!("asked_total {}\n# EOF\n", n + 1))
        }
    }

    async fn text(metrics: &Metrics) -> String {
        let text = metrics.text().await.unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn callers_at_once_share_one_text() {
        let metrics = Metrics::new(Arc::<Counting>::default(), MetricsAccess::Open);
        let both = tokio::join!(text(&metrics), text(&metrics));
        let first = "asked_total 1\n# EOF\n".to_owned();
        assert_eq!(both, (first.clone(), first));
        tokio::time::advance(FRESH).await;
        assert_eq!(text(&metrics).await, "asked_total 2\n# EOF\n");
    }

    /// Waits for a message before each text.
    struct Slow {
        counting: Counting,
        gate: std::sync::Mutex<mpsc::Receiver<()>>,
    }

    impl Scrape for Slow {
        fn scrape(&self) -> Result<String, fmt::Error> {
            self.gate.lock().unwrap().recv().unwrap();
            self.counting.scrape()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_wait_for_a_slow_text_share_it() {
        let (open, gate) = mpsc::sync_channel(1);
        let slow = Slow {
            counting: Counting::default(),
            gate: std::sync::Mutex::new(gate),
        };
        let metrics = Metrics::new(Arc::new(slow), MetricsAccess::Open);
        let opens = async {
            tokio::time::advance(FRESH).await;
            open.send(()).unwrap();
            // A second text would find no message, and fail.
            drop(open);
        };
        let (first, second, ()) = tokio::join!(text(&metrics), text(&metrics), opens);
        assert_eq!(first, "asked_total 1\n# EOF\n");
        assert_eq!(second, first);
    }

    #[tokio::test]
    async fn a_worker_that_others_reach_asks_for_its_token() {
        let answer = async |access, shown: Option<&str>| {
            let metrics = Metrics::new(Arc::<Counting>::default(), access);
            let mut headers = HeaderMap::new();
            if let Some(shown) = shown {
                let shown = HeaderValue::from_str(shown).unwrap();
                headers.insert(header::AUTHORIZATION, shown);
            }
            let answer = metrics.answer_of_worker(&headers).await;
            answer.map_or_else(|problem| problem.status, |answer| answer.status())
        };
        let token = MetricsAccess::Token(Digest::of(b"secret"));
        assert_eq!(answer(MetricsAccess::Open, None).await, 200);
        assert_eq!(answer(MetricsAccess::Closed, None).await, 403);
        assert_eq!(answer(token, None).await, 401);
        assert_eq!(answer(token, Some("Bearer other")).await, 401);
        assert_eq!(answer(token, Some("secret")).await, 401);
        assert_eq!(answer(token, Some("Bearer secret")).await, 200);
    }
}
