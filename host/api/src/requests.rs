//! Bounds on what the requests of a process hold in memory, and on how long their bodies may take.
//!
//! The listeners of a process share one budget of bytes ([`Requests`]). A layer around each service wraps the
//! body of every request: a frame is handed on only once its bytes are taken from the budget, so a message is
//! never gathered or decoded before it is accounted for. The bytes are given back when the request is
//! answered and its body is gone. A request that finds the budget used up is refused at once, with a message
//! that names the setting. It never waits, so nobody can fill the process with waiting requests either.
//!
//! The last eighth of the budget is for small requests: large requests cannot lock out those that list nodes
//! or pause a crawl.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::{Request, StatusCode};
use tokio::time::{Instant, Sleep};
use tower::{Layer, Service};

use super::UPLOAD_DEADLINE;
use super::problem::Problem;

/// Bytes that each request counts for beside its body: a request costs memory before any of its body arrives.
const REQUEST_COST: u64 = 16 << 10;
/// Largest size in bytes of a small request.
const SMALL: u64 = REQUEST_COST + (64 << 10);

/// Bounds of what clients may send to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSettings {
    /// Bytes that the bodies of all requests may hold at once: setting `request-memory`.
    pub memory: u64,
    /// Connections of each listener at once: setting `connections`.
    pub connections: usize,
    /// Time that a client may take for the head of a request, or for the next piece of its body:
    /// setting `stall-timeout`.
    pub stall_timeout: Duration,
}

impl Default for RequestSettings {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            connections: 4_096,
            stall_timeout: Duration::from_secs(10),
        }
    }
}

impl RequestSettings {
    /// Returns the size of the largest body that fits into the budget.
    pub fn largest_body(&self) -> u64 {
        (self.memory - self.memory / 8).saturating_sub(REQUEST_COST)
    }
}

/// Bounds that all requests of a process share.
#[derive(Debug, Clone)]
pub struct Requests {
    pub(super) settings: RequestSettings,
    budget: Arc<Budget>,
}

#[derive(Debug)]
struct Budget {
    max: u64,
    taken: AtomicU64,
}

/// Share of the budget that one request has taken. Dropping it gives all of it back.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    /// Bytes that are taken so far; only the request's body adds to them.
    taken: AtomicU64,
}

impl Requests {
    /// Creates a budget of which nothing is taken.
    pub fn new(settings: RequestSettings) -> Self {
        Self {
            budget: Arc::new(Budget {
                max: settings.memory,
                taken: AtomicU64::new(0),
            }),
            settings,
        }
    }

    /// Returns a layer that takes the bodies of an HTTP router from this budget.
    pub(super) fn of_http(&self) -> MeterBodies<axum::body::Body> {
        MeterBodies {
            requests: self.clone(),
            wrap: |metered| axum::body::Body::new(metered),
            // The problem is found again where the body is read, and answered as it stands.
            error: |problem| Box::new(problem),
        }
    }

    /// Returns a layer that takes the bodies of gRPC services from this budget.
    pub(super) fn of_grpc(&self) -> MeterBodies<tonic::body::Body> {
        MeterBodies {
            requests: self.clone(),
            wrap: |metered| tonic::body::Body::new(metered),
            error: |problem| Box::new(problem.to_status()),
        }
    }
}

impl Share {
    /// Takes `n_bytes` more, if there are as many.
    fn take(&self, n_bytes: u64) -> Result<(), Problem> {
        if n_bytes == 0 {
            // This is the end of a body whose bytes are all taken.
            return Ok(());
        }
        let max = self.budget.max;
        let own = self.taken.load(Ordering::Relaxed);
        let max_for_this = match own + n_bytes > SMALL {
            true => max - max / 8,
            false => max,
        };
        let more = |taken: u64| Some(taken + n_bytes).filter(|taken| *taken <= max_for_this);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let taken = self.budget.taken.fetch_update(set, fetch, more);
        taken.map_err(|_| {
            let detail = format!(
                "the requests in hand hold all of the {max} bytes that --request-memory allows"
            );
            Problem::passing(detail, "try again in a moment, or raise --request-memory")
        })?;
        self.taken.fetch_add(n_bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let taken = *self.taken.get_mut();
        self.budget.taken.fetch_sub(taken, Ordering::Relaxed);
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Layer that wraps the bodies of all requests to a service.
pub(super) struct MeterBodies<B> {
    requests: Requests,
    wrap: fn(Metered<B>) -> B,
    error: fn(Problem) -> BoxError,
}

impl<B> Clone for MeterBodies<B> {
    fn clone(&self) -> Self {
        Self {
            requests: self.requests.clone(),
            ..*self
        }
    }
}

impl<B, S> Layer<S> for MeterBodies<B> {
    type Service = Metering<B, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Metering {
            meter: self.clone(),
            inner,
        }
    }
}

/// Service whose requests are taken from the budget.
pub(super) struct Metering<B, S> {
    meter: MeterBodies<B>,
    inner: S,
}

impl<B, S: Clone> Clone for Metering<B, S> {
    fn clone(&self) -> Self {
        Self {
            meter: self.meter.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<B, S> Service<Request<B>> for Metering<B, S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let requests = &self.meter.requests;
        let share = Arc::new(Share {
            budget: requests.budget.clone(),
            taken: AtomicU64::new(0),
        });
        let request = request.map(|body| {
            (self.meter.wrap)(Metered {
                body,
                share: share.clone(),
                stall_timeout: requests.settings.stall_timeout,
                clock: None,
                error: self.meter.error,
            })
        });
        let answer = self.inner.call(request);
        // The service holds the bytes of the body until it has answered.
        Box::pin(async move {
            let answer = answer.await;
            drop(share);
            answer
        })
    }
}

/// Body whose frames are taken from the budget before they are handed on.
pub(super) struct Metered<B> {
    body: B,
    share: Arc<Share>,
    stall_timeout: Duration,
    /// Clock of the body, which runs from the first poll on.
    clock: Option<Clock>,
    error: fn(Problem) -> BoxError,
}

struct Clock {
    next: Pin<Box<Sleep>>,
    /// Time by which the whole body must have arrived.
    end: Instant,
}

impl<B: Unpin> Metered<B> {
    /// Begins to wait for the next frame; for the first frame, the request's own cost is taken too.
    fn wait(&mut self) -> Result<(), Problem> {
        let now = Instant::now();
        let Some(clock) = &mut self.clock else {
            self.share.take(REQUEST_COST)?;
            self.clock = Some(Clock {
                next: Box::pin(tokio::time::sleep_until(now + self.stall_timeout)),
                end: now + UPLOAD_DEADLINE,
            });
            return Ok(());
        };
        let next = clock.end.min(now + self.stall_timeout);
        clock.next.as_mut().reset(next);
        Ok(())
    }

    /// Returns the problem of a client that has sent nothing for too long, or not all of it in time.
    fn stalled(&self) -> Problem {
        let seconds = self.stall_timeout.as_secs_f64();
        let detail = format!("no more of the body arrived within {seconds} s");
        Problem::invalid(detail, "send it faster, or raise --stall-timeout")
            .with_status(StatusCode::REQUEST_TIMEOUT)
    }
}

impl<B> Body for Metered<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let to_error = this.error;
        if this.clock.is_none() {
            this.wait().map_err(to_error)?;
        }
        let frame = match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                if let Some(clock) = &mut this.clock {
                    ready!(clock.next.as_mut().poll(context));
                }
                return Poll::Ready(Some(Err(to_error(this.stalled()))));
            }
        };
        let frame = frame.transpose().map_err(Into::<BoxError>::into)?;
        let n_bytes = frame
            .as_ref()
            .and_then(Frame::data_ref)
            .map_or(0, Bytes::len);
        let taken = this.share.take(n_bytes as u64);
        taken.and_then(|()| this.wait()).map_err(to_error)?;
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
