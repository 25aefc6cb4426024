//! Ends of pages that wait for their batch.

use tokio::sync::oneshot;

use super::candidates::Links;
use crate::{Commit, Committed, FrontierError};

/// Result of the commit of one page.
pub(super) type Answer = Result<Committed, FrontierError>;

/// A page's end that waits for its batch.
pub(super) struct Queued {
    pub(super) commit: Commit,
    pub(super) links: Links,
    pub(super) reply: oneshot::Sender<Answer>,
}
