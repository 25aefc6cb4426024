//! Nodes that call this process, as the certificates of their connections name them.
//!
//! A process whose listeners have a certificate of the cluster's CA knows nodes by such certificates: whoever can call it
//! trusts that CA, and could have got one. The secrets that nodes find in the store are asked for as well, and do not
//! count alone. Other processes know nodes by these secrets, and judge a certificate only if it names a node.

use std::sync::{Arc, OnceLock};

use super::problem::Problem;
use super::tls::ServerTls;
use crawler_access::ca::CertificateFacts;
use crawler_access::node::NodeName;
use crawler_master::Code;
use crawler_model::node::Role;

/// Way out for a node that shows no certificate of the cluster's CA.
const JOIN: &str = "make a join token with `crawler node join-token add`, start the node with --join FILE, and name no other certificate in its [tls]";
/// Way out for a node that shows the certificate of another one.
const OWN: &str = "give each node the certificate of its own role and id";

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

/// Rule by which a process knows the nodes that call it. The default knows them by secrets of the store.
#[derive(Debug, Clone, Default)]
pub struct KnownNodes {
    /// Cluster that nodes have to belong to.
    cluster: OwnCluster,
    /// True if nodes have to show certificates of the cluster's CA.
    need_certificates: bool,
}

impl KnownNodes {
    /// Returns the rule of a process of this cluster, whose listeners have these certificates.
    pub fn new(cluster: OwnCluster, tls: Option<&ServerTls>) -> Self {
        Self {
            cluster,
            need_certificates: tls.is_some_and(ServerTls::is_of_cluster),
        }
    }

    /// Checks that the certificate of a connection, in DER, allows its caller to make a call that is for nodes of this
    /// role. Returns the node that it names; `None` if it names none and need not.
    pub(crate) fn check(
        &self,
        certificate: Option<&[u8]>,
        call: &str,
        role: Option<Role>,
    ) -> Result<Option<NodeName>, RefusedNode> {
        let Some(node) = named(certificate) else {
            return match self.need_certificates {
                true => Err(RefusedNode::new(None, nameless(call))),
                false => Ok(None),
            };
        };
        match self.check_node(&node, call, role) {
            Ok(()) => Ok(Some(node)),
            Err(problem) => Err(RefusedNode::new(Some(node), problem)),
        }
    }

    fn check_node(&self, node: &NodeName, call: &str, role: Option<Role>) -> Result<(), Problem> {
        let Some(cluster) = self.cluster.id() else {
            let why = "this process does not belong to the cluster yet";
            let problem = Problem::new(Code::Unavailable, why, "try again in a moment");
            return Err(problem.passes());
        };
        if node.cluster != cluster {
            let hint = "show a certificate that was issued for this cluster";
            return Err(not_for(node, "a node of another cluster", hint));
        }
        match role.filter(|role| *role != node.role) {
            Some(role) => Err(not_for(node, &format!("{call} is for a {role}"), OWN)),
            None => Ok(()),
        }
    }
}

/// Node whose call is refused.
#[derive(Debug)]
pub(crate) struct RefusedNode {
    /// Node that the certificate names; `None` if it names none.
    pub(crate) node: Option<NodeName>,
    /// Reason, as the caller is told.
    pub(crate) problem: Box<Problem>,
}

impl RefusedNode {
    fn new(node: Option<NodeName>, problem: Problem) -> Self {
        Self {
            node,
            problem: Box::new(problem),
        }
    }
}

/// Returns the refusal of a node that calls in the name of another one.
pub(crate) fn calls_as(node: &NodeName, sender: &str) -> Problem {
    not_for(node, &format!("it calls as {sender}"), OWN)
}

/// Returns the node that a certificate in DER names.
fn named(certificate: Option<&[u8]>) -> Option<NodeName> {
    CertificateFacts::of_der(certificate?).ok()?.node()
}

fn nameless(call: &str) -> Problem {
    Problem::new(
        Code::Unauthenticated,
        format!(
            "{call} is for nodes with a certificate of the cluster's CA, and this connection shows none"
        ),
        JOIN,
    )
}

fn not_for(node: &NodeName, why: &str, hint: &str) -> Problem {
    let uri = node.uri();
    let detail = format!("the certificate of the caller is that of {uri}: {why}");
    Problem::new(Code::PermissionDenied, detail, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::{Authority, Files};

    const CALL: &str = "GetStatus";

    /// Returns the rule of a process with a certificate of the cluster's CA, or with another one.
    fn rule(need_certificates: bool) -> KnownNodes {
        let cluster = OwnCluster::default();
        cluster.tell("c1");
        cluster.tell("c2");
        KnownNodes {
            cluster,
            need_certificates,
        }
    }

    fn certificate(uri: &str) -> Vec<u8> {
        Authority::new("ca").issue_to_node(uri).der
    }

    #[track_caller]
    fn check(uri: &str, role: Role, refusal: Option<&str>) {
        let shown = certificate(uri);
        for need_certificates in [false, true] {
            let rule = rule(need_certificates);
            let checked = rule.check(Some(&shown), CALL, Some(role));
            let Some(why) = refusal else {
                assert_eq!(checked.unwrap(), NodeName::of_uri(uri));
                continue;
            };
            let refused = checked.unwrap_err();
            assert_eq!(refused.node, NodeName::of_uri(uri));
            assert_eq!(refused.problem.code, Code::PermissionDenied);
            let detail = format!("the certificate of the caller is that of {uri}: {why}");
            assert_eq!(refused.problem.detail, detail);
        }
    }

    #[test]
    fn a_node_makes_the_calls_of_its_role_in_its_cluster() {
        let (master, worker) = (
            "crawler://c1/master/master-1",
            "crawler://c1/worker/worker-1",
        );
        check(master, Role::Master, None);
        check(worker, Role::Worker, None);
        check(worker, Role::Master, Some("GetStatus is for a master"));
        check(master, Role::Worker, Some("GetStatus is for a worker"));
        let other = "crawler://c2/worker/worker-1";
        check(other, Role::Worker, Some("a node of another cluster"));
    }

    #[test]
    fn a_node_is_refused_for_a_moment_while_the_cluster_is_unknown() {
        let shown = certificate("crawler://c1/worker/worker-1");
        let rule = KnownNodes::default();
        let early = rule.check(Some(&shown), CALL, None).unwrap_err();
        assert!(early.problem.is_passing, "{early:?}");
    }

    #[test]
    fn without_a_certificate_of_a_node_only_a_process_without_one_is_called() {
        let nameless = certificate("https://a.test/");
        for shown in [None, Some(nameless.as_slice())] {
            let checked = rule(false).check(shown, CALL, Some(Role::Master));
            assert_eq!(checked.unwrap(), None);
            let refused = rule(true).check(shown, CALL, Some(Role::Master));
            let problem = refused.unwrap_err().problem;
            assert_eq!(problem.code, Code::Unauthenticated);
            assert!(problem.detail.starts_with("GetStatus is for nodes"));
            assert!(problem.hint.contains("--join"), "{}", problem.hint);
        }
    }

    #[test]
    fn a_listener_with_a_certificate_of_the_cluster_asks_nodes_for_theirs() {
        let (files, authority) = (Files::new(), Authority::new("ca"));
        let joined = files.node_server(&authority);
        for (tls, needs) in [
            (None, false),
            (Some(files.server(&authority)), false),
            (Some(files.mutual_server(&authority)), false),
            (Some(joined), true),
        ] {
            let rule = KnownNodes::new(OwnCluster::default(), tls.as_ref());
            assert_eq!(rule.need_certificates, needs);
        }
    }
}
