//! Why no worker takes a shard, in a form that a person can act on.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::id::ResourceName;

/// What speaks against a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Objection<'a> {
    /// It takes nothing new.
    Draining,
    /// It has as many shards as it takes.
    AtCapacity,
    /// A label that the selector names.
    NoLabel {
        /// Its key.
        key: &'a str,
    },
    /// It has the label with another value.
    OtherValue {
        /// Its key.
        key: &'a str,
        /// As the selector wants it.
        value: &'a str,
    },
    /// It runs none as new as this.
    Interface(&'a str),
    /// It has a resource that this one is to be apart from.
    Apart(&'a ResourceName),
}

/// Why no worker takes a shard: how many were looked at, and what spoke against them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplaceable {
    n_workers: usize,
    /// The commonest first.
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
