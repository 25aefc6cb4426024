//! HTTP cache for development: answers of sites, kept in a folder, that answer the same requests of later runs. A
//! user who changes a rule and runs it again does not ask the site again.
//!
//! It does not follow RFC 9111: what a site says about caching is ignored, and an answer is good until it is as old as
//! the user allows. Conditional requests are not sent, because the cache has the whole answer.
//!
//! ```text
//! key     which requests are the same
//! entry   the stored form of an answer
//! folder  the files, with a bound on their bytes
//! ```
//!
//! The cache answers each hop of a fetch in place of the connection. Everything above it is the same for a stored
//! answer as for a new one: URLs and ports are judged, robots.txt is obeyed, cookies are set, bodies are bounded. A
//! stored answer takes no turn of its host and needs no lookup of its name. The addresses of the name were judged
//! when the answer was stored, and what the operator allowed then is a part of the key.
//!
//! It never fails a fetch: what cannot be read is asked for, and what cannot be stored is not kept.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crawler_model::id::{Digest, RunningDigest};
use crawler_process::clock::Clock;
use crawler_process::memory::{Account, MemoryReservation};
use crawler_process::task::blocking;
use folder::CacheFolder;

mod entry;
mod folder;
mod key;

pub(crate) use entry::{Found, Head};
pub(crate) use key::{Scope, key};

/// The longest time that a request waits for its answer to be read or stored. A network drive may not respond at all.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Number of answers that are read or stored at once. A drive that does not respond keeps their threads, and the process
/// has other work for threads.
const MAX_AT_ONCE: usize = 8;

/// Settings of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// Folder of the answers, which several processes may share: option `--cache`.
    pub folder: PathBuf,
    /// Age from which an answer is asked for again: option `--cache-age`. If `None`, answers never expire.
    pub max_age: Option<Duration>,
    /// Maximum size in bytes of all answers: option `--cache-size`.
    pub max_bytes: u64,
}

impl CacheSettings {
    /// Checks that the folder can be used; it is made if it is missing.
    pub fn check(&self) -> Result<(), CacheError> {
        self.open_folder().map(drop)
    }

    fn open_folder(&self) -> Result<CacheFolder, CacheError> {
        let opened = CacheFolder::open(&self.folder, self.max_bytes);
        opened.map_err(|source| CacheError {
            folder: self.folder.display().to_string(),
            source,
        })
    }
}

/// The folder of the cache cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep answers in {folder}, the folder of --cache")]
pub struct CacheError {
    /// The folder.
    folder: String,
    /// Error of the file system.
    source: io::Error,
}

/// The cache of a fetcher. Clones share it.
#[derive(Clone)]
pub(crate) struct HttpCache {
    shared: Arc<Shared>,
    max_age: Option<Duration>,
}

struct Shared {
    folder: CacheFolder,
    /// Beginning of all keys.
    scope: RunningDigest,
    clock: Arc<dyn Clock>,
    n_hits: AtomicU64,
    /// The longest wait for the folder.
    max_wait: Duration,
    /// Places for work on the folder. They are closed once the folder did not respond in time: nothing waits for it
    /// again.
    places: Arc<Semaphore>,
    /// True once the log has the warning that an answer cannot be stored.
    is_warned: AtomicBool,
}

impl std::fmt::Debug for HttpCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HttpCache")
            .field(&self.shared.folder)
            .finish()
    }
}

impl HttpCache {
    /// Opens the cache; its folder is made if it is missing.
    pub(crate) fn open(
        settings: &CacheSettings,
        scope: RunningDigest,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CacheError> {
        let folder = settings.open_folder()?;
        Ok(Self {
            shared: Arc::new(Shared {
                folder,
                scope,
                clock,
                n_hits: AtomicU64::new(0),
                max_wait: MAX_WAIT,
                places: Arc::new(Semaphore::new(MAX_AT_ONCE)),
                is_warned: AtomicBool::new(false),
            }),
            max_age: settings.max_age,
        })
    }

    /// Returns the same cache with answers of at most this age.
    pub(crate) fn within(mut self, age: Duration) -> Self {
        self.max_age = Some(self.max_age.map_or(age, |max| max.min(age)));
        self
    }

    /// Returns the beginning of all keys.
    pub(crate) fn scope(&self) -> &RunningDigest {
        &self.shared.scope
    }

    /// Returns the answer with this key and the first `most` bytes of its body, which are charged to the account.
    pub(crate) async fn find(&self, key: Digest, most: u64, account: &Account) -> Option<Found> {
        let (now, max_age) = (self.now(), self.max_age);
        // No answer is young enough, so no file is opened.
        if max_age == Some(Duration::ZERO) {
            return None;
        }
        let held = account.reserve(0);
        let read = move |folder: &CacheFolder| folder.read(key, max_age, most, held, now);
        self.on_thread(read).await.flatten()
    }

    /// Counts an answer that the cache gave.
    pub(crate) fn count_hit(&self) {
        self.shared.n_hits.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of answers that the cache gave.
    pub(crate) fn n_hits(&self) -> u64 {
        self.shared.n_hits.load(Ordering::Relaxed)
    }

    /// Returns the present time, for an answer that is to be stored.
    pub(crate) fn now(&self) -> u64 {
        self.shared.clock.unix_millis()
    }

    /// Stores an answer, whose body is held in memory until then. The log has a warning if it cannot be stored.
    pub(crate) async fn keep(&self, key: Digest, head: Head, body: Bytes, held: MemoryReservation) {
        let write = move |folder: &CacheFolder| {
            // The work goes on after its time is over.
            let _held = held;
            folder.write(key, &head, &body)
        };
        let Some(Err(error)) = self.on_thread(write).await else {
            return;
        };
        // One warning is enough: most reasons are the same for all answers.
        if !self.shared.is_warned.swap(true, Ordering::Relaxed) {
            let folder = self.shared.folder.path().display();
            tracing::warn!(
                %folder,
                %error,
                "cannot store an answer in the folder of --cache; its site is asked again, and further failures are not logged"
            );
        }
    }

    /// Does work on the folder within its time. Returns `None` if the folder has ever taken longer, or if the process is
    /// about to end.
    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CacheFolder) -> T + Send + 'static,
    ) -> Option<T> {
        let shared = Arc::clone(&self.shared);
        let place = Arc::clone(&shared.places).acquire_owned().await.ok()?;
        let done = blocking(move || {
            let _place = place;
            work(&shared.folder)
        });
        match timeout(self.shared.max_wait, done).await {
            Ok(done) => done.ok(),
            Err(_elapsed) => {
                if !self.shared.places.is_closed() {
                    self.shared.places.close();
                    let folder = self.shared.folder.path().display();
                    tracing::warn!(
                        %folder,
                        "the folder of --cache did not respond within {} s: this process goes on without it",
                        self.shared.max_wait.as_secs()
                    );
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_process::clock::SystemClock;

    #[tokio::test]
    async fn a_folder_that_does_not_respond_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let settings = CacheSettings {
            folder: folder.path().to_owned(),
            max_age: None,
            max_bytes: 1 << 20,
        };
        let scope = RunningDigest::default();
        let mut cache = HttpCache::open(&settings, scope, Arc::new(SystemClock)).unwrap();
        let shared = Arc::get_mut(&mut cache.shared).unwrap();
        shared.max_wait = Duration::from_millis(10);
        shared.places = Arc::new(Semaphore::new(1));
        let (end, wait) = std::sync::mpsc::sync_channel::<()>(1);
        let stuck = cache.on_thread(move |_| wait.recv().is_ok());
        // The other one waits for a place, and gets none.
        let (stuck, other) = tokio::join!(stuck, cache.on_thread(|_| ()));
        assert_eq!((stuck, other), (None, None));
        assert_eq!(cache.on_thread(|_| ()).await, None);
        drop(end);
    }
}
