//! The service of a master, whose calls are made for the caller of each request.

use tonic::Request;

use crate::Api;
use crate::access::Caller;

pub(super) struct Master {
    pub(super) api: Api,
}

impl Master {
    /// Returns the calls as the caller of this request may make them.
    pub(super) fn api<T>(&self, request: &Request<T>) -> Api {
        let caller = request.extensions().get::<Caller>();
        self.api.on_behalf_of(caller.cloned().unwrap_or_default())
    }
}
