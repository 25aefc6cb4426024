//! Checks of the plans by which a plugin reads pages: they must compile.

use crawler_extract::{CompiledPlan, Field, Group, PlanError, PlanLimits, Take};

use super::refusal::{check_names, refusal, short};
use crate::admission::Refusal;
use crate::bindings::crawler::rules::types;
use crawler_model::plugin::Plan;

/// Largest number of plans of a plugin: 64 that its author declares, and one of the SDK for the links of a
/// page.
const PLANS_MAX: usize = 65;

/// Checks that the plans compile, and returns them in the model's form.
pub(super) fn checked_plans(plans: Vec<types::Plan>) -> Result<Vec<Plan>, Refusal> {
    check_names(
        "plans",
        plans.iter().map(|plan| plan.name.as_str()),
        PLANS_MAX,
    )?;
    let plans: Vec<Plan> = plans.into_iter().map(plan).collect::<Result<_, _>>()?;
    match compiled_plans(&plans) {
        Ok(_) => Ok(plans),
        Err(error) => Err(refusal(
            format_args!("describe lists a plan that cannot be followed: {error}"),
            "plans are read in one pass over the page",
            "correct the plan",
        )),
    }
}

/// Compiles plans, so that they can read pages.
pub(crate) fn compiled_plans(plans: &[Plan]) -> Result<Vec<CompiledPlan>, PlanError> {
    let limits = PlanLimits::default();
    let compiled = plans.iter().map(|plan| CompiledPlan::new(plan, &limits));
    compiled.collect()
}

fn plan(said: types::Plan) -> Result<Plan, Refusal> {
    let groups = said.groups.into_iter().map(|group| Group {
        name: group.name,
        parent: group.parent,
        selector: group.selector,
    });
    let fields = said.fields.into_iter().map(|field| {
        Ok(Field {
            take: take(&said.name, &field.name, field.take)?,
            name: field.name,
            group: field.group,
            selector: field.selector,
            first: field.first,
            keep: field.keep,
        })
    });
    Ok(Plan {
        groups: groups.collect(),
        fields: fields.collect::<Result<_, _>>()?,
        name: said.name,
    })
}

fn take(plan: &str, field: &str, take: types::Take) -> Result<Take, Refusal> {
    Ok(match take {
        types::Take::Text => Take::Text,
        types::Take::TextRaw => Take::TextRaw,
        types::Take::Inner => Take::Inner,
        types::Take::Attr(name) => Take::Attr(name),
        types::Take::Present => Take::Present,
        types::Take::Tag => Take::Tag,
        types::Take::Other(kind) => {
            return Err(refusal(
                format_args!(
                    "field {:?} of plan {:?} takes {:?}, which this host does not know",
                    short(field),
                    short(plan),
                    short(&kind)
                ),
                "text, text-raw, inner, attr, present and tag are known",
                "use one of them, or a newer host",
            ));
        }
    })
}
