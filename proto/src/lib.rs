//! The gRPC interface of the crawler: the code that is generated from `proto/crawler.proto`. HTTP and the command
//! line show the same messages as JSON, in which fields have the names of the `.proto` file.
//!
//! The services have no package line, so their paths are `/CrawlerMaster/AddResource` and so on, as clients of the
//! original interface call them.

pub use generated::*;

mod json;
pub mod shown;

/// The encoded descriptors, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("crawler");

impl Resource {
    /// Returns the spec, which every answer has.
    pub fn spec(&self) -> ResourceSpec {
        self.spec.clone().unwrap_or_default()
    }

    /// Returns the counts, which every answer has.
    pub fn counts(&self) -> Counts {
        self.counts.clone().unwrap_or_default()
    }
}

impl ShardStatus {
    /// Returns the counts, which every answer has.
    pub fn counts(&self) -> Counts {
        self.counts.clone().unwrap_or_default()
    }
}

impl FrontierStats {
    /// Returns the counts, which every answer has.
    pub fn counts(&self) -> Counts {
        self.counts.clone().unwrap_or_default()
    }
}

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
