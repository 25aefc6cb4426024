//! The name of a saved call.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use url::Url;

/// Largest length of a name in bytes.
const NAME_MAX: usize = 100;

/// Name of a call: the name of its file, without the ending.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallName(String);

impl CallName {
    /// Makes a name for a page that the user did not name: its rule, and the last part of its path.
    pub fn of(rule: &str, url: &Url) -> Self {
        let mut segments = url.path_segments().into_iter().flatten();
        let last = segments.rfind(|segment| !segment.is_empty());
        let stem = last.map(Path::new).and_then(Path::file_stem);
        let stem = stem.and_then(OsStr::to_str).unwrap_or_default();
        let rule = rule.chars().take(NAME_MAX / 2);
        let mut name: String = rule.map(|c| if is_fit(c) { c } else { '-' }).collect();
        for word in stem.split(|c: char| !c.is_ascii_alphanumeric()) {
            if !word.is_empty() && name.len() + word.len() < NAME_MAX {
                name.push('-');
                name.push_str(&word.to_ascii_lowercase());
            }
        }
        Self(name)
    }
}

impl FromStr for CallName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match !text.is_empty() && text.len() <= NAME_MAX && text.chars().all(is_fit) {
            true => Ok(Self(text.to_owned())),
            false => {
                Err("the name of a call has 1 to 100 letters, digits, - and _, as in sold-out")
            }
        }
    }
}

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_fit(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}
