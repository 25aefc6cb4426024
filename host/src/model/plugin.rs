//! Plugins: what one says of itself, what the store keeps of it, and what its calls may use.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crawler_extract::Plan;

pub use items::Schema;
pub use limits::{
    LIMIT_CEILING_FACTOR, LimitError, LimitName, LimitOverrides, Limits, parse_bytes,
};
pub use params::{Param, ParamError};

use super::id::{Digest, PluginName, PluginVersion};

mod items;
mod limits;
mod params;

/// What a plugin says of itself; checked at admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Its own name.
    pub name: PluginName,
    /// Its own version.
    pub version: PluginVersion,
    /// The names of its rules, in the order of their numbers.
    pub rules: Vec<Arc<str>>,
    /// Its item schemas, in the order of their numbers.
    pub schemas: Vec<Schema>,
    /// What it reads of pages, in the order of their numbers.
    #[serde(default)]
    pub plans: Vec<Plan>,
    /// Hosts it asks for beyond those of its root requests. Grants nothing.
    pub hosts: Vec<String>,
    /// Limits it asks for. Of these `memory` is granted as [`Limits::of_plugin`] tells, and nothing else.
    pub limits: BTreeMap<String, u64>,
    /// Its params. None: it declares none, and takes all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Vec<Param>>,
}

/// A pushed plugin version. Its bytes lie in the data root under the digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginRecord {
    /// The name it was pushed as.
    pub name: PluginName,
    /// The version it was pushed as.
    pub version: PluginVersion,
    /// Of its bytes.
    pub digest: Digest,
    /// Of its bytes.
    pub size: u64,
    /// The version of `crawler:rules` it was built for: `0.1.0`.
    pub interface: String,
    /// What it says of itself.
    pub description: Description,
    /// Milliseconds since 1970.
    pub pushed_at: u64,
}
