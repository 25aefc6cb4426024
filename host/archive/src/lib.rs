//! Archives of crawls: what was sent to sites and what they answered, in files that other programs read.
//!
//! A shard writes WARC files (ISO 28500:2017, WARC 1.1) with one gzip member for each record. The records of a page
//! are durable before the page is committed, so that each committed page has its records; after a crash a page may
//! have two of them, and the later one counts. Each life of a frontier has files of its own, so that no two owners ever
//! write to one file. A file is complete, or its name ends with `.open`. A command makes one WACZ file (WACZ 1.1.1) of
//! several files, which stay as they are.
//!
//! Files are read as what strangers have made: every length in them is bounded, and a damaged file is an error that
//! names the place.
//!
//! ```text
//! archive     the archive of a shard, for a crawl: pages that come together are written together
//! writer      its files: one after the other by size
//! segment     one file that is being written
//! adopt       files that a life has left when it crashed
//! names       names of files
//! page        the records of a page
//! record      the form of a record
//! about       facts about a fetch that are neither in the request nor in the answer
//! read        records of a file, one after the other
//! http        messages in records
//! source      places of records: WARC files, alone or in a WACZ file
//! zip         the container of WACZ files
//! wacz        a WACZ file of WARC files
//! cdx         its index
//! sorted      lines in order, however many there are
//! check       whether a file is whole and undamaged
//! index       pages of archives by URL, for a crawl without a network
//! ```

mod about;
mod adopt;
mod archive;
mod cdx;
mod check;
mod error;
mod http;
mod index;
mod names;
mod page;
mod read;
mod record;
mod segment;
mod sorted;
mod source;
#[cfg(test)]
mod tests;
mod wacz;
mod writer;
mod zip;

pub use archive::Archive;
pub use check::{Checked, Fault, check};
pub use error::{ArchiveError, ReadError};
pub use index::RecordedPages;
pub use page::{About, PageRecord};
pub use read::DEFAULT_MAX_RECORD;
pub use source::files;
pub use wacz::{Packed, pack_files};
pub use writer::{ArchiveSettings, RunInfo};

/// Name and version of the program that writes an archive.
pub(crate) const SOFTWARE: &str = concat!("crawler/", env!("CARGO_PKG_VERSION"));
