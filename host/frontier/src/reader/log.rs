//! Lines of the log, of all runs.

use super::{FrontierReader, keys, records};
use crate::FrontierError;
use crawler_model::status::LogLine;

impl FrontierReader {
    /// Returns the lines of the log in the order of their numbers, as far as they are durable.
    pub async fn log(&self) -> Result<Vec<LogLine>, FrontierError> {
        let mut lines = Vec::new();
        let mut found = self.scan_prefix(keys::LINES).await?;
        while let Some((key, value)) = found.next_bytes().await? {
            let number = keys::parse_line(&key)
                .ok_or_else(|| self.damaged("the key of a line is too short".to_owned()))?;
            // Lines only inform: the others are returned without those that do not decode.
            match self.decode::<records::Line>(&value, "line of the log") {
                Ok(line) => lines.push(line.numbered(number, self.shard.shard)),
                Err(error) => tracing::warn!(%error, "a line of the log is left out"),
            }
        }
        Ok(lines)
    }
}
