//! Admission of callers by the tokens and secrets that they show.
//!
//! Nodes show the secret of the nodes. Where nodes have certificates of the cluster's CA, it counts only over a connection
//! that shows one of these.

use std::net::SocketAddr;
use std::sync::Arc;

use crawler_access::gate::{Gate, Refusal};
use crawler_master::Code;
use crawler_model::id::NodeId;
use crawler_model::node::Role;

use super::headers::{BEARER, Headers, NODE_SCHEME};
use super::methods::{self, Method};
use super::{Caller, Shown};
use crate::nodes::KnownNodes;
use crate::problem::Problem;
use crate::secret::Secret;

/// Returns the id of the master that shows the secret of the nodes, and the certificate that it needs: whoever reads the
/// store knows the secret. The id is `None` if no certificate tells it, and the whole if there is no such master.
pub(super) fn master_of(
    (gate, nodes): (&Gate, &KnownNodes),
    shown: &Headers<'_>,
    call: &str,
) -> Option<Option<NodeId>> {
    let secret = str::from_utf8(shown.node?).ok()?;
    gate.check_node(secret).ok()?;
    let master = nodes.check(shown.certificate, call, Some(Role::Master));
    Some(master.ok()?.map(|master| master.id))
}

/// Returns the caller that shows these headers.
pub(super) fn admitted(
    (gate, nodes): (&Gate, &KnownNodes),
    method: Option<&Method>,
    headers: &Headers<'_>,
    address: Option<SocketAddr>,
) -> Result<Caller, Problem> {
    let Some(authorization) = headers.authorization else {
        return Err(Problem::new(
            Code::Unauthenticated,
            "this listener asks for an access token",
            "`crawler login URL --token-file FILE` keeps one, and CRAWLER_TOKEN holds one; over HTTP it is `Authorization: Bearer TOKEN`",
        ));
    };
    let shown = str::from_utf8(authorization).unwrap_or_default();
    let (scheme, text) = shown.split_once(' ').unwrap_or_default();
    if scheme == NODE_SCHEME {
        gate.check_node(text).map_err(|refusal| refused(&refusal))?;
        let is_for_nodes = method.is_some_and(|method| method.name == methods::FOR_NODES);
        return match is_for_nodes {
            true => nodes
                .check(headers.certificate, methods::FOR_NODES, Some(Role::Worker))
                .map(|_worker| Caller::node(address))
                .map_err(|refused| *refused.problem),
            false => Err(Problem::new(
                Code::PermissionDenied,
                "the secret of the nodes does not allow this call",
                "show an access token",
            )),
        };
    }
    let text = match scheme.eq_ignore_ascii_case(BEARER) {
        true => text.trim(),
        false => "",
    };
    let admission = gate.admit(text).map_err(|refusal| refused(&refusal))?;
    Ok(Caller {
        grants: Arc::new(admission.grants.clone()),
        shown: Some(Arc::new(Shown {
            gate: gate.clone(),
            admission,
        })),
        address,
        authorization: Some(Secret::new(shown)),
        ..Caller::default()
    })
}

/// Returns a refusal as the caller is told.
pub(super) fn refused(refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Unsure => Problem::new(
            Code::Unavailable,
            refusal.to_string(),
            "try again in a moment",
        )
        .passes(),
        Refusal::Invalid | Refusal::Expired(_) | Refusal::Void(_) => Problem::new(
            Code::Unauthenticated,
            refusal.to_string(),
            "ask an administrator for a token: `crawler access token add`",
        ),
    }
}
