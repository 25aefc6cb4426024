//! Pages to be fetched next.

use crate::Rule;

/// A page to be fetched and handed to a rule, for what [`Crawl::follow`](crate::Crawl::follow)
/// does not say.
///
/// ```
/// use crawler_plugin_sdk::{Rule, prelude::*};
///
/// fn search(word: &str, crawl: &mut Crawl, results: Rule) -> Result {
///     let request = Request::post("/search", format!("q={word}"), results)
///         .header("content-type", "application/x-www-form-urlencoded")
///         .priority(10)
///         .state(word);
///     crawl.request(request)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Absolute, or relative to the page of this call.
    pub url: String,
    /// In capitals: `GET`.
    pub method: String,
    /// Beyond those that every request carries.
    pub headers: Vec<(String, String)>,
    /// Sent as it is.
    pub body: Option<Vec<u8>>,
    /// The rule that parses the answer.
    pub rule: Rule,
    /// Higher comes first among the ready pages of one host; 0 unless said otherwise.
    pub priority: i32,
    /// Handed back with the page, see [`Page::state`](crate::Page::state).
    pub state: Vec<u8>,
    /// Fetch even if this run has already seen it.
    pub reload: bool,
    /// For abilities of later crawlers; keys that one does not know are ignored.
    pub hints: Vec<(String, String)>,
}

impl Request {
    /// A request by any method.
    pub fn new(method: impl Into<String>, url: impl Into<String>, rule: Rule) -> Self {
        Self {
            url: url.into(),
            method: method.into(),
            headers: Vec::new(),
            body: None,
            rule,
            priority: 0,
            state: Vec::new(),
            reload: false,
            hints: Vec::new(),
        }
    }

    /// A plain `GET`.
    pub fn get(url: impl Into<String>, rule: Rule) -> Self {
        Self::new("GET", url, rule)
    }

    /// A `POST`. The body is part of what makes a request known: another body, another page.
    pub fn post(url: impl Into<String>, body: impl Into<Vec<u8>>, rule: Rule) -> Self {
        Self::new("POST", url, rule).body(body)
    }

    /// A `POST` of a form: its fields in this order, as browsers encode them.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// fn search(words: &str, crawl: &mut Crawl, results: Rule) -> Result {
    ///     crawl.request(Request::form("/search", [("q", words), ("sort", "price")], results))
    /// }
    /// ```
    ///
    /// A form that a page has, hidden fields and all, is [`Form`](crate::Form).
    pub fn form<N: AsRef<str>, V: AsRef<str>>(
        url: impl Into<String>,
        fields: impl IntoIterator<Item = (N, V)>,
        rule: Rule,
    ) -> Self {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        Self::post(url, body.finish(), rule)
            .header("content-type", "application/x-www-form-urlencoded")
    }

    /// Adds a header. Where the site redirects to another host, scheme or port, only headers that every
    /// site may see go along: `accept`, `accept-*`, `cache-control`, `dnt`, `pragma`,
    /// `upgrade-insecure-requests` and `user-agent`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends these bytes.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Takes it before those of a lower priority on the same host.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Hands up to 4 KiB to the rule that gets the page.
    #[must_use]
    pub fn state(mut self, state: impl Into<Vec<u8>>) -> Self {
        self.state = state.into();
        self
    }

    /// Fetches it even if this run has already seen it. What a run has seen it knows by method, body
    /// and canonical URL: without fragment, without an empty query, percent-encoding in one spelling.
    #[must_use]
    pub fn reload(mut self) -> Self {
        self.reload = true;
        self
    }

    /// Adds a hint for abilities of later crawlers.
    #[must_use]
    pub fn hint(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.hints.push((key.into(), value.into()));
        self
    }
}
