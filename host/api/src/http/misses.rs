//! Answers to requests that no call takes, with a hint at those that were probably meant.

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::problem::Problem;
use crawler_master::Code;
use crawler_model::suggest;

/// Length in bytes of the longest path that is compared with those of calls: a comparison takes time that grows
/// with its square.
const COMPARED_MAX: usize = 256;

/// Returns the problem of a path that no call has, with the path of the nearest call as a hint.
pub(super) fn path(calls: &[&str], path: &str) -> Problem {
    let near = match path.len() {
        ..=COMPARED_MAX => nearest(calls, path),
        _ => None,
    };
    let hint = match (near, may_have_slash_in_name(path)) {
        (Some(near), false) => format!("did you mean {near}?"),
        (Some(near), true) => {
            format!("did you mean {near}, or a name with a slash, which is written %2F?")
        }
        (None, true) => "a slash in a name is written %2F".to_owned(),
        (None, false) => {
            "resources are at /crawler/resource, plugins at /crawler/plugin, nodes at /crawler/node"
                .to_owned()
        }
    };
    Problem::new(Code::NotFound, format!("there is nothing at {path}"), hint)
}

/// True if the path may be that of a name with a slash that is not escaped: it goes on behind the name of a resource or
/// plugin.
fn may_have_slash_in_name(path: &str) -> bool {
    let named = ["/crawler/resource/", "/crawler/plugin/"];
    let mut rests = named
        .into_iter()
        .filter_map(|named| path.strip_prefix(named));
    rests.any(|rest| {
        let parts = rest.split_once('/');
        parts.is_some_and(|(name, more)| !name.is_empty() && !more.is_empty())
    })
}

fn nearest(calls: &[&str], path: &str) -> Option<String> {
    let filled: Vec<String> = calls.iter().map(|call| fill(call, path)).collect();
    let near = suggest::nearest(path, filled.iter().map(String::as_str))?;
    Some(near.to_owned())
}

/// Returns the path of a call with the names that the given path has in the same places.
fn fill(call: &str, path: &str) -> String {
    let mut given = path.split('/');
    let parts = call.split('/').map(|part| match (part, given.next()) {
        (part, Some(name)) if part.starts_with('{') && !name.is_empty() => name.to_owned(),
        ("{name}" | "{plugin}", _) => "NAME".to_owned(),
        ("{id}", _) => "ID".to_owned(),
        ("{digest}", _) => "DIGEST".to_owned(),
        (part, _) => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns a router that answers a request whose path has calls with other methods only with these methods as a
/// hint.
pub(super) fn naming_methods(calls: Router) -> Router {
    // The header with the methods is set outside of the layers of a router itself.
    let around = Router::new().fallback_service(calls);
    around.layer(axum::middleware::from_fn(name_methods))
}

async fn name_methods(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        return response;
    }
    // The router names the methods of the path.
    let allow = response.headers_mut().remove(header::ALLOW);
    let hint = match &allow {
        Some(methods) => {
            let methods = String::from_utf8_lossy(methods.as_bytes());
            format!("it takes {}", methods.replace(',', ", "))
        }
        None => String::new(),
    };
    let problem = Problem::invalid(format!("{path} does not take {method}"), hint)
        .with_status(StatusCode::METHOD_NOT_ALLOWED);
    let mut response = problem.into_response();
    if let Some(methods) = allow {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::routing::{get, patch};
    use tower::ServiceExt as _;

    use super::*;

    const CALLS: [&str; 4] = [
        "/crawler/resource",
        "/crawler/resource/{name}",
        "/crawler/resource/{name}/items",
        "/crawler/node/{id}/drain",
    ];

    #[track_caller]
    fn check(given: &str, hint: &str) {
        let problem = path(&CALLS, given);
        assert_eq!(problem.detail, format!("there is nothing at {given}"));
        assert_eq!(problem.hint, hint, "{given}");
    }

    #[test]
    fn an_unknown_path_is_told_the_nearest_one() {
        let all = "resources are at /crawler/resource, plugins at /crawler/plugin, nodes at /crawler/node";
        check("/crawler/resources", "did you mean /crawler/resource?");
        check("/crawler/resource/", "did you mean /crawler/resource?");
        check("/resource/books/items", all);
        check(
            "/crawler/resource/books/itmes",
            "did you mean /crawler/resource/books/items, or a name with a slash, which is written %2F?",
        );
        check(
            "/crawler/resource/team/books/items",
            "did you mean /crawler/resource/team/items, or a name with a slash, which is written %2F?",
        );
        check(
            &format!("/crawler/resource/team/{}", "b".repeat(300)),
            "a slash in a name is written %2F",
        );
        check(
            "/crawler/resources/books",
            "did you mean /crawler/resource/books?",
        );
        check(
            "/crawler/node//drain",
            "did you mean /crawler/node/ID/drain?",
        );
        check("/", all);
        check(&format!("/crawler/resources/{}", "b".repeat(300)), all);
    }

    #[tokio::test]
    async fn a_wrong_method_is_told_the_right_ones() {
        let here = || async { "here" };
        let router = Router::new().route("/a", get(here));
        let router = naming_methods(router.route("/a", patch(here)));
        let request = Request::put("/a").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        let allow = response.headers()[header::ALLOW].clone();
        assert_eq!(allow, "GET,HEAD,PATCH");
        let body = to_bytes(response.into_body(), 1 << 10).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["detail"], "/a does not take PUT");
        assert_eq!(problem["hint"], "it takes GET, HEAD, PATCH");
    }
}
