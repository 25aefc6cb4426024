//! Pages on their way into a frontier and out of it.

use crate::workbench::HostStanding;
use crawler_model::crawl::{Fingerprint, Request, UnixMillis};
use crawler_model::frontier::Validators;

/// A request on its way into the frontier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// Request to fetch.
    pub request: Request,
    /// Number of links between the root requests (0) and this one.
    pub depth: u32,
}

/// A URL that was taken: it is in flight until it is committed or given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Request to fetch.
    pub request: Request,
    /// Depth of the request that first stored the URL.
    pub depth: u32,
    /// Number of the attempt; 1 for the first.
    pub attempt: u32,
    /// Number that grows each time a URL is stored anew by a reload; part of item keys.
    pub visit: u32,
    /// Fingerprint that identifies the URL.
    pub fingerprint: Fingerprint,
    /// Number of the entry, given by the backend.
    pub entry: u64,
    /// True if the process may have ended because of this page: no other page is in flight beside it.
    pub alone: bool,
    /// Validators of the page from an earlier run.
    pub validators: Option<Box<Validators>>,
    /// Standing of its host.
    pub host: HostStanding,
}

/// Next step of a crawl, as told by the frontier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// The page that is to be fetched next.
    Ready(Box<Claim>),
    /// No page is ready before this moment; a commit may make one ready earlier.
    WaitUntil(UnixMillis),
    /// No page is ready until a page in flight is committed, the outbox has room, other shards have got their
    /// links, or the root requests are stored.
    Blocked,
    /// No page is left and none is in flight. Links of other shards may still come.
    Empty,
}
