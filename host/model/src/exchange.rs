//! One exchange with a site as it was sent and received: what an archive keeps, and what it gives back.

use bytes::Bytes;
use url::Url;

use super::page::FetchRecord;
use super::time::UnixMillis;

/// Name and value of a header of a message, as it was sent.
pub type SentHeader = (String, Bytes);

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// URL that was requested, without its fragment.
    pub url: Url,
    /// Method of the request, in capital letters.
    pub method: String,
    /// Headers of the request, in order.
    pub request_headers: Vec<SentHeader>,
    /// Body of the request; empty if it had none.
    pub request_body: Bytes,
    /// Status of the answer.
    pub status: u16,
    /// Headers of the answer, in the order received.
    pub headers: Vec<SentHeader>,
    /// Body of the answer.
    pub body: Bytes,
    /// Relation between the body here and the one that the site sent.
    pub body_form: BodyForm,
    /// Time at which the request was sent.
    pub began_at: UnixMillis,
    /// Time at which the answer was complete.
    pub ended_at: UnixMillis,
    /// Record of how the answer was fetched.
    pub record: FetchRecord,
}

/// Redirects that led to a request, within the fetch of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirects {
    /// Method of the request that the page began with.
    pub method: String,
    /// URL of that request.
    pub url: Url,
    /// Body of that request; empty if it had none.
    pub body: Bytes,
    /// Number of redirects since then.
    pub n: usize,
}

/// Relation between a body that was recorded and the one that the site sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyForm {
    /// The body is whole and has the content-encoding that the headers name. Only the transfer-encoding was removed.
    #[default]
    Sent,
    /// The body is whole, and its content-encoding was removed.
    Decoded,
    /// The body was cut, after its content-encoding was removed.
    Cut,
    /// The body was not read.
    Unread,
}

impl Exchange {
    /// Returns the number of bytes that it takes in memory, about.
    pub fn n_bytes(&self) -> u64 {
        let headers = self.request_headers.iter().chain(&self.headers);
        let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
        let n_bytes = headers + self.url.as_str().len() + self.request_body.len() + self.body.len();
        n_bytes as u64
    }

    /// Returns the value of the first header of the answer with this name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter();
        let (_, value) = named.find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok()
    }
}
