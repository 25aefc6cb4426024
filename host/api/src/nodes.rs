//! Nodes that call this process, as the certificates of their connections name them.
//!
//! A process whose listeners have a certificate of the cluster's CA knows nodes by such certificates: whoever can call it
//! trusts that CA, and could have got one. The secrets that nodes find in the store are asked for as well, and do not
//! count alone. Other processes know nodes by these secrets, and judge a certificate only if it names a node.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::problem::Problem;
use super::tls::ServerTls;
use crawler_access::ca::CertificateFacts;
use crawler_access::node::NodeName;
use crawler_access::revoked_nodes::RevokedNodes;
use crawler_master::Code;
use crawler_model::crawl::UnixMillis;
use crawler_model::node::Role;
use crawler_process::clock::{Clock, SystemClock};

/// Time after its end for which a certificate still counts: the clocks of two machines differ.
const LATE: Duration = Duration::from_secs(5 * 60);
/// Way out for a node that shows no certificate of the cluster's CA.
const JOIN: &str = "make a join token with `crawler node join-token add`, start the node with --join FILE, and name no other certificate in its [tls]";
/// Way out for a node that shows the certificate of another one.
const OWN: &str = "give each node the certificate of its own role and id";

/// Way out for a node whose certificate is over.
const RENEW: &str = "let the node renew its certificate: its log says why it has not; start it again with --join FILE if the one in its folder has expired, and compare the clocks";

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
#[derive(Clone)]
pub struct KnownNodes {
    /// Cluster that nodes have to belong to.
    cluster: OwnCluster,
    /// True if nodes have to show certificates of the cluster's CA.
    need_certificates: bool,
    /// Certificates that are void.
    revoked: RevokedNodes,
    clock: Arc<dyn Clock>,
}

impl Default for KnownNodes {
    fn default() -> Self {
        Self {
            cluster: OwnCluster::default(),
            need_certificates: false,
            revoked: RevokedNodes::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for KnownNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownNodes")
            .field("cluster", &self.cluster)
            .field("need_certificates", &self.need_certificates)
            .finish_non_exhaustive()
    }
}

impl KnownNodes {
    /// Returns the rule of a process of this cluster, whose listeners have these certificates.
    pub fn new(cluster: OwnCluster, tls: Option<&ServerTls>) -> Self {
        Self {
            cluster,
            need_certificates: tls.is_some_and(ServerTls::is_of_cluster),
            ..Self::default()
        }
    }

    /// True if nodes have to show certificates of the cluster's CA.
    pub fn need_certificates(&self) -> bool {
        self.need_certificates
    }

    /// Returns the same rule, by which certificates are void that were revoked.
    #[must_use]
    pub fn without(self, revoked: RevokedNodes) -> Self {
        Self { revoked, ..self }
    }

    /// Checks that the certificate of a connection, in DER, allows its caller to make a call that is for nodes of this
    /// role. Returns the node that it names; `None` if it names none and need not.
    pub(crate) fn check(
        &self,
        certificate: Option<&[u8]>,
        call: &str,
        role: Option<Role>,
    ) -> Result<Option<NodeName>, RefusedNode> {
        let Some((node, facts)) = named(certificate) else {
            return match self.need_certificates {
                true => Err(RefusedNode::new(None, nameless(call))),
                false => Ok(None),
            };
        };
        let checked = self.check_node(&node, call, role);
        let checked = checked.and_then(|()| self.check_end(&node, facts.not_after));
        match checked.and_then(|()| self.check_revoked(&node, facts.issued_at())) {
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

    /// Checks that a certificate has not expired since the connection was opened.
    fn check_end(&self, node: &NodeName, not_after: UnixMillis) -> Result<(), Problem> {
        let late = u64::try_from(LATE.as_millis()).unwrap_or(u64::MAX);
        match self.clock.unix_millis() > not_after.saturating_add(late) {
            true => Err(not_for(node, "it has expired", RENEW)),
            false => Ok(()),
        }
    }

    fn check_revoked(&self, node: &NodeName, issued_at: UnixMillis) -> Result<(), Problem> {
        match self.revoked.is_void(&node.id, issued_at) {
            Some(false) => Ok(()),
            Some(true) => Err(not_for(node, "it was revoked", JOIN)),
            None => {
                let why = "this process does not know yet which certificates were revoked";
                let problem = Problem::new(Code::Unavailable, why, "try again in a moment");
                Err(problem.passes())
            }
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

/// Returns the node that a certificate in DER names, and all that the certificate states.
fn named(certificate: Option<&[u8]>) -> Option<(NodeName, CertificateFacts)> {
    let facts = CertificateFacts::of_der(certificate?).ok()?;
    Some((facts.node()?, facts))
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
    use crawler_access::revoked_nodes;
    use crawler_process::task::TaskScope;
    use crawler_store::catalog::Catalog;
    use crawler_store::keys::Keys;
    use crawler_store::twin::StoreTwin;

    const CALL: &str = "GetStatus";
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Returns the rule of a process with a certificate of the cluster's CA, or with another one.
    fn rule(need_certificates: bool) -> KnownNodes {
        let cluster = OwnCluster::default();
        cluster.tell("c1");
        cluster.tell("c2");
        KnownNodes {
            cluster,
            need_certificates,
            ..KnownNodes::default()
        }
    }

    /// Clock that stands still.
    struct At(UnixMillis);

    impl Clock for At {
        fn unix_nanos(&self) -> u64 {
            self.0.saturating_mul(1_000_000)
        }

        // The certificates of tests are valid for longer than nanoseconds reach.
        fn unix_millis(&self) -> UnixMillis {
            self.0
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
    fn a_connection_does_not_outlive_the_certificate_of_its_node() {
        let shown = certificate("crawler://c1/worker/worker-1");
        let end = CertificateFacts::of_der(&shown).unwrap().not_after;
        let late = end + 5 * 60 * 1_000;
        for need_certificates in [false, true] {
            let check = |now| {
                let clock = Arc::new(At(now));
                let rule = KnownNodes {
                    clock,
                    ..rule(need_certificates)
                };
                rule.check(Some(&shown), CALL, Some(Role::Worker))
            };
            check(end).unwrap();
            check(late).unwrap();
            let problem = check(late + 1).unwrap_err().problem;
            assert_eq!(problem.code, Code::PermissionDenied);
            assert!(problem.detail.ends_with("it has expired"), "{problem}");
            assert!(problem.hint.contains("renew"), "{}", problem.hint);
        }
    }

    #[test]
    fn a_node_is_refused_for_a_moment_while_the_cluster_is_unknown() {
        let shown = certificate("crawler://c1/worker/worker-1");
        let rule = KnownNodes::default();
        let early = rule.check(Some(&shown), CALL, None).unwrap_err();
        assert!(early.problem.is_passing, "{early:?}");
    }

    #[test]
    fn a_caller_without_a_certificate_reaches_plain_processes_only() {
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

    #[tokio::test]
    async fn a_certificate_that_was_revoked_admits_nobody() {
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        let scope = TaskScope::new();
        let (revoked, task) = RevokedNodes::new(catalog.clone(), scope.stop_signal());
        let rule = rule(true).without(revoked);
        let shown = certificate("crawler://c1/worker/worker-1");
        let check = || rule.check(Some(&shown), CALL, Some(Role::Worker));
        let early = check().unwrap_err();
        assert!(early.problem.is_passing, "{early:?}");
        scope.spawn("revoked nodes", task);
        let becomes = async |code: Option<Code>| {
            let becomes = async {
                while check().err().map(|refused| refused.problem.code) != code {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(PATIENCE, becomes)
                .await
                .expect("known")
        };
        becomes(None).await;
        // The certificate was made in 1975.
        let id = "worker-1".parse().unwrap();
        revoked_nodes::revoke(&catalog, &id, 1_800_000_000_000)
            .await
            .unwrap();
        becomes(Some(Code::PermissionDenied)).await;
        let refused = check().unwrap_err();
        assert!(
            refused.problem.detail.ends_with("it was revoked"),
            "{refused:?}"
        );
        let other = certificate("crawler://c1/worker/worker-2");
        rule.check(Some(&other), CALL, Some(Role::Worker)).unwrap();
    }

    #[test]
    fn a_listener_of_the_cluster_asks_nodes_for_certificates() {
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
