//! Permit to fetch: a crawl asks for it before each request.
//!
//! Without the permit nothing is fetched. Everything else goes on: frontiers stay open, and answers that have
//! arrived are committed.

use std::pin::pin;
use std::task::Poll;

use async_trait::async_trait;

/// Permit to take and request pages. Both waits may be dropped at any time.
#[async_trait]
pub trait FetchPermit: Send + Sync + 'static {
    /// Returns true if the permit holds at this moment. It is asked often, so it answers at once.
    fn is_given(&self) -> bool;

    /// Waits until the permit holds.
    async fn given(&self);

    /// Waits for the end of the permit that holds when the wait begins. If none holds then, it may wait without
    /// end, so ask [`FetchPermit::is_given`] too.
    async fn ended(&self);
}

/// Permit of a crawl that no other process can get.
#[derive(Debug, Clone, Copy, Default)]
pub struct Always;

#[async_trait]
impl FetchPermit for Always {
    fn is_given(&self) -> bool {
        true
    }

    async fn given(&self) {}

    async fn ended(&self) {
        std::future::pending().await
    }
}

/// Runs work that needs the permit. Returns `None` if the permit ends first, and drops the work then.
pub(super) async fn while_given<T>(
    permit: &dyn FetchPermit,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut ended = permit.ended();
    std::future::poll_fn(|context| {
        // A process that was suspended checks this before it sends anything.
        if !permit.is_given() || ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}
