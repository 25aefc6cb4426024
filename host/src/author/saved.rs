//! A call of a rule that is kept in a folder: `NAME.call.json`, and the body of its page beside it.
//!
//! ```text
//! pages/
//!     detail.call.json   rule, params, address, status, headers, and what came of the call
//!     detail.html        the body, as it came: it can be opened and edited
//!     root.call.json     a call without a page is one of root
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::Permissions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use url::Url;

use super::outcome::{Octets, Outcome};
use crate::fetch::charset;
use crate::model::crawl::{FetchRecord, Page, PageContext, UnixMillis};
use crate::model::headers::Headers;

/// How the names of files end that keep a call.
const ENDING: &str = ".call.json";
/// Bytes of a name.
const NAME_MAX: usize = 100;
/// Bytes of a file that keeps a call: what came of it is limited by `item-bytes`, its page lies beside it.
const MAX_CALL: u64 = 256 << 20;

/// The name of a call: that of its file, without the ending.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallName(String);

impl CallName {
    /// For a page that nobody has named: its rule, and the last part of its path.
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

/// A call, with what it gets from the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "File", into = "File")]
pub struct SavedCall {
    /// What is called.
    pub called: Called,
    /// As by `--param`.
    pub params: BTreeMap<String, String>,
    /// What came of it. None: nobody has said so yet.
    pub outcome: Option<Outcome>,
}

/// What is called, and with what.
#[derive(Debug, Clone, PartialEq)]
pub enum Called {
    /// `root`.
    Root {
        /// The clock that it sees. A rule sees the moment of its page.
        now: UnixMillis,
    },
    /// A rule.
    Rule {
        /// Its name.
        rule: String,
        /// What it is called for.
        page: Box<SavedPage>,
    },
}

impl Called {
    /// The name of the rule.
    pub fn name(&self) -> &str {
        match self {
            Called::Root { .. } => "root",
            Called::Rule { rule, .. } => rule,
        }
    }
}

/// A call, as its file has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    params: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    now: UnixMillis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page: Option<Box<SavedPage>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

impl TryFrom<File> for SavedCall {
    type Error = &'static str;

    fn try_from(file: File) -> Result<Self, Self::Error> {
        let called = match (file.rule, file.page) {
            (None, None) => Called::Root { now: file.now },
            (Some(_), Some(_)) if file.now != 0 => {
                return Err("a rule sees the moment of its page: \"now\" is for root");
            }
            (Some(rule), Some(page)) => Called::Rule { rule, page },
            (Some(_), None) => return Err("a rule is called with a page: \"page\" is missing"),
            (None, Some(_)) => return Err("a page is for a rule: \"rule\" is missing"),
        };
        Ok(Self {
            called,
            params: file.params,
            outcome: file.outcome,
        })
    }
}

impl From<SavedCall> for File {
    fn from(call: SavedCall) -> Self {
        let (rule, page, now) = match call.called {
            Called::Root { now } => (None, None, now),
            Called::Rule { rule, page } => (Some(rule), Some(page), 0),
        };
        Self {
            rule,
            params: call.params,
            now,
            page,
            outcome: call.outcome,
        }
    }
}

/// A page, without its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SavedPage {
    url: Url,
    body: BodyFile,
    /// None: the same as `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requested_url: Option<Url>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redirects: Vec<Url>,
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    status: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "is_zero")]
    fetched_at: UnixMillis,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(default, skip_serializing_if = "is_root")]
    depth: u32,
    #[serde(default = "first", skip_serializing_if = "is_first")]
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Octets>,
    /// What the text was decoded from, where it is not the body as it stands. Only a note, for native tests,
    /// which do not decode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    charset: Option<String>,
}

/// The name of a file beside the call's, and never of one elsewhere: calls are shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct BodyFile(String);

impl TryFrom<String> for BodyFile {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let mut parts = Path::new(&name).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(only)), None) if only == OsStr::new(&name) => Ok(Self(name)),
            _ => Err(format!("body {name:?} is no file beside the call's")),
        }
    }
}

impl From<BodyFile> for String {
    fn from(BodyFile(name): BodyFile) -> Self {
        name
    }
}

/// Why a saved call cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// A folder or a file of it.
    #[error("cannot {doing} {path}")]
    Io {
        /// `read`, `write`.
        doing: &'static str,
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no saved call.
    #[error("{path}: {why}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What it should be.
        why: String,
    },
    /// One is there that is not to be replaced.
    #[error("{path} is there already: give another name with --as, or --replace it")]
    Present {
        /// The file.
        path: PathBuf,
    },
}

/// The names of all calls of a folder, in their order.
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

/// The file of a call.
pub fn path_of(folder: &Path, name: &CallName) -> PathBuf {
    folder.join(format!("{name}{ENDING}"))
}

impl SavedCall {
    /// The call of this name.
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

    /// Keeps what came of it, unless the file is another one meanwhile. Whether that is something new.
    pub fn update(
        &mut self,
        folder: &Path,
        name: &CallName,
        outcome: Outcome,
    ) -> Result<bool, SavedError> {
        if Self::read(folder, name)? != *self {
            let why = "it was changed meanwhile, and is left as it is; try again".to_owned();
            let path = path_of(folder, name);
            return Err(SavedError::Form { path, why });
        }
        let before = self.clone();
        self.outcome = Some(outcome);
        if let Called::Rule { page, .. } = &mut self.called {
            // As by a fetch, for a call that was written by hand.
            let (read, _) = page.page(folder, u64::MAX)?;
            page.charset = charset_of(&read);
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

    /// A fetched page for a rule, kept with its body under this name. Where files are there already, they are
    /// replaced, or else it is an error.
    pub fn keep(
        folder: &Path,
        name: &CallName,
        rule: &str,
        params: BTreeMap<String, String>,
        page: &Page,
        is_replacing: bool,
    ) -> Result<Self, SavedError> {
        std::fs::create_dir_all(folder).map_err(|source| SavedError::Io {
            doing: "write",
            path: folder.to_owned(),
            source,
        })?;
        let body = format!("{name}.{}", ending(page.header("content-type")));
        let call = Self {
            called: Called::Rule {
                rule: rule.to_owned(),
                page: Box::new(SavedPage::of(page, BodyFile(body.clone()))),
            },
            params,
            outcome: None,
        };
        let path = path_of(folder, name);
        if !is_replacing && path.exists() {
            return Err(SavedError::Present { path });
        }
        write(&folder.join(&body), &page.body, is_replacing)?;
        call.write(folder, name)?;
        Ok(call)
    }
}

impl SavedPage {
    fn of(page: &Page, body: BodyFile) -> Self {
        let headers = page.headers.iter();
        // What a session is known by is nothing to be kept, and often to be shared, with a rule.
        let headers = headers.filter(|(name, _)| *name != "set-cookie");
        Self {
            url: page.url.clone(),
            body,
            requested_url: (page.requested_url != page.url).then(|| page.requested_url.clone()),
            redirects: page.redirects.clone(),
            status: page.status,
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            fetched_at: page.fetched_at,
            truncated: page.truncated,
            depth: 0,
            attempt: first(),
            state: None,
            charset: charset_of(page),
        }
    }

    /// The page as a rule sees it, its body cut where one that is fetched would be.
    pub fn page(&self, folder: &Path, max_body: u64) -> Result<(Page, PageContext), SavedError> {
        let (body, is_cut) = read(&folder.join(&self.body.0), max_body)?;
        let body = Bytes::from(body);
        let mut headers = Headers::default();
        for (name, value) in &self.headers {
            headers.push(&name.to_ascii_lowercase(), value);
        }
        let text = charset::decode(&body, headers.get("content-type"), self.url.host_str());
        let requested_url = self.requested_url.as_ref();
        let page = Page {
            requested_url: requested_url.unwrap_or(&self.url).clone(),
            url: self.url.clone(),
            status: self.status,
            headers,
            redirects: self.redirects.clone(),
            fetched_at: self.fetched_at,
            truncated: self.truncated || is_cut,
            body,
            text,
            record: FetchRecord::default(),
        };
        let state = self.state.clone().map(Octets::into_bytes);
        let context = PageContext {
            depth: self.depth,
            attempt: self.attempt,
            state: state.unwrap_or_default().into(),
        };
        Ok((page, context))
    }
}

/// How the file of a body ends, so that what opens it knows what it is.
fn ending(content_type: Option<&str>) -> &'static str {
    let essence = content_type.unwrap_or_default().split(';').next();
    match essence
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
        .as_str()
    {
        "text/html" | "application/xhtml+xml" | "" => "html",
        kind if kind.ends_with("json") => "json",
        kind if kind.ends_with("xml") => "xml",
        kind if kind.starts_with("text/") => "txt",
        _ => "bin",
    }
}

/// What the text was decoded from, where it is not the body as it stands.
fn charset_of(page: &Page) -> Option<String> {
    let is_decoded = page.text.decoded.is_some() || str::from_utf8(&page.body).is_err();
    is_decoded.then(|| page.text.charset.to_owned())
}

/// At most so many bytes of a file, and whether there are more. Only of a plain file: what else there is may
/// never end, or lead elsewhere.
fn read(path: &Path, max: u64) -> Result<(Vec<u8>, bool), SavedError> {
    let read = || {
        if !std::fs::symlink_metadata(path)?.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        let file = std::fs::File::open(path)?;
        let mut bytes = Vec::new();
        file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let is_cut = bytes.len() > max;
        bytes.truncate(max);
        Ok((bytes, is_cut))
    };
    read().map_err(|source| SavedError::Io {
        doing: "read",
        path: path.to_owned(),
        source,
    })
}

/// Whole, or not at all.
fn write(path: &Path, bytes: &[u8], is_replacing: bool) -> Result<(), SavedError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut named = tempfile::Builder::new();
    // As of any other file; a temporary one is its owner's only.
    named.permissions(Permissions::from_mode(0o666));
    let written = named.tempfile_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        let kept = match is_replacing {
            true => file.persist(path),
            false => file.persist_noclobber(path),
        };
        Ok(kept?)
    });
    let path = path.to_owned();
    match written {
        Ok(_file) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(SavedError::Present { path })
        }
        Err(source) => Err(SavedError::Io {
            doing: "write",
            path,
            source,
        }),
    }
}

fn ok() -> u16 {
    200
}

fn is_ok(status: &u16) -> bool {
    *status == ok()
}

fn first() -> u32 {
    1
}

fn is_first(attempt: &u32) -> bool {
    *attempt == first()
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_root(depth: &u32) -> bool {
    *depth == 0
}

#[cfg(test)]
mod tests;
