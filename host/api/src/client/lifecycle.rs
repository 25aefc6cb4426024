//! The calls that decide whether a resource is crawled, and by whom.

use crawler_proto as proto;

use super::{CALL_DEADLINE, Client, ClientError};
use crate::convert;
use crate::spec::SpecRequest;
use crawler_model::id::{NodeId, ResourceName};

impl Client {
    /// Begins a new run of the spec with these changes.
    pub async fn restart_resource(
        &self,
        changes: SpecRequest,
    ) -> Result<proto::Resource, ClientError> {
        let message = proto::RestartRequest {
            name: changes.name.to_string(),
            changes: Some(convert::spec_message(changes)),
        };
        let call = self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.restart_resource(message).await }
        });
        call.await
    }

    /// Pauses a resource, which takes it from its workers, or lets it go on where it was.
    pub async fn pause_resource(
        &self,
        name: &ResourceName,
        pause: bool,
    ) -> Result<proto::Resource, ClientError> {
        let name = name.to_string();
        let message = proto::ResourceRequest { name };
        let call = self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move {
                match pause {
                    true => calls.pause_resource(message).await,
                    false => calls.resume_resource(message).await,
                }
            }
        });
        call.await
    }

    /// Drains a worker, which gives its shards to others, or lets it take shards again.
    pub async fn drain_node(
        &self,
        id: &NodeId,
        undo: bool,
    ) -> Result<proto::DrainNodeResponse, ClientError> {
        let id = id.to_string();
        let message = proto::DrainNodeRequest { id, undo };
        let call = self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.drain_node(message).await }
        });
        call.await
    }
}
