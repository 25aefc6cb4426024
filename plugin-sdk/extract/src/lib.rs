//! Captures that a plan declares, read from HTML in one pass, without a document tree.
//!
//! A [`Plan`] says which elements are rows and which values are read from them. [`CompiledPlan::new`] checks it
//! once. [`extract`] reads a page by it and returns [`Captures`]: one text, and numbers that point into it. A
//! [`LinkFilter`] chooses those of them that are addresses of a kind. Below all, [`mod@walk`] tells the elements of a
//! page as a browser would have them.
//!
//! This crate does no IO and never panics, whatever the page is. Plans and pages are both untrusted: text of
//! selectors is bounded before it is parsed, and each page has a [`Budget`].
//!
//! Differences from a browser are listed in a table in the guide of `Extract`, in the SDK. Selectors that look
//! ahead in the page are refused.

mod captures;
mod clock;
mod engine;
mod links;
pub mod mutation;
mod plan;
mod selector;
mod steps;
pub mod walk;

// Tests describe plans in a short form that integration tests use as well.
#[cfg(test)]
extern crate self as crawler_extract;
#[cfg(test)]
#[path = "../tests/support/written.rs"]
mod written;

pub use crawler_selector::SelectorFault;

pub use captures::{Captures, Column, NONE, fuel};
pub use clock::processor_time;
pub use engine::{Budget, ExtractError, extract};
pub use links::{
    ADDRESS_MAX, ChooseBudget, ChooseError, LinkConditions, LinkFilter, LinkFilterError,
};
pub use plan::{CompiledPlan, Field, Group, Mistake, Plan, PlanError, PlanLimits, Take};
