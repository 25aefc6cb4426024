//! Events for a receiver of which it is not known what it has missed: a pass over all names.

use tokio::task::coop::consume_budget;

use super::{Closed, EventKind, Feed, WebhookEvent};
use crate::observed::Observed;
use crate::webhooks::position::Position;
use crawler_model::id::ResourceName;
use crawler_store::Revision;

impl Feed {
    /// Passes over the names of resources and of deletions whose records are still there, in their order. It tells of each
    /// end and each state since the position. The position moves with each name.
    pub(super) async fn resync(&mut self) -> Result<(), Closed> {
        tracing::warn!(
            webhook = %self.webhook.name,
            "changes since the last event of a webhook are not all known; resources whose state may have changed are sent"
        );
        self.told_early.clear();
        self.order = None;
        let observed = self.replica.after(None).await;
        // The log tells what changes after this revision, also those changes that are noted already.
        let until = observed.settled;
        let number = observed.states_go_on_from(until);
        if self.reached.revision() > observed.revision {
            // The store was set back: nothing of what is there was told.
            self.reached = Position::default();
        }
        drop(observed);
        let mut last = None;
        while let Some(name) = self.pass(last.as_ref(), until).await? {
            last = Some(name);
        }
        self.seen = number;
        self.reached.advance(Position::at(until));
        Ok(())
    }

    /// Tells of the name that follows another one. Returns it, or `None` if there is none.
    async fn pass(
        &mut self,
        last: Option<&ResourceName>,
        until: Revision,
    ) -> Result<Option<ResourceName>, Closed> {
        consume_budget().await;
        let observed = self.replica.after(None).await;
        let Some(name) = observed.name_after(last) else {
            return Ok(None);
        };
        let (end, state) = match self.webhook.filter.is_about(&name) {
            true => (
                self.missed_end(&observed, &name, until),
                self.missed_state(&observed, &name),
            ),
            false => (None, None),
        };
        drop(observed);
        // The last event of a name takes the position past it.
        match (end, state) {
            (Some(end), Some(state)) => {
                self.hand_over(end).await?;
                self.reached.pass(&name, until);
                self.hand_over(state).await?;
            }
            (event, None) | (None, event) => {
                self.reached.pass(&name, until);
                if let Some(event) = event {
                    self.hand_over(event).await?;
                }
            }
        }
        Ok(Some(name))
    }

    /// Returns the event of the last resource of a name that was deleted since the position, up to a revision. Its record is
    /// there until the data is removed.
    fn missed_end(
        &self,
        observed: &Observed,
        name: &ResourceName,
        until: Revision,
    ) -> Option<WebhookEvent> {
        let ends = observed.deletions.of_name(name);
        let missed = ends.filter(|deleting| {
            deleting.created <= until && !self.reached.includes(name, deleting.created)
        });
        let last = missed.max_by_key(|deleting| deleting.created)?;
        self.end(name, (last.value.id, last.created), true)
    }

    /// Returns the event of a resource that may be in another state since the position.
    fn missed_state(&self, observed: &Observed, name: &ResourceName) -> Option<WebhookEvent> {
        let state = observed.states.get(name)?;
        if self.reached.includes(name, state.since) {
            return None;
        }
        let is_new = !self.reached.includes(name, state.created);
        let present = |kind| self.present(observed, name, (kind, true));
        let added = is_new.then(|| present(EventKind::Added)).flatten();
        // A webhook without `added` is told of the state all the same, unless the resource began with it.
        let has_changed = !is_new || state.since > state.created;
        added.or_else(|| has_changed.then(|| present(EventKind::Changed)).flatten())
    }
}
