//! Sinks of items as messages: streams of NATS JetStream, and webhooks.
//!
//! A message that may have got lost is sent again under the same id, by which its receiver recognises it. So an item is
//! there once in effect, whatever happened to the crawler, to the receiver or to an answer in between.
//!
//! ```text
//! nats      streams of NATS JetStream: a message for each item
//! webhook   posts to a URL: several items in one call
//! settings  ranges of numbers
//! ```

use sha2::{Digest as _, Sha256};

use crawler_model::crawl::ItemRecord;

pub mod nats;
mod settings;
#[cfg(test)]
mod tests;
pub mod webhook;

pub use settings::SettingError;

/// Number of bytes of the digest in an id.
const DIGEST_BYTES: usize = 16;

/// Returns the number of the first items that one write takes: as many as these bounds allow. There is at least one.
fn n_fitting(items: &[ItemRecord], max_items: usize, max_bytes: u64) -> usize {
    let mut n_bytes = 0;
    let fitting = items.iter().take(max_items.max(1)).enumerate();
    let fitting = fitting.take_while(|(place, record)| {
        n_bytes += record.item.get().len() as u64;
        *place == 0 || n_bytes <= max_bytes
    });
    fitting.count()
}

/// Returns a digest that only these texts in this order have.
fn digest<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hex::encode(&hash.finalize()[..DIGEST_BYTES])
}
