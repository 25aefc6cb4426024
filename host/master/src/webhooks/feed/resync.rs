//! Events for a receiver of which it is not known what it has missed: a pass over all resources.

use std::ops::Bound;

use tokio::task::coop::consume_budget;

use super::{Closed, Feed};
use crate::webhooks::known::Known;
use crate::webhooks::position::Position;
use crawler_model::id::{ResourceId, ResourceName};
use crawler_store::Revision;

impl Feed {
    /// Tells of the deletions since the position that are still known, and then of all resources whose records were written
    /// since, in the order of names. The position moves with each name.
    pub(super) async fn resync(&mut self) -> Result<(), Closed> {
        tracing::warn!(
            webhook = %self.webhook.name,
            "changes since the last event of a webhook are not all known; resources that were written since are sent"
        );
        let observed = self.replica.after(None).await;
        // What changes during the pass is told after it.
        let (number, until) = (observed.state_log.last(), observed.settled);
        if self.reached.revision() > observed.revision {
            // The store was set back: nothing of what is there was told.
            self.reached = Position::default();
            self.known = Known::default();
        }
        drop(observed);
        self.tell_ends(until).await?;
        let mut last = None;
        while let Some(name) = self.pass(last.as_ref(), until).await? {
            last = Some(name);
        }
        self.seen = number;
        self.reached.advance(Position::at(until));
        Ok(())
    }

    /// Tells of the deletions up to a revision whose records are still there, because the data is not removed yet.
    async fn tell_ends(&mut self, until: Revision) -> Result<(), Closed> {
        let mut last: Option<ResourceId> = None;
        loop {
            consume_budget().await;
            let observed = self.replica.after(None).await;
            let Some(deleting) = observed.deletions.after(last) else {
                return Ok(());
            };
            let (id, name) = (deleting.value.id, &deleting.value.name);
            last = Some(id);
            let is_later = deleting.created > until;
            let is_there = observed.resources.contains_key(name)
                || observed.unreadable_resources.contains(name);
            if is_later
                || is_there
                || !self.webhook.filter.is_about(name)
                || self.reached.includes(name, deleting.created)
            {
                continue;
            }
            let event = self.end(name, id, true);
            drop(observed);
            if let Some(event) = event {
                self.hand_over(event, self.reached.clone()).await?;
            }
        }
    }

    /// Tells of the resource that follows a name. Returns its name, or `None` if it was the last one.
    async fn pass(
        &mut self,
        last: Option<&ResourceName>,
        until: Revision,
    ) -> Result<Option<ResourceName>, Closed> {
        consume_budget().await;
        let observed = self.replica.after(None).await;
        let first = match last {
            Some(last) => Bound::Excluded(last.clone()),
            None => Bound::Unbounded,
        };
        let mut following = observed.resources.range((first, Bound::Unbounded));
        let Some((name, resource)) = following.next() else {
            return Ok(None);
        };
        let name = name.clone();
        let is_missed = !self.reached.includes(&name, observed.written_at(resource));
        let event = match is_missed && self.webhook.filter.is_about(&name) {
            true => self.present(&observed, &name, true),
            false => None,
        };
        let before = self.reached.clone();
        self.reached.pass(&name, until);
        drop(observed);
        if let Some(event) = event {
            self.hand_over(event, before).await?;
        }
        Ok(Some(name))
    }
}
