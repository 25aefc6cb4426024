//! Messages between the process that crawls and the one that serves: a line of JSON each.
//!
//! The first line that the server reads tells what to serve. It says where, or why not. The end of its input ends it,
//! also if the other process was killed; its last message has the figures of all requests.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use super::visits::{Promised, VisitFigures};
use super::web::WebSettings;

/// Hidden command of the program that serves.
pub const COMMAND: &str = "__bench_web";

/// Web that a server serves, and the delays that its visitor has promised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSettings {
    /// Shape of the web. The seed counts for the times of answers too.
    pub web: WebSettings,
    /// Folder that is served in place of a made-up web.
    pub folder: Option<PathBuf>,
    /// Average time from a request to its answer. The time of one answer is between half of it and one and a half.
    pub latency: Duration,
    /// `crawl-delay` of every robots.txt; zero for none.
    pub crawl_delay: Duration,
    /// Delays that the visitor has promised.
    pub promised: Promised,
}

/// Message of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Requests are answered from now on.
    Serving {
        /// Port on loopback, for all hosts.
        port: u16,
        /// Number of hosts.
        n_hosts: u32,
        /// Number of pages that can be reached.
        n_pages: u64,
    },
    /// No request is answered any more.
    Served(VisitFigures),
    /// The web cannot be served, for this reason.
    Failed(String),
}
