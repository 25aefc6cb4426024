//! Processes of a simulation, all on one thread: each can be stopped and continued as a whole.
//!
//! A task belongs to the process of the task that starts it. While the process is stopped none of its tasks
//! is polled, and time goes on, as for a real process between SIGSTOP and SIGCONT.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

thread_local! {
    static CURRENT: RefCell<Option<Process>> = const { RefCell::new(None) };
}

/// Tasks that stop together. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Process {
    stopped: Arc<Mutex<Stopped>>,
}

#[derive(Debug, Default)]
struct Stopped {
    is_stopped: bool,
    /// Wakers of the tasks that would have been polled, in their order.
    waiting: Vec<Waker>,
}

impl Process {
    pub fn stop(&self) {
        self.lock().is_stopped = true;
    }

    pub fn go_on(&self) {
        let waiting = {
            let mut stopped = self.lock();
            stopped.is_stopped = false;
            std::mem::take(&mut stopped.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    pub fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Runs a closure as this process.
    pub fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        as_process(Some(self.clone()), work)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Stopped> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a task may be polled; otherwise it is woken when the process goes on.
    fn may_go(&self, waker: &Waker) -> bool {
        let mut stopped = self.lock();
        if stopped.is_stopped && !stopped.waiting.iter().any(|other| other.will_wake(waker)) {
            stopped.waiting.push(waker.clone());
        }
        !stopped.is_stopped
    }
}

/// Runs a closure as no process: a message on its way goes on whatever becomes of its sender.
pub fn outside<T>(work: impl FnOnce() -> T) -> T {
    as_process(None, work)
}

fn as_process<T>(process: Option<Process>, work: impl FnOnce() -> T) -> T {
    let before = CURRENT.replace(process);
    let done = work();
    CURRENT.set(before);
    done
}

/// Makes the task one of the present process.
pub fn within<F: Future>(task: F) -> impl Future<Output = F::Output> {
    let process = CURRENT.with_borrow(Clone::clone);
    let mut task = Box::pin(task);
    poll_fn(move |context| match &process {
        None => task.as_mut().poll(context),
        Some(process) if process.may_go(context.waker()) => {
            process.enter(|| task.as_mut().poll(context))
        }
        Some(_) => Poll::Pending,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::task::TaskScope;

    #[tokio::test(start_paused = true)]
    async fn a_stopped_process_does_nothing_and_goes_on_where_it_was() {
        let (process, scope) = (Process::default(), TaskScope::new());
        let n = Arc::new(AtomicU32::new(0));
        let count = |n: Arc<AtomicU32>| async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                n.fetch_add(1, Ordering::Relaxed);
            }
        };
        let (counted, other) = (n.clone(), Arc::new(AtomicU32::new(0)));
        process.enter(|| {
            scope.spawn("outer", async move {
                let inner = TaskScope::new();
                inner.spawn("inner", count(counted));
                std::future::pending().await
            });
        });
        scope.spawn("beside", count(other.clone()));
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        assert_eq!(n.load(Ordering::Relaxed), 2);
        process.stop();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(
            (n.load(Ordering::Relaxed), other.load(Ordering::Relaxed)),
            (2, 12)
        );
        process.go_on();
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert_eq!(
            n.load(Ordering::Relaxed),
            4,
            "the one that was due, and the next"
        );
    }
}
