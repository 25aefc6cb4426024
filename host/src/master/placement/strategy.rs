//! How one is chosen among the workers that may take a shard, by name.

use std::fmt;
use std::str::FromStr;

use super::Candidate;

/// Which of the workers that may take a shard has its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The one with the least weight assigned to it.
    #[default]
    LeastLoad,
    /// Each in turn, whatever shards weigh; one that takes twice as many at once has two turns for
    /// every one of the other. Whose turn it is follows from how many each has.
    RoundRobin,
}

/// A name that no strategy has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no strategy {name:?}; {}", hint(name))]
pub struct UnknownStrategy {
    /// As received.
    pub name: String,
}

impl Strategy {
    /// All there are.
    pub const ALL: [Strategy; 2] = [Strategy::LeastLoad, Strategy::RoundRobin];

    /// As settings call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Strategy::LeastLoad => "least-load",
            Strategy::RoundRobin => "round-robin",
        }
    }

    /// What is to be the same everywhere: the load, or the part of its capacity that a worker has
    /// taken, in 2^-32.
    pub(in crate::master) fn load(self, candidate: &Candidate) -> u64 {
        match self {
            Strategy::LeastLoad => candidate.load,
            Strategy::RoundRobin => part(candidate, candidate.n_shards),
        }
    }

    /// The same with one shard more, of this weight.
    pub(in crate::master) fn load_with(self, candidate: &Candidate, weight: u32) -> u64 {
        match self {
            Strategy::LeastLoad => candidate.load + u64::from(weight),
            Strategy::RoundRobin => part(candidate, candidate.n_shards.saturating_add(1)),
        }
    }

    /// The same without one of its shards, of this weight.
    pub(in crate::master) fn load_without(self, candidate: &Candidate, weight: u32) -> u64 {
        match self {
            Strategy::LeastLoad => candidate.load.saturating_sub(u64::from(weight)),
            Strategy::RoundRobin => part(candidate, candidate.n_shards.saturating_sub(1)),
        }
    }

    /// The smallest has its turn.
    pub(super) fn turn(self, candidate: &Candidate) -> u64 {
        match self {
            Strategy::LeastLoad => candidate.load,
            // As it would be then.
            Strategy::RoundRobin => part(candidate, candidate.n_shards.saturating_add(1)),
        }
    }
}

fn part(candidate: &Candidate, n_shards: u32) -> u64 {
    (u64::from(n_shards) << 32) / u64::from(candidate.node.capacity.max(1))
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
            Strategy::ALL.map(Strategy::as_str).join(" and ")
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
            refused("random"),
            "there is no strategy \"random\"; there are least-load and round-robin"
        );
        assert_eq!(Strategy::default(), Strategy::LeastLoad);
    }
}
