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
use crawler_sink::{SinkError, push_line};

pub mod nats;
mod settings;
#[cfg(test)]
mod tests;
pub mod webhook;

pub use settings::SettingError;

/// Number of bytes of the digest in an id.
const DIGEST_BYTES: usize = 16;

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

/// Returns a digest that only these texts in this order have.
fn digest<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hex::encode(&hash.finalize()[..DIGEST_BYTES])
}
