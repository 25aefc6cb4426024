//! Target of libFuzzer: headers of a rule on the wire, and those of an answer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::headers(data));
