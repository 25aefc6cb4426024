//! Canonical form of URLs, which fingerprints are made of.
//!
//! Two URLs have the same form only if every server must treat them as the same. Forms that merely often mean
//! the same are left alone: a page fetched twice costs a request, but a page passed over is lost. The WHATWG
//! parser has done most of the work by the time a [`Url`] exists (scheme and host in lower case, international
//! names as ASCII, no default port, no `.` and `..`, spaces and the like encoded); these rules are added:
//!
//! 1. the fragment is removed: it is never sent;
//! 2. an empty query is removed, with its question mark;
//! 3. percent-encoding has one spelling: hex digits in capitals, letters, digits and `-._~` as
//!    themselves, a `%` that encodes nothing as `%25` (RFC 3986, 6.2.2).
//!
//! These stay: the order and the repetition of query parameters, tracking parameters, a trailing
//! slash, `index.html`, `www.`, `http` beside `https`, user and password. If a site treats some of
//! these as the same, its rule knows, and emits only one of them.
//!
//! The form serves identity alone. A request is sent as its rule wrote it, without the fragment:
//! some servers tell `%7E` from `~`, and a signed URL must not change.

use std::borrow::Cow;

use url::{Position, Url};

/// Returns the canonical form, borrowed if the URL already has it.
pub fn canonical(url: &Url) -> Cow<'_, str> {
    // Most URLs have nothing that could be spelled otherwise.
    if memchr::memchr3(b'%', b'?', b'#', url.as_str().as_bytes()).is_none() {
        return Cow::Borrowed(url.as_str());
    }
    let end = match url.query() {
        Some("") => Position::AfterPath,
        Some(_) | None => Position::AfterQuery,
    };
    let text = &url[..end];
    let first = memchr::memchr(b'%', text.as_bytes());
    match first.and_then(|first| first_other(text, first)) {
        Some(other) => Cow::Owned(respelled(text, other)),
        None => Cow::Borrowed(text),
    }
}

/// Returns the position of the first `%`, at `from` or later, that is not spelled canonically.
fn first_other(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut signs = (from..bytes.len()).filter(|&at| bytes[at] == b'%');
    signs.find(|&at| {
        let pair = bytes.get(at + 1..at + 3).unwrap_or_default();
        pair.iter().any(u8::is_ascii_lowercase) || encoded(bytes, at).is_none_or(is_unreserved)
    })
}

fn respelled(text: &str, from: usize) -> String {
    let bytes = text.as_bytes();
    let mut respelled = String::with_capacity(text.len() + 8);
    respelled.push_str(&text[..from]);
    let mut rest = from;
    while let Some(found) = text[rest..].find('%') {
        let at = rest + found;
        respelled.push_str(&text[rest..at]);
        rest = match encoded(bytes, at) {
            Some(byte) if is_unreserved(byte) => {
                respelled.push(char::from(byte));
                at + 3
            }
            Some(_) => {
                respelled.extend(text[at..at + 3].chars().map(|c| c.to_ascii_uppercase()));
                at + 3
            }
            None => {
                respelled.push_str("%25");
                at + 1
            }
        };
    }
    respelled.push_str(&text[rest..]);
    respelled
}

/// Returns the byte that the `%` at this position encodes.
fn encoded(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let url: Url = text.parse().unwrap();
        assert_eq!(canonical(&url), expected, "{text}");
    }

    #[test]
    fn a_url_has_one_canonical_form() {
        for (text, expected) in [
            // The parser does these.
            ("HTTP://A.Test", "http://a.test/"),
            ("http://a.test:80/x", "http://a.test/x"),
            ("https://a.test:443/x", "https://a.test/x"),
            ("http://a.test:8080/x", "http://a.test:8080/x"),
            ("http://bücher.test/", "http://xn--bcher-kva.test/"),
            ("http://a.test/b/../c/./d", "http://a.test/c/d"),
            ("http://a.test/b/%2e%2E/c", "http://a.test/c"),
            ("http://a.test/ü ö", "http://a.test/%C3%BC%20%C3%B6"),
            // The added rules do these.
            ("http://a.test/x#part", "http://a.test/x"),
            ("http://a.test/x?#part", "http://a.test/x"),
            ("http://a.test/?", "http://a.test/"),
            ("http://a.test/x??", "http://a.test/x??"),
            ("http://a.test/x?a=", "http://a.test/x?a="),
            ("http://a.test/%7euser", "http://a.test/~user"),
            ("http://a.test/%41%2d%5F%2e", "http://a.test/A-_."),
            ("http://a.test/%c3%BC%2f", "http://a.test/%C3%BC%2F"),
            ("http://a.test/x?q=%61%26%3d", "http://a.test/x?q=a%26%3D"),
            ("http://a.test/%2541", "http://a.test/%2541"),
            ("http://a.test/100%", "http://a.test/100%25"),
            ("http://a.test/%%34%31", "http://a.test/%2541"),
            ("http://a.test/%4", "http://a.test/%254"),
            // These stay.
            ("http://a.test/x/", "http://a.test/x/"),
            ("http://a.test//x", "http://a.test//x"),
            ("http://www.a.test/", "http://www.a.test/"),
            ("http://a.test/index.html", "http://a.test/index.html"),
            ("http://a.test/?b=1&a=2&b=1", "http://a.test/?b=1&a=2&b=1"),
            ("http://a.test/?utm_source=x", "http://a.test/?utm_source=x"),
            ("http://a.test/?a=b+c", "http://a.test/?a=b+c"),
            ("http://u:p@a.test/", "http://u:p@a.test/"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn a_canonical_url_is_not_copied() {
        for text in [
            "http://a.test/x?q=%C3%BC&r=%2F#part",
            "http://a.test/x?#part",
        ] {
            let url: Url = text.parse().unwrap();
            assert!(matches!(canonical(&url), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn the_canonical_form_of_a_canonical_form_is_itself() {
        let mut rng = StdRng::seed_from_u64(25);
        let pieces = [
            "%", "%2", "%2e", "%2E", "%41", "%25", "%7e", "%c3%bc", "%zz", "/", ".", "..", "?",
            "#", "&", "=", "a", "4", "1", "E", "ü", " ", "\\", ";", "+", "|", "@", ":",
        ];
        let mut n_changed = 0;
        for _ in 0..20_000 {
            let mut text = "http://a.test/".to_owned();
            for _ in 0..rng.random_range(0..9) {
                text.push_str(pieces[rng.random_range(0..pieces.len())]);
            }
            let url: Url = text.parse().unwrap();
            let once = canonical(&url).into_owned();
            let again: Url = once.parse().unwrap();
            assert_eq!(again.as_str(), once, "{text}: the parser changes it");
            assert_eq!(canonical(&again), once, "{text}");
            n_changed += u32::from(once != url.as_str());
        }
        assert!(n_changed > 1_000, "{n_changed}");
    }
}
