//! The archive of a shard, as a crawl uses it. Pages that come while others are written are written together, with one
//! sync for all of them.
//!
//! A page waits until its records are durable, and one that stops waiting leaves the queue. Therefore no more pages wait
//! than the crawl has in flight, and no more are written at once. The memory of each counts as the crawl's until then.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::adopt::adopt_runs;
use super::error::ArchiveError;
use super::page::PageRecord;
use super::writer::{ArchiveSettings, RunInfo, Writer};
use crawler_process::clock::Clock;
use crawler_process::task::{blocking, spawn_blocking};
use crawler_process::telemetry;

/// Archive of one shard. Clones share it.
#[derive(Clone)]
pub struct Archive(Arc<Shared>);

struct Shared {
    settings: ArchiveSettings,
    writer: Mutex<Writer>,
    queue: Mutex<Queue>,
    /// Reason why the last page was not written, until one is.
    fault: Mutex<Option<String>>,
}

/// Pages that wait to be written.
#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// True while a thread writes. It takes what comes meanwhile, too.
    is_writing: bool,
}

struct Waiting {
    page: Arc<PageRecord>,
    done: oneshot::Sender<Result<(), Arc<ArchiveError>>>,
}

impl Archive {
    /// Creates an archive. Nothing is written before the first page.
    pub fn new(settings: ArchiveSettings, info: RunInfo, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            writer: Mutex::new(Writer::new(settings.clone(), info, clock)),
            queue: Mutex::default(),
            fault: Mutex::default(),
            settings,
        }))
    }

    /// Completes the files that earlier lives of the frontier have left, in all of its runs, if nobody else
    /// writes to the folder. Pages may be written meanwhile. If the call is dropped, the work ends at the next
    /// record, and a later life does it.
    pub async fn adopt(&self) -> Result<(), ArchiveError> {
        if !self.0.settings.is_exclusive {
            return Ok(());
        }
        let shared = Arc::clone(&self.0);
        let call = Call::default();
        let is_dropped = Arc::clone(&call.0);
        let adopted = blocking(move || {
            let ArchiveSettings { folder, epoch, .. } = &shared.settings;
            adopt_runs(folder, *epoch, &|| !is_dropped.load(Ordering::Relaxed))
        });
        // The process ends if the work is cancelled.
        adopted.await.unwrap_or(Ok(()))
    }

    /// Writes a page. Its records are durable when this returns. After an error it may be given again.
    pub async fn append(&self, page: Arc<PageRecord>) -> Result<(), Arc<ArchiveError>> {
        let (done, written) = oneshot::channel();
        let is_first = {
            let mut queue = self.0.queue();
            queue.waiting.retain(|waiting| !waiting.done.is_closed());
            queue.waiting.push(Waiting { page, done });
            !std::mem::replace(&mut queue.is_writing, true)
        };
        if is_first {
            let shared = Arc::clone(&self.0);
            // The work goes on if the page stops waiting: others may wait for it.
            let _detached = spawn_blocking(move || shared.write_waiting());
        }
        let written = written.await;
        let written = written.unwrap_or_else(|_panicked| Err(Arc::new(ArchiveError::Panicked)));
        let fault = written.as_ref().err();
        *self.0.fault() = fault.map(|error| telemetry::chain(&**error));
        written
    }

    /// Returns the reason why pages are not written at present, so that they wait.
    pub fn stalled(&self) -> Option<String> {
        let fault = self.0.fault().clone()?;
        Some(format!("pages wait until they are archived: {fault}"))
    }

    /// Completes the files of this archive. More pages may follow. After an error it may be called again.
    pub async fn finish(&self) -> Result<(), ArchiveError> {
        let shared = Arc::clone(&self.0);
        match blocking(move || shared.writer().finish()).await {
            Ok(finished) => finished,
            // The process ends: the next life completes the files.
            Err(_cancelled) => Ok(()),
        }
    }
}

/// Call that is waited for. The mark is set when it is dropped.
#[derive(Default)]
struct Call(Arc<AtomicBool>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self) -> MutexGuard<'_, Option<String>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the writer. If a write has panicked, what it left is taken back first.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(|poisoned| {
            let mut writer = poisoned.into_inner();
            writer.recover();
            self.writer.clear_poison();
            writer
        })
    }

    /// Writes pages until none waits. The writer is held while they are taken: the end of the archive comes before that,
    /// when pages that were cut off do not wait any more, or after they are written.
    fn write_waiting(&self) {
        let _reset = ResetOnPanic(self);
        loop {
            let mut writer = self.writer();
            let waiting = {
                let mut queue = self.queue();
                queue.waiting.retain(|waiting| !waiting.done.is_closed());
                if queue.waiting.is_empty() {
                    queue.is_writing = false;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            let (pages, done): (Vec<_>, Vec<_>) =
                waiting.into_iter().map(|one| (one.page, one.done)).unzip();
            let written = writer.write(&pages).map_err(Arc::new);
            drop(writer);
            for done in done {
                // A page that was cut off does not wait any more.
                let _gone = done.send(written.clone());
            }
        }
    }
}

/// Lets the next page begin a new thread if the present one panics. Those that wait learn of it.
struct ResetOnPanic<'a>(&'a Shared);

impl Drop for ResetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.queue();
            queue.is_writing = false;
            queue.waiting.clear();
        }
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = &self.0.settings.folder;
        f.debug_tuple("Archive").field(folder).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use crate::tests::{Bench, body_of, exchange, held, page};
    use crawler_process::memory::Account;

    #[tokio::test]
    async fn nothing_is_written_behind_a_write_that_panicked() {
        let bench = Bench::new();
        let archive = bench.archive();
        archive.append(page(exchange("/0", "x"))).await.unwrap();
        let (writer, lost) = (&archive.0, page(exchange("/1", "same")));
        let panicked = || writer.writer().write_and_panic(&lost);
        catch_unwind(AssertUnwindSafe(panicked)).unwrap_err();
        // It does not refer to the payload of the page that was lost.
        archive.append(page(exchange("/2", "same"))).await.unwrap();
        archive.finish().await.unwrap();
        let pages = bench.pages();
        assert_eq!(body_of(&pages, "/1"), None);
        assert_eq!(body_of(&pages, "/2").as_deref(), Some("same"));
    }

    #[tokio::test]
    async fn a_page_that_was_cut_off_is_not_written_after_the_end() {
        let bench = Bench::new();
        let archive = bench.archive();
        {
            let mut busy = archive.0.writer();
            let mut append = Box::pin(archive.append(page(exchange("/0", "x"))));
            let mut context = Context::from_waker(Waker::noop());
            assert!(append.as_mut().poll(&mut context).is_pending());
            // A thread that took the page before it has the writer would do it now.
            for _ in 0..1_000 {
                std::thread::yield_now();
            }
            drop(append);
            busy.finish().unwrap();
        }
        let ended = async {
            while archive.0.queue().is_writing {
                tokio::task::yield_now().await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), ended);
        ended.await.expect("the thread ends");
        assert_eq!(bench.names(), [""; 0]);
    }

    #[tokio::test]
    async fn pages_that_stop_waiting_give_their_memory_back() {
        let bench = Bench::new();
        let (archive, account) = (bench.archive(), Account::default());
        let one = |n: u32| held(exchange(&format!("/{n}"), "x"), &account);
        {
            let _busy = archive.0.writer();
            let mut context = Context::from_waker(Waker::noop());
            for n in 0..100 {
                let append = pin!(archive.append(one(n)));
                assert!(append.poll(&mut context).is_pending());
                // One that the thread has taken, the last that was dropped, and this one; each has 100 bytes.
                assert!(account.bytes() <= 300, "{}", account.bytes());
            }
        }
        archive.append(one(100)).await.unwrap();
        let freed = async {
            while account.bytes() > 0 {
                tokio::task::yield_now().await;
            }
        };
        let freed = tokio::time::timeout(Duration::from_secs(60), freed);
        freed.await.expect("nothing waits any more");
    }
}
