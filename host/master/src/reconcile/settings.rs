//! Settings of the reconciler.

use std::time::Duration;

use crate::balance::BalanceSettings;
use crate::placement::Strategy;

/// Settings for placing and moving shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementSettings {
    /// Strategy that chooses a worker for a shard: setting `--strategy`.
    pub strategy: Strategy,
    /// Time that an owner gets to give a shard back: setting `--handover-timeout`.
    pub handover_timeout: Duration,
    /// Settings for the balancing of loads.
    pub balance: BalanceSettings,
}

impl Default for PlacementSettings {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            handover_timeout: Duration::from_secs(10),
            balance: BalanceSettings::default(),
        }
    }
}

/// Settings for the removal of deleted resources.
#[derive(Debug, Clone)]
pub struct DeletionSettings {
    /// Time for which a frontier stays: setting `--frontier-min-age`.
    pub frontier_min_age: Duration,
}

impl Default for DeletionSettings {
    fn default() -> Self {
        Self {
            frontier_min_age: Duration::from_secs(24 * 60 * 60),
        }
    }
}
