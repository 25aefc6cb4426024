//! robots.txt: what a site wants left alone, and how slowly it wants to be asked (RFC 9309).
//!
//! Rules are read and matched without any IO, and kept for each origin; [`http`](super::http) fetches
//! them, through address policy and throttle like a page, and asks before each hop.
//!
//! | what the site answers | what follows |
//! |---|---|
//! | 2xx | its rules count, for a day; an older file goes on counting while it cannot be fetched anew |
//! | 4xx but 429; more than five redirects | everything may be fetched |
//! | anything else; a redirect to what cannot be had | nothing is fetched, and tried again later; after 30 days everything may be |
//! | nothing: no address, no connection, no answer in time | the host is put off for that reason, with all its pages |

pub use rules::{MAX_BYTES, RuleLine, Rules};
pub use store::RobotsStore;

pub(super) use cache::{Cache, OriginRules, ProxyName, Received, name_of};
pub(super) use rules::product_of;

mod cache;
mod pattern;
mod rules;
mod store;

/// Redirects that are followed, also to other hosts (RFC 9309, 2.3.1.2: at least five).
pub(super) const MAX_REDIRECTS: usize = 5;
