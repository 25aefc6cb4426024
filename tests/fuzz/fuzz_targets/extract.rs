//! Target of libFuzzer: a plan and the page that it reads.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::extract_page(data));
