//! Connections to a database, which the shards of a process share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::target::Target;
use crate::trouble::{Cause, Trouble};

/// Database, with a bounded number of connections.
pub(crate) struct Database {
    pub(crate) target: Target,
    pub(crate) dialect: Dialect,
    /// Time that one attempt of a write, or of a connection, may take.
    pub(crate) timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
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
        let n_connections = match dialect {
            // It has one writer at a time, and those who wait for it would be served in any order.
            Dialect::Sqlite => 1,
            Dialect::Postgres | Dialect::MySql => n_connections,
        };
        Self {
            target,
            dialect,
            timeout,
            permits: Semaphore::new(n_connections),
            idle: Mutex::default(),
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
            let Some(mut connection) = self.idle().pop() else {
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
        self.idle().push(lent.connection);
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

    /// Closes idle connections: the server has closed one of them.
    pub(crate) fn forget_idle(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
