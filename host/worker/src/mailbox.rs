//! Mailbox of an assignment: links of other shards wait in it for their frontier.

use std::num::NonZeroU32;

use tokio::sync::{mpsc, oneshot};

use super::links::{LINK_DELIVERY_DEADLINE, LinkDeliveryError};
use super::shard_owners::KnownOwners;
use crawler_frontier::LinkBatch;
use crawler_model::id::Shard;
use crawler_model::resource::ShardId;

/// Maximum number of calls that wait for one shard; a further one is refused, and comes again. All waiting
/// calls are made durable together.
pub(super) const MAX_WAITING: usize = 64;

/// Mailbox for the links for one assignment.
#[derive(Clone)]
pub(super) struct Mailbox {
    n_shards: NonZeroU32,
    pub(super) incoming: mpsc::Sender<Incoming>,
    /// Owners of the shards that send links.
    pub(super) owners: KnownOwners,
}

/// One call with links.
pub(super) struct Incoming {
    pub(super) from: Shard,
    pub(super) batch: LinkBatch,
    pub(super) answer: Answer,
}

/// Way back to the caller.
pub(super) type Answer = oneshot::Sender<Result<u64, LinkDeliveryError>>;

impl Mailbox {
    /// Creates the mailbox of an assignment, and the other end of it.
    pub(super) fn new(n_shards: NonZeroU32) -> (Self, mpsc::Receiver<Incoming>) {
        let (sender, incoming) = mpsc::channel(MAX_WAITING);
        let mailbox = Self {
            n_shards,
            incoming: sender,
            owners: KnownOwners::default(),
        };
        (mailbox, incoming)
    }

    /// Returns the number of shards of the resource.
    pub(super) fn n_shards(&self) -> u32 {
        self.n_shards.get()
    }

    /// Gives links to the assignment. Returns the number of the last one that is durable.
    pub(super) async fn deliver(
        &self,
        to: ShardId,
        from: Shard,
        batch: LinkBatch,
    ) -> Result<u64, LinkDeliveryError> {
        let (answer, answered) = oneshot::channel();
        let incoming = Incoming {
            from,
            batch,
            answer,
        };
        let not_now = |why| Err(LinkDeliveryError::NotNow(why));
        if self.incoming.try_send(incoming).is_err() {
            return not_now(format!("shard {to} has enough to do"));
        }
        match tokio::time::timeout(LINK_DELIVERY_DEADLINE, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_gone)) => not_now(format!("shard {to} is not crawled here any more")),
            Err(_elapsed) => not_now(format!("shard {to} is busy")),
        }
    }
}
