//! A call of a rule that is kept in a folder: `NAME.call.json`, and the body of its page in a file beside it.
//!
//! ```text
//! pages/
//!     detail.call.json   rule, params, limits, address, status, headers, and what came of the call
//!     detail.html        the body, as it came: it can be opened and edited
//!     root.call.json     a call without a page is one of root
//! ```
//!
//! ```text
//! name    what a call is called
//! page    a page without its body, and how it is read as a rule sees it
//! files   plain files, read to a limit, written whole or not at all
//! prune   calls of rules that are gone, removed
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::error::SavedError;
use self::files::{read, write};
pub use self::name::CallName;
pub use self::page::SavedPage;
use self::page::{BodyFile, ending, is_zero};
pub use self::prune::{Pruned, prune};
use super::outcome::Outcome;
use crawler_model::crawl::{Page, UnixMillis};
use crawler_model::plugin::LimitOverrides;

mod error;
pub mod files;
mod name;
mod page;
mod prune;

/// Ending of the names of files that keep a call.
const ENDING: &str = ".call.json";
/// Largest size in bytes of a file that keeps a call: its outcome is limited by `item-bytes`, and its page is
/// in another file.
const MAX_CALL: u64 = 256 << 20;

/// A saved call with the params that the user sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "File", into = "File")]
pub struct SavedCall {
    /// Rule or root that is called.
    pub called: CallTarget,
    /// Params of the call, as `--param` gives them.
    pub params: BTreeMap<String, String>,
    /// Limits of the call, as `--limit` gives them.
    pub limits: LimitOverrides,
    /// Outcome that was kept. If `None`, nothing was kept yet.
    pub outcome: Option<Outcome>,
}

/// Target of a call, with its input.
#[derive(Debug, Clone, PartialEq)]
pub enum CallTarget {
    /// Call of `root`.
    Root {
        /// Clock that root sees. A rule sees the time of its page.
        now: UnixMillis,
    },
    /// Call of a rule.
    Rule {
        /// Name of the rule.
        rule: String,
        /// Page that the rule is called for.
        page: Box<SavedPage>,
    },
}

impl CallTarget {
    /// Returns the name of the rule, or `root`.
    pub fn name(&self) -> &str {
        match self {
            CallTarget::Root { .. } => "root",
            CallTarget::Rule { rule, .. } => rule,
        }
    }
}

/// A call in the form of its file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    params: BTreeMap<String, String>,
    /// Limits in base units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    now: UnixMillis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page: Option<Box<SavedPage>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

impl TryFrom<File> for SavedCall {
    type Error = String;

    fn try_from(file: File) -> Result<Self, Self::Error> {
        let mut limits = LimitOverrides::default();
        for (name, value) in &file.limits {
            let set = limits.set_number(name, *value);
            set.map_err(|error| error.to_string())?;
        }
        let called = match (file.rule, file.page) {
            (None, None) => CallTarget::Root { now: file.now },
            (Some(_), Some(_)) if file.now != 0 => {
                return Err("a rule sees the moment of its page: \"now\" is for root".to_owned());
            }
            (Some(rule), Some(page)) => CallTarget::Rule { rule, page },
            (Some(_), None) => {
                return Err("a rule is called with a page: \"page\" is missing".to_owned());
            }
            (None, Some(_)) => {
                return Err("a page is for a rule: \"rule\" is missing".to_owned());
            }
        };
        Ok(Self {
            called,
            params: file.params,
            limits,
            outcome: file.outcome,
        })
    }
}

impl From<SavedCall> for File {
    fn from(call: SavedCall) -> Self {
        let (rule, page, now) = match call.called {
            CallTarget::Root { now } => (None, None, now),
            CallTarget::Rule { rule, page } => (Some(rule), Some(page), 0),
        };
        let limits = call.limits.iter();
        let limits = limits.map(|(name, value)| (name.as_str().to_owned(), value));
        Self {
            rule,
            params: call.params,
            limits: limits.collect(),
            now,
            page,
            outcome: call.outcome,
        }
    }
}

/// Returns the names of all calls of a folder, sorted.
pub fn names(folder: &Path) -> Result<Vec<CallName>, SavedError> {
    let failed = |source| SavedError::Io {
        doing: "read",
        path: folder.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(name) = name.strip_suffix(ENDING) {
            let name = name.parse().map_err(|why: &str| SavedError::Form {
                path: path.clone(),
                why: why.to_owned(),
            });
            names.push(name?);
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the folder and the name of the call that a file keeps, by the file's name.
pub fn call_of(path: &Path) -> Option<(PathBuf, CallName)> {
    let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?;
    Some((path.parent()?.to_owned(), name.parse().ok()?))
}

/// Returns the path of a call's file.
pub fn path_of(folder: &Path, name: &CallName) -> PathBuf {
    folder.join(format!("{name}{ENDING}"))
}

impl SavedCall {
    /// Reads the call of this name.
    pub fn read(folder: &Path, name: &CallName) -> Result<Self, SavedError> {
        let path = path_of(folder, name);
        let (bytes, is_cut) = read(&path, MAX_CALL)?;
        let failed = |why| SavedError::Form { path, why };
        if is_cut {
            return Err(failed(format!("a call has at most {MAX_CALL} bytes")));
        }
        let call = serde_json::from_slice(&bytes);
        call.map_err(|error| failed(format!("it is no saved call: {error}")))
    }

    /// Keeps the outcome of the call, and limits that it was made with in addition to its own, unless the file has
    /// changed meanwhile. Returns true if anything is new.
    pub fn update(
        &mut self,
        folder: &Path,
        name: &CallName,
        outcome: Outcome,
        limits: &LimitOverrides,
    ) -> Result<bool, SavedError> {
        if Self::read(folder, name)? != *self {
            let why = "it was changed meanwhile, and is left as it is; try again".to_owned();
            let path = path_of(folder, name);
            return Err(SavedError::Form { path, why });
        }
        let before = self.clone();
        self.outcome = Some(outcome);
        self.limits = self.limits.and(limits);
        if let CallTarget::Rule { page, .. } = &mut self.called {
            let (read, _) = page.page(folder, u64::MAX)?;
            page.note(&read);
        }
        let is_new = *self != before;
        if is_new {
            self.write(folder, name)?;
        }
        Ok(is_new)
    }

    fn write(&self, folder: &Path, name: &CallName) -> Result<(), SavedError> {
        let text = serde_json::to_string_pretty(self).expect("a call is plain data");
        write(&path_of(folder, name), format!("{text}\n").as_bytes(), true)
    }

    /// Keeps a fetched page for a rule, with its body, under this name. If files are there already, they are
    /// replaced if allowed; otherwise it is an error. A call that is replaced leaves what a fetch cannot
    /// tell: its outcome, and how its rule was called. Limits are added to its own.
    pub fn keep(
        folder: &Path,
        name: &CallName,
        fetched: Fetched<'_>,
        is_replacing: bool,
    ) -> Result<Self, SavedError> {
        let Fetched {
            rule,
            params,
            mut limits,
            state,
            page,
            is_kept,
        } = fetched;
        std::fs::create_dir_all(folder).map_err(|source| SavedError::Io {
            doing: "write",
            path: folder.to_owned(),
            source,
        })?;
        let body = format!("{name}.{}", ending(page.header("content-type")));
        let path = path_of(folder, name);
        if !is_replacing && path.exists() {
            return Err(SavedError::Present { path });
        }
        let mut saved = SavedPage::of(page, BodyFile(body.clone()), is_kept);
        let (mut params, mut outcome) = (params, None);
        if let Some(earlier) = Self::earlier(folder, name, rule)
            && let CallTarget::Rule {
                page: earlier_page, ..
            } = &earlier.called
        {
            saved.called_as(earlier_page);
            outcome = earlier.outcome;
            limits = earlier.limits.and(&limits);
            if params.is_empty() {
                params = earlier.params;
            }
        }
        if let Some(state) = state {
            saved.set_state(state);
        }
        let call = Self {
            called: CallTarget::Rule {
                rule: rule.to_owned(),
                page: Box::new(saved),
            },
            params,
            limits,
            outcome,
        };
        write(&folder.join(&body), &page.body, is_replacing)?;
        call.write(folder, name)?;
        Ok(call)
    }

    /// Returns the limits with which a page is fetched for a rule: those of the earlier call of this name, which the
    /// fetch replaces, and the given ones on top. They are the limits that [`SavedCall::keep`] keeps.
    pub fn fetch_limits(
        folder: &Path,
        name: &CallName,
        rule: &str,
        given: &LimitOverrides,
    ) -> LimitOverrides {
        let earlier = Self::earlier(folder, name, rule);
        let own = earlier.map(|earlier| earlier.limits).unwrap_or_default();
        own.and(given)
    }

    /// Returns the call of this name if it is one of this rule. A call that cannot be read leaves nothing.
    fn earlier(folder: &Path, name: &CallName, rule: &str) -> Option<Self> {
        let earlier = Self::read(folder, name).ok()?;
        match &earlier.called {
            CallTarget::Rule { rule: same, .. } if same == rule => Some(earlier),
            CallTarget::Rule { .. } | CallTarget::Root { .. } => None,
        }
    }
}

/// A fetched page that is to be kept.
#[derive(Debug)]
pub struct Fetched<'a> {
    /// Rule that the page is for.
    pub rule: &'a str,
    /// Params with which the rule is called.
    pub params: BTreeMap<String, String>,
    /// Limits of the call, in addition to the defaults.
    pub limits: LimitOverrides,
    /// State that the page's request carries.
    pub state: Option<&'a str>,
    /// Page as it was fetched.
    pub page: &'a Page,
    /// True if the request wanted the body kept.
    pub is_kept: bool,
}

#[cfg(test)]
mod tests;
