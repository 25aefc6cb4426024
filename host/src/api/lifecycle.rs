//! The calls that decide whether a resource is crawled, and by whom.

use serde::Serialize;

use super::Api;
use super::answer::ResourceAnswer;
use super::client::Client;
use super::forward::Origin;
use super::problem::Problem;
use super::spec::{SpecRequest, node_id, resource_name};
use crate::master::Drained;

/// Number of shards that a draining worker still has, and of other workers that take shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields of the message DrainNodeResponse")]
pub struct DrainAnswer {
    pub load: u32,
    pub others: u32,
}

impl From<Drained> for DrainAnswer {
    fn from(drained: Drained) -> Self {
        Self {
            load: drained.load,
            others: u32::try_from(drained.others).unwrap_or(u32::MAX),
        }
    }
}

impl Api {
    /// Begins a new run of the spec with these changes.
    pub(crate) async fn restart_resource(
        &self,
        origin: &Origin,
        changes: SpecRequest,
    ) -> Result<ResourceAnswer, Problem> {
        let changes = &changes;
        let own = || async move {
            let change = |present| changes.clone().over(present);
            let name = &changes.name;
            let restarted = self.control.restart_resource(name, change, &origin.request);
            Ok(restarted.await?.into())
        };
        let theirs = |leader: Client| async move { leader.restart_resource(changes.clone()).await };
        let call = self.change(origin, own, theirs);
        self.told(origin, "RestartResource", changes.name.as_str(), call)
            .await
    }

    /// Pauses a resource, or lets it go on.
    pub(crate) async fn pause_resource(
        &self,
        origin: &Origin,
        name: &str,
        pause: bool,
    ) -> Result<ResourceAnswer, Problem> {
        let call = async {
            let name = &resource_name(name)?;
            let own = || async move {
                let paused = self.control.pause_resource(name, pause, &origin.request);
                Ok(paused.await?.into())
            };
            let theirs = |leader: Client| async move { leader.pause_resource(name, pause).await };
            self.change(origin, own, theirs).await
        };
        let method = match pause {
            true => "PauseResource",
            false => "ResumeResource",
        };
        self.told(origin, method, name, call).await
    }

    /// Lets a worker give its shards away, or take shards again.
    pub(crate) async fn drain_node(
        &self,
        origin: &Origin,
        id: &str,
        undo: bool,
    ) -> Result<DrainAnswer, Problem> {
        let call = async {
            let id = &node_id(id)?;
            let own = || async move { Ok(self.control.drain_node(id, undo).await?.into()) };
            let theirs = |leader: Client| async move { leader.drain_node(id, undo).await };
            self.change(origin, own, theirs).await
        };
        self.told(origin, "DrainNode", id, call).await
    }
}
