//! The calls about join tokens, and those by which a node gets its certificates.

use std::collections::BTreeMap;

use crawler_proto as proto;

use super::{Client, ClientError};
use crate::CALL_DEADLINE;
use crate::tls::ClientTls;
use crawler_access::joins::JoinToken;
use crawler_access::node::Host;
use crawler_model::id::NodeId;
use crawler_model::node::Role;

/// Node that joins a cluster.
#[derive(Debug, Clone)]
pub struct JoinRequest {
    /// Role of the node.
    pub role: Role,
    /// Id of the node.
    pub id: NodeId,
    /// Labels of the node.
    pub labels: BTreeMap<String, String>,
    /// Host under which others reach the node.
    pub host: Host,
    /// Certificate signing request, in PEM.
    pub request: String,
}

/// Certificate that a node got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCertificate {
    /// The certificate and that of the CA, in PEM.
    pub chain: String,
    /// Certificate of the CA, in PEM.
    pub ca: String,
}

impl From<proto::NodeCertificate> for NodeCertificate {
    fn from(message: proto::NodeCertificate) -> Self {
        let proto::NodeCertificate {
            certificate, ca, ..
        } = message;
        Self {
            chain: certificate,
            ca,
        }
    }
}

impl Client {
    /// Creates a client of the master at this URL for a node that has no certificate yet. It trusts masters with a
    /// certificate of the CA that the token names.
    pub fn joining(url: &str, token: &JoinToken) -> Result<Self, ClientError> {
        Self::lazy(url, &ClientTls::joining(token.ca()))
    }

    /// Asks for the first certificate of a node.
    pub async fn join_cluster(
        &self,
        token: &JoinToken,
        node: JoinRequest,
    ) -> Result<NodeCertificate, ClientError> {
        let message = proto::JoinClusterRequest {
            token: token.expose(),
            role: node.role.to_string(),
            id: node.id.to_string(),
            labels: node.labels,
            host: node.host.to_string(),
            request: node.request,
        };
        let joined = self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.join_cluster(message).await }
        });
        Ok(joined.await?.into())
    }

    /// Asks for the next certificate of the node whose present one this client shows.
    pub async fn renew_certificate(&self, request: String) -> Result<NodeCertificate, ClientError> {
        let message = proto::RenewCertificateRequest { request };
        let renewed = self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.renew_certificate(message).await }
        });
        Ok(renewed.await?.into())
    }

    /// Makes a join token, which only this answer has. If the answer is lost and another master is asked, the first
    /// token stays behind, known to nobody; the list shows it.
    pub async fn issue_join_token(
        &self,
        message: proto::IssueJoinTokenRequest,
    ) -> Result<proto::IssueJoinTokenResponse, ClientError> {
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.issue_join_token(message).await }
        })
        .await
    }

    /// Lists the join tokens, without their secrets.
    pub async fn join_tokens(&self) -> Result<proto::ListJoinTokensResponse, ClientError> {
        self.read(CALL_DEADLINE, |mut calls| async move {
            calls
                .list_join_tokens(proto::ListJoinTokensRequest {})
                .await
        })
        .await
    }

    /// Takes a join token back.
    pub async fn revoke_join_token(&self, id: String) -> Result<(), ClientError> {
        let message = proto::RevokeJoinTokenRequest { id };
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.revoke_join_token(message).await }
        })
        .await
    }

    /// Makes the certificates of a node void that it has now.
    pub async fn revoke_node(&self, id: &NodeId) -> Result<(), ClientError> {
        let message = proto::RevokeNodeRequest { id: id.to_string() };
        self.change(CALL_DEADLINE, |mut calls| {
            let message = message.clone();
            async move { calls.revoke_node(message).await }
        })
        .await
    }
}
