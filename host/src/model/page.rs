//! An answer, as rules see it, and how it was got.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use url::Url;

use super::crawl::UnixMillis;
use super::headers::Headers;

/// An answer, as rules see it.
#[derive(Debug, Clone)]
pub struct Page {
    /// Where the answer came from.
    pub url: Url,
    /// What was asked for.
    pub requested_url: Url,
    /// Of the last answer.
    pub status: u16,
    /// Names in lower case, in the order received.
    pub headers: Headers,
    /// Every address on the way, without the last.
    pub redirects: Vec<Url>,
    /// Of the answer.
    pub fetched_at: UnixMillis,
    /// The body was longer than the limit, and is cut.
    pub truncated: bool,
    /// Content-encoding removed.
    pub body: Bytes,
    /// The body as text.
    pub text: PageText,
    /// How the last answer was got.
    pub record: FetchRecord,
}

/// The text of a page and the encoding it was decoded from.
#[derive(Debug, Clone)]
pub struct PageText {
    /// By its WHATWG name.
    pub charset: &'static str,
    /// What told it.
    pub source: CharsetSource,
    /// None: the body is UTF-8 as it stands.
    pub decoded: Option<String>,
}

/// What relative addresses of a page are relative to, where it says so in these words.
pub fn base_of(written: Option<&str>, page: &Url) -> Url {
    let base = written.and_then(|base| page.join(base).ok());
    // The standard leaves out those of no place; a crawl has no use for any but these.
    let base = base.filter(|base| leads_on(base, page));
    base.unwrap_or_else(|| page.clone())
}

/// Whether an address found on a page is one of a page: of the web, or as the page itself is.
pub fn leads_on(address: &Url, page: &Url) -> bool {
    matches!(address.scheme(), "http" | "https") || address.scheme() == page.scheme()
}

impl Page {
    /// The body decoded to Unicode.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match &self.text.decoded {
            Some(text) => text.into(),
            // Checked first, because that is several times as fast as looking for what to replace.
            None => match simdutf8::basic::from_utf8(&self.body) {
                Ok(text) => text.into(),
                Err(_) => String::from_utf8_lossy(&self.body),
            },
        }
    }

    /// Bytes of [`text`](Self::text), or nearly so many where the body is not what it says.
    pub fn text_bytes(&self) -> usize {
        let decoded = self.text.decoded.as_ref();
        decoded.map_or(self.body.len(), String::len)
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// How it was got, for rules: names in lower case, in this order. What is not known is not there; what
    /// is there may become more.
    pub fn metadata(&self) -> Vec<(String, String)> {
        let record = &self.record;
        let millis = |time: Duration| time.as_millis().to_string();
        let all = [
            ("charset-source", Some(self.text.source.to_string())),
            ("address", record.address.map(|address| address.to_string())),
            ("http-version", record.version.map(str::to_owned)),
            ("proxy", record.proxy.as_deref().map(str::to_owned)),
            ("wait-ms", Some(millis(record.waited))),
            ("lookup-ms", record.lookup.map(millis)),
            ("connect-ms", record.connect.map(millis)),
            ("first-byte-ms", Some(millis(record.first_byte))),
            ("body-ms", Some(millis(record.body))),
            ("body-bytes", Some(record.n_received.to_string())),
        ];
        let known = all
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        known.collect()
    }
}

/// What told the encoding of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharsetSource {
    /// A byte order mark.
    Mark,
    /// The content type.
    Header,
    /// The document: `<meta>`, or `<?xml encoding>`.
    Document,
    /// It is valid UTF-8.
    Valid,
    /// Its bytes look like it.
    Detected,
    /// It is not text.
    None,
}

impl CharsetSource {
    /// As rules see it.
    pub fn as_str(self) -> &'static str {
        match self {
            CharsetSource::Mark => "mark",
            CharsetSource::Header => "header",
            CharsetSource::Document => "document",
            CharsetSource::Valid => "valid",
            CharsetSource::Detected => "detected",
            CharsetSource::None => "none",
        }
    }
}

impl fmt::Display for CharsetSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How one answer was got.
#[derive(Debug, Clone, Default)]
pub struct FetchRecord {
    /// For the turn of its host.
    pub waited: Duration,
    /// For the addresses of the name. None: nobody had to ask.
    pub lookup: Option<Duration>,
    /// For the connection: lookup, a proxy's part and TLS included. None: there was one.
    pub connect: Option<Duration>,
    /// From being sent to the headers of the answer, connection included.
    pub first_byte: Duration,
    /// From those to the end of the body.
    pub body: Duration,
    /// Of the body, before its content-encoding was removed.
    pub n_received: u64,
    /// Who answered: the host, or the proxy.
    pub address: Option<SocketAddr>,
    /// Of HTTP.
    pub version: Option<&'static str>,
    /// Through which it was asked, without its credentials.
    pub proxy: Option<Arc<str>>,
}

/// What the crawl knows of a page beside the answer.
#[derive(Debug, Clone, Default)]
pub struct PageContext {
    /// Links between the root requests (0) and this page.
    pub depth: u32,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// What the request carried.
    pub state: Bytes,
}
