//! Properties that must hold for every input, by fuzz target.
//!
//! Each function takes bytes as libFuzzer makes them, and panics if a property does not hold. The fuzz targets
//! call them, and so does an ordinary test with each file of `corpus` (`tests/tests/fuzz.rs`, which includes these
//! files). Inputs begin with one or more lines for the values beside the main text, so that a person can write
//! them.

use crawler_extract::{Field, Group, Plan, Take};

pub use charset::charset;
pub use encoding::encoding;
pub use extract::extract_page;
pub use headers::headers;
pub use robots::robots;
pub use tree::{is_compared, reads_as_its_tree};
pub use url::url;

mod charset;
mod encoding;
mod extract;
mod headers;
mod robots;
mod tree;
mod url;
mod wire;

/// Waits on this thread, with the timers that reading a body needs.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a thread has a timer");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// Returns the first line, without its end, and the rest.
fn first_line(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|&b| b == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[]),
    }
}

/// Returns a plan of rows by the first selector, and of each of the others in every way that values are read.
fn plan<'s>(mut selectors: impl Iterator<Item = &'s str>, takes: &[Take]) -> Plan {
    let group = Group {
        name: "row".to_owned(),
        parent: None,
        selector: selectors.next().unwrap_or_default().to_owned(),
    };
    let fields = selectors
        .take(2 * takes.len())
        .enumerate()
        .flat_map(|(n, selector)| {
            [None, Some(0)].map(|group| Field {
                name: format!("f{n}{}", if group.is_some() { "r" } else { "" }),
                group,
                selector: selector.to_owned(),
                take: takes[n % takes.len()].clone(),
                first: n >= takes.len(),
                keep: true,
            })
        });
    Plan {
        name: "fuzz".to_owned(),
        fields: fields.collect(),
        groups: vec![group],
    }
}

/// Decodes percent-encoding by RFC 3986; a `%` that begins no octet stands for itself.
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
