//! Public suffix list: the names below which anybody can register a name.
//!
//! `co.uk` and `github.io` are public suffixes: the names below them have different owners.
//! `example.co.uk` is a registrable domain: it and all names below it have one owner. The list is
//! compiled in and ages with the program. A top-level domain that it does not know is a suffix.

use std::net::Ipv4Addr;

/// True if the names below this host have different owners. The host is as `Url::host_str` gives it.
pub fn is_public_suffix(host: &str) -> bool {
    name(host).is_some_and(|name| psl::suffix_str(name) == Some(name))
}

/// Returns the registrable domain of a host, or `None` for a public suffix or an address.
pub fn registrable(host: &str) -> Option<&str> {
    name(host).and_then(psl::domain_str)
}

/// True if the host is an IP address, which has no names below it.
pub fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok()
}

/// Returns the name without a trailing dot, or `None` for an address.
fn name(host: &str) -> Option<&str> {
    (!is_address(host)).then(|| host.strip_suffix('.').unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r09_suffixes_and_registrable_domains_are_told_apart() {
        for (host, is_suffix, domain) in [
            ("uk", true, None),
            ("co.uk", true, None),
            ("co.uk.", true, None),
            ("github.io", true, None),
            ("xn--p1ai", true, None),
            ("xn--55qx5d.cn", true, None),
            ("example.co.uk", false, Some("example.co.uk")),
            ("a.www.example.co.uk", false, Some("example.co.uk")),
            ("ann.github.io", false, Some("ann.github.io")),
            ("example.org.", false, Some("example.org")),
            // These top-level domains are not in the list.
            ("test", true, None),
            ("localhost", true, None),
            ("www.shop.test", false, Some("shop.test")),
            ("127.0.0.1", false, None),
            ("[::1]", false, None),
            ("", false, None),
        ] {
            assert_eq!(is_public_suffix(host), is_suffix, "{host}");
            assert_eq!(registrable(host), domain, "{host}");
        }
    }
}
