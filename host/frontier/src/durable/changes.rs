//! Items of a page, compared with those that were delivered last under the same keys.
//!
//! The record of a known item is stored in the batch of its page, with the change: a page that is fetched again after a
//! crash is compared with what was known before it. Items are known for as long as one run after the other compares them;
//! a run that does not ends their generation, and the next that does begins with nothing.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::inner::Inner;
use super::state::{Compared, Comparison, Latest, LatestItems};
use crate::{Commit, FrontierError, OpenOptions, keys, records};
use crawler_model::changes::{
    Change, Difference, ItemChange, ItemDigest, ItemIdentity, ItemName, OLD_MAX,
};
use crawler_model::crawl::{Counts, ItemRecord};
use crawler_model::id::Run;

impl Inner {
    /// Loads the comparison of the run, or begins it with a new run. `last_run` is the run that the frontier was in
    /// before. Returns `None` if items are not compared.
    pub(super) async fn load_comparison(
        &self,
        options: &OpenOptions,
        last_run: Run,
        counts: &Counts,
    ) -> Result<Option<Comparison>, FrontierError> {
        let before = self.get(Bytes::from_static(keys::COMPARISON)).await?;
        let before = before.map(|bytes| self.decode::<records::Comparison>(&bytes, "comparison"));
        let before = before.transpose()?;
        let (run, n_runs) = (options.run.0, options.changes.n_runs);
        let record = match last_run < options.run {
            true => (n_runs > 0).then(|| records::Comparison {
                run,
                // A worker of an earlier version leaves the record as it was, and compares nothing.
                generation: before
                    .filter(|before| before.run == last_run.0)
                    .map_or(run, |before| before.generation),
                n_runs,
            }),
            // A run is not compared if a part of it was not.
            false => before.filter(|before| before.run == run),
        };
        let Some(record) = record else {
            return Ok(None);
        };
        let stored = self.get(keys::change_counts(options.run)).await?;
        let stored = stored.map(|bytes| self.decode::<records::ChangeCounts>(&bytes, "changes"));
        let mut change_counts = stored.transpose()?.unwrap_or_default();
        change_counts.is_torn |= change_counts.n_items != counts.items;
        change_counts.n_items = counts.items;
        Ok(Some(Comparison {
            record,
            keys: Arc::new(options.changes.keys.clone()),
            counts: change_counts,
        }))
    }

    /// Compares the items of a page with those that are known: by the pages before it in its batch, or stored. Returns
    /// `None` if there is nothing to compare.
    pub(super) async fn compare(
        &self,
        commit: &Commit,
        in_batch: &LatestItems,
    ) -> Result<Option<Compared>, FrontierError> {
        let items = &commit.result.items;
        if items.is_empty() {
            return Ok(None);
        }
        let keys = {
            let state = self.state();
            let comparison = state.comparison.as_ref();
            comparison.map(|comparison| comparison.keys.clone())
        };
        let Some(keys) = keys else {
            return Ok(None);
        };
        // Which of the requests that lead to one page gets its items is chance; where they led is not.
        let led_to = commit.result.final_url.as_ref();
        let page = led_to.unwrap_or(&commit.claim.request);
        let identities = keys.identities(page, items).into_iter();
        let placed = identities.zip(items).enumerate();
        let placed = placed.map(|(place, (identity, item))| (place, identity, item));
        self.compare_all(placed.collect(), in_batch).await
    }

    /// Compares items with those that are known: by earlier pages of the batch, or stored. Each has its place, which is that
    /// of its change. Returns `None` if there is nothing to compare.
    pub(super) async fn compare_all(
        &self,
        items: Vec<(usize, ItemIdentity, &ItemRecord)>,
        in_batch: &LatestItems,
    ) -> Result<Option<Compared>, FrontierError> {
        let generation = {
            let state = self.state();
            let comparison = state.comparison.as_ref();
            comparison.map(|comparison| comparison.record.generation)
        };
        let Some(generation) = generation.filter(|_| !items.is_empty()) else {
            return Ok(None);
        };
        let mut compared = Compared::default();
        for (place, identity, item) in items {
            let name = identity.name();
            let known = compared.latest.get(&name).or_else(|| in_batch.get(&name));
            let known = match known {
                Some(known) => Some(known.clone()),
                None => self.known(generation, name).await?,
            };
            compared.n_lacking_key += u64::from(identity.lacks_key);
            let is_repeated = known.as_ref().is_some_and(|known| known.run == self.run);
            compared.n_repeated += u64::from(is_repeated);
            let (json, url) = (item.item.get(), &item.url);
            let digest = ItemDigest::of(json);
            let item = match known {
                None => {
                    let item = content(&identity, url, json);
                    let change = self.change(Change::Added, identity, json);
                    compared.changes.push((place, change));
                    Some(item)
                }
                Some(known) if known.digest == digest => {
                    compared.n_unchanged += u64::from(!is_repeated);
                    known.item
                }
                Some(known) => {
                    let item = content(&identity, url, json);
                    let before = match known.item {
                        Some(item) => item,
                        None => self.known_item(generation, name).await?,
                    };
                    let difference = Difference::between(&before.json, json);
                    let Difference { fields, old } = difference.bounded(OLD_MAX);
                    let change = ItemChange {
                        fields,
                        old,
                        ..self.change(Change::Changed, identity, json)
                    };
                    compared.changes.push((place, change));
                    Some(item)
                }
            };
            let latest = Latest {
                run: self.run,
                digest,
                item,
            };
            compared.latest.insert(name, latest);
        }
        Ok(Some(compared))
    }

    /// Returns a change without old values.
    fn change(&self, change: Change, identity: ItemIdentity, json: &str) -> ItemChange {
        ItemChange {
            change,
            key: identity.key,
            kind: identity.kind,
            run: self.run,
            fields: Vec::new(),
            old: String::new(),
            item: json.to_owned(),
        }
    }

    /// Returns what is stored of an item, without its content.
    async fn known(
        &self,
        generation: u64,
        name: ItemName,
    ) -> Result<Option<Latest>, FrontierError> {
        let Some(bytes) = self.get(keys::known(generation, name)).await? else {
            return Ok(None);
        };
        let known: records::Known = self.decode(&bytes, "known item")?;
        let digest = known.digest();
        let digest = digest.ok_or_else(|| self.damaged("a digest is too short".to_owned()))?;
        Ok(Some(Latest {
            run: Run(known.run),
            digest,
            item: None,
        }))
    }

    /// Returns the stored content of an item that is known.
    pub(super) async fn known_item(
        &self,
        generation: u64,
        name: ItemName,
    ) -> Result<records::KnownItem, FrontierError> {
        let item = self.get(keys::known_item(generation, name)).await?;
        let item = item.ok_or_else(|| self.damaged("a known item has no content".to_owned()))?;
        self.decode(&item, "content of an item")
    }
}

/// Returns what is stored of an item from now on.
fn content(identity: &ItemIdentity, url: &str, json: &str) -> records::KnownItem {
    records::KnownItem {
        url: url.to_owned(),
        kind: identity.kind.clone(),
        key: identity.key.clone(),
        json: json.to_owned(),
    }
}

/// Returns the ranges of records that no run needs any more: changes of runs that are not among the latest, and items of
/// earlier generations; all of them if items are not compared. The totals of a run come before its changes: a list
/// without totals is not read, and one with them is whole.
pub(super) fn over(comparison: Option<records::Comparison>) -> [Range<Bytes>; 4] {
    let none = Run(0);
    match comparison {
        Some(record) => {
            let n_earlier = u64::from(record.n_runs).saturating_sub(1);
            let first = Run(record.run.saturating_sub(n_earlier));
            [
                keys::change_counts(none)..keys::change_counts(first),
                keys::changes_of(none)..keys::changes_of(first),
                keys::known_of(0)..keys::known_of(record.generation),
                keys::known_items_of(0)..keys::known_items_of(record.generation),
            ]
        }
        None => [
            keys::CHANGE_COUNTS,
            keys::CHANGES,
            keys::KNOWN,
            keys::KNOWN_ITEMS,
        ]
        .map(|prefix| Bytes::from_static(prefix)..keys::end_of(prefix)),
    }
}
