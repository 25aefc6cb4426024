//! Permit to fetch by the lease of the worker: without it the worker may have lost its crawls to others.
//!
//! No request is sent from the deadline of the lease on, whatever the store answers. The permit is given anew
//! under the next lease, once a fresh look at the assignments has shown which crawls are still this worker's.

use async_trait::async_trait;
use tokio::sync::watch;

use crawler_crawl::permit::FetchPermit;
use crawler_store::lease::Term;

/// Lease that a node is registered under, as its registration tells; `None` before the first.
pub type Registered = watch::Receiver<Option<Term>>;

/// Permit that holds while the lease granted last can be counted on.
pub(super) struct LeasePermit(pub(super) Registered);

#[async_trait]
impl FetchPermit for LeasePermit {
    fn is_given(&self) -> bool {
        is_held(&self.0.borrow())
    }

    async fn given(&self) {
        if self.0.clone().wait_for(is_held).await.is_err() {
            // The agent that grants it has ended, and the crawls end with it.
            std::future::pending().await
        }
    }

    async fn ended(&self) {
        let term = self.0.borrow().clone();
        match term {
            Some(term) => term.ended().await,
            None => std::future::pending().await,
        }
    }
}

fn is_held(term: &Option<Term>) -> bool {
    term.as_ref().is_some_and(Term::is_held)
}
