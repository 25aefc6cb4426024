//! Routes of the calls about resources.

use axum::http::Method;

use super::{Route, RouteDocs};
use crate::http::{handlers, lifecycle};

pub(super) fn resources() -> Vec<Route> {
    vec![
        Route::new(
            Method::POST,
            "/crawler/resource",
            "AddResource",
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
            "UpdateResource",
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
            "DeleteResource",
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
            "ListResources",
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
            "GetResource",
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
            "UpdateResource",
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
            "DeleteResource",
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
            "RestartResource",
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
            "PauseResource",
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
            "ResumeResource",
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
