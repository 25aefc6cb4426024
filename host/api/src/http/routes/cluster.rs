//! Routes of the calls about nodes, plugins and access.

use axum::http::Method;

use super::{Body, Content, Fields, NO_FIELDS, Route, RouteDocs};
use crate::http::{events, handlers, lifecycle, params, tokens};

pub(super) fn nodes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/crawler/node",
            "ListNodes",
            handlers::list_nodes,
            RouteDocs {
                query: &params::NODES,
                gives: &[
                    Content::Message("ListNodesResponse"),
                    Content::Lines("NodeEvent"),
                ],
                answer: r#"`{"nodes":[…],"next_page_token":""}`; each with `id`, `role`, `address`, `leader`, `load`, `capacity`, `version`, `labels`, `started_at`, `weight`, `totals`, `reason`, `draining`, `pprof`. With `follow` a stream of `{"event":"joined","node":{…}}`: first all that are there, then joined, left, changed"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/node/events",
            "ReadNodeEvents",
            events::read_node_events,
            RouteDocs {
                query: &params::NODE_HISTORY,
                gives: &[Content::Lines("PastEvent"), Content::Events("PastEvent")],
                answer: r#"stream of [what happened to nodes](../operate/events.md#of-nodes), in order: `{"kind":"lost","at":…,"node":"worker-1",…}`. With `follow` [server-sent events](#events-of-resources), those that come too"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/node/{id}/events",
            "ReadNodeEvents",
            events::read_events_of_node,
            RouteDocs {
                query: &params::NODE_HISTORY,
                gives: &[Content::Lines("PastEvent"), Content::Events("PastEvent")],
                answer: "the same for one node, which is there or was in the last day",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/node/{id}/drain",
            "DrainNode",
            lifecycle::drain,
            RouteDocs {
                query: &params::DRAIN,
                takes: Body::Optional(NO_FIELDS),
                gives: &[Content::Message("DrainNodeResponse")],
                body: "none, or `{}`",
                answer: r#"`{"load":2,"others":1}`: shards that the worker still has, and other workers that take shards"#,
                errors: &[(404, "")],
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/node/{id}/revoke",
            "RevokeNode",
            lifecycle::revoke,
            RouteDocs {
                takes: Body::Optional(NO_FIELDS),
                gives: &[Content::Empty],
                body: "none, or `{}`",
                answer: "`{}`",
                ..RouteDocs::default()
            },
        ),
    ]
}

pub(super) fn plugins() -> Vec<Route> {
    vec![
        Route::new(
            Method::PUT,
            "/crawler/plugin",
            "PushPlugin",
            handlers::push_plugin,
            RouteDocs {
                query: &params::PUSH,
                takes: Body::Wasm,
                gives: &[Content::Message("Plugin")],
                body: "the bytes, as `application/wasm`, `--plugin-size` at most",
                answer: "[plugin](#answer-of-a-plugin)",
                errors: &[
                    (400, "it is no plugin"),
                    (409, "the version exists with other bytes"),
                    (412, "items differ so that readers could break"),
                    (413, "too large"),
                ],
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/plugin",
            "ListPlugins",
            handlers::list_plugins,
            RouteDocs {
                query: &params::PLUGINS,
                gives: &[Content::Message("ListPluginsResponse")],
                answer: r#"`{"plugins":[…],"next_page_token":""}`"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/plugin/{plugin}",
            "GetPlugin",
            handlers::get_plugin,
            RouteDocs {
                gives: &[Content::Message("Plugin")],
                answer: "[plugin](#answer-of-a-plugin); without a version the highest one",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/plugin/{plugin}/bytes",
            "FetchPlugin",
            handlers::plugin_bytes,
            RouteDocs {
                gives: &[Content::Bytes],
                answer: "the bytes that were pushed; without a version those of the highest one",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/plugin/{plugin}",
            "DeletePlugin",
            handlers::delete_plugin,
            RouteDocs {
                gives: &[Content::Empty],
                answer: "`{}`",
                errors: &[
                    (400, "without a version"),
                    (404, ""),
                    (412, "a resource runs it"),
                ],
                ..RouteDocs::default()
            },
        ),
    ]
}

pub(super) fn access() -> Vec<Route> {
    vec![
        Route::new(
            Method::POST,
            "/crawler/access/token",
            "IssueToken",
            tokens::issue_token,
            RouteDocs {
                takes: Body::Object(Fields {
                    message: "IssueTokenRequest",
                    required: &["subject", "roles"],
                    optional: &["namespaces", "valid_for_ms"],
                }),
                gives: &[Content::Message("IssueTokenResponse")],
                body: r#"`{"subject":"alice","roles":["operator"],"namespaces":["team"],"valid_for_ms":86400000}`; without `namespaces` for the whole cluster, without `valid_for_ms` until it is revoked"#,
                answer: r#"`{"token":"crawler_…","record":{…}}`; the token is in this answer only"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/access/token",
            "ListTokens",
            tokens::list_tokens,
            RouteDocs {
                query: &params::TOKENS,
                gives: &[Content::Message("ListTokensResponse")],
                answer: r#"`{"tokens":[…],"next_page_token":""}`; each with `id`, `subject`, `roles`, `namespaces`, `issued_at`, `expires_at` (0: never), `issued_by`"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/access/token/{token}",
            "RevokeTokens",
            tokens::revoke_token,
            RouteDocs {
                gives: &[Content::Empty],
                answer: "`{}`",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/access/revoke",
            "RevokeTokens",
            tokens::revoke_tokens,
            RouteDocs {
                takes: Body::Object(Fields {
                    message: "RevokeTokensRequest",
                    required: &[],
                    optional: &["id", "subject", "issued_before"],
                }),
                gives: &[Content::Empty],
                body: r#"`{"subject":"alice"}`: all tokens that the subject has now, or with `issued_before` those from before that time; or `{"id":"…"}`"#,
                answer: "`{}`",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/access/join-token",
            "IssueJoinToken",
            tokens::issue_join_token,
            RouteDocs {
                takes: Body::Object(Fields {
                    message: "IssueJoinTokenRequest",
                    required: &["role"],
                    optional: &["nodes", "labels", "uses", "valid_for_ms"],
                }),
                gives: &[Content::Message("IssueJoinTokenResponse")],
                body: r#"`{"role":"worker","nodes":"worker-1","labels":{"zone":"eu"},"uses":1,"valid_for_ms":900000}`; without `nodes` for all ids of the role, `worker-*` for all that begin so"#,
                answer: r#"`{"token":"crawler-join-…","record":{…}}`; the token is in this answer only"#,
                errors: &[(409, "this master issues no certificates")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/access/join-token",
            "ListJoinTokens",
            tokens::list_join_tokens,
            RouteDocs {
                gives: &[Content::Message("ListJoinTokensResponse")],
                answer: r#"`{"tokens":[…]}`; each with `id`, `role`, `nodes`, `labels`, `uses_left`, `joined`, `issued_at`, `expires_at`, `issued_by`"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/access/join-token/{token}",
            "RevokeJoinToken",
            tokens::revoke_join_token,
            RouteDocs {
                gives: &[Content::Empty],
                answer: "`{}`",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/access/audit",
            "ReadAudit",
            tokens::audit,
            RouteDocs {
                query: &params::AUDIT,
                gives: &[Content::Message("ReadAuditResponse")],
                answer: r#"`{"entries":[…]}`; each with `at`, `subject`, `token_id`, `address`, `method`, `name`, `result`, `detail`, `times`"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/access/caller",
            "GetCaller",
            tokens::caller,
            RouteDocs {
                gives: &[Content::Message("Caller")],
                answer: "who calls: `subject`, `token_id`, `roles`, `namespaces`, `expires_at`",
                ..RouteDocs::default()
            },
        ),
    ]
}
