//! The calls that decide whether a resource is crawled, and by whom.

use crawler_proto as proto;

use super::client::Client;
use super::forward::Origin;
use super::problem::Problem;
use super::spec::{SpecRequest, node_id};
use super::{Api, answer};
use crawler_model::resource::Resource;

impl Api {
    /// Begins a new run of the spec with these changes.
    pub(crate) async fn restart_resource(
        &self,
        origin: &Origin,
        changes: SpecRequest,
    ) -> Result<proto::Resource, Problem> {
        let changes = &changes;
        let own = || async move {
            let change = |present: &Resource| changes.changed(present);
            let name = &changes.name;
            let restarted = self
                .control
                .restart_resource(name, change, self.asked(origin));
            Ok(answer::resource(restarted.await?))
        };
        let theirs = |leader: Client| async move { leader.restart_resource(changes.clone()).await };
        let call = async {
            self.check_spec(changes)?;
            self.change(origin, own, theirs).await
        };
        self.logged(origin, "RestartResource", changes.name.as_str(), call)
            .await
    }

    /// Pauses a resource, or lets it go on.
    pub(crate) async fn pause_resource(
        &self,
        origin: &Origin,
        name: &str,
        pause: bool,
    ) -> Result<proto::Resource, Problem> {
        let call = async {
            let name = &self.resource_name(name)?;
            let own = || async move {
                let paused = self.control.pause_resource(name, pause, self.asked(origin));
                Ok(answer::resource(paused.await?))
            };
            let theirs = |leader: Client| async move { leader.pause_resource(name, pause).await };
            self.change(origin, own, theirs).await
        };
        let method = match pause {
            true => "PauseResource",
            false => "ResumeResource",
        };
        self.logged(origin, method, name, call).await
    }

    /// Lets a worker give its shards away, or take shards again.
    pub(crate) async fn drain_node(
        &self,
        origin: &Origin,
        id: &str,
        undo: bool,
    ) -> Result<proto::DrainNodeResponse, Problem> {
        let call = async {
            let id = &node_id(id)?;
            let own = || async move {
                let by = self.asked(origin).by;
                let drained = self.control.drain_node(id, undo, by).await?;
                Ok(answer::drained(drained))
            };
            let theirs = |leader: Client| async move { leader.drain_node(id, undo).await };
            self.change(origin, own, theirs).await
        };
        self.logged(origin, "DrainNode", id, call).await
    }
}
