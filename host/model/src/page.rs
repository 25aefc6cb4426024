//! A response in the form in which rules see it, and the record of how it was fetched.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use url::Url;

use super::headers::Headers;
use super::id::Digest;
use super::time::UnixMillis;

/// A response in the form in which rules see it.
#[derive(Debug, Clone)]
pub struct Page {
    /// URL that the response came from.
    pub url: Url,
    /// URL that was requested.
    pub requested_url: Url,
    /// Status code of the last response.
    pub status: u16,
    /// Header names in lower case, in the order received.
    pub headers: Headers,
    /// Every address of the redirect chain except the last.
    pub redirects: Vec<Url>,
    /// Time of the response.
    pub fetched_at: UnixMillis,
    /// True if the body was longer than the limit and has been cut.
    pub truncated: bool,
    /// Body with the content encoding removed.
    pub body: Bytes,
    /// The body as text.
    pub text: PageText,
    /// Record of how the last response was fetched.
    pub record: FetchRecord,
}

/// The text of a page and the encoding it was decoded from.
#[derive(Debug, Clone)]
pub struct PageText {
    /// WHATWG name of the encoding.
    pub charset: &'static str,
    /// Evidence that decided the encoding.
    pub source: CharsetSource,
    /// Text of the body. If `None`, the body itself is UTF-8.
    pub decoded: Option<String>,
}

impl PageText {
    /// Charset of a body that is not text, for which WHATWG has no name.
    pub const BINARY: &'static str = "binary";

    /// Returns the text of a body that is not text: none.
    pub fn binary() -> Self {
        Self {
            charset: Self::BINARY,
            source: CharsetSource::None,
            decoded: Some(String::new()),
        }
    }
}

/// Returns the base of relative addresses on a page. `written` is the base that the page declares,
/// if it declares one.
pub fn base_of(written: Option<&str>, page: &Url) -> Url {
    let base = written.and_then(|base| page.join(base).ok());
    // The HTML standard ignores `data:` and `javascript:` bases. A crawl has no use for any but
    // those that lead to pages.
    let base = base.filter(|base| leads_on(base, page));
    base.unwrap_or_else(|| page.clone())
}

/// True if an address found on a page can lead to a page: its scheme is `http`, `https` or that of
/// the page.
pub fn leads_on(address: &Url, page: &Url) -> bool {
    matches!(address.scheme(), "http" | "https") || address.scheme() == page.scheme()
}

impl Page {
    /// Returns the body decoded to Unicode.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match &self.text.decoded {
            Some(text) => text.into(),
            // Validation comes first: it is several times as fast as a search for invalid
            // sequences.
            None => match simdutf8::basic::from_utf8(&self.body) {
                Ok(text) => text.into(),
                Err(_) => String::from_utf8_lossy(&self.body),
            },
        }
    }

    /// Bytes of [`text`](Self::text); approximate if the body is not valid UTF-8 although it was
    /// declared to be.
    pub fn text_bytes(&self) -> usize {
        let decoded = self.text.decoded.as_ref();
        decoded.map_or(self.body.len(), String::len)
    }

    /// Returns the value of the first header with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// Returns the media type in lower case and without parameters, such as `image/png`. Returns `None` if the answer
    /// names none.
    pub fn media_type(&self) -> Option<String> {
        let essence = self.header("content-type")?.split(';').next()?.trim();
        (!essence.is_empty()).then(|| essence.to_ascii_lowercase())
    }

    /// Returns the metadata of the fetch for rules: names in lower case, in a fixed order. Unknown
    /// values are left out. Later versions may add names.
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

/// Evidence that decided the encoding of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharsetSource {
    /// A byte order mark.
    Mark,
    /// The content type.
    Header,
    /// The document: `<meta>`, or `<?xml encoding>`.
    Document,
    /// The body is valid UTF-8.
    Valid,
    /// The encoding was guessed from the bytes.
    Detected,
    /// The body is not text.
    None,
}

impl CharsetSource {
    /// Returns the name that rules see.
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

/// Record of how one response was fetched.
#[derive(Debug, Clone, Default)]
pub struct FetchRecord {
    /// Time spent waiting for the turn of the host.
    pub waited: Duration,
    /// Time of the DNS lookup. If `None`, no lookup was needed.
    pub lookup: Option<Duration>,
    /// Time to establish the connection, including lookup, proxy and TLS. If `None`, an open
    /// connection was used.
    pub connect: Option<Duration>,
    /// Time from the request to the headers of the response, including the connection.
    pub first_byte: Duration,
    /// Time from the headers to the end of the body.
    pub body: Duration,
    /// Bytes of the body before its content encoding was removed.
    pub n_received: u64,
    /// Address of the peer that answered: the host or the proxy.
    pub address: Option<SocketAddr>,
    /// HTTP version.
    pub version: Option<&'static str>,
    /// Proxy that was used, without its credentials.
    pub proxy: Option<Arc<str>>,
    /// Time when the HTTP cache stored the answer that it gave. If `None`, the answer came from the site.
    pub stored_at: Option<UnixMillis>,
}

/// Information about a page that is not part of the response.
#[derive(Debug, Clone, Default)]
pub struct PageContext {
    /// Number of links between the root requests (0) and this page.
    pub depth: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// State that the request carried.
    pub state: Bytes,
    /// URL of the page whose link first led here.
    pub referrer: Option<Arc<str>>,
    /// Digest of the body, if the request asked to keep it and the answer was successful.
    pub kept: Option<Digest>,
}

impl PageContext {
    /// Returns the metadata of a page for rules: that of its fetch, and that of its kept body.
    pub fn metadata(&self, page: &Page) -> Vec<(String, String)> {
        let mut metadata = page.metadata();
        if let Some(digest) = self.kept {
            let mut add = |name: &str, value| metadata.push((name.to_owned(), value));
            add("kept-digest", digest.to_string());
            add("kept-bytes", page.body.len().to_string());
            if let Some(media_type) = page.media_type() {
                add("kept-type", media_type);
            }
        }
        metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kept_body_has_digest_size_and_type_in_the_metadata() {
        let url: Url = "http://a.test/7.png".parse().unwrap();
        let kept = |content_type: &str, kept| {
            let page = Page {
                url: url.clone(),
                requested_url: url.clone(),
                status: 200,
                headers: [("content-type", content_type)].into_iter().collect(),
                redirects: Vec::new(),
                fetched_at: 0,
                truncated: false,
                body: Bytes::from_static(b"abc"),
                text: PageText::binary(),
                record: FetchRecord::default(),
            };
            let context = PageContext {
                kept,
                ..PageContext::default()
            };
            let about_file = context.metadata(&page).into_iter();
            let about_file = about_file.filter(|(name, _)| name.starts_with("kept-"));
            let shown: Vec<_> = about_file
                .map(|(name, value)| name + "=" + &value)
                .collect();
            shown.join(" ")
        };
        let digest = Digest::of(b"abc");
        assert_eq!(kept("image/png", None), "");
        let named = format!("kept-digest={digest} kept-bytes=3");
        assert_eq!(kept("", Some(digest)), named);
        let typed = kept("Image/PNG; x=y", Some(digest));
        assert_eq!(typed, format!("{named} kept-type=image/png"));
    }
}
