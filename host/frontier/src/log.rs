//! Log of a crawl, as a frontier keeps it.
//!
//! A crawl bounds its log and numbers its lines; the frontier stores the lines under these numbers, whatever
//! run they are of. Like statistics, lines only inform: they become durable within about a second, when the crawl
//! settles, and on closing, and a crash may lose the last of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::FrontierError;
use crawler_model::status::LogLine;

/// The log that a frontier stores. The calls that change it use memory only.
#[async_trait]
pub trait LogStore: Send + Sync + 'static {
    /// Stores a line under its number, in place of the line that has this number. New lines are stored in the
    /// order of their numbers. The caller removes lines so that their number and size stay bounded.
    fn store_line(&self, line: Arc<LogLine>);

    /// Removes the line of this number, if there is one.
    fn remove_line(&self, number: u64);

    /// Returns the lines in the order of their numbers, with the changes that are not durable yet.
    async fn stored_lines(&self) -> Result<Vec<Arc<LogLine>>, FrontierError>;
}

/// Lines by their numbers.
pub(crate) type Lines = BTreeMap<u64, Arc<LogLine>>;
