//! Background tasks: each has a name, belongs to a scope, and ends with it.
//!
//! A scope is stopped in two steps. [`TaskScope::stop`] tells its tasks to finish what is in hand; those that
//! still run after the grace period are cut off, and their names logged. A task that panics is logged and
//! reported through [`TaskScope::failed`]; it never disappears silently.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

/// Group of tasks that end together. Dropping it aborts them.
#[derive(Debug, Default)]
pub struct TaskScope {
    inner: Arc<Mutex<Inner>>,
    stop: CancellationToken,
    failed: CancellationToken,
}

#[derive(Debug, Default)]
struct Inner {
    tasks: JoinSet<()>,
    names: HashMap<Id, Cow<'static, str>>,
}

impl TaskScope {
    /// Creates an empty scope.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty scope that is told to stop when `stop` is.
    pub fn under(stop: &CancellationToken) -> Self {
        Self {
            stop: stop.child_token(),
            ..Self::default()
        }
    }

    /// Returns a token that is cancelled when the tasks of this scope should finish.
    pub fn stop_signal(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Returns a token that is cancelled when a task of this scope has panicked: a bug, so the process should
    /// end.
    pub fn failed(&self) -> CancellationToken {
        self.failed.clone()
    }

    /// Starts a task, within the span of its caller: its log lines have the same fields. After
    /// [`TaskScope::stop`] it still starts, sees the stop signal and ends.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn(
        &self,
        name: impl Into<Cow<'static, str>>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let name = name.into();
        let failed = self.failed.clone();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = inner.tasks.try_join_next_with_id() {
            let id = ended.map_or_else(|e| e.id(), |(id, ())| id);
            inner.names.remove(&id);
        }
        let watched = {
            let name = name.clone();
            async move {
                let _alarm = PanicAlarm { name, failed };
                task.await;
            }
        };
        let watched = watched.in_current_span();
        #[cfg(any(test, feature = "testing"))]
        let watched = schedule::ordered(process::within(watched));
        let handle = inner.tasks.spawn(watched);
        inner.names.insert(handle.id(), name);
    }

    /// Tells all tasks to finish and waits for them, at most this long. Returns the names of those
    /// that were cut off.
    pub async fn stop(&self, grace: Duration) -> Vec<String> {
        self.stop.cancel();
        let deadline = tokio::time::Instant::now() + grace;
        let (mut tasks, mut names) = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            (
                std::mem::take(&mut inner.tasks),
                std::mem::take(&mut inner.names),
            )
        };
        while !tasks.is_empty() {
            match tokio::time::timeout_at(deadline, tasks.join_next_with_id()).await {
                Ok(Some(ended)) => {
                    names.remove(&ended.map_or_else(|e| e.id(), |(id, ())| id));
                }
                Ok(None) => break,
                Err(_elapsed) => {
                    tasks.abort_all();
                    while tasks.join_next().await.is_some() {}
                    let cut: Vec<String> = names.into_values().map(Cow::into_owned).collect();
                    tracing::warn!(tasks = ?cut, "cut off tasks that did not stop in time");
                    return cut;
                }
            }
        }
        Vec::new()
    }
}

/// Starts work that holds a thread for long, away from the executor and within the span of its caller. It goes
/// on if its handle is dropped.
#[expect(clippy::disallowed_methods, reason = "the one place that does")]
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let span = Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
}

/// Does work that holds a thread for long, away from the executor and within the span of its caller, and returns what
/// it returns. A panic of the work goes on in the caller.
///
/// # Errors
///
/// The process is about to end, and the work was not done.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(cancelled) => Err(cancelled),
        },
    }
}

/// Reports a task that ends by unwinding. A task that returns or is aborted is not reported.
struct PanicAlarm {
    name: Cow<'static, str>,
    failed: CancellationToken,
}

impl Drop for PanicAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = %self.name, "task panicked");
            self.failed.cancel();
        }
    }
}

#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod process;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod schedule;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::testing::Log;

    #[tokio::test]
    async fn tasks_and_work_on_threads_keep_the_span_of_their_caller() {
        let (log, _guard) = Log::of_this_thread("info");
        let scope = TaskScope::new();
        let outer = async {
            let inner = TaskScope::new();
            inner.spawn("inner", async { tracing::info!("told by a task") });
            inner.stop(Duration::from_secs(10)).await;
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let tell = || tracing::info!("told on a thread");
            let work = move || tracing::dispatcher::with_default(&dispatch, tell);
            spawn_blocking(work).await.unwrap();
        };
        let crawl = tracing::error_span!("crawl", resource = %"books");
        crawl.in_scope(|| scope.spawn("outer", outer));
        assert_eq!(scope.stop(Duration::from_secs(10)).await, [""; 0]);
        let lines = log.lines();
        for told in [
            " told by a task resource=books",
            " told on a thread resource=books",
        ] {
            assert!(lines.iter().any(|line| line.ends_with(told)), "{lines:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_tasks_that_finish_and_names_those_that_do_not() {
        let scope = TaskScope::new();
        let stop = scope.stop_signal();
        scope.spawn("polite", async move { stop.cancelled().await });
        scope.spawn("stubborn", std::future::pending());
        assert_eq!(scope.stop(Duration::from_secs(1)).await, ["stubborn"]);
    }

    #[tokio::test]
    async fn f27_a_panic_is_noticed() {
        let scope = TaskScope::new();
        let failed = scope.failed();
        scope.spawn("faulty", async { panic!("on purpose") });
        tokio::time::timeout(Duration::from_secs(10), failed.cancelled())
            .await
            .expect("noticed");
    }
}
