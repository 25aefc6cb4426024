//! Durations of the parts of a request that its client does not report: the lookup of a name, and the connection.
//!
//! The client makes a connection within the task that requests the page, so that a duration noted there
//! belongs to that page. A connection that is not needed after all, because another became free, is finished
//! elsewhere and noted for no request.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt as _};

tokio::task_local! {
    static PHASES: Arc<RequestPhases>;
}

/// Durations of one request.
#[derive(Debug, Default)]
pub(super) struct RequestPhases {
    lookup: OnceLock<Duration>,
    connect: OnceLock<Duration>,
    /// True if a connection was begun for the request.
    began: AtomicBool,
    /// True if another connection became free and the request was sent on that.
    left_behind: AtomicBool,
}

impl RequestPhases {
    /// Returns the time for the addresses of the name. Returns `None` if there was no lookup.
    pub(super) fn lookup(&self) -> Option<Duration> {
        self.lookup.get().copied()
    }

    /// Returns the time for a connection, lookup included. Returns `None` if an open one was used.
    pub(super) fn connect(&self) -> Option<Duration> {
        self.connect.get().copied()
    }

    /// Returns true if there was no connection yet when the request ended, so that nothing was asked.
    pub(super) fn was_not_connected(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is_set(&self.began) && !is_set(&self.left_behind) && self.connect.get().is_none()
    }

    /// Runs a request and notes in `phases` the lookups and connections that it causes.
    pub(super) fn of<T>(
        phases: &Arc<Self>,
        request: impl Future<Output = T>,
    ) -> impl Future<Output = T> {
        PHASES.scope(Arc::clone(phases), request)
    }
}

/// Runs a lookup and notes its duration for the request that it is made for.
pub(super) async fn lookup<T, E>(lookup: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    noted(lookup, present(), |phases| &phases.lookup).await
}

/// Returns the phases of the request that is being sent, if there is one.
fn present() -> Option<Arc<RequestPhases>> {
    PHASES.try_with(Arc::clone).ok()
}

async fn noted<T, E>(
    part: impl Future<Output = Result<T, E>>,
    phases: Option<Arc<RequestPhases>>,
    of: fn(&RequestPhases) -> &OnceLock<Duration>,
) -> Result<T, E> {
    let begun = Instant::now();
    let done = part.await;
    if let Some(phases) = phases.filter(|_| done.is_ok()) {
        // The first duration counts: a later lookup or connection is made for another request.
        of(&phases).get_or_init(|| begun.elapsed());
    }
    done
}

/// Runs a connection attempt and notes if it goes on without the request that it was begun for.
async fn watched<F: Future>(connecting: F, phases: Option<Arc<RequestPhases>>) -> F::Output {
    let mut connecting = pin!(connecting);
    let is_with = |phases: &Arc<RequestPhases>| PHASES.try_with(|now| Arc::ptr_eq(now, phases));
    poll_fn(|context| {
        if let Some(phases) = &phases
            && !is_with(phases).unwrap_or(false)
        {
            phases.left_behind.store(true, Ordering::Relaxed);
        }
        connecting.as_mut().poll(context)
    })
    .await
}

/// Layer that notes the connections that a client makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordConnections;

impl<S> Layer<S> for RecordConnections {
    type Service = Recording<S>;

    fn layer(&self, connector: S) -> Recording<S> {
        let connector = Arc::new(connector);
        Recording { connector }
    }
}

/// Connector wrapped by [`RecordConnections`].
///
/// The client clones it several times for each request, most of which need no connection. The connector
/// itself is therefore cloned only where a connection is made.
#[derive(Debug)]
pub(super) struct Recording<S> {
    connector: Arc<S>,
}

impl<S> Clone for Recording<S> {
    fn clone(&self) -> Self {
        let connector = Arc::clone(&self.connector);
        Self { connector }
    }
}

impl<S, T> Service<T> for Recording<S>
where
    S: Service<T> + Clone + Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
    S::Future: Send + 'static,
    T: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        // The clone that makes the connection waits until it is ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: T) -> Self::Future {
        // The phases are taken here, because the returned future may run elsewhere from the start.
        let phases = present();
        if let Some(phases) = &phases {
            phases.began.store(true, Ordering::Relaxed);
        }
        let connector = S::clone(&self.connector);
        let connecting = watched(connector.oneshot(target), phases.clone());
        noted(connecting, phases, |phases| &phases.connect).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn never() -> Result<(), ()> {
        std::future::pending().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_connection_is_told_from_one_that_took_another() {
        let soon = Duration::from_millis(10);
        let mut service = RecordConnections.layer(tower::service_fn(|()| never()));
        let waiting = Arc::<RequestPhases>::default();
        let connect = async { service.call(()).await };
        let ended = tokio::time::timeout(soon, RequestPhases::of(&waiting, connect)).await;
        assert!(ended.is_err() && waiting.was_not_connected());

        let served = Arc::<RequestPhases>::default();
        let call = poll_fn(|_| Poll::Ready(service.call(())));
        let connecting = RequestPhases::of(&served, call).await;
        // The client lets the connection attempt go on by itself.
        let ended = tokio::time::timeout(soon, connecting).await;
        assert!(ended.is_err() && !served.was_not_connected());
        assert!(!RequestPhases::default().was_not_connected());
    }
}
