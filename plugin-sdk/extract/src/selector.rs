//! Selectors, read by [`crawler_selector`], as a program that matches pages.

mod program;

pub(crate) use crawler_selector::{
    Alternative, BYTES_MAX, Case, Combinator, Compound, Condition, NESTING_MAX, SelectorFault,
    ValueMatch, ValueTest, compose, read,
};
pub(crate) use program::{Before, Program, Question, Test};
