//! Lines of the log, which are gone with the process like everything else here.

use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryFrontier;
use crate::{FrontierError, LogStore};
use crawler_model::status::LogLine;

#[async_trait]
impl LogStore for MemoryFrontier {
    fn store_line(&self, line: Arc<LogLine>) {
        self.state().lines.insert(line.number, line);
    }

    fn remove_line(&self, number: u64) {
        self.state().lines.remove(&number);
    }

    async fn stored_lines(&self) -> Result<Vec<Arc<LogLine>>, FrontierError> {
        Ok(self.state().lines.values().cloned().collect())
    }
}
