//! The gRPC interface of the crawler: the code that is generated from `proto/crawler.proto`, and nothing else.
//!
//! The services have no package line, so their paths are `/CrawlerMaster/AddResource` and so on, as clients of the
//! original interface call them.

pub use generated::*;

/// The encoded descriptors, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("crawler");

#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated; the .proto file is the documentation"
)]
mod generated {
    tonic::include_proto!("_");
}
