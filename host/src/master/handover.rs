//! How long a leader waits for an owner that is to give a shard back: pure, over what it has seen.
//!
//! An owner that is there ends its crawl, closes the frontier, and writes that nobody has the shard.
//! One that does not get that far is waited for so long, on this leader's own clock, from when it
//! first read the record in which it is asked; then the shard is given away all the same, and
//! whoever gets it fences the old owner by opening the frontier. A new leader waits anew.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::resource::ShardId;
use crate::store::Revision;

/// The shards that owners are to give back, as one leader has seen them.
#[derive(Debug)]
pub(super) struct Handovers {
    patience: Duration,
    asked: BTreeMap<ShardId, Asked>,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    revision: Revision,
    since: Instant,
}

impl Handovers {
    /// None seen yet; each owner has this much time.
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            asked: BTreeMap::new(),
        }
    }

    /// Takes note of all shards that are to be given back, with the revisions of their records.
    pub(super) fn look(
        &mut self,
        revoking: impl IntoIterator<Item = (ShardId, Revision)>,
        now: Instant,
    ) {
        let before = std::mem::take(&mut self.asked);
        let asked = revoking.into_iter().map(|(id, revision)| {
            let known = before.get(&id).filter(|asked| asked.revision == revision);
            let new = Asked {
                revision,
                since: now,
            };
            (id, known.copied().unwrap_or(new))
        });
        self.asked = asked.collect();
    }

    /// So much longer its owner is waited for; none where it has had its time.
    pub(super) fn wait(&self, id: ShardId, now: Instant) -> Option<Duration> {
        let asked = self.asked.get(&id)?;
        let wait = (asked.since + self.patience).saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ResourceId;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn an_owner_has_its_time_from_when_the_leader_first_read_that_it_is_asked() {
        let id = ShardId::only(ResourceId(1));
        let now = Instant::now();
        let mut handovers = Handovers::new(PATIENCE);
        handovers.look([(id, Revision(5))], now);
        assert_eq!(handovers.wait(id, now), Some(PATIENCE));
        let later = now + PATIENCE / 2;
        handovers.look([(id, Revision(5))], later);
        assert_eq!(handovers.wait(id, later), Some(PATIENCE / 2));
        assert_eq!(handovers.wait(id, now + PATIENCE), None);
        // Asked again, under another epoch.
        handovers.look([(id, Revision(9))], later);
        assert_eq!(handovers.wait(id, later), Some(PATIENCE));
        // It was given back.
        handovers.look([], later);
        assert_eq!(handovers.wait(id, later), None);
    }
}
