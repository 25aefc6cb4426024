//! Target of libFuzzer: a robots.txt and the paths that it forbids.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::robots(data));
