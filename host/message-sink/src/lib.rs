//! Sinks of items as messages: streams of NATS JetStream, and webhooks.
//!
//! A message that may have got lost is sent again under the same id, by which its receiver recognises it. So an item is
//! there once in effect, whatever happened to the crawler, to the receiver or to an answer in between.
//!
//! ```text
//! nats      streams of NATS JetStream: a message for each item
//! webhook   posts to a URL: several items in one call
//! ```

use crawler_model::crawl::ItemRecord;
use crawler_sink::{SinkError, push_line};

pub mod nats;
#[cfg(test)]
mod tests;
pub mod webhook;

/// Returns the number of the first items that one write takes, and their size in bytes with their envelopes: as many as
/// these bounds allow. There is at least one.
fn fitting(
    items: &[ItemRecord],
    max_items: usize,
    max_bytes: u64,
) -> Result<(usize, u64), SinkError> {
    let (mut n_items, mut n_bytes) = (0, 0_u64);
    let mut line = Vec::new();
    for record in items.iter().take(max_items.max(1)) {
        line.clear();
        push_line(&mut line, record)?;
        let with_it = n_bytes + line.len() as u64;
        if n_items > 0 && with_it > max_bytes {
            break;
        }
        (n_items, n_bytes) = (n_items + 1, with_it);
    }
    Ok((n_items, n_bytes))
}
