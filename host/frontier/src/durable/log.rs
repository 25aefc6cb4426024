//! Lines of the log: changed in memory, and written with the statistics.

use std::sync::Arc;

use async_trait::async_trait;

use super::{DurableFrontier, Inner};
use crate::log::Lines;
use crate::records;
use crate::{FrontierError, LogStore, keys};
use crawler_model::status::LogLine;

#[async_trait]
impl LogStore for DurableFrontier {
    fn store_line(&self, line: Arc<LogLine>) {
        self.inner.state().statistics.store_line(line);
    }

    fn remove_line(&self, number: u64) {
        self.inner.state().statistics.remove_line(number);
    }

    async fn stored_lines(&self) -> Result<Vec<Arc<LogLine>>, FrontierError> {
        self.inner.check()?;
        self.inner.stored_lines().await
    }
}

impl Inner {
    async fn stored_lines(&self) -> Result<Vec<Arc<LogLine>>, FrontierError> {
        // No batch is on its way, so a change is either in the database or in memory.
        let _guard = self.writer.lock().await;
        let mut lines = Lines::new();
        let mut found = self.scan_prefix(keys::LINES).await?;
        while let Some((key, value)) = found.next().await? {
            let number = keys::parse_line(&key)
                .ok_or_else(|| self.damaged("the key of a line is too short".to_owned()))?;
            // Lines only inform: the crawl goes on without those that do not decode.
            match self.decode::<records::Line>(&value, "line of the log") {
                Ok(line) => {
                    let line = line.numbered(number, self.shard.shard);
                    lines.insert(number, Arc::new(line));
                }
                Err(error) => tracing::warn!(%error, "a line of the log is left out"),
            }
        }
        self.state().statistics.overlay(&mut lines);
        Ok(lines.into_values().collect())
    }
}
