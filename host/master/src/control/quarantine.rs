//! Calls about items that are held: which there are, and what becomes of them.
//!
//! A decision is written into the records of the shards, like the order of a redrive, and the workers carry it out when
//! they have the frontiers open. It names the items that the caller could see: what is held meanwhile stays.

use super::{Asked, Control, MAX_TRIES};
use crate::ControlError;
use crawler_frontier::reader::HeldPage;
use crawler_model::drift::{Action, Decision, Hold};
use crawler_model::event::{Event, EventKind};
use crawler_model::id::{ResourceName, Shard};
use crawler_model::number;
use crawler_model::resource::{ShardId, ShardRecord};

/// Size in bytes of the items of one page, above which no further one is added.
const PAGE_BYTES: usize = 1 << 20;
/// Number of decisions that may wait for the worker of a shard.
const MAX_DECISIONS: usize = 16;

/// Hold that a caller means: its shard, and its number there. It is written `SHARD.NUMBER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HoldId {
    /// Shard of the hold.
    pub shard: Shard,
    /// Number in that shard.
    pub number: u64,
}

impl std::fmt::Display for HoldId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.shard, self.number)
    }
}

impl std::str::FromStr for HoldId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('.').and_then(|(shard, number)| {
            let shard = Shard(shard.parse().ok()?);
            let number = number.parse().ok()?;
            Some(Self { shard, number })
        });
        parsed.ok_or_else(|| format!("a hold is a shard and a number, like 0.1, not {text:?}"))
    }
}

/// Number of holds and of items that a decision is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decided {
    /// Number of holds.
    pub n_holds: u64,
    /// Number of items.
    pub n_items: u64,
}

impl Control {
    /// Returns the holds of a resource, shard by shard.
    pub async fn holds(&self, name: &ResourceName) -> Result<Vec<(HoldId, Hold)>, ControlError> {
        let resource = self.existing(name).await?.value;
        self.holds_in(resource.shard_ids()).await
    }

    /// Returns the holds in the frontiers of these shards.
    async fn holds_in(
        &self,
        shards: impl IntoIterator<Item = ShardId> + Send,
    ) -> Result<Vec<(HoldId, Hold)>, ControlError> {
        let shards: Vec<ShardId> = shards.into_iter().collect();
        let mut holds = Vec::new();
        for id in shards {
            let Some(reader) = self.frontier(id).await? else {
                continue;
            };
            let found = Box::pin(reader.holds()).await;
            reader.close().await;
            holds.extend(found?.into_iter().map(|hold| {
                let (shard, number) = (id.shard, hold.number);
                (HoldId { shard, number }, hold)
            }));
        }
        Ok(holds)
    }

    /// Returns at most `max` items of a hold from a number on.
    pub async fn held_items(
        &self,
        name: &ResourceName,
        hold: HoldId,
        from: u64,
        max: usize,
    ) -> Result<HeldPage, ControlError> {
        let resource = self.existing(name).await?.value;
        let shard = ShardId {
            resource: resource.id,
            shard: hold.shard,
        };
        let nothing = || nothing_held(name, Some(hold));
        if !resource.has_shard(shard) {
            return Err(nothing());
        }
        let reader = self.frontier(shard).await?;
        let reader = reader.ok_or_else(nothing)?;
        let page = Box::pin(reader.held_items(hold.number, from, max, PAGE_BYTES)).await;
        reader.close().await;
        let page = page?;
        match page.items.is_empty() && from == 0 {
            true => Err(nothing()),
            false => Ok(page),
        }
    }

    /// Decides about the items of one hold, or of all that there are now.
    pub async fn decide_held<'a>(
        &self,
        name: &ResourceName,
        action: Action,
        only: Option<HoldId>,
        asked: impl Into<Asked<'a>>,
    ) -> Result<Decided, ControlError> {
        let Asked { request, by } = asked.into();
        let leadership = self.leadership()?;
        for _try in 0..MAX_TRIES {
            let present = self.existing(name).await?;
            if present.value.has_seen(request) {
                // The exact numbers are no longer known: a worker may have carried it out.
                return Ok(Decided::default());
            }
            self.check_first_life(name, request).await?;
            // A frontier that is not asked about cannot stand in the way.
            let mut asked = present.value.shard_ids().collect::<Vec<_>>();
            asked.retain(|id| only.is_none_or(|only| only.shard == id.shard));
            // Decisions that wait are read first: a worker that carries one out takes the items before the decision.
            let shards = self.whole_shards(&present.value).await?;
            let mut holds = self.holds_in(asked).await?;
            holds.retain(|(id, _)| only.is_none_or(|only| only == *id));
            if holds.is_empty() {
                return Err(nothing_held(name, only));
            }
            holds.retain(|(id, hold)| {
                let mut own = shards.iter().filter(|(shard, _)| shard.shard == id.shard);
                !own.any(|(_, shard)| is_decided(&shard.value, hold.number, hold.end))
            });
            if holds.is_empty() {
                return Err(ControlError::HeldDecided { name: name.clone() });
            }
            let decided = Decided {
                n_holds: holds.len() as u64,
                n_items: holds.iter().map(|(_, hold)| hold.n_items).sum(),
            };
            let decision_for = |id: ShardId| {
                let own = holds.iter().filter(|(hold, _)| hold.shard == id.shard);
                Decision::of(action, own.map(|(_, hold)| hold))
            };
            for (id, shard) in shards {
                if with_decision(&shard.value, decision_for(id)).is_none() {
                    return Err(ControlError::DecisionsWait {
                        name: name.clone(),
                        shard: id.shard,
                        n_decisions: MAX_DECISIONS,
                    });
                }
            }
            let event = Event::of(EventKind::HeldDecided, present.value.run).by(by);
            let items = number(decided.n_items, "item");
            let event = event.because(format_args!("{action}: {items}"));
            let with_order =
                |id: ShardId, shard: ShardRecord| with_decision(&shard, decision_for(id));
            if self
                .order(&leadership, &present, with_order, (request, event))
                .await?
            {
                tracing::info!(resource = %name, %action, n_items = decided.n_items, "held items are decided about");
                return Ok(decided);
            }
        }
        Err(Self::contended(name))
    }
}

/// Returns true if a decision about all items of a hold waits for a worker already.
fn is_decided(shard: &ShardRecord, number: u64, end: u64) -> bool {
    let earlier = shard.decisions.iter();
    let mut ends = earlier.filter_map(|decision| decision.holds.get(&number));
    ends.any(|decided| *decided >= end)
}

/// Returns a shard with another decision to carry out, or `None` if too many wait already.
fn with_decision(shard: &ShardRecord, decision: Decision) -> Option<ShardRecord> {
    let mut decisions = shard.decisions.clone();
    if !decision.holds.is_empty() {
        decisions.push(decision);
    }
    (decisions.len() <= MAX_DECISIONS).then(|| ShardRecord {
        decisions,
        ..shard.clone()
    })
}

fn nothing_held(name: &ResourceName, hold: Option<HoldId>) -> ControlError {
    ControlError::NothingHeld {
        name: name.clone(),
        hold: hold.map(|hold| hold.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropping(number: u64, end: u64) -> Decision {
        Decision {
            action: Action::Drop,
            holds: [(number, end)].into(),
        }
    }

    #[test]
    fn the_first_decision_about_items_counts() {
        let mut shard = ShardRecord::new("a".parse().unwrap());
        assert!(!is_decided(&shard, 1, 9));
        shard = with_decision(&shard, dropping(1, 9)).unwrap();
        for (number, end, expected) in [(1, 9, true), (1, 7, true), (1, 10, false), (2, 3, false)] {
            let found = is_decided(&shard, number, end);
            assert_eq!(found, expected, "{number} {end}");
        }
        shard = with_decision(&shard, dropping(1, 10)).unwrap();
        assert!(is_decided(&shard, 1, 10));
    }

    #[test]
    fn so_many_decisions_wait_at_most() {
        let mut shard = ShardRecord::new("a".parse().unwrap());
        for number in 1..=MAX_DECISIONS as u64 {
            shard = with_decision(&shard, dropping(number, 9)).unwrap();
        }
        assert_eq!(with_decision(&shard, dropping(99, 9)), None);
        let nothing = Decision {
            holds: [].into(),
            ..dropping(1, 9)
        };
        assert_eq!(with_decision(&shard, nothing), Some(shard));
    }

    #[test]
    fn the_name_of_a_hold_is_its_shard_and_number() {
        let hold = HoldId {
            shard: Shard(3),
            number: 12,
        };
        assert_eq!(hold.to_string(), "3.12");
        assert_eq!("3.12".parse(), Ok(hold));
        for text in ["", "3", "3.", ".12", "3.x", "3.1.2", "-1.2"] {
            assert!(text.parse::<HoldId>().is_err(), "{text:?}");
        }
    }
}
