//! Names of the metadata of calls: what goes with a call beside its message.

/// gRPC metadata key of the request's id.
pub(crate) const REQUEST_ID: &str = "request-id";

/// gRPC metadata key of the master that forwarded the call.
pub(crate) const FORWARDED: &str = "crawler-forwarded";

/// gRPC metadata key of the secret of the nodes, in a call that a master hands on.
pub(crate) const NODE_SECRET: &str = "crawler-node-secret";

/// Header of the caller's span, in both forms of the calls, by W3C Trace Context.
pub(crate) const TRACE_PARENT: &str = "traceparent";

/// Metadata key of the called worker's token, in a call with links or about turns.
pub(crate) const CALL_TOKEN: &str = "crawler-call-token";
