//! Queries that are tried on a page, as a plan would read it.
//!
//! ```text
//! line          what was typed: a command, or what to read
//! query_result  what the page gives for it, as a table
//! code          the same as a struct for the SDK
//! links         the addresses that the page links to
//! completions   what the page has that a line may name
//! ```

use crawler_extract::{CompiledPlan, Field, Plan, PlanLimits, Take};

mod code;
mod completions;
mod line;
mod links;
mod query_result;

pub use code::rust;
pub use completions::Completions;
pub use line::{COMMANDS, Command, Line, Query, TAKES, is_open};
pub use links::{Links, links};
pub use query_result::{QueryResult, Table};

/// Compiles a plan for the whole page from fields of this program: name, selector, and the part of the
/// element that is read.
fn plan_of(fields: &[(&str, &str, Take)]) -> CompiledPlan {
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
