//! Mistakes in a rule are told at compile time, at the place where they are.
//!
//! `TRYBUILD=overwrite cargo test -p crawler-plugin-sdk --test errors` writes the messages anew.

#[test]
fn every_mistake_is_told_where_it_is() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
