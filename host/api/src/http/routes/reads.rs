//! Routes of the calls that read what crawls have found, and look into frontiers.

use axum::http::Method;

use super::{Body, Content, Fields, Route, RouteDocs};
use crate::http::{frontier, handlers, params, quarantine};

/// Errors of the calls that look into a frontier.
const FRONTIER_ERRORS: [(u16, &str); 3] = [
    (404, ""),
    (412, "there is no frontier yet, or it is missing or damaged"),
    (503, "the storage does not answer"),
];

pub(super) fn outputs() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/items",
            "ReadItems",
            handlers::read_items,
            RouteDocs {
                query: &params::ITEMS,
                gives: &[Content::Items],
                answer: "stream of items of the present run, or of `run`",
                errors: &[
                    (
                        400,
                        "a kind that neither the plugin nor the present run has, when the present run is read",
                    ),
                    (404, ""),
                    (412, "the frontier is missing or damaged"),
                    (503, "the storage does not answer"),
                ],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/changes",
            "ListChanges",
            handlers::list_changes,
            RouteDocs {
                query: &params::CHANGES,
                gives: &[Content::Message("ListChangesResponse")],
                answer: r#"[changes](../guide/changes.md) of the items of the present run, or of `run`: `{"changes":[…],"next_page_token":"","totals":…}`; each with `change` (added, changed or removed), `key`, `kind`, `run`, `fields`, `old`, `item`"#,
                errors: &[
                    (404, "there is no such resource, or it has had no such run"),
                    (
                        412,
                        "the run was not compared, or its changes are not kept any more; the frontier is missing or damaged",
                    ),
                    (503, "the storage does not answer"),
                ],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/files/{digest}",
            "ReadFile",
            handlers::read_file,
            RouteDocs {
                gives: &[Content::Bytes],
                answer: "bytes of a [kept file](../guide/files.md)",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/logs",
            "ReadLogs",
            handlers::read_logs,
            RouteDocs {
                query: &params::LOGS,
                gives: &[Content::Lines("LogLine")],
                answer: r#"stream of `{"at":…,"level":"warn","url":"…","rule":"…","message":"…"}`"#,
                errors: &[(404, ""), (503, "the worker does not answer")],
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
                gives: &[Content::Message("FrontierStats")],
                answer: "totals: `run`, `seeded`, `root_hosts`, `hosts`, `hosts_by_state`, `undelivered`, `dead_letters`, `suspects`, `unclean_stops`, `counts`",
                errors: &FRONTIER_ERRORS,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/statistics",
            "GetStatistics",
            frontier::statistics,
            RouteDocs {
                gives: &[Content::Message("RunStatistics")],
                answer: "statistics of the present run: `run`, `counts`, `statuses`, `refused_hosts`, `dead_examples`, `lost_roots`, `kinds` (with `items`, `filled`, `always_empty`), `plans` (with `pages`, `matched`, `unmatched`), `end` (why the run has ended; empty while it goes on), `rate` (pages per second), `took_ms`",
                errors: &FRONTIER_ERRORS,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/frontier/urls",
            "ListUrls",
            frontier::list,
            RouteDocs {
                query: &params::URLS,
                gives: &[Content::Message("ListUrlsResponse")],
                answer: r#"`{"urls":[…],"next_page_token":""}`; each with `url`, `method`, `body`, `rule`, `depth`, `run`, `state`, `outcome`, `reason`, `detail`, `attempt`, `at`, `since`, `referrer`"#,
                errors: &FRONTIER_ERRORS,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/frontier/why",
            "ExplainUrl",
            frontier::why,
            RouteDocs {
                query: &params::WHY,
                gives: &[Content::Message("UrlExplanation")],
                answer: r#"`{"state":"…","text":"…","entry":…}`; the state is due, done, dead, sent (to another shard), refused or unseen"#,
                errors: &FRONTIER_ERRORS,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/frontier/redrive",
            "RedriveFrontier",
            frontier::redrive,
            RouteDocs {
                takes: Body::Object(Fields {
                    message: "RedriveRequest",
                    required: &[],
                    optional: &["reason"],
                }),
                gives: &[Content::Message("RedriveResponse")],
                body: r#"`{"reason":"timeout"}`, or `{}` for all dead letters"#,
                answer: r#"`{"dead_letters":12}`"#,
                errors: &[(412, "there are none")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/quarantine",
            "ListQuarantine",
            quarantine::list,
            RouteDocs {
                gives: &[Content::Message("ListQuarantineResponse")],
                answer: r#"[held items](../guide/drift.md), a hold for each kind and host of a run: `{"holds":[…]}`; each with `id`, `run`, `kind`, `host`, `field`, `departs` (presence, type, length, number or distinct), `before`, `now`, `plugin`, `since`, `items`, `bytes`"#,
                errors: &[(404, ""), (503, "the storage does not answer")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/quarantine/items",
            "ReadQuarantine",
            quarantine::items,
            RouteDocs {
                query: &params::HELD_ITEMS,
                gives: &[Content::Message("ReadQuarantineResponse")],
                answer: r#"`{"items":[…],"next_page_token":""}`"#,
                errors: &[
                    (404, ""),
                    (412, "there is no such hold"),
                    (503, "the storage does not answer"),
                ],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/quarantine",
            "DecideQuarantine",
            quarantine::decide,
            RouteDocs {
                takes: Body::Object(Fields {
                    message: "DecideQuarantineRequest",
                    required: &["action"],
                    optional: &["hold"],
                }),
                gives: &[Content::Message("DecideQuarantineResponse")],
                body: r#"`{"action":"release","hold":"0.1"}`, or without `hold` for all that are held now; or `drop`"#,
                answer: r#"`{"holds":1,"items":60}`"#,
                errors: &[(412, "nothing is held, or there is no such hold")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/hosts",
            "ListHosts",
            frontier::hosts,
            RouteDocs {
                query: &params::HOSTS,
                gives: &[Content::Message("ListHostsResponse")],
                answer: r#"`{"hosts":[…],"next_page_token":""}`; each with `name`, `state`, `due`, `in_flight` (null if nobody crawls it, or its owner does not answer), `not_before`, `delay_ms`, `delay_by` (`setting`, `robots`, `other-crawl`, `answers` or `trouble`: [which delay wins](../operate/slow.md#which-delay-wins)), `has_answered`, `failures`, `reason`"#,
                errors: &FRONTIER_ERRORS,
                ..RouteDocs::default()
            },
        ),
    ]
}
