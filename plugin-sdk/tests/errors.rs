//! Mistakes in a rule are reported at compile time, at their places.
//!
//! `TRYBUILD=overwrite cargo test -p crawler-plugin-sdk --test errors` writes the messages anew.

#[test]
fn every_mistake_is_told_where_it_is() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
