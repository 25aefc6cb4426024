//! Changes of the items of one run.

use super::{FrontierReader, keys, records};
use crate::FrontierError;
use crawler_model::changes::{ChangeTotals, ItemChange};
use crawler_model::id::Run;

/// One page of the changes of a run.
#[derive(Debug)]
pub struct ChangePage {
    /// Run that the changes are of.
    pub run: Run,
    /// Changes in the order in which they were told.
    pub changes: Vec<ItemChange>,
    /// Start of the next page, to be passed to [`FrontierReader::changes`]. `None` after the last page.
    pub next: Option<u64>,
    /// Totals of the run.
    pub totals: ChangeTotals,
}

impl FrontierReader {
    /// Returns at most `max` changes of a run from a number on, and fewer if they are large, but one at least if there
    /// is one. Returns `None` if the items of the run were not compared, or its changes are not kept any more.
    pub async fn changes(
        &self,
        run: Run,
        from: u64,
        max: usize,
        max_bytes: usize,
    ) -> Result<Option<ChangePage>, FrontierError> {
        let Some(counts) = self.change_counts(run).await? else {
            return Ok(None);
        };
        let mut page = ChangePage {
            run,
            changes: Vec::new(),
            next: None,
            totals: ChangeTotals::from(&counts),
        };
        let mut n_bytes = 0;
        let range = keys::change(run, from)..keys::end_of(&keys::changes_of(run));
        let mut found = self.scan(range).await?;
        while let Some((key, value)) = found.next_bytes().await? {
            let number = keys::parse_change(&key);
            let number = number
                .ok_or_else(|| self.damaged("the key of a change is too short".to_owned()))?;
            if page.changes.is_empty() && number != from {
                break;
            }
            let is_full = page.changes.len() >= max || n_bytes + value.len() > max_bytes;
            if is_full && !page.changes.is_empty() {
                page.next = Some(number);
                break;
            }
            n_bytes += value.len();
            let record: records::ItemChange = self.decode(&value, "change")?;
            let change = record.of_run(run).map_err(|why| self.damaged(why))?;
            page.changes.push(change);
        }
        // The list may have lost its beginning to a sweep since its totals were read.
        let is_cut = page.changes.is_empty() && from < counts.next;
        Ok((!is_cut).then_some(page))
    }

    /// Returns the totals of the changes of a run. Returns `None` if its items were not compared, or its changes are not
    /// kept any more.
    pub async fn change_totals(&self, run: Run) -> Result<Option<ChangeTotals>, FrontierError> {
        let counts = self.change_counts(run).await?;
        Ok(counts.as_ref().map(ChangeTotals::from))
    }

    async fn change_counts(
        &self,
        run: Run,
    ) -> Result<Option<records::ChangeCounts>, FrontierError> {
        self.record(&keys::change_counts(run), "changes").await
    }
}
