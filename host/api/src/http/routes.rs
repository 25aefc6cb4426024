//! The calls of a master over HTTP: one list, from which the router is built, and the tables of the chapter "HTTP" of the
//! book and the OpenAPI document are written.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::check_access::{Check, check_access};
use crate::Api;
use crate::intake::Intake;

use docs::NO_FIELDS;
pub(super) use docs::{Body, Content, Fields, RouteDocs};

mod cluster;
mod docs;
mod reads;
mod resources;

/// A call: its way in, its handler, and its description.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// Name of the same call over gRPC.
    pub(super) call: &'static str,
    handler: MethodRouter<Api>,
    pub(super) docs: RouteDocs,
}

impl Route {
    fn new<H, T>(
        method: Method,
        path: &'static str,
        call: &'static str,
        handler: H,
        docs: RouteDocs,
    ) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone());
        let handler = on(filter.expect("the method is a usual one"), handler);
        Self {
            method,
            path,
            call,
            handler,
            docs,
        }
    }
}

/// Returns the router of all calls. Each is made by callers that have the right to it only.
pub(super) fn router(intake: &Intake) -> Router<Api> {
    let routes = tables().into_iter().flat_map(|(_, routes)| routes);
    routes.fold(Router::new(), |router, route| {
        let check = Check::of(intake.clone(), route.call);
        let check = middleware::from_fn_with_state(check, check_access);
        router.route(route.path, route.handler.route_layer(check))
    })
}

/// Returns the paths of all calls.
pub(super) fn paths() -> Vec<&'static str> {
    let routes = tables().into_iter().flat_map(|(_, routes)| routes);
    let mut paths: Vec<_> = routes.map(|route| route.path).collect();
    paths.extend(["/docs", "/healthz", "/metrics", "/openapi.json"]);
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Returns all calls by the table of the book that they are in.
pub(super) fn tables() -> [(&'static str, Vec<Route>); 6] {
    [
        ("calls about resources", resources::resources()),
        ("calls about items and logs", reads::outputs()),
        ("calls about frontiers", reads::frontiers()),
        ("calls about nodes", cluster::nodes()),
        ("calls about plugins", cluster::plugins()),
        ("calls about access", cluster::access()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use crate::access::methods::{METHODS, Method as Call, Needs};
    use crawler_model::access::Role;
    use crawler_process::traces::Tracer;
    use crawler_testing::book::check;

    /// Returns a path with its parts as the book names them.
    fn path(route: &Route) -> String {
        route
            .path
            .replace("{name}", "NAME")
            .replace("{id}", "ID")
            .replace("{digest}", "DIGEST")
            .replace("{plugin}", "NAME[@VERSION]")
            .replace("{token}", "ID")
    }

    #[test]
    fn the_book_has_every_call_over_http() {
        for (part, routes) in tables() {
            let rows = routes.iter().map(|route| {
                let (method, path) = (&route.method, path(route));
                let docs = &route.docs;
                let cells = [
                    &format!("`{method} {path}`"),
                    &docs.query_cell(),
                    docs.body,
                    docs.answer,
                    &docs.errors_cell(),
                ];
                format!("| {} |\n", cells.join(" | "))
            });
            let head = "| method and path | query | body | answer | errors of its own |\n|---|---|---|---|---|\n";
            let table = head.to_owned() + &rows.collect::<String>();
            check("reference/http.md", part, &table);
        }
    }

    #[test]
    fn the_book_has_every_call_and_its_right() {
        let routes: Vec<Route> = tables()
            .into_iter()
            .flat_map(|(_, routes)| routes)
            .collect();
        let rows = METHODS.iter().map(|method| {
            let over_http = routes.iter().filter(|route| route.call == method.name);
            let over_http = over_http.map(|route| format!("`{} {}`", route.method, path(route)));
            let over_http = over_http.collect::<Vec<_>>().join(" · ");
            let (right, in_namespace) = match method.needs {
                Needs::Nothing => (None, "yes"),
                Needs::OwnProof => (None, "without a token"),
                Needs::Right(right) => (Some(right), "its names"),
                Needs::AnyName(right) => (Some(right), "yes"),
                Needs::WholeCluster(right) => (Some(right), "no"),
            };
            let roles = Role::ALL.map(|role| match right {
                Some(right) if !role.gives(right) => "no",
                Some(_) | None => "yes",
            });
            let cells = [
                &format!("`{}`", method.name),
                &over_http,
                &roles.join(" | "),
                in_namespace,
            ];
            format!("| {} |\n", cells.join(" | "))
        });
        let roles = Role::ALL.map(Role::as_str).join(" | ");
        let head = format!(
            "| call | over HTTP | {roles} | in a namespace |\n|---|---|---|---|---|---|---|\n"
        );
        let table = head + &rows.collect::<String>();
        check("reference/access.md", "calls and rights", &table);
    }

    #[test]
    fn every_route_is_a_call_of_the_table() {
        for (_, routes) in tables() {
            for Route {
                method, path, call, ..
            } in routes
            {
                assert!(Call::named(call).is_some(), "{method} {path}: {call}");
            }
        }
    }

    #[test]
    fn the_list_makes_a_router() {
        // A path that stands twice with one method would panic.
        let _router = router(&Intake {
            access: Access::default(),
            limiter: None,
            tracer: Tracer::default(),
        });
    }
}
