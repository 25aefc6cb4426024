//! Target of libFuzzer: the forms of a URL, and the hosts that a crawl may ask.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::url(data));
