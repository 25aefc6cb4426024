//! Routes of the calls about resources.

use axum::http::Method;

use super::{Body, Content, Fields, NO_FIELDS, Route, RouteDocs};
use crate::http::body::CHANGES;
use crate::http::body::schedule::SCHEDULE;
use crate::http::{events, handlers, lifecycle, params};

/// Body that names a resource, and says what it is to be.
const NAMED: Fields = Fields {
    message: "ResourceSpec",
    required: &["name"],
    optional: &CHANGES,
};
/// Body that says what a resource that is named already is to be.
const CHANGED: Fields = Fields {
    message: "ResourceSpec",
    required: &[],
    optional: &CHANGES,
};
/// Fields of a deletion, beside the name.
const DELETION: [&str; 3] = ["purge", "if_id", "if_generation"];

pub(super) fn resources() -> Vec<Route> {
    vec![
        Route::new(
            Method::POST,
            "/crawler/resource",
            "AddResource",
            handlers::add_resource,
            RouteDocs {
                takes: Body::Object(NAMED),
                gives: &[Content::Message("NodeSpec")],
                body: "[resource](#body-of-a-resource)",
                answer: r#"the worker that crawls: `{"id":"worker-1","Address":"127.0.0.1:9090"}`; both empty while there is none"#,
                errors: &[(409, "the name exists"), (412, "its plugin is not there")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::PATCH,
            "/crawler/resource",
            "UpdateResource",
            handlers::update_resource,
            RouteDocs {
                takes: Body::Object(NAMED),
                gives: &[Content::Message("Resource")],
                body: "[resource](#body-of-a-resource); what is absent stays as it is",
                answer: "[resource](#answer-of-a-resource)",
                errors: &[
                    (404, ""),
                    (409, "it has another `if_id` or `if_generation`"),
                    (412, "only a restart can change it"),
                ],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/resource",
            "DeleteResource",
            handlers::delete_resource,
            RouteDocs {
                query: &params::PURGE,
                takes: Body::Object(Fields {
                    message: "ResourceSpec",
                    required: &["name"],
                    optional: &DELETION,
                }),
                gives: &[Content::Empty],
                body: r#"`{"name":"books"}`; `purge`, and `if_id` and `if_generation` as conditions, may stand here too"#,
                answer: "`{}`",
                errors: &[
                    (404, ""),
                    (409, "it has another `if_id` or `if_generation`"),
                ],
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource",
            "ListResources",
            handlers::list_resources,
            RouteDocs {
                query: &params::RESOURCES,
                gives: &[Content::Message("ListResourcesResponse")],
                answer: r#"`{"resources":[…],"next_page_token":""}`, ordered by name"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/events",
            "WatchResources",
            events::watch_resources,
            RouteDocs {
                query: &params::EVENTS,
                gives: &[Content::Events("ResourceEvent")],
                answer: "[server-sent events](#events-of-resources)",
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}",
            "GetResource",
            handlers::get_resource,
            RouteDocs {
                gives: &[Content::Message("Resource")],
                answer: "[resource](#answer-of-a-resource)",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::PATCH,
            "/crawler/resource/{name}",
            "UpdateResource",
            handlers::update_named_resource,
            RouteDocs {
                takes: Body::Object(CHANGED),
                gives: &[Content::Message("Resource")],
                body: "[resource](#body-of-a-resource), whose `name` may be absent; what is absent stays as it is",
                answer: "[resource](#answer-of-a-resource)",
                errors: &[
                    (404, ""),
                    (409, "it has another `if_id` or `if_generation`"),
                    (412, "only a restart can change it"),
                ],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/resource/{name}",
            "DeleteResource",
            handlers::delete_named_resource,
            RouteDocs {
                query: &params::PURGE,
                takes: Body::Optional(Fields {
                    message: "ResourceSpec",
                    required: &[],
                    optional: &DELETION,
                }),
                gives: &[Content::Empty],
                body: "none, or `{}`; `purge`, and `if_id` and `if_generation` as conditions, may stand here too",
                answer: "`{}`",
                errors: &[
                    (404, ""),
                    (409, "it has another `if_id` or `if_generation`"),
                ],
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/restart",
            "RestartResource",
            lifecycle::restart,
            RouteDocs {
                takes: Body::Object(CHANGED),
                gives: &[Content::Message("Resource")],
                body: "`{}`, or what is different in the new run: `plugin`, `params`, `no_params` (names to take away), `limits`, `crawl`, `placement`, `labels`, `replace`, `if_generation`, `if_id`",
                answer: "[resource](#answer-of-a-resource)",
                errors: &[
                    (404, ""),
                    (409, "it has another `if_id` or `if_generation`"),
                    (
                        412,
                        "the new run has [fewer shards](#a-run-with-fewer-shards), and one that would go is not done yet",
                    ),
                ],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/pause",
            "PauseResource",
            lifecycle::pause,
            RouteDocs {
                takes: Body::Optional(NO_FIELDS),
                gives: &[Content::Message("Resource")],
                body: "none, or `{}`",
                answer: "[resource](#answer-of-a-resource)",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::POST,
            "/crawler/resource/{name}/resume",
            "ResumeResource",
            lifecycle::resume,
            RouteDocs {
                takes: Body::Optional(NO_FIELDS),
                gives: &[Content::Message("Resource")],
                body: "none, or `{}`",
                answer: "[resource](#answer-of-a-resource)",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::PUT,
            "/crawler/resource/{name}/schedule",
            "SetSchedule",
            lifecycle::set_schedule,
            RouteDocs {
                takes: Body::Object(Fields {
                    message: "ScheduleSpec",
                    required: &[],
                    optional: &SCHEDULE,
                }),
                gives: &[Content::Message("Schedule")],
                body: r#"`{"cron":"0 3 * * *","tz":"Europe/Paris"}`, or `{"every_ms":21600000}`; `jitter_ms`, `overlap` and `missed` as [schedules](../guide/schedules.md) have them"#,
                answer: "[schedule](../guide/schedules.md#what-is-shown)",
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/schedule",
            "GetSchedule",
            lifecycle::get_schedule,
            RouteDocs {
                gives: &[Content::Message("Schedule")],
                answer: "[schedule](../guide/schedules.md#what-is-shown)",
                errors: &[(404, "no such resource, or it has no schedule")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::DELETE,
            "/crawler/resource/{name}/schedule",
            "DeleteSchedule",
            lifecycle::delete_schedule,
            RouteDocs {
                takes: Body::Optional(NO_FIELDS),
                gives: &[Content::Empty],
                body: "none, or `{}`",
                answer: "`{}`",
                errors: &[(404, "no such resource, or it has no schedule")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/schedule",
            "ListSchedules",
            lifecycle::list_schedules,
            RouteDocs {
                query: &params::SCHEDULES,
                gives: &[Content::Message("ListSchedulesResponse")],
                answer: r#"`{"schedules":[{"resource":…,"schedule":…}],"next_page_token":""}`, ordered by name: the [resources](#answer-of-a-resource) that have a [schedule](../guide/schedules.md#what-is-shown). `schedule` is null if it was written by a later version, or is damaged"#,
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/events",
            "ReadEvents",
            events::read_events,
            RouteDocs {
                query: &params::HISTORY,
                gives: &[Content::Lines("PastEvent"), Content::Events("PastEvent")],
                answer: r#"stream of [what happened to it](../operate/events.md), in order: `{"kind":"placed","at":…,"run":1,"worker":"worker-1","why":"…",…}`. With `follow` [server-sent events](#events-of-resources), those that come too"#,
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/runs",
            "ListRuns",
            lifecycle::list_runs,
            RouteDocs {
                gives: &[Content::Message("ListRunsResponse")],
                answer: r#"`{"runs":[…]}`, the latest first: the present run, and [those before it](../guide/schedules.md#runs-that-are-over)"#,
                errors: &[(404, "")],
                ..RouteDocs::default()
            },
        ),
        Route::new(
            Method::GET,
            "/crawler/resource/{name}/runs/diff",
            "DiffRuns",
            lifecycle::diff_runs,
            RouteDocs {
                query: &params::DIFF,
                gives: &[Content::Message("RunsDiff")],
                answer: r#"[what differs between two runs](../guide/schedules.md#two-runs-compared): `{"before":…,"after":…,"settings":["delay"],"settings_known":true,"changes":…,"compared":1,"uncompared":0}`"#,
                errors: &[
                    (404, "there is no such resource, or a run is not remembered"),
                    (412, "the frontier is damaged"),
                    (503, "the storage does not answer"),
                ],
                ..RouteDocs::default()
            },
        ),
    ]
}
