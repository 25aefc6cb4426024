//! Connections to a database, which the shards of a process share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::target::Target;
use crate::trouble::{Cause, Trouble};

/// Time after which an idle connection to a server is not used again. Firewalls forget such connections without a word, and
/// a write on one looks as if the server were slow.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Database, with a bounded number of connections.
pub(crate) struct Database {
    pub(crate) target: Target,
    pub(crate) dialect: Dialect,
    /// Time that one attempt of a write, or of a connection, may take.
    pub(crate) timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Idle<Connection>>,
}

/// Connections that nobody uses, each with the time at which it was given back.
struct Idle<C> {
    connections: Vec<(Instant, C)>,
    max: Duration,
}

impl<C> Idle<C> {
    fn new(max: Duration) -> Self {
        let connections = Vec::new();
        Self { connections, max }
    }

    fn put(&mut self, connection: C) {
        self.close_old();
        self.connections.push((Instant::now(), connection));
    }

    fn take(&mut self) -> Option<C> {
        self.close_old();
        self.connections.pop().map(|(_, connection)| connection)
    }

    /// Closes connections without a goodbye, for which they might wait.
    fn close_old(&mut self) {
        let max = self.max;
        self.connections.retain(|(since, _)| since.elapsed() <= max);
    }
}

/// Connection that one write uses. If it is dropped, it is closed, and its transaction is rolled back.
pub(crate) struct Lent {
    pub(crate) connection: Connection,
    /// True if it was opened for this write.
    pub(crate) is_new: bool,
}

impl Database {
    pub(crate) fn new(target: Target, timeout: Duration, n_connections: usize) -> Self {
        let dialect = target.dialect();
        let (n_connections, max_idle) = match dialect {
            // It has one writer at a time, and those who wait for it would be served in any order.
            Dialect::Sqlite => (1, Duration::MAX),
            Dialect::Postgres | Dialect::MySql => (n_connections, IDLE_MAX),
        };
        Self {
            target,
            dialect,
            timeout,
            permits: Semaphore::new(n_connections),
            idle: Mutex::new(Idle::new(max_idle)),
        }
    }

    /// Waits until one of the connections may be used. Those who wait have no rows yet, so that they need no memory.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, Trouble> {
        match tokio::time::timeout(self.timeout, self.permits.acquire()).await {
            Ok(permit) => Ok(permit.expect("the semaphore is never closed")),
            Err(_elapsed) => Err(Trouble::told(
                Cause::Away,
                format!(
                    "other shards used all connections for {:?}; allow more of them with connections, or give the server less to do",
                    self.timeout
                ),
            )),
        }
    }

    /// Returns an idle connection or a new one. The caller has a turn.
    pub(crate) async fn lend(&self) -> Result<Lent, Trouble> {
        let lent = tokio::time::timeout(self.timeout, self.lend_in_time());
        lent.await.unwrap_or_else(|_elapsed| {
            Err(Trouble::told(
                Cause::Away,
                format!(
                    "the database did not let in a connection within {:?}",
                    self.timeout
                ),
            ))
        })
    }

    async fn lend_in_time(&self) -> Result<Lent, Trouble> {
        loop {
            let Some(mut connection) = self.idle().take() else {
                break;
            };
            if connection.is_in_place().await {
                return Ok(Lent {
                    connection,
                    is_new: false,
                });
            }
            // SQLite removes files beside its own when it closes it: those of the next one would be gone.
            self.close(connection).await;
        }
        match Connection::open(&self.target, self.timeout).await {
            Ok(connection) => Ok(Lent {
                connection,
                is_new: true,
            }),
            Err(error) => Err(Trouble::of(self.dialect.cause(&error), error)),
        }
    }

    /// Takes a connection back whose transaction has ended.
    pub(crate) fn give_back(&self, lent: Lent) {
        self.idle().put(lent.connection);
    }

    /// Closes a connection that is of no use any more.
    pub(crate) async fn close(&self, connection: Connection) {
        let closed = tokio::time::timeout(self.timeout, connection.close());
        match closed.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection was not closed in order"),
            Err(_elapsed) => tracing::debug!("a connection was not closed in time"),
        }
    }

    /// Closes idle connections: the server has closed one of them, or does not answer on it.
    pub(crate) fn forget_idle(&self) {
        self.idle().connections.clear();
    }

    fn idle(&self) -> MutexGuard<'_, Idle<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_that_were_idle_for_long_are_not_used() {
        let mut idle = Idle::new(IDLE_MAX);
        idle.put("old");
        tokio::time::advance(IDLE_MAX).await;
        idle.put("new");
        assert_eq!(idle.connections.len(), 2);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(idle.take(), Some("new"));
        assert_eq!(idle.take(), None);
    }
}
