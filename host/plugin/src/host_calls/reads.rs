//! Readings of a page by plans, within the limits of one call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crawler_extract::{Captures, CompiledPlan};
use url::Url;

use crate::bindings::crawler::rules::types;
use crawler_model::plugin::{Limits, Plan};

/// Divisor of limit `memory` that gives the memory which reading may take beside the captures. Memory that a
/// plugin asks for is not counted, so a page reads the same in every language.
pub(super) const MEMORY_SHARE: u64 = 32;

/// Plans of a plugin, ready to read pages.
pub(crate) type Plans = Arc<[CompiledPlan]>;

/// Readings of the page so far. All plans together have the limits of one call.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Bytes that one reading may take beside the captures.
    pub(super) memory: u64,
    /// Results by the plans' numbers.
    pub(super) done: BTreeMap<u32, Result<Arc<Reading>, types::ExtractError>>,
    /// Plans whose captures the rule was given, or whose cut was logged.
    pub(super) told: BTreeSet<u32>,
    pub(super) n_captures: u64,
    pub(super) n_bytes: u64,
    /// Processor time that reading took.
    pub(super) time: Duration,
}

impl Reads {
    /// Creates a state without readings. The limits are those of the resource.
    pub(super) fn within(limits: &Limits) -> Self {
        Self {
            memory: limits.memory / MEMORY_SHARE,
            ..Self::default()
        }
    }
}

/// Captures of a page by one plan.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) captures: Captures,
    /// Base of the page's relative addresses.
    pub(super) base: Url,
}

impl Reading {
    /// Returns the captures for the rule, without those of fields that it does not read.
    pub(super) fn shown(&self, plan: &Plan) -> types::Captures {
        let captures = &self.captures;
        let kept = plan.fields.iter().map(|field| field.keep);
        let columns = captures.columns.iter().zip(kept).map(|(column, is_kept)| {
            let part = |numbers: &[u32]| {
                if is_kept {
                    numbers.to_vec()
                } else {
                    Vec::new()
                }
            };
            types::Column {
                rows: part(&column.rows),
                spans: part(&column.spans),
            }
        });
        types::Captures {
            text: captures.text[..captures.n_kept as usize].to_owned(),
            groups: captures.groups.clone(),
            columns: columns.collect(),
            base: captures.base.as_ref().map(|_| self.base.to_string()),
            truncated: captures.truncated,
        }
    }
}
