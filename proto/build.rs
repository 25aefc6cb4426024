//! Generates the code. `.cargo/protoc` finds the compiler of `.proto` files, so that nobody installs one.

use tonic_prost_build::Builder;

/// Messages that HTTP and `-o json` show: they are written as JSON.
const SHOWN: [&str; 39] = [
    "NodeSpec",
    "Resource",
    "ResourceSpec",
    "Placement",
    "CrawlSettings",
    "ShardStatus",
    "Counts",
    "ListResourcesResponse",
    "Item",
    "LogLine",
    "Node",
    "NodeTotals",
    "NodeEvent",
    "ListNodesResponse",
    "DrainNodeResponse",
    "Plugin",
    "Schema",
    "ListPluginsResponse",
    "FrontierStats",
    "RunStatistics",
    "HostLinks",
    "LostRoot",
    "KindStatistics",
    "PlanStatistics",
    "HostEntry",
    "ListHostsResponse",
    "UrlEntry",
    "ListUrlsResponse",
    "UrlExplanation",
    "RedriveResponse",
    "IssueTokenResponse",
    "AccessToken",
    "ListTokensResponse",
    "Caller",
    "AuditEntry",
    "ReadAuditResponse",
    "IssueJoinTokenResponse",
    "JoinToken",
    "ListJoinTokensResponse",
];

/// Fields whose JSON is not simply their value, with the attribute of serde. The name of a message after a dot
/// stands for all of its fields.
const FIELDS: [(&str, &str); 26] = [
    // Clients of the original interface read it with a capital letter.
    ("NodeSpec.Address", r#"rename = "Address""#),
    // JavaScript rounds numbers as large as nanoseconds.
    (
        "ResourceSpec.creation_time",
        r#"serialize_with = "crate::json::text""#,
    ),
    // Only requests have these.
    ("ResourceSpec.no_params", "skip"),
    ("ResourceSpec.purge", "skip"),
    ("ResourceSpec.replace", "skip"),
    ("ResourceSpec.if_generation", "skip"),
    ("ResourceSpec.if_id", "skip"),
    // A message is never absent where every answer has it.
    ("IssueTokenResponse.record", OR_EMPTY),
    ("IssueJoinTokenResponse.record", OR_EMPTY),
    ("Resource.spec", OR_EMPTY),
    ("Resource.counts", OR_EMPTY),
    ("ResourceSpec.crawl", OR_EMPTY),
    ("ResourceSpec.placement", OR_EMPTY),
    ("ShardStatus.counts", OR_EMPTY),
    ("NodeEvent.node", OR_EMPTY),
    // Only the owner of a frontier knows what is in flight.
    (
        "FrontierStats.counts",
        r#"serialize_with = "crate::json::totals""#,
    ),
    (
        "RunStatistics.counts",
        r#"serialize_with = "crate::json::totals""#,
    ),
    ("HostLinks.hosts", "flatten"),
    // Settings and labels are shown where they are set.
    ("ResourceSpec.labels", IF_SET),
    (".CrawlSettings", IF_SET),
    (
        "Placement.shards",
        r#"skip_serializing_if = "crate::json::is_one""#,
    ),
    (
        "Placement.weight",
        r#"serialize_with = "crate::json::or_one""#,
    ),
    ("Placement.selector", IF_SET),
    ("Placement.near", IF_SET),
    ("Placement.apart", IF_SET),
    // The item itself, instead of a text that has to be parsed again.
    (
        "Item.json",
        r#"rename = "item", serialize_with = "crate::json::raw""#,
    ),
];

const OR_EMPTY: &str = r#"serialize_with = "crate::json::or_empty""#;
const IF_SET: &str = r#"skip_serializing_if = "crate::json::is_unset""#;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts through the environment"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/crawler.proto");
    let descriptors = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("crawler.bin");
    // Maps are sorted, so that their JSON has a stable order.
    let builder = tonic_prost_build::configure()
        .file_descriptor_set_path(descriptors)
        .btree_map(".");
    let builder = SHOWN.iter().fold(builder, |builder, message| {
        builder.message_attribute(message, "#[derive(serde::Serialize)]")
    });
    let with_serde = |builder: Builder, (field, attribute): &(&str, &str)| {
        builder.field_attribute(field, format!("#[serde({attribute})]"))
    };
    let builder = FIELDS.iter().fold(builder, with_serde);
    builder.compile_protos(&["proto/crawler.proto"], &["proto"])?;
    Ok(())
}
