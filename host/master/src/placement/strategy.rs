//! Strategies, by name, that choose one of the workers that may take a shard.
//!
//! A new strategy is a case of [`Strategy`] with its name, its turn and its level. The compiler asks for all
//! three, and the command line and its hints learn the name automatically. The random test of
//! `placement::tests`, which repeats the order from the records alone, needs a line for it.

use std::fmt;
use std::str::FromStr;

use super::candidate::Candidate;

/// Rule that decides which of the workers that may take a shard has its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The worker with the least weight assigned to it has its turn.
    #[default]
    LeastLoad,
    /// Each worker has its turn, whatever shards weigh and whatever its capacity. The turn follows from the
    /// number of shards that each worker has.
    RoundRobin,
    /// The same, but a worker with twice the capacity has twice as many turns.
    WeightedRoundRobin,
    /// The worker is chosen by a hash of the shard: the same shard goes to the same worker while the workers
    /// stay the same. Loads are not balanced later.
    Random,
}

/// Error about a name that no strategy has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no strategy {name:?}; {}", hint(name))]
pub struct UnknownStrategy {
    /// The name, as received.
    pub name: String,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 4] = [
        Strategy::LeastLoad,
        Strategy::RoundRobin,
        Strategy::WeightedRoundRobin,
        Strategy::Random,
    ];

    /// Returns the name that settings use.
    pub fn as_str(self) -> &'static str {
        match self {
            Strategy::LeastLoad => "least-load",
            Strategy::RoundRobin => "round-robin",
            Strategy::WeightedRoundRobin => "weighted-round-robin",
            Strategy::Random => "random",
        }
    }

    /// Returns the level of a worker, which balancing tries to equalise.
    pub(crate) fn load(self, candidate: &Candidate) -> u64 {
        self.level(candidate, candidate.load, candidate.n_shards)
    }

    /// Returns the level with one more shard of this weight.
    pub(crate) fn load_with(self, candidate: &Candidate, weight: u32) -> u64 {
        let (load, n_shards) = (candidate.load, candidate.n_shards);
        self.level(
            candidate,
            load.saturating_add(weight.into()),
            n_shards.saturating_add(1),
        )
    }

    /// Returns the level without one of its shards, of this weight.
    pub(crate) fn load_without(self, candidate: &Candidate, weight: u32) -> u64 {
        let (load, n_shards) = (candidate.load, candidate.n_shards);
        self.level(
            candidate,
            load.saturating_sub(weight.into()),
            n_shards.saturating_sub(1),
        )
    }

    /// Returns the position in the order of turns; the smallest comes first.
    pub(super) fn rank(self, candidate: &Candidate) -> u64 {
        match self {
            // Its turn depends on its level after it has taken the shard.
            Strategy::WeightedRoundRobin => self.load_with(candidate, 0),
            Strategy::LeastLoad | Strategy::RoundRobin | Strategy::Random => self.load(candidate),
        }
    }

    /// Computes the level of a worker with this load and this number of shards.
    fn level(self, candidate: &Candidate, load: u64, n_shards: u32) -> u64 {
        match self {
            Strategy::LeastLoad => load,
            Strategy::RoundRobin => n_shards.into(),
            // The level is the used part of its capacity, in units of 2^-32.
            Strategy::WeightedRoundRobin => {
                (u64::from(n_shards) << 32) / u64::from(candidate.node.capacity.max(1))
            }
            Strategy::Random => 0,
        }
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        let found = Strategy::ALL.into_iter().find(|s| s.as_str() == text);
        found.ok_or_else(|| UnknownStrategy {
            name: text.to_owned(),
        })
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn hint(name: &str) -> String {
    let similar = |s: &Strategy| strsim::normalized_damerau_levenshtein(name, s.as_str()) >= 0.6;
    match Strategy::ALL.into_iter().find(similar) {
        Some(near) => format!("did you mean {near}?"),
        None => format!(
            "there are {}",
            Strategy::ALL.map(Strategy::as_str).join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s05_a_strategy_is_selected_by_name_and_a_slip_is_told_what_was_meant() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        let refused = |name: &str| name.parse::<Strategy>().unwrap_err().to_string();
        assert_eq!(
            refused("leastload"),
            "there is no strategy \"leastload\"; did you mean least-load?"
        );
        assert_eq!(
            refused("fair"),
            "there is no strategy \"fair\"; there are least-load, round-robin, weighted-round-robin, random"
        );
        assert_eq!(Strategy::default(), Strategy::LeastLoad);
    }
}
