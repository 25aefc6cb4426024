//! Patterns of URLs: the part that many URLs of one host share, once numbers, long tokens and the
//! values of the query are replaced.
//!
//! Calendars, counters, session ids and facets produce new URLs without end, but their patterns are
//! few. So URLs are counted by pattern. A URL without variable parts is never counted: a site whose
//! pages have names cannot reach the bound.

use sha2::Digest as _;
use url::Url;

use super::crawl::host_of;

/// Hash of a host and a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PatternKey(pub [u8; 8]);

/// Returns the pattern that a URL is counted by, or `None` if the URL has no variable part.
///
/// The cost is that of a fingerprint, so it is computed only for URLs that are not known yet.
pub fn path_pattern(url: &Url) -> Option<PatternKey> {
    let pattern = pattern(url)?;
    let mut hash = sha2::Sha256::new();
    hash.update(host_of(url));
    hash.update(pattern);
    let digest: [u8; 32] = hash.finalize().into();
    let mut key = [0; 8];
    key.copy_from_slice(&digest[..8]);
    Some(PatternKey(key))
}

/// Length from which a token with a digit counts as variable rather than as a word.
const LONG_TOKEN: usize = 16;
/// The same for tokens of hex digits only.
const LONG_HEX: usize = 8;

/// Returns path and query with each variable part replaced by `#`, which neither can contain, or
/// `None` if there is none.
fn pattern(url: &Url) -> Option<String> {
    let mut pattern = String::with_capacity(url.as_str().len());
    let mut varies = generalise(url.path(), &mut pattern);
    let parameters = url.query().into_iter().flat_map(|query| query.split('&'));
    for (n, parameter) in parameters.enumerate() {
        pattern.push(if n == 0 { '?' } else { '&' });
        let (name, value) = match parameter.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (parameter, None),
        };
        varies |= generalise(name, &mut pattern);
        match value {
            Some("") => pattern.push('='),
            Some(_) => {
                pattern.push_str("=#");
                varies = true;
            }
            None => {}
        }
    }
    varies.then_some(pattern)
}

/// Appends `text` with its variable parts replaced. Returns true if there were any.
fn generalise(text: &str, pattern: &mut String) -> bool {
    let mut varies = false;
    let mut rest = text;
    while !rest.is_empty() {
        let token = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        if let Some(after) = without_uuid(rest) {
            pattern.push('#');
            (varies, rest) = (true, after);
        } else if token > 0 {
            varies |= generalise_token(&rest[..token], pattern);
            rest = &rest[token..];
        } else {
            // The digits of a percent-encoded byte are part of a letter: names in most scripts have
            // them.
            let sign = if rest.starts_with('%') { 3 } else { 1 };
            let sign = rest.ceil_char_boundary(sign.min(rest.len()));
            pattern.push_str(&rest[..sign]);
            rest = &rest[sign..];
        }
    }
    varies
}

fn generalise_token(token: &str, pattern: &mut String) -> bool {
    if !token.bytes().any(|b| b.is_ascii_digit()) {
        pattern.push_str(token);
        return false;
    }
    let is_hex = token.bytes().all(|b| b.is_ascii_hexdigit());
    if token.len() >= LONG_TOKEN || (is_hex && token.len() >= LONG_HEX) {
        pattern.push('#');
        return true;
    }
    let mut in_number = false;
    for c in token.chars() {
        if !c.is_ascii_digit() {
            pattern.push(c);
        } else if !in_number {
            pattern.push('#');
        }
        in_number = c.is_ascii_digit();
    }
    true
}

/// Returns the rest of a text that starts with a UUID.
fn without_uuid(text: &str) -> Option<&str> {
    let (uuid, after) = text.split_at_checked(36)?;
    let mut groups = uuid.split('-');
    let is_uuid = [8, 4, 4, 4, 12].into_iter().all(|length| {
        groups.next().is_some_and(|group| {
            group.len() == length && group.bytes().all(|b| b.is_ascii_hexdigit())
        })
    });
    let ends = !after.starts_with(|c: char| c.is_ascii_alphanumeric());
    (is_uuid && ends).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&str>) {
        let url = format!("http://a.test{path}").parse().unwrap();
        assert_eq!(pattern(&url).as_deref(), expected, "{path}");
    }

    #[test]
    fn numbers_tokens_and_values_of_the_query_are_taken_out() {
        for (path, expected) in [
            ("/2024/05/31/", "/#/#/#/"),
            ("/item-12_v3.html", "/item-#_v#.html"),
            ("/u8.html", "/u#.html"),
            ("/c/5f3a9b1c", "/c/#"),
            ("/c/0123456789ABCDEF0123456789abcdef.png", "/c/#.png"),
            ("/s;sid=x9Yw3kPq8RzT5vLm", "/s;sid=#"),
            ("/o/123e4567-e89b-12d3-a456-426614174000/edit", "/o/#/edit"),
            ("/list?page=7&sort=name&all", "/list?page=#&sort=#&all"),
            ("/list?f3=", "/list?f#="),
            ("/%C3%BC7", "/%C3%BC#"),
        ] {
            check(path, Some(expected));
        }
    }

    #[test]
    fn a_url_of_names_alone_is_not_counted() {
        for path in [
            "/",
            "/std/collections/index.html",
            "/defaced/facade",
            "/a-very-long-title-of-a-page-that-is-a-sentence",
            "/%E4%B8%AD%E6%96%87",
            "/x?",
            "/x?all&q=",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn hosts_and_ports_are_counted_apart_and_the_same_pattern_together() {
        let key = |url: &str| path_pattern(&url.parse().unwrap());
        assert_eq!(key("http://a.test/1?a=x"), key("https://a.test:80/22?a=y"));
        assert_ne!(key("http://a.test/1"), key("http://b.test/1"));
        assert_ne!(key("http://a.test/1"), key("http://a.test:81/1"));
        assert_ne!(key("http://a.test/1/2"), key("http://a.test/1"));
        assert_eq!(key("http://a.test/one"), None);
    }
}
