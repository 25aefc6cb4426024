//! Numbers of links stored for each pattern; there is at most one entry for each stored link.

use std::collections::HashMap;

use url::Url;

use crawler_model::pattern::{PatternKey, path_pattern};

#[derive(Debug, Default)]
pub(super) struct Patterns {
    n_stored: HashMap<PatternKey, u64>,
}

impl Patterns {
    /// Returns true if one more link like this may be stored, and counts it then.
    pub(super) fn admit(&mut self, url: &Url, max: u64) -> bool {
        let Some(pattern) = path_pattern(url) else {
            return true;
        };
        let n_stored = self.n_stored.entry(pattern).or_default();
        let has_room = *n_stored < max;
        *n_stored += u64::from(has_room);
        has_room
    }
}
