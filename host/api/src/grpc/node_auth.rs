//! Checks that a node which calls a worker is the one that its certificate names, and that the call is one of its role.
//!
//! [`KnownNodes`] tells which callers need such a certificate. Those that need none and show none are judged by the
//! token of the call alone.

use hyper::Request;

use super::refusals::Refusals;
use crate::Peer;
use crate::nodes::{KnownNodes, calls_as};
use crate::problem::Problem;
use crawler_access::node::NodeName;
use crawler_model::id::NodeId;
use crawler_model::node::Role;

/// Calls of a worker, each with the role of the nodes that make it, in the order of the .proto file.
const CALLS: [(&str, Role); 4] = [
    ("GetStatus", Role::Master),
    ("ReadLogs", Role::Master),
    ("ApplyLinks", Role::Worker),
    ("TakeTurns", Role::Worker),
];
/// Word for a call that is none of these. The service itself tells that it is not known.
const UNKNOWN: &str = "an unknown call";

/// Check of the nodes that call a worker.
#[derive(Clone)]
pub(super) struct NodeAuth {
    pub(super) nodes: KnownNodes,
    pub(super) refusals: Refusals,
}

/// Node that makes a call, with what a refusal tells of it. It is an extension of the request.
#[derive(Debug, Clone)]
pub(super) struct CallingNode {
    name: NodeName,
    peer: Peer,
}

impl CallingNode {
    /// Returns the id of the node.
    pub(super) fn id(&self) -> &NodeId {
        &self.name.id
    }
}

impl NodeAuth {
    /// Returns the node that makes a call. `None` if no certificate tells it, and none has to.
    pub(super) fn caller<B>(&self, request: &Request<B>) -> Result<Option<CallingNode>, Problem> {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.cloned().unwrap_or_default();
        let name = request.uri().path().rsplit('/').next().unwrap_or_default();
        let known = CALLS.into_iter().find(|(call, _)| *call == name);
        let (call, role) = known.map_or((UNKNOWN, None), |(call, role)| (call, Some(role)));
        match self.nodes.check(peer.certificate.as_deref(), call, role) {
            Ok(name) => Ok(name.map(|name| CallingNode { name, peer })),
            // The node is as it should be, and this process is not ready.
            Err(refused) if refused.problem.is_passing => Err(*refused.problem),
            Err(refused) => {
                let caller = (refused.node.as_ref(), &peer);
                Err(self.refusals.refused(call, caller, *refused.problem))
            }
        }
    }

    /// Checks that a message which names its sender comes from that node.
    pub(super) fn check_sender(
        &self,
        call: &'static str,
        node: Option<&CallingNode>,
        sender: &NodeId,
    ) -> Result<(), Problem> {
        let Some(node) = node.filter(|node| node.name.id != *sender) else {
            return Ok(());
        };
        let problem = calls_as(&node.name, sender.as_str());
        Err(self.refused(call, node, problem))
    }

    /// Tells that a call of this node was refused, and returns the reason.
    pub(super) fn refused(
        &self,
        call: &'static str,
        node: &CallingNode,
        problem: Problem,
    ) -> Problem {
        let caller = (Some(&node.name), &node.peer);
        self.refusals.refused(call, caller, problem)
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
}
