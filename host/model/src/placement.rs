//! Placement of a resource: the number of its shards, its weight, the labels that a worker must have, and
//! the resources that it wants beside it or never beside it.
//!
//! Everything but the number of shards may change while the resource runs. A shard moves if its worker no
//! longer fits; it stays if another worker would merely fit better.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::id::{IdError, ResourceName};
use super::label::check_labels;
use super::settings::SettingError;

/// Largest weight of a resource.
pub const MAX_WEIGHT: u32 = 1_000;
/// Weight of a resource that names none.
pub const DEFAULT_WEIGHT: u32 = 1;
/// Largest number of shards of a resource: all of them are finished in one transaction of the store.
pub const MAX_SHARDS: u32 = 32;

/// Placement that a user asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementSpec {
    /// Number of shards. Hosts are divided among them by hash, and each shard is placed by itself.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub shards: u32,
    /// Weight that one shard adds to the load of its worker.
    #[serde(default = "default_weight")]
    pub weight: u32,
    /// Labels that a worker must have with exactly these values. Every worker has `id` and `host`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// Resource to be close to: its worker is preferred if the resource is placed and the worker has room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<ResourceName>,
    /// Resource to stay apart from: the two never share a worker, whichever is placed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<ResourceName>,
}

fn one() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
fn is_one(n: &u32) -> bool {
    *n == 1
}

fn default_weight() -> u32 {
    DEFAULT_WEIGHT
}

impl Default for PlacementSpec {
    fn default() -> Self {
        Self {
            shards: 1,
            weight: DEFAULT_WEIGHT,
            selector: BTreeMap::new(),
            near: None,
            apart: None,
        }
    }
}

impl PlacementSpec {
    /// Number of shards; a number that [`check`](Self::check) refuses counts as 1.
    pub fn n_shards(&self) -> NonZeroU32 {
        NonZeroU32::new(self.shards).unwrap_or(NonZeroU32::MIN)
    }

    /// True if nothing was asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses values that make no sense for the resource of this name.
    pub fn check(&self, name: &ResourceName) -> Result<(), SettingError> {
        let wrong = |setting, why| Err(SettingError { setting, why });
        if !(1..=MAX_SHARDS).contains(&self.shards) {
            let why = format!("is {}; it goes from 1 to {MAX_SHARDS}", self.shards);
            return wrong("shards", why);
        }
        if !(1..=MAX_WEIGHT).contains(&self.weight) {
            let why = format!("is {}; it goes from 1 to {MAX_WEIGHT}", self.weight);
            return wrong("weight", why);
        }
        if let Err(e) = check_labels(&self.selector) {
            return wrong("selector", format!("is no list of labels: {e}"));
        }
        for (setting, other) in [("near", &self.near), ("apart", &self.apart)] {
            if other.as_ref() == Some(name) {
                return wrong(
                    setting,
                    format!("names {name} itself; name another resource"),
                );
            }
        }
        match (&self.near, &self.apart) {
            (Some(near), Some(apart)) if near == apart => wrong(
                "apart",
                format!("names {apart}, as near does; name it in one of them"),
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for PlacementSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "weight {}", self.weight)?;
        for (n, (key, value)) in self.selector.iter().enumerate() {
            let separator = if n == 0 { "; on " } else { ", " };
            write!(f, "{separator}{key}={value}")?;
        }
        if let Some(near) = &self.near {
            write!(f, "; near {near}")?;
        }
        if let Some(apart) = &self.apart {
            write!(f, "; apart from {apart}")?;
        }
        match self.shards {
            1 => Ok(()),
            n => write!(f, "; {n} shards"),
        }
    }
}

/// Placement as a caller gives it, for a new resource or as a change to an existing one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacementChange {
    /// New number of shards. If `None`, the number stays.
    pub shards: Option<u32>,
    /// New weight. If `None`, the weight stays.
    pub weight: Option<u32>,
    /// Labels to set. Others stay; in a change, a label without a value is removed.
    pub selector: BTreeMap<String, String>,
    /// New resource to be close to. If `None`, it stays.
    pub near: Option<AffinityTarget>,
    /// New resource to stay apart from. If `None`, it stays.
    pub apart: Option<AffinityTarget>,
}

impl PlacementChange {
    /// Returns the placement of a new resource. A label without a value is kept, so that `check` refuses
    /// it.
    pub fn into_spec(self) -> PlacementSpec {
        PlacementSpec {
            shards: self.shards.unwrap_or(1),
            weight: self.weight.unwrap_or(DEFAULT_WEIGHT),
            selector: self.selector,
            near: self.near.and_then(AffinityTarget::into_name),
            apart: self.apart.and_then(AffinityTarget::into_name),
        }
    }

    /// Returns the placement after this change.
    pub fn over(self, present: PlacementSpec) -> PlacementSpec {
        let mut selector = present.selector;
        selector.extend(self.selector);
        selector.retain(|_, value| !value.is_empty());
        let or = |change: Option<AffinityTarget>, present| match change {
            Some(affinity_target) => affinity_target.into_name(),
            None => present,
        };
        PlacementSpec {
            shards: self.shards.unwrap_or(present.shards),
            weight: self.weight.unwrap_or(present.weight),
            selector,
            near: or(self.near, present.near),
            apart: or(self.apart, present.apart),
        }
    }
}

impl From<PlacementSpec> for PlacementChange {
    fn from(spec: PlacementSpec) -> Self {
        Self {
            shards: Some(spec.shards),
            weight: Some(spec.weight),
            selector: spec.selector,
            near: spec.near.map(AffinityTarget::Resource),
            apart: spec.apart.map(AffinityTarget::Resource),
        }
    }
}

/// Another resource, or nobody. An empty text stands for nobody and withdraws an earlier choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AffinityTarget {
    /// The earlier choice is withdrawn.
    Cleared,
    /// The resource of this name. It need not exist or be placed.
    Resource(ResourceName),
}

impl AffinityTarget {
    fn into_name(self) -> Option<ResourceName> {
        match self {
            AffinityTarget::Cleared => None,
            AffinityTarget::Resource(name) => Some(name),
        }
    }
}

impl FromStr for AffinityTarget {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        match text {
            "" => Ok(AffinityTarget::Cleared),
            text => text.parse().map(AffinityTarget::Resource),
        }
    }
}

impl fmt::Display for AffinityTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AffinityTarget::Cleared => Ok(()),
            AffinityTarget::Resource(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels<const N: usize>(labels: [(&str, &str); N]) -> BTreeMap<String, String> {
        labels.map(|(k, v)| (k.into(), v.into())).into()
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut PlacementSpec), expected: &str) {
        let mut spec = PlacementSpec::default();
        change(&mut spec);
        let refusal = spec.check(&"books".parse().unwrap());
        let text = refusal.err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(text, expected);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        check(|s| s.shards = 32, "");
        for n in [0, 33] {
            let why = format!("setting shards is {n}; it goes from 1 to 32");
            check(|s| s.shards = n, &why);
        }
        check(|s| s.weight = 1, "");
        check(|s| s.weight = 1_000, "");
        check(
            |s| s.weight = 0,
            "setting weight is 0; it goes from 1 to 1000",
        );
        check(
            |s| s.weight = 1_001,
            "setting weight is 1001; it goes from 1 to 1000",
        );
        check(|s| s.selector = labels([("id", "worker-1")]), "");
        check(
            |s| s.selector = labels([("gpu", "")]),
            "setting selector is no list of labels: label gpu has no value; write gpu=VALUE",
        );
        check(
            |s| s.selector = (0..33).map(|n| (format!("k{n}"), "v".into())).collect(),
            "setting selector is no list of labels: there are 33 labels; at most 32 are allowed",
        );
        check(|s| s.near = Some("shop".parse().unwrap()), "");
        for (setting, change) in [
            ("near", (|s, own| s.near = own) as fn(&mut PlacementSpec, _)),
            ("apart", |s, own| s.apart = own),
        ] {
            check(
                |s| change(s, Some("books".parse().unwrap())),
                &format!("setting {setting} names books itself; name another resource"),
            );
        }
        check(
            |s| {
                s.near = Some("shop".parse().unwrap());
                s.apart = s.near.clone();
            },
            "setting apart names shop, as near does; name it in one of them",
        );
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name_and_takes_back_what_is_empty() {
        let spec = PlacementSpec {
            shards: 4,
            weight: 5,
            selector: labels([("gpu", "true"), ("zone", "a")]),
            near: Some("shop".parse().unwrap()),
            apart: Some("forum".parse().unwrap()),
        };
        assert_eq!(PlacementChange::default().over(spec.clone()), spec);
        assert_eq!(PlacementChange::from(spec.clone()).into_spec(), spec);
        let change = PlacementChange {
            shards: None,
            weight: Some(2),
            selector: labels([("zone", ""), ("disk", "fast")]),
            near: Some("".parse().unwrap()),
            apart: None,
        };
        let expected = PlacementSpec {
            shards: 4,
            weight: 2,
            selector: labels([("disk", "fast"), ("gpu", "true")]),
            near: None,
            apart: spec.apart.clone(),
        };
        assert_eq!(change.over(spec.clone()), expected);
        let text = "weight 5; on gpu=true, zone=a; near shop; apart from forum; 4 shards";
        assert_eq!(spec.to_string(), text);
    }
}
