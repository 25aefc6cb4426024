//! Native tests of rules on saved pages: `cargo test` needs neither sandbox nor network.
//!
//! ```
//! use crawler_plugin_sdk::prelude::*;
//! use crawler_plugin_sdk::testing::Trial;
//!
//! #[derive(Item, serde::Serialize)]
//! struct Thread { title: String }
//!
//! pub struct Forum;
//!
//! #[plugin(items(Thread), params(start(about = "Address of the list", default = "http://forum.test/")))]
//! impl Forum {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         crawl.follow(crawl.config().require("start")?, Self::LIST)
//!     }
//!
//!     #[rule]
//!     fn list(page: &Page, crawl: &mut Crawl) -> Result {
//!         page.dom().texts_at("li a").into_iter().try_for_each(|title| crawl.emit(&Thread { title }))
//!     }
//! }
//!
//! let trial = Trial::of::<Forum>();
//! let root = trial.root(Forum::root).unwrap();
//! assert_eq!(root.requests[0].rule, Forum::LIST);
//!
//! let page = Page::from_html(&root.requests[0].url, "<li><a>First!</a></li>");
//! let outcome = trial.parse(Forum::list, &page).unwrap();
//! assert_eq!(outcome.items[0].value["title"], "First!");
//! ```
//!
//! Some results that the crawler refuses fail here too: an item that is no object or has another shape than its
//! type tells, and an address in `root` that does not parse. Only the sandbox (`crawler plugin test`) sees other
//! faults of requests, such as a header that a rule may not send, and counts fuel, memory, time and the amount
//! that one call hands over.
//!
//! # Saved calls
//!
//! [`check_saved`] makes the calls of a folder again. `crawler plugin fetch URL --rule detail` saves one as two files:
//! the body of the page, and `NAME.call.json`, which may be written by hand too:
//!
//! ```json
//! {
//!   "rule": "detail",
//!   "params": { "lang": "fr" },
//!   "limits": { "fuel": 2000000000 },
//!   "page": {
//!     "url": "http://shop.test/7",
//!     "body": "detail-7.html",
//!     "headers": [["content-type", "text/html; charset=utf-8"]],
//!     "depth": 2,
//!     "state": "what its request carries"
//!   },
//!   "outcome": { "items": [], "requests": [] }
//! }
//! ```
//!
//! `params` are those that are given; the defaults that the plugin declares are added, as the crawler does. `limits`
//! has limits of the call in the sandbox, in the units of JSON: pieces, bytes, milliseconds. The option
//! `--limit` replaces them.
//!
//! A page needs only `url` and `body`, which is a file beside this one. It may also have `requested-url`,
//! `redirects`, `status` (200), `fetched-at` in milliseconds since 1970, `attempt` (1), `referrer`, `truncated` and
//! `kept`: the digest of a body that its request wanted [kept](Request::keep_body), or an empty text, which `--update`
//! replaces. Without `rule` and `page` it is a call of `root`, which may have `now`. `crawler plugin test --update`
//! stores the outcome of a call, and the limits that `--limit` gives it; without the option, the outcome is compared
//! with the stored one. `crawler plugin test --prune` removes the calls of rules that are gone.

mod answer;
mod extract;
mod octets;
mod outlet;
mod saved;
mod shapes;
mod statuses;

pub use saved::check_saved;

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;
use url::Url;

pub(crate) use self::answer::Answer;
pub(crate) use self::outlet::Outlet;
use crate::{Crawl, Level, Page, Plugin, Request, Result};

/// Charset of a body that is no text, which the crawler does not decode.
const BINARY: &str = "binary";

/// Calls of rules, with the params that they see.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    params: BTreeMap<String, String>,
}

/// Results of a successful call.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// Items, in the order emitted.
    pub items: Vec<Emitted>,
    /// Requests, in the order followed, with absolute addresses.
    pub requests: Vec<Request>,
    /// Followed addresses that do not parse; the crawler counts and drops them.
    pub bad_urls: Vec<String>,
    /// Log lines, in the order logged.
    pub logs: Vec<(Level, String)>,
}

/// One item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Emitted {
    /// Name of its kind.
    pub item: &'static str,
    /// Value, as the crawler stores it.
    pub value: Value,
}

impl Trial {
    /// Makes calls without params.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes calls with the defaults that a plugin declares for its params, as the crawler gives them to rules.
    ///
    /// ```
    /// use crawler_plugin_sdk::prelude::*;
    /// use crawler_plugin_sdk::testing::Trial;
    ///
    /// pub struct Forum;
    ///
    /// #[plugin(params(start(about = "Address of the first list page", default = "http://forum.test/")))]
    /// impl Forum {
    ///     fn root(crawl: &mut Crawl) -> Result {
    ///         crawl.follow(crawl.config().require("start")?, Self::LIST)
    ///     }
    ///
    ///     #[rule]
    ///     fn list(_: &Page, _: &mut Crawl) -> Result {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let trial = Trial::of::<Forum>();
    /// assert_eq!(trial.root(Forum::root)?.urls(), ["http://forum.test/"]);
    /// let trial = trial.param("start", "http://forum.test/roses");
    /// assert_eq!(trial.root(Forum::root)?.urls(), ["http://forum.test/roses"]);
    /// # Ok::<(), RuleError>(())
    /// ```
    pub fn of<P: Plugin>() -> Self {
        let declared = P::DESCRIPTION.params.unwrap_or_default().iter();
        let defaults = declared.filter_map(|param| Some((param.name, param.default?)));
        defaults.fold(Self::new(), |trial, (name, value)| trial.param(name, value))
    }

    /// Adds a param, as `--param NAME=VALUE` does.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.insert(name.into(), value.into());
        self
    }

    /// Calls `root`.
    pub fn root(&self, root: fn(&mut Crawl) -> Result) -> Result<Outcome> {
        self.call(None, root)
    }

    /// Calls a rule on a page.
    pub fn parse(&self, rule: fn(&Page, &mut Crawl) -> Result, page: &Page) -> Result<Outcome> {
        self.call(Some(page.join("")?), |crawl| rule(page, crawl))
    }

    fn call(&self, base: Option<Url>, call: impl FnOnce(&mut Crawl) -> Result) -> Result<Outcome> {
        LOGS.take();
        let params = self.params.clone();
        let outlet = Outlet::new(params, base);
        let mut crawl = Crawl { outlet };
        call(&mut crawl)?;
        let mut outcome = crawl.outlet.into_outcome();
        outcome.logs = LOGS.take();
        Ok(outcome)
    }
}

impl Outcome {
    /// Returns the addresses of all requests.
    pub fn urls(&self) -> Vec<&str> {
        self.requests
            .iter()
            .map(|request| request.url.as_str())
            .collect()
    }
}

/// Saved pages exist only outside the sandbox.
impl Page {
    /// Makes a page as if it had just been fetched, with status 200 and UTF-8.
    ///
    /// # Panics
    ///
    /// Panics if the address is not absolute.
    #[track_caller]
    pub fn from_html(url: &str, html: impl Into<Vec<u8>>) -> Page {
        assert!(
            Url::parse(url).is_ok(),
            "the address of a saved page must be absolute: {url:?}"
        );
        Page::new(Answer {
            requested_url: url.to_owned(),
            redirects: Vec::new(),
            fetched_at: 0,
            truncated: false,
            url: url.to_owned(),
            status: 200,
            headers: Vec::new(),
            metadata: Vec::new(),
            depth: 0,
            attempt: 1,
            state: Vec::new(),
            referrer: None,
            body: html.into(),
            is_binary: false,
            captures_limit: None,
        })
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Page {
        self.answer.status = status;
        Page::new(self.answer)
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Page {
        self.answer
            .headers
            .push((name.to_ascii_lowercase(), value.into()));
        Page::new(self.answer)
    }

    /// Adds an entry to the metadata.
    #[must_use]
    pub fn with_metadata(mut self, name: &str, value: impl Into<String>) -> Page {
        let entry = (name.to_owned(), value.into());
        self.answer.metadata.push(entry);
        Page::new(self.answer)
    }

    /// Keeps the body as a file of this digest, see [`Page::kept`]. The digest is not compared with the body. A
    /// `content-type` is to be set before.
    #[must_use]
    pub fn with_kept(self, digest: impl Into<String>) -> Page {
        let essence = self
            .header("content-type")
            .and_then(|value| value.split(';').next());
        let essence = essence.map(|essence| essence.trim().to_ascii_lowercase());
        let n_bytes = self.body().len();
        let page = self.with_metadata("kept-digest", digest);
        let page = page.with_metadata("kept-bytes", n_bytes.to_string());
        match essence.filter(|essence| !essence.is_empty()) {
            Some(essence) => page.with_metadata("kept-type", essence),
            None => page,
        }
    }

    /// Sets the state, see [`Request::state`].
    #[must_use]
    pub fn with_state(mut self, state: impl Into<Vec<u8>>) -> Page {
        self.answer.state = state.into();
        Page::new(self.answer)
    }

    /// Sets the address of the page with the link that led here.
    #[must_use]
    pub fn with_referrer(mut self, url: impl Into<String>) -> Page {
        self.answer.referrer = Some(url.into());
        Page::new(self.answer)
    }

    /// Sets limit `captures`, to see what a rule does with a page that is cut.
    #[must_use]
    pub fn with_captures_limit(mut self, n: usize) -> Page {
        self.answer.captures_limit = Some(n);
        Page::new(self.answer)
    }

    /// Sets the number of links between the root requests and this page.
    #[must_use]
    pub fn with_depth(mut self, depth: u32) -> Page {
        self.answer.depth = depth;
        Page::new(self.answer)
    }

    /// Sets the number of the attempt.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u32) -> Page {
        self.answer.attempt = attempt;
        Page::new(self.answer)
    }
}

thread_local! {
    /// Log lines of the call that runs on this thread.
    static LOGS: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
}

#[doc(hidden)]
pub fn log(level: Level, message: String) {
    LOGS.with_borrow_mut(|logs| logs.push((level, message)));
}
