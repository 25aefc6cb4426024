//! The page of a call.

use std::cell::OnceCell;

use serde::Deserialize;
use url::Url;

use crate::extract::readings::Readings;
use crate::{Result, RuleError};

#[cfg(target_family = "wasm")]
pub(crate) use crate::guest::Answer;
#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::Answer;

/// The answer to one request.
///
/// Its parts cross into the sandbox when they are first asked for: a rule that reads only headers never pays for
/// the body.
///
/// ```
/// use crawler_plugin_sdk::Page;
///
/// let page = Page::from_html("http://shop.test/book/7.html", "<h1>The Waves</h1>")
///     .with_header("Content-Language", "en")
///     .with_state("poetry");
/// assert_eq!(page.status(), 200);
/// assert_eq!(page.header("content-language"), Some("en"));
/// assert_eq!(page.state(), b"poetry");
/// assert_eq!(page.join("../author/woolf.html")?.as_str(), "http://shop.test/author/woolf.html");
/// # Ok::<(), crawler_plugin_sdk::RuleError>(())
/// ```
#[derive(Debug)]
pub struct Page {
    pub(crate) answer: Answer,
    url: OnceCell<String>,
    parsed_url: OnceCell<Url>,
    requested_url: OnceCell<String>,
    headers: OnceCell<Vec<(String, String)>>,
    redirects: OnceCell<Vec<String>>,
    charset: OnceCell<String>,
    metadata: OnceCell<Vec<(String, String)>>,
    state: OnceCell<Vec<u8>>,
    referrer: OnceCell<Option<String>>,
    text: OnceCell<String>,
    body: OnceCell<Vec<u8>>,
    pub(crate) readings: Readings,
}

impl Page {
    pub(crate) fn new(answer: Answer) -> Self {
        Self {
            answer,
            url: OnceCell::new(),
            parsed_url: OnceCell::new(),
            requested_url: OnceCell::new(),
            headers: OnceCell::new(),
            redirects: OnceCell::new(),
            charset: OnceCell::new(),
            metadata: OnceCell::new(),
            state: OnceCell::new(),
            referrer: OnceCell::new(),
            text: OnceCell::new(),
            body: OnceCell::new(),
            readings: Readings::default(),
        }
    }

    /// Address that the answer came from, after redirects.
    pub fn url(&self) -> &str {
        self.url.get_or_init(|| self.answer.url())
    }

    /// Address that was asked for.
    pub fn requested_url(&self) -> &str {
        self.requested_url
            .get_or_init(|| self.answer.requested_url())
    }

    /// Status of the answer, for example 200.
    pub fn status(&self) -> u16 {
        self.answer.status()
    }

    /// Headers in the order received; names are in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        self.headers.get_or_init(|| self.answer.headers())
    }

    /// Value of the first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers().iter();
        headers
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Every address on the way, without the last.
    pub fn redirects(&self) -> &[String] {
        self.redirects.get_or_init(|| self.answer.redirects())
    }

    /// Time when the answer came, in milliseconds since 1970.
    pub fn fetched_at(&self) -> u64 {
        self.answer.fetched_at()
    }

    /// Encoding that [`text`](Page::text) was decoded from, by its WHATWG name.
    pub fn charset(&self) -> &str {
        self.charset.get_or_init(|| self.answer.charset())
    }

    /// Value of an entry about the fetch, as far as it is known: the source of the charset (`charset-source`), the
    /// server (`address`, `http-version`, `proxy`), the milliseconds that each part took (`wait-ms`, `lookup-ms`,
    /// `connect-ms`, `first-byte-ms`, `body-ms`) and the number of bytes received (`body-bytes`). [`kept`](Self::kept)
    /// reads what it says of a kept body.
    ///
    /// ```
    /// use crawler_plugin_sdk::Page;
    ///
    /// let page = Page::from_html("http://shop.test/", "").with_metadata("first-byte-ms", "120");
    /// assert_eq!(page.metadata("first-byte-ms"), Some("120"));
    /// assert_eq!(page.metadata("proxy"), None);
    /// ```
    pub fn metadata(&self, name: &str) -> Option<&str> {
        let all = self.metadata.get_or_init(|| self.answer.metadata());
        let found = all.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// True if the body was longer than limit `body`, and is cut.
    pub fn truncated(&self) -> bool {
        self.answer.truncated()
    }

    /// Number of links between the root requests (0) and this page.
    pub fn depth(&self) -> u32 {
        self.answer.depth()
    }

    /// State that the request carried, see [`Request::state`](crate::Request::state).
    pub fn state(&self) -> &[u8] {
        self.state.get_or_init(|| self.answer.state())
    }

    /// Address of the page whose link was first to lead here: that page's [`url`](Page::url) without its fragment.
    /// After a redirect it is still the page with the link. `None` for a root request, for a link that was stored by a
    /// crawler that knew no referrers, and for an address of more than 2 KiB.
    ///
    /// ```
    /// use crawler_plugin_sdk::Page;
    ///
    /// let page = Page::from_html("http://shop.test/lost", "").with_status(404);
    /// assert_eq!(page.referrer(), None);
    /// let page = page.with_referrer("http://shop.test/");
    /// assert_eq!(page.referrer(), Some("http://shop.test/"));
    /// ```
    pub fn referrer(&self) -> Option<&str> {
        let referrer = self.referrer.get_or_init(|| self.answer.referrer());
        referrer.as_deref()
    }

    /// Number of this attempt at the page, from 1.
    pub fn attempt(&self) -> u32 {
        self.answer.attempt()
    }

    /// Body, decoded to Unicode.
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| self.answer.text())
    }

    /// Body as received, without its content-encoding.
    pub fn body(&self) -> &[u8] {
        self.body.get_or_init(|| self.answer.body())
    }

    /// Reads the body as JSON. The value may borrow from the page.
    ///
    /// ```
    /// use crawler_plugin_sdk::Page;
    ///
    /// let page = Page::from_html("http://shop.test/api/book/7", r#"{"pence": 1234}"#);
    /// let answer: std::collections::HashMap<String, u32> = page.json()?;
    /// assert_eq!(answer["pence"], 1234);
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub fn json<'p, T: Deserialize<'p>>(&'p self) -> Result<T> {
        match serde_json::from_str(self.text()) {
            Ok(value) => Ok(value),
            Err(e) => Err(RuleError::unexpected(format!(
                "the page is not the JSON expected: {e}"
            ))),
        }
    }

    /// Resolves a link of this page against the URL of the page. Only [`Links`](crate::Links) and
    /// [`links`](Self::links) take account of a `<base href>`.
    ///
    /// It is not needed to follow a link: [`Crawl::follow`](crate::Crawl::follow) takes the link as it is written.
    pub fn join(&self, href: &str) -> Result<Url> {
        let base = match self.parsed_url.get() {
            Some(base) => base,
            None => {
                let base = Url::parse(self.url())?;
                self.parsed_url.get_or_init(|| base)
            }
        };
        match base.join(href) {
            Ok(url) => Ok(url),
            Err(e) => Err(RuleError::unexpected(format!(
                "link {href:?} is no address: {e}"
            ))),
        }
    }
}
