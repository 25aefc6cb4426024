//! The origin of a call over gRPC, by its metadata and its connection.

use tonic::{Request, Status};

use super::answer::refused;
use crate::forward::Origin;
use crate::metadata::{FORWARDED, REQUEST_ID};
use crate::spec::invalid;

/// Returns the origin of a call that changes something.
pub(super) fn origin<T>(request: &Request<T>) -> Result<Origin, Status> {
    let metadata = request.metadata();
    let id = match metadata.get(REQUEST_ID) {
        None => None,
        Some(id) => {
            let id = id.to_str().unwrap_or_default().parse();
            Some(id.map_err(|e| refused(invalid(REQUEST_ID, e)))?)
        }
    };
    let through = match metadata.get(FORWARDED) {
        None => None,
        Some(master) => {
            let master = master.to_str().unwrap_or_default().parse();
            Some(master.map_err(|e| refused(invalid(FORWARDED, e)))?)
        }
    };
    Ok(Origin {
        through,
        ..Origin::client(id)
    })
}
