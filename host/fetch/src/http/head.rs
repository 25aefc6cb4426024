//! The head of an answer in the form that a page has it: its version and its headers.

use reqwest::header::{self, HeaderName, HeaderValue};
use reqwest::{Response, Version};

use super::FetchSettings;
use crawler_model::headers::Headers;

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
    let of_coding = [header::CONTENT_ENCODING, header::CONTENT_LENGTH];
    let mut n_kept = 0;
    for (name, value) in all {
        if is_encoded && of_coding.contains(name) {
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
