//! Conversion of links into paths on the same site.

use crawler_plugin_sdk::Url;

/// Returns a link without query and fragment. White space around an address is no part of it.
pub(crate) fn address(href: &str) -> &str {
    let end = href.bytes().position(|c| matches!(c, b'?' | b'#'));
    href[..end.unwrap_or(href.len())].trim_ascii()
}

/// Returns the path that a link leads to, if it stays on the site of `base`.
///
/// Nearly all links of documentation are plain relative paths. They are resolved by hand, at a tenth of the cost
/// of a URL parser, which handles all others.
pub(crate) fn path(base: &Url, href: &str) -> Option<String> {
    if is_plain(href) {
        return Some(resolve(base.path(), href));
    }
    // A link that does not parse is no reason to lose the page.
    let url = base.join(href).ok()?;
    (url.origin() == base.origin()).then(|| url.path().to_owned())
}

/// Returns true if nothing in the link has a meaning beyond that of a path.
fn is_plain(href: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'/' | b'.' | b'-' | b'_');
    !href.is_empty() && !href.starts_with("//") && href.bytes().all(is_plain)
}

fn resolve(base: &str, href: &str) -> String {
    let (folder, segments) = match href.strip_prefix('/') {
        Some(segments) => ("", segments),
        None => (&base[..base.rfind('/').unwrap_or(0)], href),
    };
    let mut path = String::with_capacity(folder.len() + href.len() + 1);
    path.push_str(folder);
    for segment in segments.split('/') {
        match segment {
            "." => {}
            ".." => path.truncate(path.rfind('/').unwrap_or(0)),
            _ => {
                path.push('/');
                path.push_str(segment);
            }
        }
    }
    if matches!(segments.rsplit('/').next(), Some("." | "..")) {
        path.push('/');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_whatever_query_and_fragment() {
        for href in ["b.html", "b.html#x", "b.html?y#z", " b.html ?y", "\nb.html"] {
            assert_eq!(address(href), "b.html", "{href:?}");
        }
        assert_eq!((address("?a=1"), address("#x")), ("", ""));
    }

    #[test]
    fn a_plain_path_leads_where_the_url_parser_says() {
        let hrefs = [
            "a.html",
            "./a.html",
            "../a.html",
            "../../a/b.html",
            "../../../../a.html",
            "/",
            "/a/b/",
            "/a/../b.html",
            ".",
            "..",
            "../",
            "./",
            "a/./b/..",
            "a//b.html",
            "..a/.b",
            "a/",
            "/..",
        ];
        for base in [
            "http://docs.test/",
            "http://docs.test/std/vec/index.html",
            "http://docs.test/std/vec/",
        ] {
            let base = Url::parse(base).unwrap();
            for href in hrefs {
                assert!(is_plain(href));
                assert_eq!(
                    path(&base, href).unwrap(),
                    base.join(href).unwrap().path(),
                    "{href} at {base}"
                );
            }
        }
    }

    #[test]
    fn other_links_count_if_they_stay_on_the_site() {
        let base = Url::parse("http://docs.test/std/index.html").unwrap();
        for (href, expected) in [
            ("", Some("/std/index.html")),
            ("HTTP://DOCS.test:80/a.html", Some("/a.html")),
            ("//docs.test/a b.html", Some("/a%20b.html")),
            ("https://docs.test/a.html", None),
            ("//elsewhere.test/a.html", None),
            ("javascript:void(0)", None),
            ("http://[", None),
        ] {
            assert_eq!(path(&base, href).as_deref(), expected, "{href}");
        }
    }
}
