//! Results of a native call. The functions are those of the sandbox, so that [`Crawl`](crate::Crawl) is the same
//! code in both.

use std::collections::BTreeMap;

use crawler_schema::check_object;
use serde_json::Value;
use url::{ParseError, Url};

use super::shapes::Shapes;
use super::{Emitted, Outcome};
use crate::{PluginItem, Request, Result, RuleError};

/// Results of a call; those that the crawler would refuse are refused.
#[derive(Debug)]
pub(crate) struct Outlet {
    params: BTreeMap<String, String>,
    base: Option<Url>,
    outcome: Outcome,
    shapes: Shapes,
}

impl Outlet {
    pub(super) fn new(params: BTreeMap<String, String>, base: Option<Url>) -> Self {
        Self {
            params,
            base,
            outcome: Outcome::default(),
            shapes: Shapes::default(),
        }
    }

    pub(super) fn into_outcome(self) -> Outcome {
        self.outcome
    }

    pub(crate) fn emit<T: PluginItem>(&mut self, json: String) -> Result {
        let (item, n) = (T::NAME, self.outcome.items.len() + 1);
        check_object(&json)
            .map_err(|e| RuleError::unexpected(format!("an item is one JSON object: {e}")))?;
        self.shapes
            .check::<T>(&json)
            .map_err(|why| RuleError::unexpected(format!("item {n}, of schema {item}: {why}")))?;
        let value: Value = serde_json::from_str(&json)?;
        self.outcome.items.push(Emitted { item, value });
        Ok(())
    }

    pub(crate) fn follow(&mut self, requests: Vec<Request>) -> Result {
        for request in requests {
            let url = Url::options().base_url(self.base.as_ref());
            let url = url.parse(&request.url);
            if let (Err(why), None) = (&url, &self.base) {
                // A page may hold any nonsense, but the author of `root` wrote its addresses by hand.
                let why = match why {
                    ParseError::RelativeUrlWithoutBase => {
                        "is relative, and in root there is no page to resolve it against".to_owned()
                    }
                    why => format!("does not parse: {why}"),
                };
                return Err(RuleError::unexpected(format!(
                    "url {:?} {why}",
                    request.url
                )));
            }
            self.take(request, url);
        }
        Ok(())
    }

    pub(super) fn take(&mut self, mut request: Request, url: Result<Url, ParseError>) {
        match url {
            Ok(url) => {
                request.url = url.into();
                request.method.make_ascii_uppercase();
                self.outcome.requests.push(request);
            }
            Err(_) => self.outcome.bad_urls.push(request.url),
        }
    }

    pub(crate) fn param(&self, name: &str) -> Option<String> {
        self.params.get(name).cloned()
    }

    pub(crate) fn params(&self) -> Vec<(String, String)> {
        self.params
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}
