//! The parts that all peers in Rust share: their task, the item of a page, and the links that belong to the site.
//!
//! Each program is called as `PROGRAM START BELOW CONCURRENCY OUTPUT`. It crawls from the page START everything that
//! links lead to and whose path begins with BELOW, with at most CONCURRENCY pages in flight, and writes one JSON line
//! for each page to the file OUTPUT. None of them keeps its URLs, waits between requests, tries again, or reads
//! robots.txt.

mod fetch;
mod links;
mod tree;

pub use fetch::crawl;
pub use links::Scope;
pub use tree::Tree;

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use url::Url;

/// The allocator of all peers, mimalloc 3. The guide of spider advises mimalloc, so the bare loops have it as well: no peer is
/// held back by its allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Task of a peer.
#[derive(Debug, Clone)]
pub struct Task {
    /// Page on which the crawl starts.
    pub start: Url,
    /// Beginning of the paths that belong to the crawl.
    pub below: String,
    /// Largest number of pages in flight.
    pub concurrency: usize,
    /// File of the items.
    pub output: PathBuf,
}

impl Task {
    /// Returns the task that the arguments of this program give.
    ///
    /// # Panics
    ///
    /// Panics if an argument is missing or has no such value.
    pub fn from_arguments() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [start, below, concurrency, output] = arguments.as_slice() else {
            panic!("the arguments are START BELOW CONCURRENCY OUTPUT, and not {arguments:?}");
        };
        Self {
            start: start.parse().expect("START is an address"),
            below: below.clone(),
            concurrency: concurrency.parse().expect("CONCURRENCY is a number"),
            output: output.into(),
        }
    }
}

/// Content of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Address without query and fragment.
    pub url: String,
    /// Text of the first `title` element, with single spaces.
    pub title: String,
    /// Number of elements from `h1` to `h6`.
    pub headings: usize,
    /// Number of different pages of the site that the page links to.
    pub links: usize,
}

/// The item of a page, and the paths that its links lead to.
pub type Reading = (Item, Vec<String>);

impl Item {
    /// Writes the item as a line.
    ///
    /// # Panics
    ///
    /// Panics if nothing can be written.
    pub fn write(&self, output: &mut impl Write) {
        serde_json::to_writer(&mut *output, self).expect("the item can be written");
        output.write_all(b"\n").expect("the item can be written");
    }
}

/// Returns a text with single spaces, and none at its ends.
pub fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}
