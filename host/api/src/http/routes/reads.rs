//! Routes of the calls that read what crawls have found, and look into frontiers.

use axum::http::Method;

use super::{Route, RouteDocs};
use crate::http::{frontier, handlers};

pub(super) fn outputs() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/items",
            "ReadItems",
            handlers::read_items,
            RouteDocs {
                query: "`follow`: goes on until the run is over · `envelope`: with key, page, rule, schema, run, time and position · `after=POSITION`: goes on behind this item, in its run · `run=N`: of this run · `kind=KIND`: of this kind, the name of a schema · `since=MILLISECONDS`: of pages that were fetched then or later · `limit=N`: at most so many",
                answer: "stream of items of the present run, or of `run`",
                errors: "400 a kind that neither the plugin nor the present run has, when the present run is read · 404 · 412 the frontier is missing or damaged · 503 the storage does not answer",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/files/{digest}",
            "ReadFile",
            handlers::read_file,
            RouteDocs {
                answer: "bytes of a [kept file](../guide/files.md)",
                errors: "404",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/logs",
            "ReadLogs",
            handlers::read_logs,
            RouteDocs {
                query: "`follow`: goes on until the crawl is over",
                answer: r#"stream of `{"at":…,"level":"warn","url":"…","rule":"…","message":"…"}`"#,
                errors: "404 · 503 the worker does not answer",
                ..RouteDocs::default()
            },
        ),
    ]
}

pub(super) fn frontiers() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/frontier",
            "GetFrontierStats",
            frontier::stats,
            RouteDocs {
                answer: "totals: `run`, `seeded`, `root_hosts`, `hosts`, `hosts_by_state`, `undelivered`, `dead_letters`, `suspects`, `unclean_stops`, `counts`",
                errors: "as below",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/statistics",
            "GetStatistics",
            frontier::statistics,
            RouteDocs {
                answer: "statistics of the present run: `run`, `counts`, `statuses`, `refused_hosts`, `dead_examples`, `lost_roots`, `kinds` (with `items`, `filled`, `always_empty`), `plans` (with `pages`, `matched`, `unmatched`), `end` (why the run has ended; empty while it goes on), `rate` (pages per second), `took_ms`",
                errors: "as below",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/frontier/urls",
            "ListUrls",
            frontier::list,
            RouteDocs {
                query: "`state=due`, `done` or `dead` · `page_size` · `page_token`",
                answer: r#"`{"urls":[…],"next_page_token":""}`; each with `url`, `method`, `body`, `rule`, `depth`, `run`, `state`, `outcome`, `reason`, `detail`, `attempt`, `at`, `since`, `referrer`"#,
                errors: "as below",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/frontier/why",
            "ExplainUrl",
            frontier::why,
            RouteDocs {
                query: "`url` · `method` (GET) · `body`",
                answer: r#"`{"state":"…","text":"…","entry":…}`; the state is due, done, dead, sent (to another shard), refused or unseen"#,
                errors: "as below",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/frontier/redrive",
            "RedriveFrontier",
            frontier::redrive,
            RouteDocs {
                body: r#"`{"reason":"timeout"}`, or `{}` for all dead letters"#,
                answer: r#"`{"dead_letters":12}`"#,
                errors: "412 there are none",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/hosts",
            "ListHosts",
            frontier::hosts,
            RouteDocs {
                query: "`state=ready`, `waiting`, `backing-off`, `given-up` or `idle` · `page_size` · `page_token`",
                answer: r#"`{"hosts":[…],"next_page_token":""}`; each with `name`, `state`, `due`, `not_before`, `delay_ms`, `delay_by` (`setting`, `robots`, `other-crawl`, `answers` or `trouble`: [which delay wins](../operate/slow.md#which-delay-wins)), `has_answered`, `failures`, `reason`"#,
                errors: "as below",
                ..RouteDocs::default()
            },
        ),
    ]
}
