//! The head of an answer: its version and headers in the form that a page has them, and what it decides before the
//! body is read.

use reqwest::header::{self, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Version};
use url::Url;

use super::FetchSettings;
use super::body::Limit;
use super::hop::{Hop, Outcome};
use crate::FetchError;
use crawler_model::headers::Headers;

/// Headers about a coding, which do not hold for a body whose coding has been removed.
pub(crate) const OF_CODING: [HeaderName; 2] = [header::CONTENT_ENCODING, header::CONTENT_LENGTH];

/// Returns the version of HTTP, as rules see it.
pub(super) fn version(version: Version) -> Option<&'static str> {
    match version {
        Version::HTTP_09 => Some("0.9"),
        Version::HTTP_10 => Some("1.0"),
        Version::HTTP_11 => Some("1.1"),
        Version::HTTP_2 => Some("2"),
        _ => None,
    }
}

/// Returns the headers, without those about a coding that has been removed.
pub(super) fn headers(response: &Response, is_encoded: bool, settings: &FetchSettings) -> Headers {
    let (all, max) = (response.headers(), settings.max_header_bytes);
    let size = |name: &HeaderName, value: &HeaderValue| name.as_str().len() + value.len();
    let n_bytes = all.iter().map(|(name, value)| size(name, value)).sum();
    let mut headers = Headers::with_capacity(all.len(), max.min(n_bytes));
    let mut n_kept = 0;
    for (name, value) in all {
        if is_encoded && OF_CODING.contains(name) {
            continue;
        }
        n_kept += size(name, value);
        if n_kept > max {
            break;
        }
        headers.push(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
    }
    headers
}

impl Hop {
    /// Returns the outcome of an answer whose body is not wanted: a redirect, or an error. Returns `None` if the body
    /// is to be read.
    pub(super) fn without_body(
        &self,
        response: &Response,
        settings: &FetchSettings,
    ) -> Result<Option<Outcome>, FetchError> {
        // Over HTTP/2 the client does not count them.
        if response.headers().len() > settings.max_headers {
            let max = settings.max_headers;
            return Err(FetchError::Headers { max });
        }
        if let Some(to) = self.target(response) {
            let status = response.status();
            return Ok(Some(Outcome::Redirect { to, status }));
        }
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
        if response.status().is_success() && !self.content_types.want(content_type.as_deref()) {
            let content_type = content_type.unwrap_or_default().into_owned();
            return Err(FetchError::ContentType { content_type });
        }
        Ok(None)
    }

    /// Returns the limit on the body of an answer.
    pub(super) fn limit(&self, response: &Response, max_body: u64) -> Limit {
        match self.max_file {
            // A part of a body is never kept.
            Some(max)
                if response.status().is_success()
                    && response.status() != StatusCode::PARTIAL_CONTENT =>
            {
                Limit::Whole(max)
            }
            Some(_) | None => Limit::Cut(max_body),
        }
    }

    /// Returns the target of a redirect. A redirect without a target, or one that the rule asked for, is a page
    /// like any other.
    fn target(&self, response: &Response) -> Option<Url> {
        let status = response.status().as_u16();
        let redirects = matches!(status, 301 | 302 | 303 | 307 | 308)
            && !self.accept_status.takes_redirect(status);
        let location = response.headers().get(header::LOCATION)?;
        let location = String::from_utf8_lossy(location.as_bytes());
        let mut to = self.url.join(&location).ok().filter(|_| redirects)?;
        to.set_fragment(None);
        Some(to)
    }
}
