//! The leave to fetch: a worker whose lease cannot be counted on may have lost its crawls to others.
//!
//! From the deadline of its lease on, whatever the store answers, no request is sent. Leave is given
//! anew under the next lease, once a fresh look at the assignments has shown which crawls are still
//! this worker's. Frontiers stay open meanwhile, and what was answered already is committed.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;

use crate::store::lease::Term;

/// The lease that a node is registered under, as its registration tells; none before the first.
pub type Registered = watch::Receiver<Option<Term>>;

/// Whether pages may be taken and asked for. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Leave {
    /// None: nobody can take it away.
    granted: Option<Registered>,
}

impl Leave {
    /// Of a crawl that belongs to nobody else.
    pub fn always() -> Self {
        Self { granted: None }
    }

    /// For as long as the lease can be counted on that was granted last.
    pub(super) fn under(granted: Registered) -> Self {
        Self {
            granted: Some(granted),
        }
    }

    /// At this moment.
    pub(super) fn is_given(&self) -> bool {
        self.granted
            .as_ref()
            .is_none_or(|granted| granted.borrow().as_ref().is_some_and(Term::is_held))
    }

    /// Waits until it is given.
    pub(super) async fn given(&self) {
        let Some(mut granted) = self.granted.clone() else {
            return;
        };
        let is_held = |term: &Option<Term>| term.as_ref().is_some_and(Term::is_held);
        if granted.wait_for(is_held).await.is_err() {
            // Whoever grants it has ended, and the crawls end with it.
            std::future::pending().await
        }
    }

    /// Does what leave is needed for; none where it ends before that, which then goes no further.
    pub(super) async fn while_given<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut ended = pin!(self.ended());
        std::future::poll_fn(|context| {
            // A process that was stopped looks here before it sends anything.
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
