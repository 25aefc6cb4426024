//! The end of a command: signals, and what a stop does to work that is under way.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crawler_process::task::TaskScope;

/// Error of a command that Ctrl-C or SIGTERM ended before it was done.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Carries out a future that dropping ends; a stop drops it.
pub(super) async fn unless_stopped<T>(
    stop: &CancellationToken,
    part: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::select! {
        result = part => result,
        () = stop.cancelled() => Err(Interrupted.into()),
    }
}

/// Starts a task that is dropped where it is when `scope` is stopped.
pub(super) fn spawn_until_stopped(
    scope: &TaskScope,
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let stop = scope.stop_signal();
    scope.spawn(name, async move {
        stop.run_until_cancelled(work).await;
    });
}

/// Receives Ctrl-C and SIGTERM. A signal that comes while nobody waits is kept.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
