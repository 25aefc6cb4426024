//! Conformance suite of all stores. Its cases take turns on a server that they share, and each begins with an
//! empty one.

use super::*;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// A server that cases share: it ends with the last of them.
#[derive(Debug)]
struct Shared {
    server: Mutex<Weak<Server>>,
    start: fn() -> Option<Etcd>,
}

#[derive(Debug)]
struct Server {
    etcd: Etcd,
    turn: Arc<Turn<()>>,
}

impl Shared {
    const fn new(start: fn() -> Option<Etcd>) -> Self {
        Self {
            server: Mutex::new(Weak::new()),
            start,
        }
    }

    /// Returns an empty store, and a guard that keeps it to this case.
    async fn store(&self) -> Option<(Arc<dyn Store>, (OwnedMutexGuard<()>, Arc<Server>))> {
        let server = self.server()?;
        let turn = server.turn.clone().lock_owned().await;
        server.etcd.ctl(&["del", "", "--from-key"]);
        let store = connect(&server.etcd).await;
        Some((store, (turn, server)))
    }

    fn server(&self) -> Option<Arc<Server>> {
        let mut shared = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Some(server);
        }
        let server = Arc::new(Server {
            etcd: (self.start)()?,
            turn: Arc::default(),
        });
        *shared = Arc::downgrade(&server);
        Some(server)
    }
}

mod on_one_member {
    use super::*;

    static SHARED: Shared = Shared::new(Etcd::one);
    crawler_store::store_conformance!(async || SHARED.store().await);
}

mod on_three_members {
    use super::*;

    static SHARED: Shared = Shared::new(Etcd::three);
    crawler_store::store_conformance!(async || SHARED.store().await);
}
