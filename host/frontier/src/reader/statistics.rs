//! Counts and statistics of the present run.

use super::{FrontierReader, keys, records};
use crate::{FrontierError, durable};
use crawler_model::crawl::Counts;
use crawler_model::id::Run;
use crawler_model::statistics::Statistics;

impl FrontierReader {
    /// Returns the present run with its counts and its statistics, which may lack the pages of the last second.
    pub async fn statistics(&self) -> Result<(Run, Counts, Statistics), FrontierError> {
        let head = self.head().await?.unwrap_or_default();
        let run = Run(head.run);
        let totals: Option<records::Totals> = self.record(&keys::totals(run), "totals").await?;
        let record = self.get(&keys::statistics(run)).await?;
        let statistics = record.map(|bytes| durable::decode_statistics(self.shard, &bytes));
        let counts = totals.map(Counts::from).unwrap_or_default();
        Ok((run, counts, statistics.transpose()?.unwrap_or_default()))
    }
}
