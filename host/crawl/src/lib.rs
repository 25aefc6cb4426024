//! The crawl of one shard: root, then take, fetch, parse, commit until nothing is left.
//!
//! ```text
//! run       one run: what its tasks share, the order of its end
//! roots     the root requests of a run
//! pages     the loop: takes URLs and starts a task for each
//! page      one attempt at one page, and the preparation of a host
//! harvest   the result of an attempt: fetched, judged, parsed
//! request   the request for a page
//! unchanged pages that are as the last run saw them
//! verdict   pure: what becomes of an answer, of links, of a rule's errors
//! at_rest   whether a crawl may end for the time being
//! drain     the outbox into the sink
//! links     links to the other shards, to those who have them
//! slot      places of pages in flight, and of hosts that are being prepared
//! starts    when the next page may begin
//! shared    what the tasks of one crawl share
//! parts     what a crawl is given
//! part      a shard among those of its resource
//! permit    whether pages may be fetched
//! put_back  the pause of a crawl that uses too much memory
//! end       how a crawl ends
//! report    the log of a crawl
//! spans     what the lines of the process's log tell of their crawl
//! ```
//!
//! A crawl knows no store, no master and no other process: it is given a frontier, a fetcher, rules and a sink
//! ([`CrawlParts`]), may fetch for as long as a [permit](permit::FetchPermit) holds, and hands links for other
//! shards to a [transport](part::HandOver). `crawler run` uses it as a worker does.

mod at_rest;
mod drain;
mod end;
mod harvest;
mod links;
mod page;
mod pages;
pub mod part;
mod parts;
pub mod permit;
pub mod put_back;
pub mod report;
mod request;
mod roots;
mod run;
mod shared;
mod slot;
pub mod spans;
pub mod starts;
#[cfg(any(test, feature = "testing"))]
pub mod twin;
mod unchanged;
mod verdict;

pub use end::CrawlEnd;
pub use parts::{CrawlConfig, CrawlParts};
pub use run::run;
