//! Selectors that matched something, by plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use crawler_extract::{Captures, Field, Plan};
use serde::{Deserialize, Serialize};

use super::entry;
use crate::plugin::Description;

/// Largest number of plans that are told apart.
const MAX_PLANS: usize = 32;
/// Largest number of selectors of all plans together. Further selectors are not looked at.
const MAX_SELECTORS: usize = 160;
/// Bytes of the name of a plan.
const PLAN_BYTES: usize = 48;
/// Bytes of the name of a selector: of a group, or of a field after its group.
const NAME_BYTES: usize = 64;

/// Matches of the selectors of one plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanMatches {
    /// Number of pages that were read by the plan.
    pub pages: u64,
    /// Number of pages on which a selector matched, by its name: `group`, `field`, or `group.field`.
    pub selectors: BTreeMap<String, u64>,
}

impl PlanMatches {
    /// Returns the selectors that never matched. Those inside of a group that never matched were not tried.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        let is_tried = |name: &str| match name.split_once('.') {
            Some((group, _)) => self.selectors.get(group) != Some(&0),
            None => true,
        };
        let never = self.selectors.iter().filter(|(_, n)| **n == 0);
        let never = never.filter(|_| self.pages > 0);
        never
            .map(|(name, _)| name.as_str())
            .filter(move |name| is_tried(name))
    }
}

/// Largest number of groups and fields of a plan whose matches are told.
const MAX_MATCHED: usize = 192;

/// Groups and fields of a plan that matched something on one page, groups first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Matched([u64; MAX_MATCHED / 64]);

impl Matched {
    /// Marks the groups and fields that have captures. If a budget was used up, nothing is known of the rest of
    /// the page, and none counts as unmatched.
    pub fn of(captures: &Captures) -> Self {
        if captures.truncated {
            return Self([u64::MAX; MAX_MATCHED / 64]);
        }
        let groups = captures.groups.iter().map(|rows| !rows.is_empty());
        let fields = captures
            .columns
            .iter()
            .map(|column| !column.rows.is_empty());
        let mut matched = Self::default();
        let all = groups.chain(fields).take(MAX_MATCHED).enumerate();
        for (n, _) in all.filter(|(_, is_matched)| *is_matched) {
            matched.0[n / 64] |= 1 << (n % 64);
        }
        matched
    }

    fn has(&self, n: usize) -> bool {
        self.0
            .get(n / 64)
            .is_none_or(|bits| bits >> (n % 64) & 1 == 1)
    }
}

/// Names of a plan and of its selectors.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanNames {
    plan: String,
    /// Names of groups, then of fields. `None` if there is no selector: the field is the row itself.
    selectors: Vec<Option<String>>,
}

impl PlanNames {
    /// Returns the names of each plan of a plugin, in the order of their numbers.
    pub fn of(plugin: &Description) -> Vec<Arc<Self>> {
        let plans = plugin.plans.iter();
        plans.map(|plan| Arc::new(Self::of_plan(plan))).collect()
    }

    fn of_plan(plan: &Plan) -> Self {
        let group_of = |field: &Field| plan.groups.get(field.group? as usize);
        let groups = plan.groups.iter().map(|group| Some(group.name.clone()));
        let fields = plan.fields.iter().map(|field| {
            let name = match group_of(field) {
                Some(group) => format!("{}.{}", group.name, field.name),
                None if plan.groups.iter().any(|group| group.name == field.name) => {
                    format!("{} (field)", field.name)
                }
                None => field.name.clone(),
            };
            (!field.selector.is_empty()).then_some(name)
        });
        Self {
            plan: plan.name.clone(),
            selectors: groups.chain(fields).collect(),
        }
    }
}

/// A page as it was read by one plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRead {
    /// Names of the plan and its selectors.
    pub names: Arc<PlanNames>,
    /// Selectors that matched something.
    pub matched: Matched,
}

/// Adds a page as it was read by one plan.
pub(super) fn note(plans: &mut BTreeMap<String, PlanMatches>, read: &PlanRead) {
    let room = room(plans);
    let Some(plan) = entry(plans, &read.names.plan, PLAN_BYTES, MAX_PLANS) else {
        return;
    };
    plan.pages += 1;
    let max = plan.selectors.len() + room;
    for (n, name) in read.names.selectors.iter().enumerate() {
        if let Some(name) = name
            && let Some(pages) = entry(&mut plan.selectors, name, NAME_BYTES, max)
        {
            *pages += u64::from(read.matched.has(n));
        }
    }
}

/// Adds the matches of another shard.
pub(super) fn merge(
    plans: &mut BTreeMap<String, PlanMatches>,
    others: &BTreeMap<String, PlanMatches>,
) {
    for (name, other) in others {
        let room = room(plans);
        let Some(own) = entry(plans, name, PLAN_BYTES, MAX_PLANS) else {
            continue;
        };
        own.pages = own.pages.saturating_add(other.pages);
        let max = own.selectors.len() + room;
        for (selector, n) in &other.selectors {
            if let Some(own) = entry(&mut own.selectors, selector, NAME_BYTES, max) {
                *own = own.saturating_add(*n);
            }
        }
    }
}

/// Returns the number of selectors that there is room for.
fn room(plans: &BTreeMap<String, PlanMatches>) -> usize {
    let n_selectors: usize = plans.values().map(|plan| plan.selectors.len()).sum();
    MAX_SELECTORS.saturating_sub(n_selectors)
}
