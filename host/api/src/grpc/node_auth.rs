//! Checks that a node which calls a worker is the one that its certificate names, and that the call is one of its role.
//!
//! A certificate that names no node is judged by the token of the call alone, and so is a caller without a certificate.

use std::sync::{Arc, OnceLock};

use hyper::Request;

use crate::Peer;
use crate::problem::Problem;
use crawler_access::audit::{AuditEntry, AuditLog};
use crawler_access::ca::CertificateFacts;
use crawler_access::node::NodeName;
use crawler_master::Code;
use crawler_model::id::NodeId;
use crawler_model::node::Role;

/// Calls of a worker, each with the role of the nodes that make it, in the order of the .proto file.
const CALLS: [(&str, Role); 4] = [
    ("GetStatus", Role::Master),
    ("ReadLogs", Role::Master),
    ("ApplyLinks", Role::Worker),
    ("TakeTurns", Role::Worker),
];

/// Id of the cluster of a process, once the process has found it in the store. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct OwnCluster(Arc<OnceLock<String>>);

impl OwnCluster {
    /// Tells the id. It never changes: a further call has no effect.
    pub fn tell(&self, id: &str) {
        self.0.get_or_init(|| id.to_owned());
    }

    fn id(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// Check of the nodes that call a worker.
#[derive(Clone)]
pub(super) struct NodeAuth {
    /// Cluster that a node has to belong to.
    pub(super) cluster: OwnCluster,
    /// Takes refused calls; `None` if this process keeps no record.
    pub(super) audit: Option<AuditLog>,
}

/// Node that makes a call, with what a refusal tells of it. It is an extension of the request.
#[derive(Debug, Clone)]
pub(super) struct CallingNode {
    name: NodeName,
    peer: Peer,
}

impl NodeAuth {
    /// Returns the node that makes a call. `None` if no certificate tells it.
    pub(super) fn caller<B>(&self, request: &Request<B>) -> Result<Option<CallingNode>, Problem> {
        let Some(peer) = request.extensions().get::<Peer>() else {
            return Ok(None);
        };
        let facts = peer.certificate.as_deref().map(CertificateFacts::of_der);
        let Some(name) = facts.and_then(Result::ok).and_then(|facts| facts.node()) else {
            return Ok(None);
        };
        let node = CallingNode {
            name,
            peer: peer.clone(),
        };
        let call = request.uri().path().rsplit('/').next().unwrap_or_default();
        match self.check(call, &node.name) {
            Ok(()) => Ok(Some(node)),
            Err(problem) => Err(self.refused(call, &node, problem)),
        }
    }

    fn check(&self, call: &str, node: &NodeName) -> Result<(), Problem> {
        let Some(cluster) = self.cluster.id() else {
            let why = "this worker does not belong to the cluster yet";
            let problem = Problem::new(Code::Unavailable, why, "try again in a moment");
            return Err(problem.passes());
        };
        let refused = |why: String, hint: &str| {
            let uri = node.uri();
            let detail = format!("the certificate of the caller is that of {uri}: {why}");
            Err(Problem::new(Code::PermissionDenied, detail, hint))
        };
        if node.cluster != cluster {
            let hint = "show a certificate that was issued for this cluster";
            return refused("a node of another cluster".to_owned(), hint);
        }
        match CALLS.iter().find(|(name, _)| *name == call) {
            Some((_, role)) if *role != node.role => refused(
                format!("{call} is for a {role}"),
                "give each node the certificate of its own role and id",
            ),
            // The service itself tells that a call is not known.
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that a message which names its sender comes from that node.
    pub(super) fn check_sender(
        &self,
        call: &str,
        node: Option<&CallingNode>,
        sender: &NodeId,
    ) -> Result<(), Problem> {
        let Some(node) = node.filter(|node| node.name.id != *sender) else {
            return Ok(());
        };
        let uri = node.name.uri();
        let problem = Problem::new(
            Code::PermissionDenied,
            format!("the certificate of the caller is that of {uri}: it calls as {sender}"),
            "give each node the certificate of its own role and id",
        );
        Err(self.refused(call, node, problem))
    }

    /// Records a refusal, and returns it.
    fn refused(&self, call: &str, node: &CallingNode, problem: Problem) -> Problem {
        if problem.code != Code::PermissionDenied {
            return problem;
        }
        let uri = node.name.uri();
        match &self.audit {
            Some(audit) => audit.record_refused(AuditEntry {
                // No subject of a token has blanks.
                subject: format!("a node: {uri}"),
                address: node.peer.address,
                method: call.to_owned(),
                result: problem.code_name().to_owned(),
                detail: problem.detail.clone(),
                ..AuditEntry::default()
            }),
            None => tracing::warn!(
                node = uri,
                caller = node.peer.address.map(tracing::field::display),
                call,
                reason = problem.detail,
                "refused a call of a node"
            ),
        }
        problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_proto as proto;
    use prost::Message as _;

    #[test]
    fn every_call_of_a_worker_has_a_role() {
        let set = prost_types::FileDescriptorSet::decode(proto::FILE_DESCRIPTOR_SET).unwrap();
        let mut services = set.file.iter().flat_map(|file| &file.service);
        let worker = services.find(|service| service.name() == "CrawlerWorker");
        let methods = &worker.unwrap().method;
        let declared: Vec<_> = methods.iter().map(|method| method.name()).collect();
        assert_eq!(CALLS.map(|(name, _)| name).to_vec(), declared);
    }

    #[track_caller]
    fn check(call: &str, uri: &str, refusal: Option<&str>) {
        let auth = NodeAuth {
            cluster: OwnCluster::default(),
            audit: None,
        };
        let node = NodeName::of_uri(uri).unwrap();
        let early = auth.check(call, &node).unwrap_err();
        assert!(early.is_passing, "{early}");
        auth.cluster.tell("c1");
        auth.cluster.tell("c2");
        let checked = auth.check(call, &node);
        let Some(why) = refusal else {
            return checked.unwrap();
        };
        let problem = checked.unwrap_err();
        assert_eq!(problem.code, Code::PermissionDenied);
        let detail = format!("the certificate of the caller is that of {uri}: {why}");
        assert_eq!(problem.detail, detail);
    }

    #[test]
    fn a_node_makes_the_calls_of_its_role_in_its_cluster() {
        let (master, worker) = (
            "crawler://c1/master/master-1",
            "crawler://c1/worker/worker-1",
        );
        for call in ["GetStatus", "ReadLogs", "Unknown"] {
            check(call, master, None);
        }
        for call in ["ApplyLinks", "TakeTurns", "Unknown"] {
            check(call, worker, None);
        }
        check("GetStatus", worker, Some("GetStatus is for a master"));
        check("TakeTurns", master, Some("TakeTurns is for a worker"));
        let other = "crawler://c2/worker/worker-1";
        check("TakeTurns", other, Some("a node of another cluster"));
    }
}
