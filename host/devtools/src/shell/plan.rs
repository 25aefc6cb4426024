//! Plans of this program itself, for what it reads of any page.

use crawler_extract::{CompiledPlan, Field, Plan, PlanLimits, Take};

/// Compiles a plan for the whole page from fields of this program: name, selector, and the part of the
/// element that is read.
pub(super) fn plan_of(fields: &[(&str, &str, Take)]) -> CompiledPlan {
    let fields = fields.iter().map(|(name, selector, take)| Field {
        name: (*name).to_owned(),
        group: None,
        selector: (*selector).to_owned(),
        take: take.clone(),
        first: false,
        keep: true,
    });
    let plan = Plan {
        name: "shell".to_owned(),
        groups: Vec::new(),
        fields: fields.collect(),
    };
    CompiledPlan::new(&plan, &PlanLimits::default()).expect("the selectors are known to be right")
}
