//! Writes of a part of the items: what is left out counts as written.

use super::{Sink, SinkError, Written};
use crawler_model::crawl::ItemRecord;

/// Writes what `pick` makes of items, and nothing for those of which it makes nothing. The result counts the given items:
/// those that were left out count with the ones before them.
pub(crate) async fn write_picked(
    sink: &mut dyn Sink,
    first: u64,
    items: &[ItemRecord],
    mut pick: impl FnMut(&ItemRecord) -> Option<ItemRecord> + Send,
) -> Result<Written, SinkError> {
    let picked = items.iter().enumerate();
    let picked = picked.filter_map(|(place, item)| Some((place, pick(item)?)));
    let (places, picked): (Vec<usize>, Vec<ItemRecord>) = picked.unzip();
    let Some(head) = places.first() else {
        return Ok(Written::all(items, None));
    };
    let written = sink.write(first + *head as u64, &picked).await?;
    let n_picked = places.len() as u64;
    let n_items = match written.n_items {
        0 => 0,
        n if n < n_picked => places[n as usize] as u64,
        n => items.len() as u64 + (n - n_picked),
    };
    Ok(Written { n_items, ..written })
}
