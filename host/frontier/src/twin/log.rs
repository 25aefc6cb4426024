//! Lines of the log. They become durable with the next change, and on closing.

use std::sync::Arc;

use async_trait::async_trait;

use super::open::Opened;
use crate::{FrontierError, LogStore};
use crawler_model::status::LogLine;

#[async_trait]
impl LogStore for Opened {
    fn store_line(&self, line: Arc<LogLine>) {
        self.shared.state().plain.lines.insert(line.number, line);
    }

    fn remove_line(&self, number: u64) {
        self.shared.state().plain.lines.remove(&number);
    }

    async fn stored_lines(&self) -> Result<Vec<Arc<LogLine>>, FrontierError> {
        self.shared.check()?;
        Ok(self.shared.state().plain.lines.values().cloned().collect())
    }
}
