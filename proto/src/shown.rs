//! The JSON of messages, as HTTP and `-o json` show it: which messages are written, and which of their fields are not
//! simply their value. The build generates the code from these tables, and the OpenAPI document is made of them.

/// Messages that are written as JSON.
pub const SHOWN: [&str; 58] = [
    "NodeSpec",
    "Resource",
    "ResourceSpec",
    "Placement",
    "CrawlSettings",
    "ShardStatus",
    "LimitUse",
    "Counts",
    "ListResourcesResponse",
    "Item",
    "ListChangesResponse",
    "ItemChange",
    "ChangeTotals",
    "LogLine",
    "Node",
    "NodeTotals",
    "ProcessTotals",
    "NodeEvent",
    "ResourceEvent",
    "PastEvent",
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
    "ListQuarantineResponse",
    "Hold",
    "ReadQuarantineResponse",
    "DecideQuarantineResponse",
    "Schedule",
    "ScheduleSpec",
    "DueTime",
    "ListSchedulesResponse",
    "ScheduledResource",
    "ListRunsResponse",
    "RunSummary",
    "RunsDiff",
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

/// Form of a field in JSON that is not simply its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The value under another name.
    Renamed(&'static str),
    /// A number as text.
    Text,
    /// Nothing: only requests have the field.
    Skipped,
    /// A message that is never absent: one without any field is written instead.
    OrEmpty,
    /// Counts without the number of requests in flight.
    Totals,
    /// The entries of a map, as fields of the message itself.
    Flattened,
    /// The value, unless it is absent or empty.
    IfSet,
    /// A number, unless it is absent or 1.
    UnlessOne,
    /// A number that is 1 if it is absent.
    OrOne,
    /// The value that a text of JSON stands for, under another name.
    Raw(&'static str),
    /// The value that a text of JSON stands for, unless the text is empty.
    RawIfSet,
}

/// Fields with another form. The name of a message after a dot stands for all of its fields.
pub const FIELDS: [(&str, Form); 31] = [
    // Clients of the original interface read it with a capital letter.
    ("NodeSpec.Address", Form::Renamed("Address")),
    // JavaScript rounds numbers as large as nanoseconds.
    ("ResourceSpec.creation_time", Form::Text),
    // Only requests have these.
    ("ResourceSpec.no_params", Form::Skipped),
    ("ResourceSpec.purge", Form::Skipped),
    ("ResourceSpec.replace", Form::Skipped),
    ("ResourceSpec.if_generation", Form::Skipped),
    ("ResourceSpec.if_id", Form::Skipped),
    // A message is never absent where every answer has it.
    ("IssueTokenResponse.record", Form::OrEmpty),
    ("IssueJoinTokenResponse.record", Form::OrEmpty),
    ("Resource.spec", Form::OrEmpty),
    ("Resource.counts", Form::OrEmpty),
    ("ResourceSpec.crawl", Form::OrEmpty),
    ("ResourceSpec.placement", Form::OrEmpty),
    ("ShardStatus.counts", Form::OrEmpty),
    ("NodeEvent.node", Form::OrEmpty),
    ("Schedule.spec", Form::OrEmpty),
    ("ScheduledResource.resource", Form::OrEmpty),
    ("ListChangesResponse.totals", Form::OrEmpty),
    // Only the owner of a frontier knows what is in flight.
    ("FrontierStats.counts", Form::Totals),
    ("RunStatistics.counts", Form::Totals),
    ("HostLinks.hosts", Form::Flattened),
    // Settings and labels are shown where they are set.
    ("ResourceSpec.labels", Form::IfSet),
    (".CrawlSettings", Form::IfSet),
    ("Placement.shards", Form::UnlessOne),
    ("Placement.weight", Form::OrOne),
    ("Placement.selector", Form::IfSet),
    ("Placement.near", Form::IfSet),
    ("Placement.apart", Form::IfSet),
    // The item itself, instead of a text that has to be parsed again.
    ("Item.json", Form::Raw("item")),
    ("ItemChange.old", Form::RawIfSet),
    ("ItemChange.item", Form::RawIfSet),
];

impl Form {
    /// Returns the attribute of serde that writes this form.
    pub fn attribute(self) -> String {
        let by = |function: &str| format!(r#"serialize_with = "crate::json::{function}""#);
        let unless = |function: &str| format!(r#"skip_serializing_if = "crate::json::{function}""#);
        match self {
            Form::Renamed(name) => format!("rename = {name:?}"),
            Form::Text => by("text"),
            Form::Skipped => "skip".to_owned(),
            Form::OrEmpty => by("or_empty"),
            Form::Totals => by("totals"),
            Form::Flattened => "flatten".to_owned(),
            Form::IfSet => unless("is_unset"),
            Form::UnlessOne => unless("is_one"),
            Form::OrOne => by("or_one"),
            Form::Raw(name) => format!("rename = {name:?}, {}", by("raw")),
            Form::RawIfSet => format!("{}, {}", unless("is_unset"), by("raw")),
        }
    }
}
