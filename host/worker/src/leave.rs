//! Leave to fetch: a worker whose lease cannot be counted on may have lost its crawls to others.
//!
//! No request is sent from the deadline of the lease on, whatever the store answers. Leave is granted anew
//! under the next lease, once a fresh look at the assignments has shown which crawls are still this worker's.
//! Frontiers stay open meanwhile, and answers that have arrived are committed.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;

use crawler_store::lease::Term;

/// Lease that a node is registered under, as its registration tells; `None` before the first.
pub type Registered = watch::Receiver<Option<Term>>;

/// Leave to take and request pages. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Leave {
    /// Lease that the leave depends on. If `None`, the leave cannot be withdrawn.
    granted: Option<Registered>,
}

impl Leave {
    /// Creates a leave for a crawl that no other process can get.
    pub fn always() -> Self {
        Self { granted: None }
    }

    /// Creates a leave that holds while the lease granted last can be counted on.
    pub(super) fn under(granted: Registered) -> Self {
        Self {
            granted: Some(granted),
        }
    }

    /// Returns true if the leave holds at this moment.
    pub(super) fn is_given(&self) -> bool {
        self.granted
            .as_ref()
            .is_none_or(|granted| granted.borrow().as_ref().is_some_and(Term::is_held))
    }

    /// Waits until the leave holds.
    pub(super) async fn given(&self) {
        let Some(mut granted) = self.granted.clone() else {
            return;
        };
        let is_held = |term: &Option<Term>| term.as_ref().is_some_and(Term::is_held);
        if granted.wait_for(is_held).await.is_err() {
            // The agent that grants it has ended, and the crawls end with it.
            std::future::pending().await
        }
    }

    /// Runs work that needs the leave. Returns `None` if the leave ends first, and drops the work then.
    pub(super) async fn while_given<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut ended = pin!(self.ended());
        std::future::poll_fn(|context| {
            // A process that was suspended checks this before it sends anything.
            if !self.is_given() || ended.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }

    async fn ended(&self) {
        let granted = self.granted.as_ref();
        let term = granted.and_then(|granted| granted.borrow().clone());
        match term {
            Some(term) => term.ended().await,
            None => std::future::pending().await,
        }
    }
}
