//! The calls by which nodes get certificates: those about join tokens, joining, and renewal. Any master carries them
//! out.
//!
//! A node that joins proves itself by a join token, and one that renews by the certificate of its connection. Both are
//! judged here; nothing of what a node asks for gets into a certificate without.

use std::sync::Arc;
use std::time::Duration;

use crawler_proto as proto;

use super::problem::Problem;
use super::spec::{invalid, node_id};
use super::{Api, CALL_DEADLINE};
use crawler_access::ca::{CaError, CertificateFacts, ClusterCa, Issued, NodeRequest};
use crawler_access::joins::{self, Candidate, JoinError, JoinRecord, JoinToken, NewJoinToken};
use crawler_access::node::{Host, NodeName, NodePattern, parse_role};
use crawler_access::revoked_nodes::{self, RevokeNodeError};
use crawler_master::Code;
use crawler_model::access::TokenId;
use crawler_model::crawl::UnixMillis;
use crawler_model::node::Role;
use crawler_process::telemetry::chain;

impl Api {
    /// Makes a join token.
    pub(crate) async fn issue_join_token(
        &self,
        request: proto::IssueJoinTokenRequest,
    ) -> Result<proto::IssueJoinTokenResponse, Problem> {
        let name = request.nodes.clone();
        let call = async {
            let new = new_token(request, self.caller.name())?;
            let ca = self.cluster_ca().await?;
            let now = self.parts.clock.unix_millis();
            let issued = joins::issue(&self.parts.catalog, ca.digest(), new, now).await;
            let (token, record) = issued.map_err(refused)?;
            Ok::<_, Problem>(proto::IssueJoinTokenResponse {
                token: token.expose(),
                record: Some(message(token.id(), record)),
            })
        };
        let call = self.within(CALL_DEADLINE, call);
        let issued = self.recorded("IssueJoinToken", &name, call, |issued| {
            let record = issued.record.clone().unwrap_or_default();
            format!(
                "join token {}: {}, {} uses",
                record.id, record.nodes, record.uses_left
            )
        });
        issued.await
    }

    /// Lists the join tokens.
    pub(crate) async fn join_tokens(&self) -> Result<proto::ListJoinTokensResponse, Problem> {
        let call = async {
            let listed = joins::list(&self.parts.catalog).await;
            listed.map_err(|error| refused(error.into()))
        };
        let tokens = self.within(CALL_DEADLINE, call).await?.into_iter();
        Ok(proto::ListJoinTokensResponse {
            tokens: tokens.map(|(id, record)| message(&id, record)).collect(),
        })
    }

    /// Takes a join token back.
    pub(crate) async fn revoke_join_token(&self, id: &str) -> Result<(), Problem> {
        let call = async {
            let id: TokenId = id.parse().map_err(|e| invalid("id", e))?;
            let revoked = joins::revoke(&self.parts.catalog, &id).await;
            revoked.map_err(refused)
        };
        let call = self.within(CALL_DEADLINE, call);
        let revoked = self.recorded("RevokeJoinToken", id, call, |record| {
            format!("the join token of {}", record.nodes)
        });
        revoked.await.map(drop)
    }

    /// Issues the first certificate of a node that shows a join token.
    pub(crate) async fn join_cluster(
        &self,
        request: proto::JoinClusterRequest,
    ) -> Result<proto::NodeCertificate, Problem> {
        let name = request.id.clone();
        let call = async {
            let ca = self.cluster_ca().await?;
            let now = self.parts.clock.unix_millis();
            let Joining {
                token,
                candidate,
                host,
                request,
            } = joining(request)?;
            let catalog = &self.parts.catalog;
            let redeemed = joins::redeem(catalog, ca.digest(), &token, &candidate, now).await;
            redeemed.map_err(refused)?;
            let node = NodeName {
                cluster: ca.cluster().to_owned(),
                role: candidate.role,
                id: candidate.id,
            };
            let now = self.issue_time(&node, now).await?;
            let issued = ca.issue(&node, &[host], &request, now);
            let issued = issued.map_err(|error| unissued(&error))?;
            let by = format!("join token {}", token.id());
            Ok::<_, Problem>((certificate(&issued, ca), said(&node, &issued, &by)))
        };
        let call = self.within(CALL_DEADLINE, call);
        let joined = self.recorded("JoinCluster", &name, call, |(_, said)| said.clone());
        joined.await.map(|(certificate, _)| certificate)
    }

    /// Issues the next certificate of the node that has shown this one, in DER.
    pub(crate) async fn renew_certificate(
        &self,
        shown: Option<Arc<[u8]>>,
        request: proto::RenewCertificateRequest,
    ) -> Result<proto::NodeCertificate, Problem> {
        let shown_node = shown
            .as_deref()
            .and_then(|shown| CertificateFacts::of_der(shown).ok()?.node());
        let name = shown_node.as_ref().map(|node| node.id.to_string());
        let call = async {
            let (Some(shown), Some(node)) = (&shown, &shown_node) else {
                return Err(Problem::new(
                    Code::Unauthenticated,
                    "this connection shows no certificate of a node",
                    "renew a certificate over a connection that shows it, and before it expires",
                ));
            };
            let ca = self.cluster_ca().await?;
            let now = self.parts.clock.unix_millis();
            // The listener may trust other CAs too.
            let facts = ca.check_issued(shown, now);
            let facts = facts.map_err(|error| unissued(&error))?;
            if node.cluster != ca.cluster() {
                return Err(unissued(&CaError::Foreign));
            }
            let void_before = self.void_before(node).await?;
            if facts.issued_at() < void_before {
                let detail = format!("the certificate of {} was revoked", node.id);
                return Err(Problem::new(Code::PermissionDenied, detail, REJOIN));
            }
            let request = NodeRequest::parse(&request.request);
            let request = request.map_err(|e| Problem::from(invalid("request", e)))?;
            let named = request.check_hosts(&facts.hosts);
            named.map_err(|e| Problem::new(Code::PermissionDenied, e.to_string(), REJOIN))?;
            if request.key_digest() != facts.key {
                return Err(Problem::new(
                    Code::PermissionDenied,
                    "the request is not for the key of the present certificate",
                    REJOIN,
                ));
            }
            let issued = ca.issue(node, &facts.hosts, &request, now);
            let issued = issued.map_err(|error| unissued(&error))?;
            let said = said(node, &issued, "its certificate");
            Ok((certificate(&issued, ca), said))
        };
        let call = self.within(CALL_DEADLINE, call);
        let name = name.unwrap_or_default();
        let renewed = self.recorded("RenewCertificate", &name, call, |(_, said)| said.clone());
        renewed.await.map(|(certificate, _)| certificate)
    }

    /// Makes the certificates of a node void that it has now.
    pub(crate) async fn revoke_node(&self, id: &str) -> Result<(), Problem> {
        let call = async {
            let id = node_id(id)?;
            let now = self.parts.clock.unix_millis();
            let revoked = revoked_nodes::revoke(&self.parts.catalog, &id, now).await;
            revoked.map_err(|error| unrevoked(&error))
        };
        let call = self.within(CALL_DEADLINE, call);
        let revoked = self.recorded("RevokeNode", id, call, |at| {
            format!("certificates from before {at}")
        });
        revoked.await.map(drop)
    }

    /// Returns the time before which the certificates of a node are void.
    async fn void_before(&self, node: &NodeName) -> Result<UnixMillis, Problem> {
        let read = revoked_nodes::void_before(&self.parts.catalog, &node.id).await;
        read.map_err(|error| refused(error.into()))
    }

    /// Returns the time at which a certificate of a node is issued: now, unless it would be void at once.
    async fn issue_time(&self, node: &NodeName, now: UnixMillis) -> Result<UnixMillis, Problem> {
        Ok(self.void_before(node).await?.max(now))
    }

    async fn cluster_ca(&self) -> Result<&ClusterCa, Problem> {
        let ca = self.parts.authority.ca().await;
        ca.map_err(|error| unissued(&error))
    }
}

/// Characters of a role that is none, as an error shows them.
const ROLE_SHOWN: usize = 32;
/// Way out for a node whose certificate is of no use any more.
const REJOIN: &str =
    "make a join token with `crawler node join-token add`, and start the node with --join FILE";

/// Message of a node that joins, parsed.
struct Joining {
    token: JoinToken,
    candidate: Candidate,
    host: Host,
    request: NodeRequest,
}

fn joining(message: proto::JoinClusterRequest) -> Result<Joining, Problem> {
    let proto::JoinClusterRequest {
        token,
        role,
        id,
        labels,
        host,
        request,
    } = message;
    let token: JoinToken = token.trim().parse().map_err(|e| invalid("token", e))?;
    let host: Host = host.parse().map_err(|e| invalid("host", e))?;
    let request = NodeRequest::parse(&request).map_err(|e| invalid("request", e))?;
    let named = request.check_hosts(std::slice::from_ref(&host));
    named.map_err(|e| Problem::new(Code::PermissionDenied, e.to_string(), ""))?;
    let candidate = Candidate {
        role: role_of(&role)?,
        id: id.parse().map_err(|e| invalid("id", e))?,
        labels,
        key: request.key_digest(),
    };
    Ok(Joining {
        token,
        candidate,
        host,
        request,
    })
}

fn new_token(
    request: proto::IssueJoinTokenRequest,
    issued_by: &str,
) -> Result<NewJoinToken, Problem> {
    let proto::IssueJoinTokenRequest {
        role,
        nodes,
        labels,
        uses,
        valid_for_ms,
    } = request;
    let role = role_of(&role)?;
    Ok(NewJoinToken {
        role,
        nodes: match nodes.as_str() {
            "" => NodePattern::of_role(role),
            nodes => nodes.parse().map_err(|e| invalid("nodes", e))?,
        },
        labels,
        uses: if uses == 0 { 1 } else { uses },
        valid_for: match valid_for_ms {
            0 => joins::DEFAULT_VALIDITY,
            millis => Duration::from_millis(millis),
        },
        issued_by: issued_by.to_owned(),
    })
}

fn role_of(word: &str) -> Result<Role, Problem> {
    let unknown = || {
        let word: String = word.chars().take(ROLE_SHOWN).collect();
        let detail = format!("the role of a node is master or worker, not {word:?}");
        Problem::invalid(detail, "")
    };
    parse_role(word).ok_or_else(unknown)
}

fn certificate(issued: &Issued, ca: &ClusterCa) -> proto::NodeCertificate {
    proto::NodeCertificate {
        certificate: issued.chain.clone(),
        ca: ca.pem().to_owned(),
        expires_at: issued.not_after,
    }
}

/// Returns what the record of who did what says of a certificate.
fn said(node: &NodeName, issued: &Issued, by: &str) -> String {
    let Issued {
        serial, not_after, ..
    } = issued;
    let role = node.role;
    format!("certificate {serial} of a {role} until {not_after}, by {by}")
}

fn message(id: &TokenId, record: JoinRecord) -> proto::JoinToken {
    let joined = record.joined.iter().map(|joined| joined.id.to_string());
    proto::JoinToken {
        id: id.to_string(),
        role: record.role.to_string(),
        nodes: record.nodes.to_string(),
        joined: joined.collect(),
        labels: record.labels,
        uses_left: record.uses_left,
        issued_at: record.issued_at,
        expires_at: record.expires_at,
        issued_by: record.issued_by,
    }
}

fn refused(error: JoinError) -> Problem {
    let (code, hint) = match &error {
        JoinError::Invalid
        | JoinError::OtherCluster(_)
        | JoinError::Expired(_)
        | JoinError::Revoked { .. }
        | JoinError::Used(_) => (
            Code::PermissionDenied,
            "make another one with `crawler node join-token add`",
        ),
        JoinError::Role { .. } | JoinError::Id { .. } | JoinError::Label { .. } => (
            Code::PermissionDenied,
            "make one for this node with `crawler node join-token add`",
        ),
        JoinError::Validity | JoinError::Uses | JoinError::Labels(_) => (Code::InvalidArgument, ""),
        JoinError::Full => (Code::FailedPrecondition, ""),
        JoinError::NoToken(_) => (Code::NotFound, "`crawler node join-token list` shows them"),
        JoinError::Store(_) => (Code::Unavailable, "try again"),
    };
    Problem::new(code, chain(&error), hint)
}

fn unrevoked(error: &RevokeNodeError) -> Problem {
    let (code, hint) = match error {
        RevokeNodeError::Full => (
            Code::FailedPrecondition,
            "make a new CA: Certificates of nodes, in the book",
        ),
        RevokeNodeError::Store(_) => (Code::Unavailable, "try again"),
    };
    Problem::new(code, chain(error), hint)
}

fn unissued(error: &CaError) -> Problem {
    let code = match error {
        CaError::Store(_) => Code::Unavailable,
        CaError::Foreign | CaError::Expired | CaError::Unreadable { .. } => Code::PermissionDenied,
        CaError::Making(_) => Code::Internal,
        CaError::NotConfigured
        | CaError::ShortKey { .. }
        | CaError::Sealed
        | CaError::OtherKey
        | CaError::NoCa
        | CaError::CaExpired => Code::FailedPrecondition,
    };
    Problem::new(code, chain(error), error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_access::ca::NodeKey;

    fn request(host: &str) -> proto::JoinClusterRequest {
        let key = NodeKey::generate().unwrap();
        let request = key.request(&"worker-1".parse().unwrap(), &"10.0.0.1".parse().unwrap());
        proto::JoinClusterRequest {
            token: JoinToken::random(crawler_model::id::Digest::of(b"ca")).expose(),
            role: "worker".to_owned(),
            id: "worker-1".to_owned(),
            labels: [].into(),
            host: host.to_owned(),
            request: request.unwrap(),
        }
    }

    #[test]
    fn a_node_asks_for_its_own_host_only() {
        joining(request("10.0.0.1")).ok().unwrap();
        let refused = joining(request("10.0.0.2")).err().unwrap();
        assert_eq!(refused.code, Code::PermissionDenied);
        assert!(refused.detail.contains("10.0.0.1"), "{}", refused.detail);
    }

    #[test]
    fn a_faulty_message_is_refused_and_its_token_not_quoted() {
        let token = request("10.0.0.1").token;
        let wrong = proto::JoinClusterRequest {
            token: format!("{token}0"),
            ..request("10.0.0.1")
        };
        let refused = joining(wrong).err().unwrap();
        assert!(!refused.detail.contains(&token), "{}", refused.detail);
        for wrong in [
            proto::JoinClusterRequest {
                role: "leader".to_owned(),
                ..request("10.0.0.1")
            },
            proto::JoinClusterRequest {
                id: "a b".to_owned(),
                ..request("10.0.0.1")
            },
            proto::JoinClusterRequest {
                request: String::new(),
                ..request("10.0.0.1")
            },
        ] {
            let refused = joining(wrong).err().unwrap();
            assert_eq!(refused.code, Code::InvalidArgument, "{}", refused.detail);
        }
    }

    #[test]
    fn a_master_without_a_ca_says_what_to_configure() {
        let problem = unissued(&CaError::NotConfigured);
        assert_eq!(problem.code, Code::FailedPrecondition);
        assert!(problem.hint.contains("[cluster]"), "{}", problem.hint);
    }

    #[test]
    fn a_token_that_is_asked_for_has_defaults() {
        let request = proto::IssueJoinTokenRequest {
            role: "master".to_owned(),
            ..proto::IssueJoinTokenRequest::default()
        };
        let new = new_token(request, "alice").unwrap();
        assert_eq!(new.nodes.to_string(), "master-*");
        assert_eq!(new.uses, 1);
        assert_eq!(new.valid_for, joins::DEFAULT_VALIDITY);
    }
}
