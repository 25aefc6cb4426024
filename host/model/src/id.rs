//! Names and numbers that identify things, one type each, so that two of them cannot be swapped.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::error::{IdError, NAME_MAX, REQUEST_ID_MAX};
pub(super) use self::name::check_name;
use self::name::check_segments;
pub use self::request::RequestId;
use super::text::{as_text, digits};

mod error;
mod name;
mod request;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                $check($what, text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        as_text!($name);
    };
}

name_type!(
    /// The name of a plugin, which may be in a namespace: `books` or `team/books`.
    PluginName,
    "plugin name",
    check_segments
);
name_type!(
    /// The name of a resource, which may be in a namespace: `books` or `team/books`. It is free again as soon as the
    /// resource is deleted.
    ResourceName,
    "resource name",
    check_segments
);
name_type!(
    /// A beginning that names of resources and plugins have in common, without the slash after it: `team` is the
    /// namespace of `team/books` and of `team/sub/books`.
    Namespace,
    "namespace",
    check_segments
);
name_type!(
    /// Id of a process of the cluster, such as `master-2` or `worker-1`.
    NodeId,
    "node id",
    check_name
);
name_type!(
    /// Name of a webhook in the config file of masters, such as `chat`.
    WebhookName,
    "webhook name",
    check_name
);

impl Namespace {
    /// True if a name is in this namespace, or in one below it. The name that is spelled like the namespace itself is
    /// not in it.
    pub fn contains(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.as_str());
        let below = rest.and_then(|rest| rest.strip_prefix('/'));
        below.is_some_and(|below| !below.is_empty())
    }
}

macro_rules! number_type {
    ($(#[$doc:meta])* $name:ident, $(#[$form:meta])* $inner:ty) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name($(#[$form])* pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_type!(
    /// Id of one life of a resource. Ids are roughly ordered by time and never issued twice.
    ResourceId,
    #[serde(with = "digits")]
    u64
);
number_type!(
    /// Number that grows with each assignment of a shard. An owner with a smaller one may no longer
    /// write.
    Epoch,
    u64
);
number_type!(
    /// Number of a pass over the site, from 1.
    Run,
    u64
);
number_type!(
    /// Number that grows with each change of a resource's spec.
    Generation,
    u64
);
number_type!(
    /// Number of a part of a resource, from 0.
    Shard,
    u32
);
number_type!(
    /// Random number that a process draws at each start.
    Incarnation,
    #[serde(with = "digits")]
    u64
);

impl Run {
    /// Returns the number of the next run.
    pub fn next(self) -> Run {
        Run(self.0 + 1)
    }
}

impl Epoch {
    /// Returns the epoch of the next assignment.
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

impl Generation {
    /// Returns the generation after the next change.
    pub fn next(self) -> Generation {
        Generation(self.0 + 1)
    }
}

/// Version of a plugin, such as `1.2.3`, as defined by Semantic Versioning 2.0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginVersion(semver::Version);

impl PluginVersion {
    /// True if this is a pre-release, which may change until it is released (Semantic Versioning,
    /// 9).
    pub fn is_preview(&self) -> bool {
        !self.0.pre.is_empty()
    }

    /// True if `later` has to be compatible with this version (Semantic Versioning, 4 and 8; below
    /// 1.0.0 as cargo reads it: the first number that is not 0 counts).
    pub fn promises(&self, later: &PluginVersion) -> bool {
        let first = |version: &semver::Version| match (version.major, version.minor) {
            (0, 0) => (0, 0, version.patch),
            (0, minor) => (0, minor, 0),
            (major, _) => (major, 0, 0),
        };
        first(&self.0) == first(&later.0)
    }
}

impl FromStr for PluginVersion {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.len() > NAME_MAX {
            return Err(IdError::TooLong {
                what: "version",
                n_bytes: text.len(),
            });
        }
        match semver::Version::parse(text) {
            Ok(version) => Ok(Self(version)),
            Err(e) => Err(IdError::Version {
                text: text.to_owned(),
                why: e.to_string(),
            }),
        }
    }
}

impl fmt::Display for PluginVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A plugin as users name it: `books`, or `books@1.2.0` for exactly that version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PluginRef {
    /// Name of the plugin.
    pub name: PluginName,
    /// Version. If `None`, the highest version there is.
    pub version: Option<PluginVersion>,
}

impl FromStr for PluginRef {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        match text.split_once('@') {
            Some((name, version)) => Ok(Self {
                name: name.parse()?,
                version: Some(version.parse()?),
            }),
            None => Ok(Self {
                name: text.parse()?,
                version: None,
            }),
        }
    }
}

impl fmt::Display for PluginRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => self.name.fmt(f),
        }
    }
}

/// The sha256 of the bytes of a plugin or of a kept body; written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The 32 bytes themselves.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// Digest of bytes that come in pieces.
#[derive(Debug, Clone, Default)]
pub struct RunningDigest(sha2::Sha256);

impl RunningDigest {
    /// Adds the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        use sha2::Digest as _;
        self.0.update(piece);
    }

    /// Returns the digest of all pieces.
    pub fn digest(self) -> Digest {
        use sha2::Digest as _;
        Digest(self.0.finalize().into())
    }
}

impl FromStr for Digest {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut bytes = [0; 32];
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) => Ok(Self(bytes)),
            Err(_) => Err(IdError::Digest {
                text: text.chars().take(80).collect(),
            }),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", &hex::encode(self.0)[..12])
    }
}

as_text!(PluginVersion, PluginRef, Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        let error = text.parse::<ResourceName>().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn names_that_could_leave_a_folder_or_a_key_are_refused() {
        let rest = "use letters, digits, '-', '_' and '.', and start with a letter or digit";
        check_refused("", "resource name is empty");
        check_refused("..", &format!("resource name \"..\" has '.'; {rest}"));
        check_refused("a\0", &format!("resource name \"a\\0\" has '\\0'; {rest}"));
        check_refused("ä", &format!("resource name \"ä\" has 'ä'; {rest}"));
        check_refused(
            &"a".repeat(300),
            "resource name is 300 bytes long; at most 128 are allowed",
        );
    }

    #[test]
    fn a_name_may_have_namespaces_of_which_each_is_a_name() {
        let longest = format!("a/{}", "b".repeat(NAME_MAX - 2));
        for good in ["team/books", "team/sub/books", "7/a.b-c_d", &longest] {
            assert_eq!(good.parse::<ResourceName>().unwrap().as_str(), good);
            assert_eq!(good.parse::<PluginName>().unwrap().as_str(), good);
        }
        let empty = "has an empty part; leave out the '/' beside it";
        for bad in ["/", "/books", "team/", "team//books"] {
            check_refused(bad, &format!("resource name {bad:?} {empty}"));
        }
        let rest = "each part between slashes has letters, digits, '-', '_' and '.', and starts with a letter or digit";
        for (bad, found) in [
            ("../x", '.'),
            ("team/..", '.'),
            ("a/b c", ' '),
            ("a/-b", '-'),
        ] {
            check_refused(bad, &format!("resource name {bad:?} has {found:?}; {rest}"));
        }
        check_refused(
            &format!("{longest}b"),
            "resource name is 129 bytes long; at most 128 are allowed",
        );
        let error = "a/b".parse::<NodeId>().unwrap_err().to_string();
        assert!(error.starts_with("node id \"a/b\" has '/'; "), "{error}");
    }

    #[test]
    fn a_namespace_has_the_names_below_it() {
        let namespace = |text: &str| text.parse::<Namespace>().unwrap();
        for (within, name, expected) in [
            ("team", "team/x", true),
            ("team", "team/sub/x", true),
            ("team", "team", false),
            ("team", "teams/x", false),
            ("team", "team/", false),
            ("team", "other/team/x", false),
            ("team/sub", "team/sub/x", true),
            ("team/sub", "team/x", false),
            ("team/sub", "team/sub", false),
        ] {
            let is_within = namespace(within).contains(name);
            assert_eq!(is_within, expected, "{within} {name}");
        }
        let json = r#""team/sub""#;
        let read: Namespace = serde_json::from_str(json).unwrap();
        assert_eq!(read.to_string(), "team/sub");
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
        assert_eq!(
            "team/".parse::<Namespace>().unwrap_err().to_string(),
            "namespace \"team/\" has an empty part; leave out the '/' beside it"
        );
    }

    #[test]
    fn a_plugin_is_named_with_or_without_a_version() {
        let exact: PluginRef = "books@1.2.0".parse().unwrap();
        assert_eq!(
            exact.version.as_ref().map(ToString::to_string).as_deref(),
            Some("1.2.0")
        );
        assert_eq!(exact.to_string(), "books@1.2.0");
        let any: PluginRef = "books".parse().unwrap();
        assert_eq!(
            (any.version.as_ref(), any.to_string().as_str()),
            (None, "books")
        );
        let inside: PluginRef = "team/books@1.2.0".parse().unwrap();
        assert_eq!(inside.name.as_str(), "team/books");
        assert_eq!(inside.to_string(), "team/books@1.2.0");
        assert!("books@".parse::<PluginRef>().is_err());
        assert!("books@1.0.0/x".parse::<PluginRef>().is_err());
        assert!("books@one".parse::<PluginRef>().is_err());
    }

    #[test]
    fn versions_are_ordered_by_number_not_by_text() {
        let versions = ["1.10.0", "1.9.0"].map(|v| v.parse::<PluginVersion>().unwrap());
        assert!(versions[0] > versions[1]);
    }

    #[test]
    fn a_digest_survives_being_written_and_read() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        assert!("abc".parse::<Digest>().is_err());
        let mut running = RunningDigest::default();
        for piece in ["a", "", "bc"] {
            running.add(piece.as_bytes());
        }
        assert_eq!(running.digest(), digest);
    }
}
