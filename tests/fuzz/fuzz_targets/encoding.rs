//! Target of libFuzzer: bodies with a content-encoding.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::encoding(data));
