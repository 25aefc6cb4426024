//! Reasons why no worker takes a shard, in a form that a person can act on.

use std::collections::BTreeMap;
use std::fmt;

use crawler_model::id::ResourceName;

/// Objection to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Objection<'a> {
    /// The worker takes no new shards.
    Draining,
    /// The worker has as many shards as it takes.
    AtCapacity,
    /// The worker lacks a label that the selector names.
    NoLabel {
        /// Key of the label.
        key: &'a str,
    },
    /// The worker has the label with another value.
    OtherValue {
        /// Key of the label.
        key: &'a str,
        /// Value that the selector asks for.
        value: &'a str,
    },
    /// The worker only supports plugin interfaces older than this.
    Interface(&'a str),
    /// The worker has a resource that must stay apart from this one.
    Apart(&'a ResourceName),
}

/// Report that no worker takes a shard: the number of workers, and the objections to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplaceable {
    n_workers: usize,
    /// Objections with their counts, the most common first.
    reasons: Vec<String>,
}

impl Unplaceable {
    pub(super) fn by<'a>(
        objections: impl Iterator<Item = Objection<'a>>,
        n_workers: usize,
    ) -> Self {
        let mut counts: BTreeMap<Objection<'_>, usize> = BTreeMap::new();
        for objection in objections {
            *counts.entry(objection).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let reasons = counts.into_iter().map(|(reason, n)| reason.counted(n));
        Self {
            n_workers,
            reasons: reasons.collect(),
        }
    }
}

impl Objection<'_> {
    fn counted(self, n: usize) -> String {
        let s = if n == 1 { "s" } else { "" };
        match self {
            Objection::Draining => format!("{n} draining"),
            Objection::AtCapacity => format!("{n} at capacity"),
            Objection::NoLabel { key } => format!("{n} lack{s} label {key}"),
            Objection::OtherValue { key, value } => format!("{n} lack{s} label {key}={value}"),
            Objection::Interface(needed) => format!("{n} lack{s} interface {needed}"),
            Objection::Apart(name) => format!("{n} kept apart by {name}"),
        }
    }
}

impl fmt::Display for Unplaceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.n_workers {
            0 => f.write_str("no worker is registered"),
            n => write!(f, "0/{n} workers: {}", self.reasons.join(", ")),
        }
    }
}
