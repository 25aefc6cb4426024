//! Requests for pages to be fetched next.

use std::ops::RangeInclusive;

use crate::{Rule, accept_status, kept};

/// A request for a page that is handed to a rule, with more options than [`Crawl::follow`](crate::Crawl::follow)
/// has.
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
    /// Address: absolute, or relative to the page of this call.
    pub url: String,
    /// Method in capitals: `GET`.
    pub method: String,
    /// Headers beyond those that every request carries.
    pub headers: Vec<(String, String)>,
    /// Body, sent as it is.
    pub body: Option<Vec<u8>>,
    /// Rule that parses the answer.
    pub rule: Rule,
    /// Priority among the ready pages of one host: higher comes first; 0 unless said otherwise.
    pub priority: i32,
    /// State handed back with the page, see [`Page::state`](crate::Page::state).
    pub state: Vec<u8>,
    /// True if the page is fetched even if this run has already seen it.
    pub reload: bool,
    /// Hints for abilities of later crawlers; keys that a crawler does not know are ignored.
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

    /// A `POST`. The body is part of the identity of a request: another body is another page.
    pub fn post(url: impl Into<String>, body: impl Into<Vec<u8>>, rule: Rule) -> Self {
        Self::new("POST", url, rule).body(body)
    }

    /// A `POST` of a form, with its fields in this order, encoded as browsers do.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// fn search(words: &str, crawl: &mut Crawl, results: Rule) -> Result {
    ///     crawl.request(Request::form("/search", [("q", words), ("sort", "price")], results))
    /// }
    /// ```
    ///
    /// A form that is in a page, with hidden fields, is sent by [`Form`](crate::Form).
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

    /// Adds a header. If the site redirects to another host, scheme or port, only headers that every site may see
    /// are sent there: `accept`, `accept-*`, `cache-control`, `dnt`, `pragma`, `upgrade-insecure-requests` and
    /// `user-agent`.
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

    /// Takes the page before those of a lower priority on the same host.
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

    /// Fetches the page even if this run has already seen it. A run recognizes a page by method, body and
    /// canonical URL: without fragment, without an empty query, percent-encoding in one spelling.
    #[must_use]
    pub fn reload(mut self) -> Self {
        self.reload = true;
        self
    }

    /// Also hands pages with this status to the rule. May be called several times.
    ///
    /// By default a rule sees pages with status 200 to 299 only: 404 or 410 ends a page, 5xx is tried again, and so on.
    /// An accepted status is final: the crawler makes no other attempt, and [`Page::status`](crate::Page::status) tells
    /// which it was. A redirect whose status is accepted is not followed but handed over, with its header `location`.
    /// A status is a number from 200 to 999; another one is refused when the request is followed.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// fn ask(crawl: &mut Crawl, product: Rule) -> Result {
    ///     crawl.request(Request::get("/product/7", product).accept_status(404).accept_status(410))
    /// }
    ///
    /// fn product(page: &Page, _: &mut Crawl) -> Result {
    ///     match page.status() {
    ///         404 | 410 => Err(RuleError::skip("sold out")),
    ///         _ => Ok(()),
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn accept_status(mut self, status: u16) -> Self {
        accept_status::add(&mut self.hints, &status.to_string());
        self
    }

    /// Also hands pages with these statuses to the rule, like [`accept_status`](Self::accept_status).
    ///
    /// ```
    /// use crawler_plugin_sdk::{Request, Rule};
    ///
    /// fn ask(check: Rule) -> Request {
    ///     Request::get("http://shop.test/", check).accept_statuses(500..=599)
    /// }
    /// ```
    #[must_use]
    pub fn accept_statuses(mut self, statuses: RangeInclusive<u16>) -> Self {
        accept_status::add_range(&mut self.hints, &statuses);
        self
    }

    /// Hands the page to the rule whatever its status is. Redirects are followed all the same, unless
    /// [`accept_status`](Self::accept_status) names theirs.
    ///
    /// Answers of a busy server are among them: status 429, and 502 to 504. A rule that wants the page itself has to
    /// return [`RuleError::blocked`](crate::RuleError::blocked) or [`retry`](crate::RuleError::retry) for them, a few
    /// times at most: [`Page::attempt`](crate::Page::attempt) counts them. The last attempt that setting `max-attempts`
    /// allows makes the page a dead letter instead.
    #[must_use]
    pub fn accept_any_status(mut self) -> Self {
        accept_status::add(&mut self.hints, "any");
        self
    }

    /// Also keeps the body of a successful answer as a file of the crawl, named by its digest, see
    /// [`Page::kept`](crate::Page::kept). The file is stored before the rule is called: whatever process is killed, no
    /// item names a file that is not there. It is never cut: the page is given up if the body is longer than setting
    /// `max-file`, or if the run has kept as many bytes as setting `max-kept` allows. A part of a body (206) and an
    /// answer to `HEAD` are not kept.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Rule, prelude::*};
    ///
    /// fn keep_manual(crawl: &mut Crawl, file: Rule) -> Result {
    ///     crawl.request(Request::get("/manual.pdf", file).keep_body())
    /// }
    /// ```
    #[must_use]
    pub fn keep_body(mut self) -> Self {
        kept::add(&mut self.hints);
        self
    }

    /// Adds a hint for abilities of later crawlers.
    #[must_use]
    pub fn hint(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.hints.push((key.into(), value.into()));
        self
    }
}
