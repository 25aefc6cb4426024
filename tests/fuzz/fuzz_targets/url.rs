//! For libFuzzer: the forms of a URL, and where a crawl may go.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawler_fuzz::url(data));
