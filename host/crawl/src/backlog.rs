//! The backlog of a slow sink: at its bound, the crawl takes no page until the sink has caught up.

use crawler_frontier::Frontier;
use crawler_model::settings::SinkName;

/// Name of the state of a crawl that takes no page until a sink has caught up.
pub const SINK_BEHIND: &str = "SinkBehind";

/// Returns why no page is taken until a sink has caught up, if that is so. At most `max_bytes` of items may wait here.
/// The slowest sink is one of those that the frontier was opened for: the settings may have lost it already.
pub fn why_paused(frontier: &dyn Frontier, max_bytes: u64) -> Option<String> {
    let n_bytes = frontier.undelivered_bytes();
    let is_over_size = n_bytes >= max_bytes;
    if !is_over_size && !frontier.is_outbox_full() {
        return None;
    }
    let sinks = frontier.sinks();
    let slowest = sinks
        .iter()
        .max_by_key(|sink| frontier.undelivered(sink).n_items)?;
    let sink = match sinks.is_only_lines() {
        true => "the sink".to_owned(),
        false => format!("sink {slowest}"),
    };
    let why = match is_over_size {
        true => format!(
            "{n_bytes} bytes of items wait for it, and --max-undelivered allows {max_bytes} here"
        ),
        false => format!(
            "{} items wait for it, and a frontier keeps no more",
            frontier.n_undelivered()
        ),
    };
    Some(format!(
        "no page is taken until {sink} has caught up: {why}"
    ))
}

/// Name of the state of a crawl that takes no page until somebody has decided about held items.
pub const QUARANTINE_FULL: &str = "QuarantineFull";

/// Largest number of items that a shard holds, and of its holds.
const MAX_HELD: u64 = 100_000;
const MAX_HOLDS: u64 = 256;

/// Returns why no page is taken until somebody has decided about held items, if that is so. At most `max_bytes` of items
/// may be held here.
pub fn why_undecided(frontier: &dyn Frontier, max_bytes: u64) -> Option<String> {
    let held = frontier.kept_back();
    let why = if held.held_bytes >= max_bytes {
        let n_bytes = held.held_bytes;
        format!("{n_bytes} bytes of items are held, and --max-undelivered allows {max_bytes} here")
    } else if held.n_held >= MAX_HELD {
        format!("{} items are held, and a shard holds no more", held.n_held)
    } else if held.n_holds >= MAX_HOLDS {
        format!("there are {} holds, and a shard has no more", held.n_holds)
    } else {
        return None;
    };
    Some(format!(
        "no page is taken until held items are released or dropped, with `crawler quarantine`: {why}"
    ))
}

/// Returns the beginning of a message about a sink that does not take items at present.
pub fn waiting_for(sink: &SinkName) -> String {
    match sink.is_lines() {
        true => "items wait for their sink".to_owned(),
        false => format!("items wait for sink {sink}"),
    }
}
