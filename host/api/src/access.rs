//! Access to the calls: whether a caller has to show a token, and what it may do.
//!
//! Both listeners ask `Access::caller` before anything of a call's body is read. It finds the right that the call
//! needs in the table of all calls (`methods`); a call that is not there is refused. Which names a caller may use
//! is checked where the names are known, by `Caller::check_name`.

use std::net::SocketAddr;
use std::sync::Arc;

use crawler_access::audit::{AuditEntry, AuditLog};
use crawler_access::gate::{Admission, Gate};
use crawler_master::Code;
use crawler_model::access::{Grants, Right, Role, TokenId};
use crawler_model::id::NodeId;
use crawler_model::node::Role as NodeRole;

use super::caller_limits::CallerKey;
use super::nodes::KnownNodes;
use super::problem::Problem;
use super::secret::Secret;

mod admission;
mod headers;
pub(crate) mod methods;

use admission::{admitted, master_of, refused};
pub(crate) use headers::{Headers, bearer, node, shown_token};

use methods::{Method, Needs};

/// Words for a caller that needs no token. No subject has blanks.
const NOBODY: &str = "a caller without a token";
/// Words for whoever has no valid token.
const STRANGER: &str = "strangers without a valid token";
/// Words for whoever makes a call that is proved by what is in it.
const CANDIDATE: &str = "a node with a join token or a certificate";
/// Words for a node of the cluster.
const NODE: &str = "a node of the cluster";

/// Rule by which the listeners of a process decide who may call.
#[derive(Debug, Clone)]
pub enum Access {
    /// Whoever reaches a listener may do everything. Nodes that are known by this rule have bounds of their own.
    Open(KnownNodes),
    /// A caller has to show a token.
    Tokens {
        /// Admits callers.
        gate: Gate,
        /// Takes refused calls.
        audit: AuditLog,
        /// Rule by which nodes are known.
        nodes: KnownNodes,
    },
}

/// Caller of one call. The default may do nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    grants: Arc<Grants>,
    shown: Option<Arc<Shown>>,
    /// Address of the connection, if the listener knows it.
    pub(crate) address: Option<SocketAddr>,
    is_node: bool,
    through: Through,
    /// True if the listener asks for no token, and a node makes the call by its certificate.
    is_certified_node: bool,
    /// Value of the header `Authorization`, with which the call is handed on to the leader.
    authorization: Option<Secret>,
    method: Option<&'static Method>,
}

/// Master that has handed a call on, as far as the listener can tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Through {
    /// None has, or it does not prove that it is one.
    #[default]
    Nobody,
    /// The one that the call names, if any. The listener asks nobody who they are.
    AsTold,
    /// One that knows the secret of the nodes, with the id that its certificate tells. `None` if it needs no certificate.
    Master(Option<NodeId>),
}

/// Token that a caller has shown.
struct Shown {
    gate: Gate,
    admission: Admission,
}

impl Default for Access {
    fn default() -> Self {
        Self::Open(KnownNodes::default())
    }
}

impl Access {
    /// Returns the caller that shows these headers, if it has the right to the method. Refused calls are recorded.
    pub(crate) fn caller(
        &self,
        method: Option<&'static Method>,
        shown: Headers<'_>,
        address: Option<SocketAddr>,
    ) -> Result<Caller, Problem> {
        if method.is_some_and(|method| method.needs == Needs::OwnProof) {
            // The call itself finds out whether it is made by whom it says.
            return Ok(Caller {
                address,
                method,
                ..Caller::default()
            });
        }
        let (gate, audit, nodes) = match self {
            Access::Tokens { gate, audit, nodes } => (gate, audit, nodes),
            Access::Open(nodes) => {
                let authorization = shown
                    .authorization
                    .and_then(|value| str::from_utf8(value).ok());
                let caller = Caller {
                    grants: Arc::new(Grants::all()),
                    address,
                    // The leader may ask for a token.
                    authorization: authorization.map(Secret::new),
                    through: Through::AsTold,
                    is_certified_node: is_call_of_node(nodes, method, &shown),
                    method,
                    ..Caller::default()
                };
                return check_method(&caller, method).map(|()| caller);
            }
        };
        let name = method.map_or("", |method| method.name);
        let admitted = admitted((gate, nodes), method, &shown, address);
        let caller = admitted.inspect_err(|problem| {
            // While the store is away, nobody knows whether it is a stranger.
            if problem.code != Code::Unavailable {
                let stranger = Caller {
                    address,
                    ..Caller::default()
                };
                audit.record_refused(AuditEntry {
                    subject: STRANGER.to_owned(),
                    ..stranger.audit_entry(("", ""), Err(problem))
                });
            }
        })?;
        let caller = Caller {
            // The token of the caller counts, whoever hands the call on.
            through: master_of((gate, nodes), &shown, name)
                .map_or(Through::Nobody, Through::Master),
            method,
            ..caller
        };
        match check_method(&caller, method) {
            Ok(()) => Ok(caller),
            Err(problem) => {
                audit.record_refused(caller.audit_entry((name, ""), Err(&problem)));
                Err(problem)
            }
        }
    }
}

/// Returns true if the call is one that nodes make, and the certificate of its connection is a valid one of a node of the
/// cluster that makes it. What the call says of itself proves nothing.
fn is_call_of_node(nodes: &KnownNodes, method: Option<&Method>, shown: &Headers<'_>) -> bool {
    let Some(method) = method else {
        return false;
    };
    let role = match (method.name == methods::FOR_NODES, shown.is_handed_on) {
        (true, _) => NodeRole::Worker,
        (false, true) => NodeRole::Master,
        (false, false) => return false,
    };
    let node = nodes.check(shown.certificate, method.name, Some(role));
    node.is_ok_and(|node| node.is_some())
}

/// Checks that a caller may make a call. Names in it are checked where they are known.
fn check_method(caller: &Caller, method: Option<&Method>) -> Result<(), Problem> {
    let Some(method) = method else {
        return Err(Problem::new(
            Code::PermissionDenied,
            "there is no such call, and what is unknown is refused",
            "the interface is told by reflection",
        ));
    };
    match method.needs {
        Needs::Nothing | Needs::OwnProof => Ok(()),
        Needs::Right(right) | Needs::AnyName(right) => caller.check_right(method.name, right),
        Needs::WholeCluster(right) => {
            caller.check_right(method.name, right)?;
            caller.check_whole_cluster(method.name)
        }
    }
}

impl Caller {
    /// Returns a node of the cluster, which may see everything.
    fn node(address: Option<SocketAddr>) -> Self {
        Self {
            grants: Arc::new(Grants {
                roles: [Role::Viewer].into(),
                ..Grants::default()
            }),
            address,
            is_node: true,
            ..Self::default()
        }
    }

    /// Returns the key by which the calls of this caller are bounded; `None` for calls between nodes, which have
    /// bounds of their own.
    pub(crate) fn limit_key(&self) -> Option<CallerKey> {
        if self.is_node || self.is_through_node() || self.is_certified_node {
            return None;
        }
        let subject = self.admission().map(|admission| &admission.subject);
        Some(CallerKey::of(subject, self.address))
    }

    /// Returns the words by which others know the caller.
    pub(crate) fn name(&self) -> &str {
        match &self.shown {
            Some(shown) => shown.admission.subject.as_str(),
            None if self.is_node => NODE,
            None if self.has_own_proof() => CANDIDATE,
            None => NOBODY,
        }
    }

    /// Returns the id of the token that the caller has shown.
    pub(crate) fn token(&self) -> Option<&TokenId> {
        self.shown.as_ref().map(|shown| &shown.admission.token)
    }

    /// Returns what the caller may do.
    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Returns the admission of a caller that has shown a token.
    pub(crate) fn admission(&self) -> Option<&Admission> {
        self.shown.as_ref().map(|shown| &shown.admission)
    }

    /// Returns the value of the header `Authorization` with which the call is handed on to the leader.
    pub(crate) fn authorization(&self) -> Option<Secret> {
        self.authorization.clone()
    }

    /// Returns the secret of the nodes, with which the call is handed on to the leader.
    pub(crate) fn node_secret(&self) -> Option<Secret> {
        let secret = self.shown.as_ref()?.gate.node_secret()?;
        Some(Secret::new(secret.expose()))
    }

    /// True if a master that knows the secret of the nodes, and has the certificate that it needs, has handed the call on.
    pub(crate) fn is_through_node(&self) -> bool {
        matches!(self.through, Through::Master(_))
    }

    /// Returns the master that has handed the call on, of a call that names this one.
    pub(crate) fn through(&self, told: NodeId) -> Option<NodeId> {
        match &self.through {
            Through::Nobody => None,
            Through::AsTold | Through::Master(None) => Some(told),
            Through::Master(Some(id)) => Some(id.clone()),
        }
    }

    /// True if the call itself has to prove who makes it: nobody knows the caller before.
    pub(crate) fn has_own_proof(&self) -> bool {
        self.method
            .is_some_and(|method| method.needs == Needs::OwnProof)
    }

    /// Returns the name of the call if it only reads.
    pub(crate) fn reads(&self) -> Option<&'static str> {
        let method = self.method?;
        let reads = matches!(
            method.needs,
            Needs::Right(Right::Read) | Needs::AnyName(Right::Read)
        );
        reads.then_some(method.name)
    }

    /// Returns the entry of the record for a call and its result.
    pub(crate) fn audit_entry(
        &self,
        (method, name): (&str, &str),
        result: Result<(), &Problem>,
    ) -> AuditEntry {
        AuditEntry {
            subject: self.name().to_owned(),
            token: self.token().cloned(),
            address: self.address,
            method: method.to_owned(),
            name: name.to_owned(),
            result: result
                .map_or_else(|problem| problem.code_name(), |()| "OK")
                .to_owned(),
            detail: result
                .err()
                .map(|problem| problem.detail.clone())
                .unwrap_or_default(),
            ..AuditEntry::default()
        }
    }

    /// Waits until the caller's token is not valid any more. Waits for ever if it needed none.
    pub(crate) async fn loses_access(&self) -> Problem {
        match &self.shown {
            Some(shown) => refused(&shown.gate.ended(&shown.admission).await),
            None => std::future::pending().await,
        }
    }

    fn check_right(&self, method: &str, right: Right) -> Result<(), Problem> {
        match self.grants.gives(right) {
            true => Ok(()),
            false => Err(Problem::new(
                Code::PermissionDenied,
                format!(
                    "{} may not call {method}, which needs the right to {right}",
                    self.name()
                ),
                match right {
                    Right::Read => "ask an administrator for a token with a role",
                    Right::Operate => "it needs a token with the role operator",
                    Right::Publish => "it needs a token with the role publisher",
                    Right::Administer => "it needs a token with the role admin",
                },
            )),
        }
    }

    fn check_whole_cluster(&self, method: &str) -> Result<(), Problem> {
        match self.grants.covers_all() {
            true => Ok(()),
            false => Err(Problem::new(
                Code::PermissionDenied,
                format!(
                    "{method} concerns the whole cluster, and this token is {}",
                    self.grants
                ),
                "it needs a token without a namespace",
            )),
        }
    }

    /// Checks that the caller may use this name of a resource or a plugin.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), Problem> {
        match self.grants.covers(name) {
            true => Ok(()),
            false => Err(Problem::new(
                Code::PermissionDenied,
                format!(
                    "{name} is outside of what this token is for: {}",
                    self.grants
                ),
                "use a name in one of its namespaces, or a token without one",
            )),
        }
    }
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shown({}, ..)", self.admission.token)
    }
}

#[cfg(test)]
mod tests;
