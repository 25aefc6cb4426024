//! Plugins: their description, their stored record, and the limits of their calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crawler_extract::Plan;

pub use items::Schema;
pub use limits::{
    LIMIT_CEILING_FACTOR, LimitError, LimitKind, LimitName, LimitOverrides, Limits, format_bytes,
    parse_bytes, parse_millis,
};
pub use params::{Param, ParamError};

use super::id::{Digest, PluginName, PluginVersion};

mod items;
mod limits;
mod params;

/// Description that a plugin gives of itself; checked at admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Name that the plugin gives itself.
    pub name: PluginName,
    /// Version that the plugin gives itself.
    pub version: PluginVersion,
    /// Names of the rules, in the order of their numbers.
    pub rules: Vec<Arc<str>>,
    /// Item schemas, in the order of their numbers.
    pub schemas: Vec<Schema>,
    /// Extraction plans for pages, in the order of their numbers.
    #[serde(default)]
    pub plans: Vec<Plan>,
    /// Hosts that the plugin asks for beyond those of its root requests. The list grants nothing.
    pub hosts: Vec<String>,
    /// Limits that the plugin asks for. Only `memory` can be granted, as described at
    /// [`Limits::of_plugin`].
    pub limits: BTreeMap<String, u64>,
    /// Declared params. If `None`, the plugin declares none and accepts any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Vec<Param>>,
}

/// A pushed plugin version. Its bytes lie in the data root under the digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginRecord {
    /// Name under which the plugin was pushed.
    pub name: PluginName,
    /// Version under which the plugin was pushed.
    pub version: PluginVersion,
    /// Digest of the plugin's bytes.
    pub digest: Digest,
    /// Size of the plugin in bytes.
    pub size: u64,
    /// Version of `crawler:rules` that the plugin was built for, such as `0.1.0`.
    pub interface: String,
    /// Digest of what the plugin was made of, if its build says it. Two builds of the same sources are one
    /// plugin, though their bytes may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Digest>,
    /// Description that the plugin gives of itself.
    pub description: Description,
    /// Time of the push, in milliseconds since 1970.
    pub pushed_at: u64,
}
