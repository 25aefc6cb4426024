//! The origin of a call over gRPC, by its metadata and its connection.

use tonic::{Request, Status};

use super::answer::refused;
use crate::access::Caller;
use crate::forward::Origin;
use crate::metadata::{FORWARDED, REQUEST_ID};
use crate::spec::invalid;
use crawler_model::id::NodeId;

/// Returns the origin of a call that changes something. Which master has handed it on is not taken from the call alone
/// where nodes prove who they are.
pub(super) fn origin<T>(request: &Request<T>) -> Result<Origin, Status> {
    let metadata = request.metadata();
    let id = match metadata.get(REQUEST_ID) {
        None => None,
        Some(id) => {
            let id = id.to_str().unwrap_or_default().parse();
            Some(id.map_err(|e| refused(invalid(REQUEST_ID, e)))?)
        }
    };
    let told: Option<NodeId> = match metadata.get(FORWARDED) {
        None => None,
        Some(master) => {
            let master = master.to_str().unwrap_or_default().parse();
            Some(master.map_err(|e| refused(invalid(FORWARDED, e)))?)
        }
    };
    let caller = request.extensions().get::<Caller>();
    Ok(Origin {
        is_forwarded: told.is_some(),
        through: told
            .zip(caller)
            .and_then(|(told, caller)| caller.through(told)),
        ..Origin::client(id)
    })
}
