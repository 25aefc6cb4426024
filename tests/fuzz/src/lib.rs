//! What must hold for every input, by fuzz target.
//!
//! Each function takes bytes as libFuzzer makes them up, and panics where something does not hold. The
//! fuzz targets call them, and so does an ordinary test with each file of `corpus` (`tests/tests/fuzz.rs`,
//! which includes these files). Inputs begin with a line or a few for what is beside the main text, so
//! that a person can write them.

pub use charset::charset;
pub use encoding::encoding;
pub use extract::extract_page;
pub use headers::headers;
pub use robots::robots;
pub use url::url;

mod charset;
mod encoding;
mod extract;
mod headers;
mod robots;
mod url;
mod wire;

/// Waits on this thread, with the timers that bodies are read by.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a thread has a timer");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// The first line, without its end, and what follows it.
fn first_line(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|&b| b == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[]),
    }
}

/// Percent-decoding as RFC 3986 has it; a `%` that begins nothing is itself.
fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    let mut octets = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let escaped = (text[at] == b'%').then(|| Some(digit(at + 1)? * 16 + digit(at + 2)?));
        match escaped.flatten() {
            Some(octet) => {
                octets.push(octet as u8);
                at += 3;
            }
            None => {
                octets.push(text[at]);
                at += 1;
            }
        }
    }
    octets
}
