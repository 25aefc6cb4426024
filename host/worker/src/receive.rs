//! Links from other shards, on their way into this shard's frontier.
//!
//! The links come to the task of the assignment. It is the only one that writes in the shard's record if
//! there is anything to do: that there is, before links are stored, and that there is not, once the crawl
//! says so and no link came meanwhile. If all shards are idle, with as many links stored as were sent, no
//! link is therefore on its way.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::assigned::{Assigned, CLOSE_AFTER, Stop};
use super::link_filter::LinkFilter;
use super::link_transport::ShardTransport;
use super::links::LinkDeliveryError;
use super::mailbox::{Answer, Incoming, MAX_WAITING, Mailbox};
use crawler_crawl::CrawlEnd;
use crawler_crawl::peers::{Idle, PeerShards};
use crawler_frontier::{Frontier, FrontierError, LinkPolicy, OpenFrontier};
use crawler_model::resource::ShardState;

/// Time without work after which a shard says that it is idle. A shard that gets links again and again would
/// otherwise write two records for each.
const IDLE_AFTER: Duration = Duration::from_millis(500);

/// Receiving end of one assignment, for as long as the assignment lasts.
pub(super) struct Receiver {
    incoming: mpsc::Receiver<Incoming>,
    /// Call that came while the frontier was closed.
    waiting: Option<Incoming>,
    recorded: Recorded,
    idle: Idle,
}

/// State of the shard's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recorded {
    /// The record is as an earlier crawl of the same assignment has left it.
    Unknown,
    /// The record says that there is something to do.
    Busy,
    /// The record says that there is nothing to do.
    Idle,
}

/// Reason why a receiver has ended.
enum Received {
    /// The crawl is over.
    Over,
    /// The shard has had nothing to do for a while.
    Rests,
}

impl Receiver {
    /// Creates mailbox and receiver. Returns `None` for a resource of one shard.
    pub(super) fn of(n_shards: NonZeroU32) -> (Option<Mailbox>, Option<Self>) {
        if n_shards.get() == 1 {
            return (None, None);
        }
        let (mailbox, incoming) = Mailbox::new(n_shards);
        let receiver = Self {
            incoming,
            waiting: None,
            recorded: Recorded::Unknown,
            idle: Idle::default(),
        };
        (Some(mailbox), Some(receiver))
    }

    /// Prepares the record before a crawl begins, so that an earlier record does not hide the work of the crawl.
    async fn begin(&mut self, assigned: &Assigned) -> Result<(), Stop> {
        match self.recorded {
            Recorded::Unknown => self.record_busy(assigned).await,
            Recorded::Busy | Recorded::Idle => Ok(()),
        }
    }

    /// Stores the links that come while the frontier is open, until the crawl is over.
    async fn run(
        &mut self,
        assigned: &Assigned,
        frontier: &dyn Frontier,
        over: &CancellationToken,
    ) -> Result<Received, Stop> {
        if let Some(waiting) = self.waiting.take() {
            self.take(assigned, frontier, waiting).await?;
        }
        loop {
            tokio::select! {
                biased;
                () = over.cancelled() => return Ok(Received::Over),
                Some(incoming) = self.incoming.recv() => {
                    self.take(assigned, frontier, incoming).await?;
                }
                () = lasting(&self.idle), if self.recorded != Recorded::Idle => {
                    if self.idle.is_on() {
                        self.record_idle(assigned, frontier).await?;
                    }
                }
                () = tokio::time::sleep(CLOSE_AFTER), if self.recorded == Recorded::Idle => {
                    return Ok(Received::Rests);
                }
            }
        }
    }

    /// Waits until a call comes, while the frontier is closed.
    pub(super) async fn wait(&mut self) {
        match self.incoming.recv().await {
            Some(incoming) => self.waiting = Some(incoming),
            // The other end is kept for as long as this one.
            None => std::future::pending().await,
        }
    }

    async fn take(
        &mut self,
        assigned: &Assigned,
        frontier: &dyn Frontier,
        incoming: Incoming,
    ) -> Result<(), Stop> {
        let calls = self.with_waiting(incoming);
        if calls.is_empty() {
            return Ok(());
        }
        if self.recorded != Recorded::Busy {
            self.record_busy(assigned).await?;
        }
        let Some(filter) = LinkFilter::of(assigned, frontier) else {
            // The bounds of this run are not known yet: the links come again.
            for call in calls {
                let why = "root has not run here yet".to_owned();
                drop(call.answer.send(Err(LinkDeliveryError::NotNow(why))));
            }
            return Ok(());
        };
        let stored = store(frontier, calls, &filter).await;
        self.idle.end();
        for (answer, stored) in stored {
            let stored = stored.map_err(|error| LinkDeliveryError::NotNow(error.to_string()));
            // The sender may have stopped listening: the links come again.
            drop(answer.send(stored));
        }
        Ok(())
    }

    /// Returns a call and those that wait behind it, in order.
    fn with_waiting(&mut self, first: Incoming) -> Vec<Incoming> {
        let mut calls = vec![first];
        while calls.len() < MAX_WAITING
            && let Ok(next) = self.incoming.try_recv()
        {
            calls.push(next);
        }
        // The senders of these have gone, and come again.
        calls.retain(|call| !call.answer.is_closed());
        calls
    }

    async fn record_busy(&mut self, assigned: &Assigned) -> Result<(), Stop> {
        let busy = assigned.record(|record| {
            if record.state == ShardState::Idle {
                record.state = ShardState::Assigned;
            }
        });
        busy.await?;
        self.recorded = Recorded::Busy;
        Ok(())
    }

    /// Records that the shard is idle. The crawl does nothing until it is told to, and no link is stored
    /// meanwhile, so the totals do not change.
    async fn record_idle(
        &mut self,
        assigned: &Assigned,
        frontier: &dyn Frontier,
    ) -> Result<(), Stop> {
        let (counts, links) = (frontier.counts(), frontier.link_totals());
        let idle = assigned.record(|record| {
            if matches!(record.state, ShardState::Assigned | ShardState::Idle) {
                (record.state, record.waits) = (ShardState::Idle, None);
                (record.counts, record.links) = (counts, links);
            }
        });
        idle.await?;
        self.recorded = Recorded::Idle;
        Ok(())
    }
}

impl Assigned {
    /// Crawls, and stores meanwhile the links of other shards for this one. Returns `None` if there is
    /// nothing to do until they send more.
    pub(super) async fn crawl_among<F: Future<Output = CrawlEnd>>(
        &self,
        receiver: &mut Receiver,
        frontier: &dyn OpenFrontier,
        crawl: impl FnOnce((Option<PeerShards>, CancellationToken)) -> F,
    ) -> Result<Option<CrawlEnd>, Stop> {
        let (id, run) = (self.shard.id, self.resource.run);
        let peers = PeerShards {
            own: id.shard,
            n_shards: self.resource.spec.placement.n_shards(),
            transport: Arc::new(ShardTransport::new(self.parts.clone(), id, run)),
            idle: receiver.idle.clone(),
        };
        receiver.begin(self).await?;
        let (stop, over) = (self.stop.child_token(), CancellationToken::new());
        let crawl = async {
            let end = crawl((Some(peers), stop.clone())).await;
            over.cancel();
            end
        };
        let receive = async {
            let received = receiver.run(self, frontier, &over).await;
            stop.cancel();
            received
        };
        let (end, received) = tokio::join!(crawl, receive);
        Ok(match (end, received?) {
            (CrawlEnd::Stopped, Received::Rests) if !self.stop.is_cancelled() => None,
            (end, _) => Some(end),
        })
    }
}

/// Waits until there has been nothing to do for a while.
async fn lasting(idle: &Idle) {
    idle.begun().await;
    tokio::time::sleep(IDLE_AFTER).await;
}

/// Stores the links of these calls, one after the other, and makes all of them durable at once. Returns the
/// answer to each call.
async fn store(
    frontier: &dyn Frontier,
    calls: Vec<Incoming>,
    filter: &LinkFilter,
) -> Vec<(Answer, Result<u64, FrontierError>)> {
    let mut stored = Vec::with_capacity(calls.len());
    let policy = LinkPolicy {
        growth: filter.growth(),
        refusal: &|link| filter.refusal(link),
    };
    for call in calls {
        let last = frontier.apply(call.from, call.batch, policy);
        stored.push((call.answer, last.await));
    }
    if stored.iter().any(|(_, last)| last.is_ok())
        && let Err(error) = frontier.settle().await
    {
        for (_, last) in stored.iter_mut().filter(|(_, last)| last.is_ok()) {
            *last = Err(error.clone());
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_filter::tests::filter_of_one;
    use crawler_crawl::doubles::FaultyFrontier;
    use crawler_frontier::suite::new;
    use crawler_frontier::{LinkBatch, NewRequest};
    use crawler_model::id::Shard;
    use tokio::sync::oneshot;

    fn links(urls: &[&str], first: u64) -> LinkBatch {
        let links: Vec<NewRequest> = urls.iter().map(|url| new(url)).collect();
        LinkBatch { first, links }
    }

    #[tokio::test]
    async fn links_that_wait_together_are_made_durable_at_once_and_each_sender_is_answered() {
        let (mailbox, receiver) = Receiver::of(NonZeroU32::MAX);
        let (mailbox, mut receiver) = (mailbox.unwrap(), receiver.unwrap());
        let given = |from, batch| {
            let (answer, answered) = oneshot::channel();
            let incoming = Incoming {
                from: Shard(from),
                batch,
                answer,
            };
            assert!(mailbox.incoming.try_send(incoming).is_ok());
            answered
        };
        let mut answered = vec![
            given(1, links(&["http://a/1"], 1)),
            given(2, links(&["http://a/1", "http://a/2"], 1)),
            given(3, links(&["http://a/3"], 2)),
            given(1, links(&["http://a/4"], 2)),
        ];
        drop(given(4, links(&["http://a/5"], 1)));
        let frontier = FaultyFrontier::default();
        frontier.seed(vec![new("http://a/")]).await.unwrap();
        let first = receiver.incoming.recv().await.unwrap();
        let calls = receiver.with_waiting(first);
        assert_eq!(calls.len(), 4, "one has gone");
        let stored = store(&frontier, calls, &filter_of_one()).await;
        assert_eq!(frontier.n_settles(), 1);
        for (answer, last) in stored {
            answer
                .send(last.map_err(|e| LinkDeliveryError::NotNow(e.to_string())))
                .unwrap();
        }
        let mut lasts = Vec::new();
        for answered in &mut answered {
            lasts.push(answered.await.unwrap().ok());
        }
        assert_eq!(
            lasts,
            [Some(1), Some(2), None, Some(2)],
            "of 3 the first is missing"
        );
        assert_eq!(frontier.counts().due, 4);
        // If nothing was stored, there is nothing to make durable.
        let _answered = given(3, links(&["http://a/3"], 2));
        let first = receiver.incoming.recv().await.unwrap();
        store(&frontier, receiver.with_waiting(first), &filter_of_one()).await;
        assert_eq!(frontier.n_settles(), 1);
    }

    #[tokio::test]
    async fn r14_links_out_of_bounds_are_taken_and_counted_and_not_stored() {
        let frontier = FaultyFrontier::default();
        frontier.seed(vec![new("http://a/")]).await.unwrap();
        let mut batch = links(&["http://a/1", "http://b/1", "http://a/2"], 1);
        batch.links[2].depth = u32::MAX;
        let (answer, _answered) = oneshot::channel();
        let incoming = Incoming {
            from: Shard(1),
            batch,
            answer,
        };
        let stored = store(&frontier, vec![incoming], &filter_of_one()).await;
        // Otherwise the run of the sender would never end.
        assert_eq!(stored[0].1, Ok(3));
        let counts = frontier.counts();
        assert_eq!(counts.due, 2);
        let refused = ["max-depth", "out-of-scope"].map(|reason| (reason.to_owned(), 1));
        assert_eq!(counts.refused_links, refused.into());
    }
}
