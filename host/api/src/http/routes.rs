//! The calls of a master over HTTP: one list, which the router is built from and the tables of the chapter
//! "HTTP" of the book are written from.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::{frontier, handlers, lifecycle};
use crate::Api;

/// A call: its way in, its handler, and what the book says about it, as cells of a table.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "read by the test that writes the book")
)]
struct Route {
    method: Method,
    path: &'static str,
    handler: MethodRouter<Api>,
    book: RouteDocs,
}

/// Cells of the row of a call. An empty one says that there is nothing.
#[derive(Default)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "read by the test that writes the book")
)]
struct RouteDocs {
    /// Parameters of the query.
    query: &'static str,
    body: &'static str,
    answer: &'static str,
    /// Errors that not every call has.
    errors: &'static str,
}

impl Route {
    fn new<H, T>(method: Method, path: &'static str, handler: H, book: RouteDocs) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone());
        let handler = on(filter.expect("the method is a usual one"), handler);
        Self {
            method,
            path,
            handler,
            book,
        }
    }
}

/// Returns the router of all calls.
pub(super) fn router() -> Router<Api> {
    let routes = tables().into_iter().flat_map(|(_, routes)| routes);
    routes.fold(Router::new(), |router, route| {
        router.route(route.path, route.handler)
    })
}

/// Returns the paths of all calls.
pub(super) fn paths() -> Vec<&'static str> {
    let routes = tables().into_iter().flat_map(|(_, routes)| routes);
    let mut paths: Vec<_> = routes.map(|route| route.path).collect();
    paths.push("/healthz");
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Returns all calls by the table of the book that they are in.
fn tables() -> [(&'static str, Vec<Route>); 5] {
    [
        ("calls about resources", resources()),
        ("calls about items and logs", outputs()),
        ("calls about frontiers", frontiers()),
        ("calls about nodes", nodes()),
        ("calls about plugins", plugins()),
    ]
}

fn resources() -> Vec<Route> {
    vec![
        Route::new(
            Method::POST,
            "/crawler/resource",
            handlers::add_resource,
            RouteDocs {
                body: "[resource](#body-of-a-resource)",
                answer: r#"the worker that crawls: `{"id":"worker-1","Address":"127.0.0.1:9090"}`; both empty while there is none"#,
                errors: "409 the name exists · 412 its plugin is not there",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::PATCH,
            "/crawler/resource",
            handlers::update_resource,
            RouteDocs {
                body: "[resource](#body-of-a-resource); what is absent stays as it is",
                answer: "[resource](#answer-of-a-resource)",
                errors: "404 · 409 it has another `if_id` or `if_generation` · 412 only a restart can change it",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/resource",
            handlers::delete_resource,
            RouteDocs {
                query: "`purge`: its items and kept files are deleted too",
                body: r#"`{"name":"books"}`; `purge`, and `if_id` and `if_generation` as conditions, may stand here too"#,
                answer: "`{}`",
                errors: "404 · 409 it has another `if_id` or `if_generation`",
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource",
            handlers::list_resources,
            RouteDocs {
                query: "`page_size` · `page_token`",
                answer: r#"`{"resources":[…],"next_page_token":""}`, ordered by name"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}",
            handlers::get_resource,
            RouteDocs {
                answer: "[resource](#answer-of-a-resource)",
                errors: "404",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::PATCH,
            "/crawler/resource/{name}",
            handlers::update_named_resource,
            RouteDocs {
                body: "[resource](#body-of-a-resource), whose `name` may be absent; what is absent stays as it is",
                answer: "[resource](#answer-of-a-resource)",
                errors: "404 · 409 it has another `if_id` or `if_generation` · 412 only a restart can change it",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/resource/{name}",
            handlers::delete_named_resource,
            RouteDocs {
                query: "`purge`: its items and kept files are deleted too",
                body: "none, or `{}`; `purge`, and `if_id` and `if_generation` as conditions, may stand here too",
                answer: "`{}`",
                errors: "404 · 409 it has another `if_id` or `if_generation`",
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/restart",
            lifecycle::restart,
            RouteDocs {
                body: "`{}`, or what is different in the new run: `plugin`, `params`, `no_params` (names to take away), `limits`, `crawl`, `placement`, `labels`, `replace`, `if_generation`, `if_id`",
                answer: "[resource](#answer-of-a-resource)",
                errors: "404 · 409 it has another `if_id` or `if_generation` · 412 the new run has [fewer shards](#a-run-with-fewer-shards), and one that would go is not done yet",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/pause",
            lifecycle::pause,
            RouteDocs {
                body: "none, or `{}`",
                answer: "[resource](#answer-of-a-resource)",
                errors: "404",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/resume",
            lifecycle::resume,
            RouteDocs {
                body: "none, or `{}`",
                answer: "[resource](#answer-of-a-resource)",
                errors: "404",
                ..RouteDocs::default()
            },
        ),
    ]
}

fn outputs() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/items",
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

fn frontiers() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/frontier",
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

fn nodes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/crawler/node",
            handlers::list_nodes,
            RouteDocs {
                query: "`follow`: a stream",
                answer: r#"`{"nodes":[…]}`; each with `id`, `role`, `address`, `leader`, `load`, `capacity`, `version`, `labels`, `started_at`, `weight`, `totals`, `reason`, `draining`. With `follow` a stream of `{"event":"joined","node":{…}}`: first all that are there, then joined, left, changed"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/node/{id}/drain",
            lifecycle::drain,
            RouteDocs {
                query: "`undo`: takes shards again",
                body: "none, or `{}`",
                answer: r#"`{"load":2,"others":1}`: shards that the worker still has, and other workers that take shards"#,
                errors: "404",
            },
        ),
    ]
}

fn plugins() -> Vec<Route> {
    vec![
        Route::new(
            Method::PUT,
            "/crawler/plugin",
            handlers::push_plugin,
            RouteDocs {
                query: "`as=NAME@VERSION` · `allow_breaking`",
                body: "the bytes, as `application/wasm`, `--plugin-size` at most",
                answer: "[plugin](#answer-of-a-plugin)",
                errors: "400 it is no plugin · 409 the version exists with other bytes · 412 items differ so that readers could break · 413 too large",
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/plugin",
            handlers::list_plugins,
            RouteDocs {
                answer: r#"`{"plugins":[…]}`"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/plugin/{plugin}",
            handlers::get_plugin,
            RouteDocs {
                answer: "[plugin](#answer-of-a-plugin); without a version the highest one",
                errors: "404",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/plugin/{plugin}",
            handlers::delete_plugin,
            RouteDocs {
                answer: "`{}`",
                errors: "400 without a version · 404 · 412 a resource runs it",
                ..RouteDocs::default()
            },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_testing::book::check;

    /// Returns a path with its parts as the book names them.
    fn path(route: &Route) -> String {
        route
            .path
            .replace("{name}", "NAME")
            .replace("{id}", "ID")
            .replace("{digest}", "DIGEST")
            .replace("{plugin}", "NAME[@VERSION]")
    }

    #[test]
    fn the_book_has_every_call_over_http() {
        for (part, routes) in tables() {
            let rows = routes.iter().map(|route| {
                let RouteDocs {
                    query,
                    body,
                    answer,
                    errors,
                } = route.book;
                let (method, path) = (&route.method, path(route));
                let cells = [&format!("`{method} {path}`"), query, body, answer, errors];
                format!("| {} |\n", cells.join(" | "))
            });
            let head = "| method and path | query | body | answer | errors of its own |\n|---|---|---|---|---|\n";
            let table = head.to_owned() + &rows.collect::<String>();
            check("reference/http.md", part, &table);
        }
    }

    #[test]
    fn the_list_makes_a_router() {
        // A path that stands twice with one method would panic.
        let _router = router();
    }
}
