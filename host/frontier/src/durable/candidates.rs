//! Links of a page that may be new, before the database is asked.

use crate::NewRequest;
use crate::seen::SeenKey;
use crate::workbench::HostId;
use crawler_model::crawl::Fingerprint;
use crawler_model::id::Shard;

/// Links that may be new, in the order of the page. Telling them from known ones is most of the work, and
/// needs no lock.
#[derive(Default)]
pub(super) struct Links(pub(super) Vec<Link>);

impl Links {
    pub(super) fn has_reload(&self) -> bool {
        self.0.iter().any(|link| link.new.request.reload)
    }
}

/// A link that may be new.
pub(super) struct Link {
    /// Position in the page; links for other shards come last.
    pub(super) place: usize,
    pub(super) host: HostId,
    pub(super) fingerprint: Fingerprint,
    pub(super) key: SeenKey,
    pub(super) new: NewRequest,
    /// Shard that the link belongs to. `None` for a link of this shard.
    pub(super) to: Option<Shard>,
}
