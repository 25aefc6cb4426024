//! Record of a line of the log.

use prost::Message;

use crawler_model::id::{Run, Shard};
use crawler_model::status::LogLine;

/// A line of the log, except for its number, which its key has, and its shard, which the frontier has.
#[derive(Clone, PartialEq, Message)]
pub(in super::super) struct Line {
    #[prost(uint64, tag = "1")]
    at: u64,
    #[prost(string, tag = "2")]
    level: String,
    #[prost(string, tag = "3")]
    url: String,
    #[prost(string, tag = "4")]
    rule: String,
    #[prost(string, tag = "5")]
    message: String,
    #[prost(uint64, tag = "6")]
    run: u64,
    #[prost(uint64, tag = "7")]
    more: u64,
}

impl From<&LogLine> for Line {
    fn from(line: &LogLine) -> Self {
        Self {
            at: line.at,
            level: line.level.to_owned(),
            url: line.url.clone(),
            rule: line.rule.clone(),
            message: line.message.clone(),
            run: line.run.0,
            more: line.more,
        }
    }
}

impl Line {
    /// Returns the line with its number and its shard.
    pub(in super::super) fn numbered(self, number: u64, shard: Shard) -> LogLine {
        LogLine {
            at: self.at,
            level: LogLine::level(&self.level),
            url: self.url,
            rule: self.rule,
            message: self.message,
            run: Run(self.run),
            shard,
            number,
            more: self.more,
        }
    }
}
