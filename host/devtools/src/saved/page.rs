//! A saved page without its body, which is a file beside it.

use std::ffi::OsStr;
use std::path::{Component, Path};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use url::Url;

use super::error::SavedError;
use super::files::read;
use crate::outcome::Octets;
use crawler_fetch::charset;
use crawler_model::crawl::{FetchRecord, Page, PageContext, UnixMillis};
use crawler_model::headers::Headers;
use crawler_model::id::Digest;
use crawler_model::page::PageText;

/// A page without its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SavedPage {
    url: Url,
    pub(super) body: BodyFile,
    /// URL that was requested. If `None`, it is the same as `url`.
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
    /// URL of the page whose link first led to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    referrer: Option<String>,
    /// Charset that the text was decoded from, if the text is not the body as it is. It is only a note for
    /// native tests, which do not decode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) charset: Option<String>,
    /// Digest of the body, if the request wanted it kept. It is only a note for native tests, which do not hash: a rule
    /// in the sandbox gets the digest of the body as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

/// Name of a file beside the call's own. A path elsewhere is refused, because calls are shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct BodyFile(pub(super) String);

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

impl SavedPage {
    pub(super) fn of(page: &Page, body: BodyFile, is_kept: bool) -> Self {
        let headers = page.headers.iter();
        // A session's cookies must not be kept with a rule, because saved calls are often shared.
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
            referrer: None,
            charset: charset_of(page),
            kept: is_kept.then(|| Digest::of(&page.body).to_string()),
        }
    }

    /// Notes what native tests cannot tell of the body. A fetch does so; a call that was written by hand gets it here.
    pub(super) fn note(&mut self, read: &Page) {
        self.charset = charset_of(read);
        let is_kept = self.kept.is_some();
        self.kept = is_kept.then(|| Digest::of(&read.body).to_string());
    }

    /// Takes the input that a rule gets beside the page from an earlier call. Whether the body is kept is not taken: it
    /// decides how the page is fetched.
    pub(super) fn called_as(&mut self, earlier: &Self) {
        (self.depth, self.attempt) = (earlier.depth, earlier.attempt);
        self.state.clone_from(&earlier.state);
        self.referrer.clone_from(&earlier.referrer);
    }

    pub(super) fn set_state(&mut self, state: &str) {
        let is_empty = state.is_empty();
        self.state = (!is_empty).then(|| Octets::of(state.as_bytes()));
    }

    /// Returns the page as a rule sees it; its body is cut at the length at which that of a fetched page is
    /// cut. A body that is kept is whole, and is not decoded if it is longer.
    pub fn page(&self, folder: &Path, max_body: u64) -> Result<(Page, PageContext), SavedError> {
        let max_read = match self.kept {
            Some(_) => u64::MAX,
            None => max_body,
        };
        let (body, is_cut) = read(&folder.join(&self.body.0), max_read)?;
        let body = Bytes::from(body);
        let mut headers = Headers::default();
        for (name, value) in &self.headers {
            headers.push(&name.to_ascii_lowercase(), value);
        }
        let content_type = headers.get("content-type");
        let text = match body.len() as u64 <= max_body {
            true => charset::decode(&body, content_type, self.url.host_str()),
            false => PageText::binary(),
        };
        let kept = self.kept.as_ref().map(|_note| Digest::of(&body));
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
            referrer: self.referrer.as_deref().map(Into::into),
            kept,
        };
        Ok((page, context))
    }
}

/// Returns the ending of a body's file, by which programs recognise its type.
pub(super) fn ending(content_type: Option<&str>) -> &'static str {
    let essence = content_type.unwrap_or_default().split(';').next();
    match essence
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
        .as_str()
    {
        "text/html" | "application/xhtml+xml" | "" => "html",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        kind if kind.ends_with("json") => "json",
        kind if kind.ends_with("xml") => "xml",
        kind if kind.starts_with("text/") => "txt",
        _ => "bin",
    }
}

/// Returns the charset that the text was decoded from, if the text is not the body as it is.
pub(super) fn charset_of(page: &Page) -> Option<String> {
    let is_decoded = page.text.decoded.is_some() || str::from_utf8(&page.body).is_err();
    is_decoded.then(|| page.text.charset.to_owned())
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

fn is_root(depth: &u32) -> bool {
    *depth == 0
}

pub(super) fn is_zero(n: &u64) -> bool {
    *n == 0
}
