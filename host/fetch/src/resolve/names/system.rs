//! Lookup through the system's library, on threads of its own: a name server that does not answer delays
//! nothing else that uses blocking threads.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::{Builder, Handle, Runtime};

use super::lookup::{LookUp, Resolved};
use crate::error::is_out_of_files;
use crate::resolve::error::ResolveError;

/// Maximum number of lookups at once; others wait.
const THREADS: usize = 32;
/// Time for which addresses are valid, because the library does not tell it.
const TTL: Duration = Duration::from_secs(60);

/// Creates a lookup through the system's library.
pub(super) fn look_up() -> LookUp {
    on_threads(|name| {
        let found = (name, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    })
}

/// Threads for lookups; idle threads end when this is dropped.
struct Threads {
    handle: Handle,
    /// The runtime; `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The drop does not wait for a thread that waits for a name server.
            runtime.shutdown_background();
        }
    }
}

fn threads() -> io::Result<Threads> {
    let runtime = Builder::new_current_thread()
        .max_blocking_threads(THREADS)
        .thread_name("names")
        .build()?;
    Ok(Threads {
        handle: runtime.handle().clone(),
        runtime: Some(runtime),
    })
}

fn on_threads(ask: fn(&str) -> io::Result<Vec<IpAddr>>) -> LookUp {
    let threads = Arc::new(threads());
    Arc::new(move |name: String| {
        let threads = Arc::clone(&threads);
        let lookup = async move {
            let asked = name.clone();
            let found = match &*threads {
                Ok(threads) => {
                    let found = threads.handle.spawn_blocking(move || ask(&asked)).await;
                    found.unwrap_or_else(|error| Err(io::Error::other(error)))
                }
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            match found {
                Ok(addresses) => Ok(Resolved {
                    addresses,
                    ttl: TTL,
                }),
                Err(error) if is_out_of_files(&error) => Err(ResolveError::OpenFiles { name }),
                Err(error) => Err(ResolveError::Unknown {
                    name,
                    why: error.to_string(),
                }),
            }
        };
        lookup.boxed()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;
    use crawler_process::task::TaskScope;

    /// Number of lookups begun, and true once they may end.
    static LOOKUPS: (Mutex<(usize, bool)>, Condvar) = (Mutex::new((0, false)), Condvar::new());

    fn wait(_name: &str) -> io::Result<Vec<IpAddr>> {
        let (state, changed) = &LOOKUPS;
        let mut state = state.lock().unwrap();
        state.0 += 1;
        let _state = changed.wait_while(state, |(_, may_end)| !*may_end).unwrap();
        Err(io::Error::other("nobody has answered"))
    }

    #[test]
    fn r04_names_of_the_system_hold_up_no_files() {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let look_up = on_threads(wait);
            let lookups = TaskScope::new();
            for n in 0..64 {
                let lookup = look_up(format!("{n}.test"));
                let failed = lookup.map(|found| assert!(found.is_err()));
                lookups.spawn("lookup", failed);
            }
            while LOOKUPS.0.lock().unwrap().0 < THREADS {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let read = tokio::fs::read("Cargo.toml");
            let read = tokio::time::timeout(Duration::from_secs(2), read).await;
            assert!(read.expect("files are read meanwhile").is_ok());
            LOOKUPS.0.lock().unwrap().1 = true;
            LOOKUPS.1.notify_all();
            lookups.stop(Duration::from_secs(20)).await;
            assert!(!lookups.failed().is_cancelled());
        });
    }
}
