//! The crawl of one shard: root, then take, fetch, parse, commit until nothing is left.
//!
//! ```text
//! run         one run: what its tasks share, the order of its end
//! roots       the root requests of a run
//! pages       the loop: takes URLs and starts a task for each
//! page        one attempt at one page, and the preparation of a host
//! page_result the result of an attempt: fetched, judged, parsed
//! called      the result of a page by the report of its call
//! kept        bodies that are kept as files
//! archived    the archive of requests and answers
//! request     the request for a page
//! unchanged   pages that are as the last run saw them
//! revisit     pages that are not due again
//! changes     the end of a run whose items are compared with earlier ones
//! drift       items that are judged before a sink gets them
//! verdict     pure: what becomes of an answer, of links, of a rule's errors
//! termination whether a crawl may end for the time being
//! drain       the outbox into the sink
//! links       links to the other shards, to those who have them
//! slot        slots of pages in flight, and of hosts that are being prepared
//! pacing      when the next page may begin
//! shared      what the tasks of one crawl share
//! parts       what a crawl is given
//! peers       the other shards of the resource, and whether this one is idle
//! permit      whether pages may be fetched
//! backlog     the bound on items that wait for a slow sink
//! incidents   what is told of a crawl as events: folded, with numbers
//! put_back    the pause of a crawl that uses too much memory
//! end         how a crawl ends
//! log         the log of a crawl; what is said of many pages is one line
//! traced      what traces tell of pages
//! spans       what the lines of the process's log tell of their crawl
//! ```
//!
//! A crawl knows no store, no master and no other process: it is given a frontier, a fetcher, rules and a sink
//! ([`CrawlParts`]), may fetch for as long as a [permit](permit::FetchPermit) holds, and hands links for other
//! shards to a [transport](peers::LinkTransport). `crawler run` uses it as a worker does.

mod archived;
pub mod backlog;
mod called;
mod changes;
#[cfg(any(test, feature = "testing"))]
pub mod doubles;
mod drain;
mod drift;
mod end;
pub mod incidents;
mod kept;
pub mod limit_uses;
mod links;
pub mod log;
pub mod pacing;
mod page;
mod page_result;
mod pages;
mod parts;
pub mod peers;
pub mod permit;
pub mod put_back;
mod request;
mod revisit;
mod robots;
mod roots;
mod run;
mod shared;
mod slot;
pub mod spans;
mod suspect;
mod termination;
mod traced;
mod unchanged;
mod verdict;

pub use archived::archive_in;
pub use drain::NamedSink;
pub use end::CrawlEnd;
pub use parts::{CrawlConfig, CrawlParts};
pub use run::{run, run_to};
