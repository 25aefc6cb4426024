//! How long the parts of a request take that its client does not tell of: the lookup of a name, and the
//! connection.
//!
//! The client makes a connection within the task that asks for the page, so that what is noted there is
//! noted for that page. A connection that is not needed after all, because another became free, is
//! finished elsewhere and noted for nobody.

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
    static PHASES: Arc<Phases>;
}

/// Of one request.
#[derive(Debug, Default)]
pub(super) struct Phases {
    lookup: OnceLock<Duration>,
    connect: OnceLock<Duration>,
    /// A connection was begun for it.
    began: AtomicBool,
    /// Another became free: it was sent on that.
    left_behind: AtomicBool,
}

impl Phases {
    /// For the addresses of its name. None: nobody had to ask.
    pub(super) fn lookup(&self) -> Option<Duration> {
        self.lookup.get().copied()
    }

    /// For a connection, that lookup included. None: there was one.
    pub(super) fn connect(&self) -> Option<Duration> {
        self.connect.get().copied()
    }

    /// There was no connection yet when the request ended, so that nobody was asked for its page.
    pub(super) fn was_not_connected(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is_set(&self.began) && !is_set(&self.left_behind) && self.connect.get().is_none()
    }

    /// Notes what this request makes its client do.
    pub(super) fn of<T>(
        phases: &Arc<Self>,
        request: impl Future<Output = T>,
    ) -> impl Future<Output = T> {
        PHASES.scope(Arc::clone(phases), request)
    }
}

/// A lookup, noted for the request that it is made for.
pub(super) async fn lookup<T, E>(lookup: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    noted(lookup, present(), |phases| &phases.lookup).await
}

/// Of the request that is being sent, if one is.
fn present() -> Option<Arc<Phases>> {
    PHASES.try_with(Arc::clone).ok()
}

async fn noted<T, E>(
    part: impl Future<Output = Result<T, E>>,
    phases: Option<Arc<Phases>>,
    of: fn(&Phases) -> &OnceLock<Duration>,
) -> Result<T, E> {
    let begun = Instant::now();
    let done = part.await;
    if let Some(phases) = phases.filter(|_| done.is_ok()) {
        // The first one counts: what is made again is made for another request.
        of(&phases).get_or_init(|| begun.elapsed());
    }
    done
}

/// Notes where it goes on without the request that it was begun for.
async fn watched<F: Future>(connecting: F, phases: Option<Arc<Phases>>) -> F::Output {
    let mut connecting = pin!(connecting);
    let is_with = |phases: &Arc<Phases>| PHASES.try_with(|now| Arc::ptr_eq(now, phases));
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

/// Notes the connections that a client makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoteConnections;

impl<S> Layer<S> for NoteConnections {
    type Service = Noting<S>;

    fn layer(&self, connector: S) -> Noting<S> {
        let connector = Arc::new(connector);
        Noting { connector }
    }
}

/// What [`NoteConnections`] puts around a connector.
///
/// The client clones it several times for each request, most of which need no connection: the connector
/// itself is cloned where one is made.
#[derive(Debug)]
pub(super) struct Noting<S> {
    connector: Arc<S>,
}

impl<S> Clone for Noting<S> {
    fn clone(&self) -> Self {
        let connector = Arc::clone(&self.connector);
        Self { connector }
    }
}

impl<S, T> Service<T> for Noting<S>
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
        // The clone that makes the connection waits until it is.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: T) -> Self::Future {
        // Here, because what is returned may go on elsewhere from its begin.
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
        let mut service = NoteConnections.layer(tower::service_fn(|()| never()));
        let waiting = Arc::<Phases>::default();
        let connect = async { service.call(()).await };
        let ended = tokio::time::timeout(soon, Phases::of(&waiting, connect)).await;
        assert!(ended.is_err() && waiting.was_not_connected());

        let served = Arc::<Phases>::default();
        let call = poll_fn(|_| Poll::Ready(service.call(())));
        let connecting = Phases::of(&served, call).await;
        // The client lets it go on by itself.
        let ended = tokio::time::timeout(soon, connecting).await;
        assert!(ended.is_err() && !served.was_not_connected());
        assert!(!Phases::default().was_not_connected());
    }
}
