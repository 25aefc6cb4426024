//! Items that are held.

use super::{FrontierReader, keys, records};
use crate::FrontierError;
use crawler_model::crawl::ItemRecord;
use crawler_model::drift::Hold;

/// One page of the items of a hold.
#[derive(Debug, Default)]
pub struct HeldPage {
    /// Items in the order in which they were stored, each with its number.
    pub items: Vec<(u64, ItemRecord)>,
    /// Start of the next page, to be passed to [`FrontierReader::held_items`]. `None` after the last page.
    pub next: Option<u64>,
}

impl FrontierReader {
    /// Returns the holds that wait for a decision, in the order of their numbers.
    pub async fn holds(&self) -> Result<Vec<Hold>, FrontierError> {
        let mut holds = Vec::new();
        let mut found = self.scan_prefix(keys::HOLDS).await?;
        while let Some((_, value)) = found.next_bytes().await? {
            let hold = serde_json::from_slice(&value)
                .map_err(|e| self.damaged(format!("a record (hold) does not decode: {e}")))?;
            holds.push(hold);
        }
        Ok(holds)
    }

    /// Returns at most `max` items of a hold from a number on, and fewer if they are large, but one at least if there is
    /// one.
    pub async fn held_items(
        &self,
        hold: u64,
        from: u64,
        max: usize,
        max_bytes: usize,
    ) -> Result<HeldPage, FrontierError> {
        let mut page = HeldPage::default();
        let mut n_bytes = 0;
        let Some(next_hold) = hold.checked_add(1) else {
            return Ok(page);
        };
        let range = keys::held(hold, from)..keys::held(next_hold, 0);
        let mut found = self.scan(range).await?;
        while let Some((key, record)) = found.next::<records::KeptItem>("held item").await? {
            let number = keys::parse_number(&key);
            let number = number.ok_or_else(|| self.damaged("a key is too short".to_owned()))?;
            let is_full = page.items.len() >= max || n_bytes + record.json.len() > max_bytes;
            if is_full && !page.items.is_empty() {
                page.next = Some(number);
                break;
            }
            n_bytes += record.json.len();
            let item = serde_json::from_slice(&record.json)
                .map_err(|e| self.damaged(format!("an item is not JSON: {e}")))?;
            page.items.push((number, item));
        }
        Ok(page)
    }
}
