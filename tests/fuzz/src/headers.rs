//! Headers: the first line is a method; up to an empty line follow the headers of a rule, as
//! `name: value`. Then come the status of an answer and its headers. `\r`, `\n`, `\0`, `\\` and `\xff`
//! stand for octets, so that a line can hold what ends one.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http;
use crawler_fetch::cookies::CookieJar;
use crawler_fetch::http::{FetchSettings, fuzz, retry_after};
use crawler_fetch::{Answer, FetchError};
use reqwest::header::{HeaderName, HeaderValue, LOCATION};
use url::Url;

use super::{block_on, wire};

/// Headers that a rule cannot set: they frame a message, or are the client's own business.
const FRAMING: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// A moment in 2023, in milliseconds.
const NOW: u64 = 1_700_000_000_000;
/// The last moment that a date can name, in the year 9999.
const LAST: Duration = Duration::from_secs(253_402_300_800);

/// Checks that a request has the lines of its headers and no others, or is refused, and that the kept part of an
/// answer is bounded.
pub fn headers(data: &[u8]) {
    let mut lines = data.split(|&b| b == b'\n').map(unescaped);
    let method = text(&lines.next().unwrap_or_default());
    let headers = lines.by_ref().take_while(|line| !line.is_empty());
    let header = |line: Vec<u8>| {
        let (name, value) = split(&line);
        (text(name), text(value))
    };
    let headers: Vec<(String, String)> = headers.map(header).collect();
    sent(&method, headers);

    let status = lines.next().unwrap_or_default();
    let status = text(&status).parse().unwrap_or(200);
    let answered: Vec<Vec<u8>> = lines.collect();
    kept(status, &answered);
    for line in &answered {
        wait(&text(split(line).1));
    }
    cookies(&answered);
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let at = line.iter().position(|&b| b == b':').unwrap_or(line.len());
    let value = line.get(at + 1..).unwrap_or_default();
    (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
}

fn unescaped(line: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(line.len());
    let mut rest = line;
    while let [first, after @ ..] = rest {
        let (octet, after) = match rest {
            [b'\\', b'r', after @ ..] => (b'\r', after),
            [b'\\', b'n', after @ ..] => (b'\n', after),
            [b'\\', b'0', after @ ..] => (0, after),
            [b'\\', b'x', b'f', b'f', after @ ..] => (0xff, after),
            [b'\\', b'\\', after @ ..] => (b'\\', after),
            _ => (*first, after),
        };
        octets.push(octet);
        rest = after;
    }
    octets
}

/// Sends a request to a server, which returns what it received.
fn sent(method: &str, headers: Vec<(String, String)>) {
    let is_method = is_token(method) && !matches!(method, "CONNECT" | "TRACE");
    let is_sound = is_method && headers.iter().all(is_header);
    let got = match wire::send(method, headers.clone()) {
        Ok(got) => got,
        Err(FetchError::Request { .. }) => {
            assert!(!is_sound, "what can be sent was refused");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(is_sound, "what cannot be sent was sent: {got:?}");
    assert_eq!(got, wire::expected(method, &headers));
}

fn is_header((name, value): &(String, String)) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_field = |b: u8| b == b'\t' || (b >= b' ' && b != 0x7f);
    is_token(name) && !FRAMING.contains(&lower.as_str()) && value.bytes().all(is_field)
}

fn is_plain(value: &str) -> bool {
    let is_plain = |b: u8| b == b'\t' || (b' '..=b'~').contains(&b);
    value.bytes().all(is_plain)
}

/// Returns true for a token by RFC 9110, 5.6.2.
fn is_token(text: &str) -> bool {
    let is_of_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(is_of_token)
}

/// Reads an answer with these headers, as far as an answer can have them.
fn kept(status: u16, lines: &[Vec<u8>]) {
    let mut response = http::Response::new(reqwest::Body::from(""));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in lines.iter().map(|line| split(line)) {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            response.headers_mut().append(name, value);
        }
    }
    let redirects = matches!(status, 301 | 302 | 303 | 307 | 308);
    let leads = redirects && response.headers().contains_key(LOCATION);
    let settings = FetchSettings {
        max_headers: 8,
        max_header_bytes: 256,
        ..FetchSettings::default()
    };
    let is_too_much = response.headers().len() > settings.max_headers;
    let url: Url = "http://a.test/b/c?d".parse().expect("it is a URL");
    match block_on(fuzz::answer(url, response.into(), &settings, 1 << 10)) {
        Ok(Answer::Page(page)) => {
            // An octet that is no text is shown as a character of three octets.
            let length = |text: &str| {
                text.chars()
                    .map(|c| if c == '\u{fffd}' { 1 } else { c.len_utf8() })
                    .sum::<usize>()
            };
            let n_bytes: usize = page
                .headers
                .iter()
                .map(|(name, value)| name.len() + length(value))
                .sum();
            assert!(!is_too_much, "{:?}", page.headers);
            assert!(n_bytes <= settings.max_header_bytes, "{:?}", page.headers);
            let is_lower = |(name, _): (&str, &str)| !name.bytes().any(|b| b.is_ascii_uppercase());
            assert!(page.headers.iter().all(is_lower), "{:?}", page.headers);
            assert!(page.body.is_empty() && !page.truncated);
        }
        Ok(Answer::Redirect { to }) => {
            assert!(leads, "status {status} leads to {to}");
            assert_eq!(to.fragment(), None);
            assert!(
                !to.as_str().contains(|c: char| c.is_ascii_control()),
                "{to:?}"
            );
        }
        Err(FetchError::Headers { .. }) => assert!(is_too_much),
        // The answer announces a length that it does not have.
        Err(FetchError::Connection { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Checks that cookies can be sent back in a header, and are the same after the jar was stored and opened.
fn cookies(lines: &[Vec<u8>]) {
    let url: Url = "http://www.a.test/b/c".parse().expect("it is a URL");
    let set: Vec<String> = lines.iter().map(|line| text(split(line).1)).collect();
    let jar = CookieJar::open(None, &[]);
    jar.receive(
        &url,
        set.iter().map(String::as_str).filter(|set| is_plain(set)),
    );
    let sent = jar.header(&url).unwrap_or_default();
    assert!(is_plain(&sent), "{sent:?}");
    if let Some(saved) = jar.unsaved() {
        let again = CookieJar::open(Some(&saved), &[]).header(&url);
        let (again, after) = (
            again.unwrap_or_default(),
            jar.header(&url).unwrap_or_default(),
        );
        // Some cookies may have expired in the meantime.
        assert!(each(&again).is_subset(&each(&sent)), "{again} of {sent}");
        assert!(each(&after).is_subset(&each(&again)), "{again} of {after}");
    }
}

/// Returns the cookies without their order, since the jar has none.
fn each(cookies: &str) -> BTreeSet<&str> {
    cookies
        .split("; ")
        .filter(|cookie| !cookie.is_empty())
        .collect()
}

/// Checks that `Retry-After` asks for the time that it names.
fn wait(value: &str) {
    let asked = retry_after(value, NOW);
    let digits = value.trim();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        let seconds = digits.parse().unwrap_or(u64::MAX);
        assert_eq!(asked, Some(Duration::from_secs(seconds)), "{value}");
    } else if let Some(asked) = asked {
        assert!(asked <= LAST, "{value}: {asked:?}");
        assert!(retry_after(value, NOW + 1_000) <= Some(asked), "{value}");
        assert_eq!(
            retry_after(value, u64::MAX),
            Some(Duration::ZERO),
            "{value}"
        );
    }
}
