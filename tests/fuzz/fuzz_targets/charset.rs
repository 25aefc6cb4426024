//! Target of libFuzzer: the text of a body.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::charset(data));
