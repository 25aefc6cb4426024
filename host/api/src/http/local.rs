//! Keeps web pages away from a listener that is meant for this machine alone.
//!
//! A page of another website cannot read the answers of such a listener, but it can send requests, and hold
//! open answers that do not end. Browsers tell where a request comes from, in `Sec-Fetch-Site`: a request of
//! another website is refused. Another port of this machine is another website too. A request that a user
//! typed has `none`, and programs that are no browsers send no such header; both pass. So does a link to the page at `/`,
//! which a browser opens as a document of its own: the page has no data, and the website that links to it learns nothing.
//!
//! A page can also point its own name to 127.0.0.1, and the browser then takes the answers for the page's
//! own. The request still carries that name, so a loopback listener answers only to addresses and to
//! `localhost`. A listener elsewhere has names of its own, which are not judged.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::problem::Problem;

/// Header in which a browser says where a request comes from.
const FETCH_SITE: &str = "sec-fetch-site";

/// Headers in which a browser says what it does with the answer, with their values if it opens a tab's document.
const OPENS_DOCUMENT: [(&str, &[u8]); 2] = [
    ("sec-fetch-mode", b"navigate"),
    ("sec-fetch-dest", b"document"),
];

/// Passes a request on if it was sent to an address or to `localhost`, and not by another website unless it opens the page.
pub(super) async fn only(request: Request, next: Next) -> Response {
    if let Some(site) = other_site(request.headers())
        && !opens_page(&request)
    {
        let detail = format!(
            "this listener is for this machine alone and does not answer other websites \
             (Sec-Fetch-Site: {})",
            String::from_utf8_lossy(site.as_bytes())
        );
        let hint = "type the address into the browser, or use curl";
        return Problem::invalid(detail, hint)
            .with_status(StatusCode::FORBIDDEN)
            .into_response();
    }
    let header = request.headers().get(header::HOST);
    let name = match (request.uri().authority(), header) {
        (Some(authority), _) => authority.as_str().to_owned(),
        (None, Some(host)) => String::from_utf8_lossy(host.as_bytes()).into_owned(),
        // Every browser sends the header.
        (None, None) => return next.run(request).await,
    };
    if is_local(&name) {
        return next.run(request).await;
    }
    let detail = format!("this listener is for this machine alone and does not answer to {name:?}");
    let hint = "write the address into the URL, as in http://127.0.0.1:8081/crawler/resource";
    Problem::invalid(detail, hint).into_response()
}

/// Returns the site that a browser names if the request comes from another website.
pub(super) fn other_site(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut sites = headers.get_all(FETCH_SITE).into_iter();
    sites.find(|site| !is_own(site))
}

/// Returns true if the browser follows a link to the page of the master.
fn opens_page(request: &Request) -> bool {
    let has = |(name, value): (&str, &[u8])| {
        let mut told = request.headers().get_all(name).into_iter();
        told.next().is_some_and(|told| told.as_bytes() == value) && told.next().is_none()
    };
    request.method() == Method::GET
        && request.uri().path() == "/"
        && OPENS_DOCUMENT.into_iter().all(has)
}

fn is_own(site: &HeaderValue) -> bool {
    matches!(site.as_bytes(), b"none" | b"same-origin")
}

fn is_local(name: &str) -> bool {
    let Ok(authority) = name.parse::<Authority>() else {
        return false;
    };
    match url::Host::parse(authority.host()) {
        Ok(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Ok(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => true,
        Err(_not_a_host) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use axum::Router;
    use axum::body::Body;
    use axum::middleware;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tower::ServiceExt as _;

    use super::*;
    use crate::access::Access;
    use crate::http;
    use crate::requests::{RequestSettings, Requests};
    use crawler_process::task::TaskScope;

    /// Returns the first line of the answer to a request that says where it comes from.
    async fn asked_by(address: SocketAddr, path: &str, site: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        let request = match site {
            "" => format!("{head}\r\n"),
            site => format!("{head}Sec-Fetch-Site: {site}\r\n\r\n"),
        };
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        let read = tokio::time::timeout(Duration::from_secs(20), read).await;
        read.expect("answered").unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn r13_other_websites_are_refused_on_loopback() {
        let scope = TaskScope::new();
        let requests = Requests::new(RequestSettings::default());
        let listen = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (http, pprof) = (listen().await, listen().await);
        let doors = [
            (http.local_addr().unwrap(), "/healthz"),
            (pprof.local_addr().unwrap(), "/debug/pprof/"),
        ];
        let stop = scope.stop_signal();
        let http = http::serve(
            http,
            None,
            Access::default(),
            None,
            requests.clone(),
            None,
            stop.clone(),
        );
        scope.spawn("http", async move { http.await.unwrap() });
        let pprof = http::profile::serve(pprof, Vec::new(), requests, stop);
        scope.spawn("pprof", async move { pprof.await.unwrap() });
        for (address, path) in doors {
            for site in ["", "none", "same-origin"] {
                let answer = asked_by(address, path, site).await;
                assert_eq!(answer, "HTTP/1.1 200 OK", "{path} {site:?}");
            }
            for site in ["cross-site", "same-site", "cross-origin", "None"] {
                let answer = asked_by(address, path, site).await;
                assert_eq!(answer, "HTTP/1.1 403 Forbidden", "{path} {site:?}");
            }
        }
        scope.stop(Duration::from_secs(20)).await;
    }

    #[tokio::test]
    async fn r13_a_link_of_another_website_opens_the_page_alone() {
        let router = Router::new().fallback(|| async { "served" });
        let router = router.layer(middleware::from_fn(only));
        let ask = async |method: Method, path: &str, host: &str, [mode, dest]: [&str; 2]| {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header(header::HOST, host)
                .header(FETCH_SITE, "cross-site")
                .header("sec-fetch-mode", mode)
                .header("sec-fetch-dest", dest)
                .body(Body::empty())
                .unwrap();
            router.clone().oneshot(request).await.unwrap().status()
        };
        let (link, local) = (["navigate", "document"], "127.0.0.1:8081");
        for path in ["/", "/?from=mail"] {
            assert_eq!(ask(Method::GET, path, local, link).await, StatusCode::OK);
        }
        for (method, path, fetch) in [
            (Method::POST, "/", link),
            (Method::GET, "/crawler/resource", link),
            (Method::GET, "/docs", link),
            (Method::GET, "/", ["navigate", "iframe"]),
            (Method::GET, "/", ["no-cors", "image"]),
            (Method::GET, "/", ["cors", "empty"]),
        ] {
            let told = ask(method, path, local, fetch).await;
            assert_eq!(told, StatusCode::FORBIDDEN, "{path} {fetch:?}");
        }
        let told = ask(Method::GET, "/", "evil.test:8081", link).await;
        assert_eq!(told, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_loopback_listener_answers_to_addresses_and_localhost_only() {
        for name in [
            "127.0.0.1:8081",
            "[::1]:8081",
            "localhost",
            "LOCALHOST:1",
            "a.localhost",
        ] {
            assert!(is_local(name), "{name}");
        }
        for name in [
            "evil.test:8081",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "",
            "a b",
        ] {
            assert!(!is_local(name), "{name}");
        }
    }
}
