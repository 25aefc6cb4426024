//! A plugin that does what pages tell it: a page is a list of requests in JSON, and each page
//! becomes one item that shows what the rule got.
//!
//! Params: `start`, the address of the first page; or `root`, a list of requests as pages have it.

use std::collections::BTreeMap;

use crawler_plugin_sdk::prelude::*;
use serde::{Deserialize, Serialize};

/// A request, as pages spell it: `{"url": "/a", "rule": "leaf", "priority": 5}`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wish {
    url: String,
    rule: String,
    method: String,
    headers: BTreeMap<String, String>,
    body: Option<String>,
    priority: i32,
    state: String,
    reload: bool,
}

/// Call that a rule got. The state tells it from others in the next run, too.
#[derive(Item, Serialize)]
#[item(key = "state")]
struct Visit {
    url: String,
    depth: u32,
    state: String,
}

/// The plugin.
pub struct Puppet;

#[plugin(items(Visit))]
impl Puppet {
    fn root(crawl: &mut Crawl) -> Result {
        match crawl.config().get("root") {
            Some(root) => wish(serde_json::from_str(&root)?, crawl),
            None => crawl.follow(crawl.config().require("start")?, Self::BRANCH),
        }
    }

    /// Follows what the page asks for.
    #[rule]
    fn branch(page: &Page, crawl: &mut Crawl) -> Result {
        show(page, crawl)?;
        wish(page.json()?, crawl)
    }

    /// Follows nothing.
    #[rule]
    fn leaf(page: &Page, crawl: &mut Crawl) -> Result {
        show(page, crawl)
    }
}

fn show(page: &Page, crawl: &mut Crawl) -> Result {
    crawl.emit(&Visit {
        url: page.url().to_owned(),
        depth: page.depth(),
        state: String::from_utf8_lossy(page.state()).into_owned(),
    })
}

fn wish(wishes: Vec<Wish>, crawl: &mut Crawl) -> Result {
    for wish in wishes {
        let rule = match wish.rule.as_str() {
            "" | "branch" => Puppet::BRANCH,
            "leaf" => Puppet::LEAF,
            other => return Err(RuleError::unexpected(format!("no rule is called {other}"))),
        };
        let method = match wish.method.as_str() {
            "" => "GET",
            method => method,
        };
        let mut request = Request::new(method, wish.url, rule)
            .priority(wish.priority)
            .state(wish.state);
        for (name, value) in wish.headers {
            request = request.header(name, value);
        }
        if let Some(body) = wish.body {
            request = request.body(body);
        }
        if wish.reload {
            request = request.reload();
        }
        crawl.request(request)?;
    }
    Ok(())
}
