//! Parts of a request: its origin, path, parameters and body.

use std::collections::BTreeMap;
use std::error::Error;

use axum::body::{HttpBody as _, to_bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request};
use axum::http::{HeaderMap, StatusCode, header};

use super::local::other_site;
use super::params::QueryParam;
use crate::forward::Origin;
use crate::problem::Problem;
use crate::spec::invalid;
use crate::{CALL_DEADLINE, REQUEST_MAX};
use crawler_master::Code;
use crawler_model::suggest;
use crawler_process::telemetry::chain;

/// Header of a call that changes something: a call that is sent again under the same key is carried out once.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

pub(super) type PathPart = Result<Path<String>, PathRejection>;

pub(super) type Params = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// Returns the origin of a call that changes something.
pub(super) fn origin(request: &Request) -> Result<Origin, Problem> {
    let id = match request.headers().get(IDEMPOTENCY_KEY) {
        None => None,
        Some(id) => {
            let id = id.to_str().unwrap_or_default().parse();
            Some(id.map_err(|e| Problem::from(invalid(IDEMPOTENCY_KEY, e)))?)
        }
    };
    Ok(Origin::client(id))
}

pub(super) fn part(part: PathPart) -> Result<String, Problem> {
    match part {
        Ok(Path(part)) => Ok(part),
        Err(rejection) => Err(Problem::invalid(rejection.body_text(), "")),
    }
}

/// Returns the parameters of the query, which must be among those that are known.
pub(super) fn known(
    params: Params,
    known: &[QueryParam],
) -> Result<BTreeMap<String, String>, Problem> {
    let known: Vec<&str> = known.iter().map(|param| param.name).collect();
    let Query(pairs) = params.map_err(|e| Problem::invalid(e.body_text(), ""))?;
    let mut params = BTreeMap::new();
    for (name, value) in pairs {
        if !known.contains(&name.as_str()) {
            let detail = format!("there is no parameter {name:?} here");
            return Err(Problem::invalid(detail, suggest::hint(&name, &known)));
        }
        if params.contains_key(&name) {
            let detail = format!("parameter {name:?} is there more than once");
            return Err(Problem::invalid(detail, "give it once"));
        }
        params.insert(name, value);
    }
    Ok(params)
}

/// Returns a text, which is empty if the parameter is not there.
pub(super) fn text(params: &BTreeMap<String, String>, name: &str) -> String {
    params.get(name).cloned().unwrap_or_default()
}

/// Returns the labels of the parameter `label`: `KEY=VALUE`, and others behind commas.
pub(super) fn labels(
    params: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Problem> {
    let Some(text) = params.get("label") else {
        return Ok(BTreeMap::new());
    };
    let labels = text.split(',').map(|label| match label.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Problem::invalid(
            format!("label takes KEY=VALUE, not {label:?}"),
            "write several with commas between them",
        )),
    });
    labels.collect()
}

pub(super) fn number(params: &BTreeMap<String, String>, name: &str) -> Result<u32, Problem> {
    let Some(text) = params.get(name) else {
        return Ok(0);
    };
    let wrong = |_| Problem::invalid(format!("{name} takes a whole number, not {text:?}"), "");
    text.parse().map_err(wrong)
}

/// Returns a number above 0, or 0 if the parameter is not there.
pub(super) fn positive(params: &BTreeMap<String, String>, name: &str) -> Result<u64, Problem> {
    let Some(text) = params.get(name) else {
        return Ok(0);
    };
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| {
        let detail = format!("{name} takes a whole number above 0, not {text:?}");
        Problem::invalid(detail, "")
    })
}

pub(super) fn flag(params: &BTreeMap<String, String>, name: &str) -> Result<bool, Problem> {
    match params.get(name).map(String::as_str) {
        None | Some("false" | "0") => Ok(false),
        Some("" | "true" | "1") => Ok(true),
        Some(text) => Err(Problem::invalid(
            format!("{name} takes true or false, not {text:?}"),
            "",
        )),
    }
}

pub(super) async fn json_body(request: Request, example: &str) -> Result<bytes::Bytes, Problem> {
    let example = format!("-d '{example}'");
    check_type(request.headers(), "application/json", &example)?;
    let too_large = || {
        let detail = format!("the body has more than {REQUEST_MAX} bytes");
        Problem::new(Code::ResourceExhausted, detail, "")
    };
    let body = bytes_of(request, REQUEST_MAX, too_large);
    match tokio::time::timeout(CALL_DEADLINE, body).await {
        Ok(bytes) => bytes,
        Err(_elapsed) => {
            let detail = format!("no body arrived within {} s", CALL_DEADLINE.as_secs());
            Err(Problem::invalid(detail, "").with_status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

/// Returns the body of a call that needs none: a missing one counts as an object without fields, and then no
/// type is needed. A page in a browser, which tells its origin or that it is of another website, has to give the
/// type: it cannot do so unasked.
pub(super) async fn optional_body(request: Request) -> Result<bytes::Bytes, Problem> {
    let empty = bytes::Bytes::from_static(b"{}");
    let headers = request.headers();
    let is_plain = !headers.contains_key(header::CONTENT_TYPE)
        && !headers.contains_key(header::ORIGIN)
        && other_site(headers).is_none();
    if is_plain && request.body().is_end_stream() {
        return Ok(empty);
    }
    match json_body(request, "{}").await? {
        body if body.is_empty() => Ok(empty),
        body => Ok(body),
    }
}

pub(super) async fn bytes_of(
    request: Request,
    max: usize,
    too_large: impl Fn() -> Problem,
) -> Result<bytes::Bytes, Problem> {
    // A body whose announced length is too large is refused before it is read.
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|n| n.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|n| n > max as u64) {
        return Err(too_large());
    }
    to_bytes(request.into_body(), max).await.map_err(|e| {
        if let Some(problem) = problem_in(&e) {
            return problem.clone();
        }
        let error = chain(&e);
        match error.contains("length limit exceeded") {
            true => too_large(),
            false => Problem::invalid(format!("the body did not arrive whole: {error}"), ""),
        }
    })
}

/// Returns the problem that ended a body, if this server caused it.
fn problem_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Problem> {
    match error.downcast_ref() {
        Some(problem) => Some(problem),
        None => problem_in(error.source()?),
    }
}

/// Checks the content type. It must be given: a page in a browser can send any other type to a local server
/// unasked.
pub(super) fn check_type(headers: &HeaderMap, expected: &str, body: &str) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.map(|v| String::from_utf8_lossy(v.as_bytes()));
    let essence = given.as_deref().and_then(|v| v.split(';').next());
    if essence.is_some_and(|v| v.trim().eq_ignore_ascii_case(expected)) {
        return Ok(());
    }
    let detail = match given {
        Some(given) => format!("the body is of type {given}, not {expected}"),
        None => format!("the body has no type; it should be {expected}"),
    };
    let hint = format!("with curl: -H 'content-type: {expected}' {body}");
    Err(Problem::invalid(detail, hint).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::HeaderName;

    use super::*;

    async fn body(headers: &[(HeaderName, &str)], body: &'static str) -> Result<String, u16> {
        let mut request = Request::post("/").body(Body::from(body)).unwrap();
        for (name, value) in headers {
            let value = value.parse().unwrap();
            request.headers_mut().insert(name.clone(), value);
        }
        let body = optional_body(request)
            .await
            .map_err(|e| e.status.as_u16())?;
        Ok(String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_call_that_needs_no_body_needs_no_type_either() {
        let json = (header::CONTENT_TYPE, "application/json");
        let page = (header::ORIGIN, "http://a.test");
        assert_eq!(body(&[], "").await.unwrap(), "{}");
        assert_eq!(body(std::slice::from_ref(&json), "").await.unwrap(), "{}");
        assert_eq!(
            body(std::slice::from_ref(&json), "{ }").await.unwrap(),
            "{ }"
        );
        assert_eq!(body(&[json, page.clone()], "").await.unwrap(), "{}");
        assert_eq!(body(&[], "{}").await, Err(415));
        assert_eq!(body(&[page], "").await, Err(415), "a page in a browser");
        let site = |value| [(HeaderName::from_static("sec-fetch-site"), value)];
        assert_eq!(body(&site("same-origin"), "").await.unwrap(), "{}");
        assert_eq!(body(&site("none"), "").await.unwrap(), "{}");
        assert_eq!(body(&site("cross-site"), "").await, Err(415));
        assert_eq!(body(&site("same-site"), "").await, Err(415));
    }
}
