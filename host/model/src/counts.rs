//! Totals of a crawl.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Reason of a dead letter whose rule the plugin does not have. Another version of the plugin may
/// have it.
pub const NO_RULE: &str = "no-rule";

/// Totals of one run of one shard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Pages that a rule has parsed.
    pub parsed: u64,
    /// Pages done in another way: skipped, not modified, redirected, duplicate, gone, denied.
    pub other_done: u64,
    /// Pages given up.
    pub dead: u64,
    /// Attempts that failed and are tried again.
    pub retries: u64,
    /// Items stored.
    pub items: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// URLs that are known and wait to be fetched.
    pub due: u64,
    /// Hosts that have, or had, a URL.
    pub hosts: u64,
    /// Refused links, and pages of content types that are not wanted, by reason.
    pub refused_links: BTreeMap<String, u64>,
    /// Pages given up, by reason.
    pub dead_by_reason: BTreeMap<String, u64>,
}

impl Counts {
    /// Pages that came to an end.
    pub fn pages(&self) -> u64 {
        self.parsed + self.other_done + self.dead
    }

    /// Adds the totals of another shard.
    pub fn add(&mut self, other: &Counts) {
        self.parsed += other.parsed;
        self.other_done += other.other_done;
        self.dead += other.dead;
        self.retries += other.retries;
        self.items += other.items;
        self.bytes += other.bytes;
        self.due += other.due;
        self.hosts += other.hosts;
        let add = |sums: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>| {
            for (reason, n) in others {
                *sums.entry(reason.clone()).or_default() += n;
            }
        };
        add(&mut self.refused_links, &other.refused_links);
        add(&mut self.dead_by_reason, &other.dead_by_reason);
    }
}
