//! Proxies and credentials that a crawl uses, by the names that the config files of its workers give them.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::list::{entries, list};
use crate::text::as_text;

/// Largest number of bytes of a name.
const MAX_NAME: usize = 63;

/// Name of an entry in a table of a worker's config file, such as `shop-2`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessName(Arc<str>);

impl Borrow<str> for AccessName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AccessName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_char = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
        let is_name = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_char);
        is_name.then(|| Self(text.into())).ok_or_else(|| {
            format!(
                "a name has 1 to {MAX_NAME} characters of a-z, 0-9, -, _ and ., unlike {text:?}"
            )
        })
    }
}

/// Choice of proxy for pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyChoice {
    /// Pages are fetched without a proxy, whatever the default of the workers is.
    Direct,
    /// Pages are fetched through the proxies of this name in the table `[proxies]`.
    Through(AccessName),
}

const DIRECT: &str = "direct";

impl FromStr for ProxyChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            DIRECT => Ok(ProxyChoice::Direct),
            name => name.parse().map(ProxyChoice::Through).map_err(|_| {
                format!("takes direct, or a name from [proxies] of the workers' config file, not {text:?}")
            }),
        }
    }
}

impl fmt::Display for ProxyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyChoice::Direct => f.write_str(DIRECT),
            ProxyChoice::Through(name) => name.fmt(f),
        }
    }
}

/// Names from the table `[credentials]`; may be empty. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CredentialNames(Arc<[AccessName]>);

impl CredentialNames {
    /// Iterates over the names in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = &AccessName> {
        self.0.iter()
    }
}

impl FromStr for CredentialNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Result<Vec<AccessName>, String> =
            entries(text, "none")?.map(str::parse).collect();
        let names = names.map_err(|_| {
            format!(
                "takes none, or names from [credentials] of the workers' config file, not {text:?}"
            )
        })?;
        Ok(Self(names.into()))
    }
}

impl fmt::Display for CredentialNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0, "none")
    }
}

as_text!(AccessName, ProxyChoice, CredentialNames);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain_and_others_are_refused() {
        let long = "x".repeat(64);
        for text in ["", "A", "a b", "a/b", "é", long.as_str()] {
            let error = text.parse::<ProxyChoice>().unwrap_err();
            let expected = format!(
                "takes direct, or a name from [proxies] of the workers' config file, not {text:?}"
            );
            assert_eq!(error, expected);
        }
        for text in ["A", "a,,b", "a b"] {
            let error = text.parse::<CredentialNames>().unwrap_err();
            let expected = format!(
                "takes none, or names from [credentials] of the workers' config file, not {text:?}"
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn what_is_read_is_written_again() {
        for text in ["direct", "de-2.fast_x"] {
            let choice: ProxyChoice = text.parse().unwrap();
            assert_eq!(choice.to_string(), text);
        }
        assert_eq!("direct".parse(), Ok(ProxyChoice::Direct));
        for (text, expected) in [("a,b", "a, b"), ("none", "none"), ("", "none")] {
            let names: CredentialNames = text.parse().unwrap();
            assert_eq!(names.to_string(), expected);
        }
    }
}
