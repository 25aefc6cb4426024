//! The calls about access.

use crawler_proto as proto;

use super::{Client, ClientError};
use crate::CALL_DEADLINE;

impl Client {
    /// Makes an access token, which only this answer has. If the answer is lost and another master is asked, the
    /// first token stays behind, known to nobody; the list shows it.
    pub async fn issue_token(
        &self,
        message: proto::IssueTokenRequest,
    ) -> Result<proto::IssueTokenResponse, ClientError> {
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.issue_token(message).await }
        })
        .await
    }

    /// Takes access tokens back.
    pub async fn revoke_tokens(
        &self,
        message: proto::RevokeTokensRequest,
    ) -> Result<(), ClientError> {
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.revoke_tokens(message).await }
        })
        .await
    }

    /// Returns what was done and refused.
    pub async fn audit(
        &self,
        message: proto::ReadAuditRequest,
    ) -> Result<proto::ReadAuditResponse, ClientError> {
        self.read(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.read_audit(message).await }
        })
        .await
    }

    /// Tells who calls, as the master sees it.
    pub async fn caller(&self) -> Result<proto::Caller, ClientError> {
        self.read(CALL_DEADLINE, |mut calls| async move {
            calls.get_caller(proto::GetCallerRequest {}).await
        })
        .await
    }
}
