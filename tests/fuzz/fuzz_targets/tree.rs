//! Target of libFuzzer: a plan, and the page that it reads as a document tree does.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::reads_as_its_tree(data));
