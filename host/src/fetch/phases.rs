//! How long the parts of a request take that its client does not tell of: the lookup of a name, and the
//! connection.
//!
//! The client makes a connection within the task that asks for the page, so that what is noted there is
//! noted for that page. A connection that is not needed after all, because another became free, is
//! finished elsewhere and noted for nobody.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;
use tower::{Layer, Service};

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
        self.began.load(Ordering::Relaxed) && self.connect.get().is_none()
    }

    /// Notes what this request makes its client do.
    pub(super) async fn of<T>(phases: &Arc<Self>, request: impl Future<Output = T>) -> T {
        PHASES.scope(Arc::clone(phases), request).await
    }
}

/// A lookup, noted for the request that it is made for.
pub(super) async fn lookup<T, E>(lookup: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    noted(lookup, |phases| &phases.lookup).await
}

async fn noted<T, E>(
    part: impl Future<Output = Result<T, E>>,
    of: fn(&Phases) -> &OnceLock<Duration>,
) -> Result<T, E> {
    let phases = PHASES.try_with(Arc::clone).ok();
    let begun = Instant::now();
    let done = part.await;
    if let Some(phases) = phases.filter(|_| done.is_ok()) {
        // The first one counts: what is made again is made for another request.
        of(&phases).get_or_init(|| begun.elapsed());
    }
    done
}

/// Notes the connections that a client makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoteConnections;

impl<S> Layer<S> for NoteConnections {
    type Service = Noting<S>;

    fn layer(&self, connector: S) -> Noting<S> {
        Noting { connector }
    }
}

/// What [`NoteConnections`] puts around a connector.
#[derive(Debug, Clone)]
pub(super) struct Noting<S> {
    connector: S,
}

impl<S, T> Service<T> for Noting<S>
where
    S: Service<T>,
    S::Response: 'static,
    S::Error: 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, target: T) -> Self::Future {
        if let Ok(phases) = PHASES.try_with(Arc::clone) {
            phases.began.store(true, Ordering::Relaxed);
        }
        noted(self.connector.call(target), |phases| &phases.connect).boxed()
    }
}
