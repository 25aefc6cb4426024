//! Links of a page that are to be stored, or sent to other shards.

use std::collections::HashSet;

use crate::NewRequest;
use crate::workbench::HostId;
use crawler_model::crawl::{Fingerprint, Request};
use crawler_model::frontier::Validators;
use crawler_model::id::Shard;
use crawler_model::scope::{HOSTS, PATTERN_URLS};

/// Links of a page that are to be stored.
#[derive(Debug, Default)]
pub(super) struct NewLinks {
    /// Links that this shard stores, in the order of the page.
    pub(super) links: Vec<NewLink>,
    /// Links for other shards, in the order of the page.
    pub(super) for_peers: Vec<OutgoingLink>,
    /// Number of links kept out by setting `max-pattern-urls`.
    pub(super) n_over_pattern: u64,
    /// Number of links kept out by setting `max-hosts`.
    pub(super) n_over_hosts: u64,
    /// Fingerprints of all links that the batch has stored so far, with these.
    pub(super) stored_here: HashSet<Fingerprint>,
}

impl NewLinks {
    /// Returns the numbers of links that were kept out, with the words that they are counted by.
    pub(super) fn over_bounds(&self) -> [(&'static str, u64); 2] {
        [
            (PATTERN_URLS, self.n_over_pattern),
            (HOSTS, self.n_over_hosts),
        ]
    }
}

/// A link to be stored.
#[derive(Debug)]
pub(super) struct NewLink {
    pub(super) request: Request,
    pub(super) fingerprint: Fingerprint,
    pub(super) host: HostId,
    /// Depth of the request that first stored the URL.
    pub(super) depth: u32,
    /// Number of the visit; 0 for a URL that was not known.
    pub(super) visit: u32,
    pub(super) validators: Option<Box<Validators>>,
    /// Pattern of its path, and the number of URLs of that pattern that are stored with this one.
    pub(super) pattern: Option<([u8; 8], u64)>,
    /// True for the first link to its host in this run.
    pub(super) meets_host: bool,
}

/// A link that another shard gets.
#[derive(Debug)]
pub(super) struct OutgoingLink {
    pub(super) to: Shard,
    pub(super) new: NewRequest,
    pub(super) fingerprint: Fingerprint,
    pub(super) host: HostId,
}
