//! Checks of one request that a rule wants to follow.

use bytes::Bytes;
use url::Url;

use super::texts::{named_bytes, up_to};
use crate::bindings::crawler::rules::types;
use crate::bindings::crawler::rules::types::OutputError;
use crawler_model::accept_status::{ACCEPT_STATUS, AcceptStatus};
use crawler_model::crawl::{HEADERS_MAX, KEEP_BODY, Request, STATE_MAX, URL_MAX};
use crawler_model::plugin::Description;

/// Largest length of a method, in bytes.
const METHOD_MAX: usize = 32;
/// Headers that belong to the connection and not to the request.
const HOST_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns the number of bytes of a request.
pub(super) fn n_bytes(request: &types::Request) -> usize {
    request.url.len()
        + request.method.len()
        + named_bytes(&request.headers)
        + request.body.as_ref().map_or(0, Vec::len)
        + request.state.len()
        + named_bytes(&request.hints)
}

/// Resolves a URL against `base`; the error ends a sentence that starts with the URL.
pub(super) fn url(text: &str, base: Option<&Url>) -> Result<Url, String> {
    let url = match base {
        Some(base) => base.join(text),
        None => Url::parse(text),
    };
    let url = url.map_err(|e| match (e, base) {
        (url::ParseError::RelativeUrlWithoutBase, None) => {
            "is relative, and in root there is no page to resolve it against".to_owned()
        }
        (e, _) => format!("does not parse: {e}"),
    })?;
    if url.as_str().len() > URL_MAX {
        return Err(format!(
            "is {} bytes long; at most {URL_MAX} are allowed",
            url.as_str().len()
        ));
    }
    Ok(url)
}

/// Checks a request, and returns it in the model's form.
pub(super) fn checked(
    request: types::Request,
    url: Url,
    description: &Description,
) -> Result<Request, OutputError> {
    let refused = |why: String| Err(OutputError::Refused(why));
    let Some(rule) = description.rules.get(request.rule as usize) else {
        return refused(format!(
            "rule {} does not exist; the plugin describes {}",
            request.rule,
            description.rules.len()
        ));
    };
    if request.state.len() > STATE_MAX {
        return refused(format!(
            "state is {} bytes long; at most {STATE_MAX} are allowed",
            request.state.len()
        ));
    }
    if request.method.len() > METHOD_MAX || !is_token(&request.method) {
        return refused(format!(
            "method {:?} is not a method; write one like GET or POST",
            up_to(&request.method, METHOD_MAX)
        ));
    }
    if request.headers.len() > HEADERS_MAX {
        return refused(format!(
            "{} headers; at most {HEADERS_MAX} are allowed",
            request.headers.len()
        ));
    }
    for (name, value) in &request.headers {
        if !is_token(name) {
            return refused(format!("header name {:?} is not a token", up_to(name, 64)));
        }
        if HOST_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return refused(format!(
                "header {name} is set by the crawler, not by a rule"
            ));
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return refused(format!(
                "the value of header {} has a control character",
                up_to(name, 64)
            ));
        }
    }
    let accept_status = accept_status(&request.hints).map_err(OutputError::Refused)?;
    let keep_body = keep_body(&request.hints).map_err(OutputError::Refused)?;
    Ok(Request {
        url,
        method: match request.method.as_str() {
            "GET" => "GET".into(),
            other => other.to_ascii_uppercase().into(),
        },
        headers: request.headers,
        body: request.body.map(Bytes::from),
        rule: rule.clone(),
        priority: request.priority,
        state: Bytes::from(request.state),
        reload: request.reload,
        accept_status,
        keep_body,
        // The crawl knows which page the link is on.
        referrer: None,
    })
}

/// Returns the statuses that the hints ask for. Keys that this host does not know are ignored.
fn accept_status(hints: &[(String, String)]) -> Result<AcceptStatus, String> {
    let mut said = hints.iter().filter(|(key, _)| key == ACCEPT_STATUS);
    let Some((_, text)) = said.next() else {
        return Ok(AcceptStatus::default());
    };
    if said.next().is_some() {
        return Err(format!(
            "hint {ACCEPT_STATUS} is given twice; list all statuses in one"
        ));
    }
    let parsed: Result<AcceptStatus, String> = text.parse();
    parsed.map_err(|why| format!("hint {ACCEPT_STATUS} {why}"))
}

/// Returns true if the hints ask to keep the body.
fn keep_body(hints: &[(String, String)]) -> Result<bool, String> {
    let mut said = hints.iter().filter(|(key, _)| key == KEEP_BODY);
    match (said.next(), said.next()) {
        (None, _) => Ok(false),
        (Some((_, text)), None) if text == "true" => Ok(true),
        (Some((_, text)), None) => Err(format!(
            "hint {KEEP_BODY} has {:?}; write true, or leave it out",
            up_to(text, 64)
        )),
        (Some(_), Some(_)) => Err(format!("hint {KEEP_BODY} is given twice; write it once")),
    }
}

/// Returns true if the text is an HTTP token, which methods and header names are made of.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn description() -> Description {
        Description {
            name: "books".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
            rules: vec!["list".into()],
            schemas: Vec::new(),
            plans: Vec::new(),
            hosts: Vec::new(),
            params: None,
            limits: BTreeMap::new(),
        }
    }

    fn get(text: &str) -> types::Request {
        types::Request {
            url: text.to_owned(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
            rule: 0,
            priority: 0,
            state: Vec::new(),
            reload: false,
            hints: Vec::new(),
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut types::Request), expected: &str) {
        let mut request = get("http://a.test/");
        change(&mut request);
        let url = url(&request.url, None).unwrap();
        match checked(request, url, &description()) {
            Ok(request) => assert_eq!(format!("{} {}", request.method, request.rule), expected),
            Err(OutputError::Refused(why)) => assert_eq!(why, expected),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_is_refused_for_what_is_wrong_with_it() {
        check(|_| (), "GET list");
        check(|r| r.method = "post".into(), "POST list");
        check(
            |r| r.rule = 1,
            "rule 1 does not exist; the plugin describes 1",
        );
        check(
            |r| r.state = vec![0; 4097],
            "state is 4097 bytes long; at most 4096 are allowed",
        );
        check(
            |r| r.method = "GET /x".into(),
            "method \"GET /x\" is not a method; write one like GET or POST",
        );
        check(
            |r| r.headers = vec![("a b".into(), "c".into())],
            "header name \"a b\" is not a token",
        );
        check(
            |r| r.headers = vec![("Content-Length".into(), "9".into())],
            "header Content-Length is set by the crawler, not by a rule",
        );
        check(
            |r| r.headers = vec![("x".into(), "a\r\nhost: b".into())],
            "the value of header x has a control character",
        );
        check(
            |r| r.headers = vec![("x".into(), "y".into()); 65],
            "65 headers; at most 64 are allowed",
        );
        let hints = |values: &[&str]| {
            let hint = |value: &&str| (ACCEPT_STATUS.to_owned(), (*value).to_owned());
            values.iter().map(hint).collect()
        };
        check(
            |r| r.hints = hints(&["404-"]),
            "hint accept-status has \"404-\", which is no status; write statuses and ranges like 404,410,500-599, or any",
        );
        check(
            |r| r.hints = hints(&["404", "410"]),
            "hint accept-status is given twice; list all statuses in one",
        );
        let keeping = |values: &[&str]| {
            let hint = |value: &&str| (KEEP_BODY.to_owned(), (*value).to_owned());
            values.iter().map(hint).collect()
        };
        check(|r| r.hints = keeping(&["true"]), "GET list");
        check(
            |r| r.hints = keeping(&["yes"]),
            "hint keep-body has \"yes\"; write true, or leave it out",
        );
        check(
            |r| r.hints = keeping(&["true", "true"]),
            "hint keep-body is given twice; write it once",
        );
    }

    #[test]
    fn hints_say_which_statuses_and_files_the_rule_wants() {
        let accepted = |hints: &[(&str, &str)]| {
            let mut request = get("http://a.test/");
            let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            request.hints = hints.iter().map(owned).collect();
            let url = url(&request.url, None).unwrap();
            let request = checked(request, url, &description()).unwrap();
            let statuses = request.accept_status.to_string();
            (statuses, request.keep_body, request.referrer)
        };
        assert_eq!(accepted(&[("later", "x")]), (String::new(), false, None));
        let both = [("later", "x"), ("accept-status", "500-599,404")];
        assert_eq!(accepted(&both).0, "404,500-599");
        assert!(accepted(&[("keep-body", "true")]).1);
    }

    #[test]
    fn links_resolve_against_the_page() {
        let base = Url::parse("http://a.test/x/y?z").unwrap();
        assert_eq!(
            url("../b#c", Some(&base)).unwrap().as_str(),
            "http://a.test/b#c"
        );
        assert_eq!(
            url("//c.test", Some(&base)).unwrap().as_str(),
            "http://c.test/"
        );
        assert_eq!(
            url("http://[", Some(&base)).unwrap_err(),
            "does not parse: invalid IPv6 address"
        );
        assert_eq!(
            url("b", None).unwrap_err(),
            "is relative, and in root there is no page to resolve it against"
        );
        let long = format!("http://a.test/{}", "x".repeat(URL_MAX));
        assert_eq!(
            url(&long, None).unwrap_err(),
            "is 8206 bytes long; at most 8192 are allowed"
        );
    }
}
