//! Keys of stored answers: which requests get the same answer.
//!
//! A key is made of the request as it is sent: method, URL, body, and all headers, so cookies and credentials too.
//! The URL is not brought into the form in which a crawl compares URLs: a site may redirect from one form to another.
//! Conditions of a crawl are not in it, because none are sent with a cache.
//!
//! Proxies with their logins, allowed networks, fixed addresses and whether certificates are checked are a part of the
//! key: they decide which sites are let through. A run that allows less does not see what was fetched with more.
//! Setting `ca` of `[fetch]` is not a part of it, because the client does not show the bytes of a certificate.

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::Request;
use reqwest::header::USER_AGENT;

use crate::http::{FetchSettings, ProxySettings};
use crawler_model::id::{Digest, RunningDigest};

/// The part of a key that all requests of a process share.
pub(crate) struct Scope<'a> {
    pub(crate) settings: &'a FetchSettings,
    pub(crate) allow_networks: &'a [IpNet],
}

impl Scope<'_> {
    /// Returns the beginning of all keys.
    pub(crate) fn digest(&self) -> RunningDigest {
        let settings = self.settings;
        let networks = self.allow_networks.iter().map(IpNet::to_string);
        let mut networks: Vec<String> = networks.collect();
        networks.sort_unstable();
        networks.dedup();
        let mut digest = RunningDigest::default();
        add(&mut digest, networks.join(",").as_bytes());
        add(&mut digest, format!("{:?}", settings.hosts).as_bytes());
        let strictness = [settings.check_certificates, settings.proxy_resolves];
        add(&mut digest, &strictness.map(u8::from));
        digest
    }
}

/// Returns the key of a request with this body, which goes through one of these proxies.
pub(crate) fn key(
    scope: &RunningDigest,
    request: &Request,
    body: Option<&Bytes>,
    user_agent: &str,
    proxies: &[ProxySettings],
) -> Digest {
    let mut digest = scope.clone();
    add(&mut digest, &proxies.len().to_be_bytes());
    for ProxySettings { url, login } in proxies {
        // A proxy may choose its way out by the login.
        add(&mut digest, format!("{url} {login:?}").as_bytes());
    }
    add(&mut digest, request.method().as_str().as_bytes());
    let url = request.url();
    add(&mut digest, url[..url::Position::AfterQuery].as_bytes());
    let all = request.headers().iter();
    let all = all.map(|(name, value)| (name.as_str(), value.as_bytes()));
    let mut headers: Vec<(&str, &[u8])> = all.collect();
    if !request.headers().contains_key(USER_AGENT) {
        // The client adds it.
        headers.push(("user-agent", user_agent.as_bytes()));
    }
    // Values of one name stay in their order.
    headers.sort_by_key(|(name, _)| *name);
    add(&mut digest, &headers.len().to_be_bytes());
    for (name, value) in headers {
        add(&mut digest, name.as_bytes());
        add(&mut digest, value);
    }
    match body {
        Some(body) => add(&mut digest, body),
        None => digest.add(b"no body"),
    }
    digest.digest()
}

/// Adds a piece with its length, so that the ends of pieces count.
fn add(digest: &mut RunningDigest, piece: &[u8]) {
    digest.add(&(piece.len() as u64).to_be_bytes());
    digest.add(piece);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use reqwest::Method;
    use reqwest::header::HeaderValue;

    use super::*;

    const URL: &str = "http://a.test/x?y";

    fn scope(networks: &[&str], settings: &FetchSettings) -> RunningDigest {
        let allow_networks: Vec<IpNet> = networks.iter().map(|n| n.parse().unwrap()).collect();
        let allow_networks = &allow_networks;
        Scope {
            settings,
            allow_networks,
        }
        .digest()
    }

    fn key_of(
        scope: &RunningDigest,
        change: impl FnOnce(&mut Request),
        body: Option<&str>,
    ) -> Digest {
        let mut request = Request::new(Method::GET, URL.parse().unwrap());
        change(&mut request);
        let body = body.map(|body| Bytes::copy_from_slice(body.as_bytes()));
        key(scope, &request, body.as_ref(), "crawler/1", &[])
    }

    fn set(name: &'static str, value: &'static str) -> impl FnOnce(&mut Request) {
        move |request: &mut Request| {
            let value = HeaderValue::from_static(value);
            request.headers_mut().append(name, value);
        }
    }

    #[test]
    fn requests_that_may_be_answered_otherwise_have_other_keys() {
        let settings = FetchSettings::default();
        let usual = scope(&[], &settings);
        let to = |url: &str| {
            let url = url.parse().unwrap();
            move |request: &mut Request| *request.url_mut() = url
        };
        let two = |request: &mut Request| {
            set("x", "1")(request);
            set("x", "2")(request);
        };
        let other_way = |request: &mut Request| {
            set("x", "2")(request);
            set("x", "1")(request);
        };
        let proxy = |password: Option<&str>| ProxySettings {
            url: "http://proxy.test:3128".parse().unwrap(),
            login: password.map(|password| ("ann".to_owned(), password.to_owned())),
        };
        let request = Request::new(Method::GET, URL.parse().unwrap());
        let through = |proxies: &[ProxySettings]| key(&usual, &request, None, "crawler/1", proxies);
        let unchecked = FetchSettings {
            check_certificates: false,
            ..FetchSettings::default()
        };
        let by_proxy = FetchSettings {
            proxy_resolves: true,
            ..FetchSettings::default()
        };
        let fixed = FetchSettings {
            hosts: BTreeMap::from([("a.test".to_owned(), vec!["10.0.0.1".parse().unwrap()])]),
            ..FetchSettings::default()
        };
        let keys = [
            key_of(&usual, |_| {}, None),
            key_of(&usual, |_| {}, Some("")),
            key_of(&usual, |_| {}, Some("q=1")),
            key_of(&usual, |request| *request.method_mut() = Method::HEAD, None),
            key_of(&usual, to("http://a.test/x"), None),
            key_of(&usual, to("http://a.test/x?"), None),
            key_of(&usual, to("https://a.test/x?y"), None),
            key_of(&usual, set("cookie", "a=1"), None),
            key_of(&usual, set("authorization", "Bearer t"), None),
            key_of(&usual, set("user-agent", "other/1"), None),
            key_of(&usual, two, None),
            key_of(&usual, other_way, None),
            key(&usual, &request, None, "other/2", &[]),
            through(&[proxy(None)]),
            through(&[proxy(None), proxy(None)]),
            through(&[proxy(Some("de"))]),
            through(&[proxy(Some("us"))]),
            key_of(&scope(&["10.0.0.0/8"], &settings), |_| {}, None),
            key_of(&scope(&[], &unchecked), |_| {}, None),
            key_of(&scope(&[], &by_proxy), |_| {}, None),
            key_of(&scope(&[], &fixed), |_| {}, None),
        ];
        for (n, key) in keys.iter().enumerate() {
            assert!(!keys[..n].contains(key), "{n}");
        }
    }

    #[test]
    fn order_of_headers_and_networks_and_a_fragment_do_not_count() {
        let settings = FetchSettings::default();
        let one = scope(&["10.0.0.0/8", "127.0.0.0/8"], &settings);
        let same = scope(&["127.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8"], &settings);
        let ab = |request: &mut Request| {
            set("a", "1")(request);
            set("b", "2")(request);
        };
        let ba = |request: &mut Request| {
            set("b", "2")(request);
            set("a", "1")(request);
            request.url_mut().set_fragment(Some("f"));
        };
        assert_eq!(key_of(&one, ab, None), key_of(&same, ba, None));
    }
}
