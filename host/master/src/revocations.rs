//! Time that a leader waits for an owner to give a shard back: pure, over the leader's observations.
//!
//! An owner that is present ends its crawl, closes the frontier, and records that nobody owns the shard. An
//! owner that does not get that far is waited for only so long, on this leader's own clock, counted from when
//! the leader first read the record with the order. Then the shard is given away all the same, and the new
//! owner fences the old one by opening the frontier. A new leader waits anew.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crawler_model::resource::ShardId;
use crawler_store::Revision;

/// Shards that owners are to give back, as one leader has seen them.
#[derive(Debug)]
pub(super) struct Revocations {
    patience: Duration,
    pending: BTreeMap<ShardId, PendingRevocation>,
}

#[derive(Debug, Clone, Copy)]
struct PendingRevocation {
    revision: Revision,
    since: Instant,
}

impl Revocations {
    /// Creates an empty record. Each owner gets this much time.
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            pending: BTreeMap::new(),
        }
    }

    /// Takes note of all shards that are to be given back, with the revisions of their records.
    pub(super) fn observe(
        &mut self,
        revoking: impl IntoIterator<Item = (ShardId, Revision)>,
        now: Instant,
    ) {
        let before = std::mem::take(&mut self.pending);
        let pending = revoking.into_iter().map(|(id, revision)| {
            let known = before
                .get(&id)
                .filter(|pending| pending.revision == revision);
            let new = PendingRevocation {
                revision,
                since: now,
            };
            (id, known.copied().unwrap_or(new))
        });
        self.pending = pending.collect();
    }

    /// Returns how much longer the owner is waited for, or `None` if its time is over.
    pub(super) fn wait(&self, id: ShardId, now: Instant) -> Option<Duration> {
        let pending = self.pending.get(&id)?;
        let wait = (pending.since + self.patience).saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::ResourceId;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn an_owner_has_its_time_from_when_the_leader_first_read_that_it_is_asked() {
        let id = ShardId::only(ResourceId(1));
        let now = Instant::now();
        let mut revocations = Revocations::new(PATIENCE);
        revocations.observe([(id, Revision(5))], now);
        assert_eq!(revocations.wait(id, now), Some(PATIENCE));
        let later = now + PATIENCE / 2;
        revocations.observe([(id, Revision(5))], later);
        assert_eq!(revocations.wait(id, later), Some(PATIENCE / 2));
        assert_eq!(revocations.wait(id, now + PATIENCE), None);
        // The order is given again, under another epoch.
        revocations.observe([(id, Revision(9))], later);
        assert_eq!(revocations.wait(id, later), Some(PATIENCE));
        // The shard was given back.
        revocations.observe([], later);
        assert_eq!(revocations.wait(id, later), None);
    }
}
