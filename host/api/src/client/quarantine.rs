//! The calls about held items.

use crawler_proto as proto;

use super::{CALL_DEADLINE, Client, ClientError};
use crawler_master::control::quarantine::HoldId;
use crawler_model::drift::Action;
use crawler_model::id::ResourceName;

impl Client {
    /// Returns the holds of a resource.
    pub async fn quarantine(&self, name: &ResourceName) -> Result<Vec<proto::Hold>, ClientError> {
        let name = name.to_string();
        let message = proto::ResourceRequest { name };
        let answer = self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.list_quarantine(message).await }
        });
        Ok(answer.await?.holds)
    }

    /// Returns part of the items of a hold. An empty token is the beginning of the list.
    pub async fn held_items(
        &self,
        name: &ResourceName,
        hold: HoldId,
        page_size: u32,
        page_token: String,
    ) -> Result<proto::ReadQuarantineResponse, ClientError> {
        let message = proto::ReadQuarantineRequest {
            name: name.to_string(),
            hold: hold.to_string(),
            page_size,
            page_token,
        };
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.read_quarantine(message).await }
        })
        .await
    }

    /// Releases or drops the items of one hold, or of all that there are now.
    pub async fn decide_quarantine(
        &self,
        name: &ResourceName,
        action: Action,
        hold: Option<HoldId>,
    ) -> Result<proto::DecideQuarantineResponse, ClientError> {
        let message = proto::DecideQuarantineRequest {
            name: name.to_string(),
            action: action.to_string(),
            hold: hold.map(|hold| hold.to_string()).unwrap_or_default(),
        };
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.decide_quarantine(message).await }
        })
        .await
    }
}
