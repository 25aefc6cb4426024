//! Patterns of hosts, as `--scope` and the hosts of credentials name them.

use std::fmt;
use std::str::FromStr;

use super::error::SettingError;
use crate::suffix::{is_address, registrable};
use crate::text::as_text;

/// Pattern of hosts that a crawl may visit: `example.org`, `*.example.org` (with all hosts below it),
/// `site:example.co.uk` (the same, but for a registrable domain only) or `*` (all), at any port that the address
/// policy lets through. A pattern with a port, `example.org:9000`, stands for that port alone, and the address policy
/// lets it through.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPattern {
    host: String,
    port: Option<u16>,
    /// True if it is written `site:`; its host then begins with `*.`.
    is_site: bool,
}

impl HostPattern {
    /// True if every host matches.
    pub fn is_any_host(&self) -> bool {
        self.host == "*"
    }

    /// Returns the port of the pattern. If `None`, any port matches.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// True if this host, in the form of `Url::host_str`, matches at this port.
    pub fn admits(&self, host: &str, port: Option<u16>) -> bool {
        let is_host = match self.host.strip_prefix('*') {
            Some("") => true,
            Some(suffix) => host.ends_with(suffix) || host == &suffix[1..],
            None => host == self.host,
        };
        is_host && (self.port.is_none() || self.port == port)
    }

    /// Refuses `site:` with anything but a registrable domain.
    ///
    /// Parsing accepts it, so that stored patterns can still be read after the list of suffixes has changed.
    pub fn check(&self, setting: &'static str) -> Result<(), SettingError> {
        let Some(name) = self.host.strip_prefix("*.").filter(|_| self.is_site) else {
            return Ok(());
        };
        let way_out = match registrable(name) {
            Some(domain) if domain == name.trim_end_matches('.') => return Ok(()),
            Some(domain) => format!(
                "is only a part of the registrable domain {domain}; write site:{domain} for all of it, or *.{name} for this part"
            ),
            None if is_address(name) => {
                format!("is an IP address and has no names below it; write {name}")
            }
            None => format!(
                "is a public suffix, whose names have different owners; write the domain that is registered below it, like site:example.{name}, or *.{name} for all of them"
            ),
        };
        let why = format!("has {self}, and {name} {way_out}");
        Err(SettingError { setting, why })
    }
}

impl FromStr for HostPattern {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let refused = || SettingError {
            setting: "scope",
            why: format!(
                "has {text:?}, which is not a host; write example.org, *.example.org, site:example.org, *, or one of them with a port"
            ),
        };
        let (is_site, text) = match text.strip_prefix("site:") {
            // This is a host called `site`, with a port.
            Some(name) if name.parse::<u16>().is_ok() => (false, text),
            Some(name) => (true, name),
            None => (false, text),
        };
        let (pattern, port) = match text.rsplit_once(':') {
            // The last group of an address without brackets is not a port.
            Some((pattern, port)) if !pattern.contains(':') || pattern.ends_with(']') => {
                (pattern, Some(port.parse().map_err(|_| refused())?))
            }
            _ => (text, None),
        };
        if pattern == "*" && !is_site {
            let host = pattern.to_owned();
            return Ok(Self {
                host,
                port,
                is_site,
            });
        }
        let (stars, host) = match pattern.strip_prefix("*.") {
            Some(host) if !is_site => ("*.", host),
            None if is_site => ("*.", pattern),
            Some(_) | None => ("", pattern),
        };
        let host = url::Host::parse(host).map_err(|_| refused())?.to_string();
        if host.contains('*') {
            return Err(refused());
        }
        let host = format!("{stars}{host}");
        Ok(Self {
            host,
            port,
            is_site,
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.strip_prefix("*.") {
            Some(name) if self.is_site => write!(f, "site:{name}")?,
            Some(_) | None => f.write_str(&self.host)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

as_text!(HostPattern);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::CrawlSettings;

    #[track_caller]
    fn check_scope(pattern: &str, host: &str, admitted: bool) {
        assert_eq!(
            pattern
                .parse::<HostPattern>()
                .unwrap()
                .admits(host, Some(443)),
            admitted,
            "{pattern} {host}"
        );
    }

    #[test]
    fn a_pattern_with_a_port_admits_its_host_there_alone() {
        for (pattern, written) in [
            ("Example.org:9000", "example.org:9000"),
            ("*.example.org:81", "*.example.org:81"),
            ("*:9000", "*:9000"),
            ("127.1:80", "127.0.0.1:80"),
            ("[0::1]", "[::1]"),
            ("[::1]:9000", "[::1]:9000"),
        ] {
            let pattern: HostPattern = pattern.parse().unwrap();
            assert_eq!(pattern.to_string(), written);
            assert_eq!(written.parse(), Ok(pattern), "{written}");
        }
        let pattern: HostPattern = "*.example.org:9000".parse().unwrap();
        assert!(pattern.admits("www.example.org", Some(9_000)));
        assert!(!pattern.admits("www.example.org", Some(443)));
        assert!(!pattern.admits("www.example.com", Some(9_000)));
    }

    #[test]
    fn a_host_pattern_admits_its_host_or_all_below_it() {
        check_scope("example.org", "example.org", true);
        check_scope("EXAMPLE.org", "example.org", true);
        check_scope("example.org", "www.example.org", false);
        check_scope("*.example.org", "www.example.org", true);
        check_scope("*.example.org", "example.org", true);
        check_scope("*.example.org", "badexample.org", false);
        check_scope("*", "anything.test", true);
    }

    #[test]
    fn r09_a_site_is_a_registrable_domain_and_all_below_it() {
        let site = "site:example.co.uk";
        check_scope(site, "example.co.uk", true);
        check_scope(site, "a.b.example.co.uk", true);
        check_scope(site, "badexample.co.uk", false);
        check_scope(site, "other.co.uk", false);
        for (text, written, refusal) in [
            (site, site, ""),
            ("site:Example.org:9000", "site:example.org:9000", ""),
            ("site:bücher.example", "site:xn--bcher-kva.example", ""),
            ("*.co.uk", "*.co.uk", ""),
            // This is a host with its port, as before.
            ("site:80", "site:80", ""),
            (
                "site:co.uk",
                "site:co.uk",
                "setting scope has site:co.uk, and co.uk is a public suffix, whose names have different owners; write the domain that is registered below it, like site:example.co.uk, or *.co.uk for all of them",
            ),
            (
                "site:www.example.co.uk",
                "site:www.example.co.uk",
                "setting scope has site:www.example.co.uk, and www.example.co.uk is only a part of the registrable domain example.co.uk; write site:example.co.uk for all of it, or *.www.example.co.uk for this part",
            ),
            (
                "site:127.0.0.1",
                "site:127.0.0.1",
                "setting scope has site:127.0.0.1, and 127.0.0.1 is an IP address and has no names below it; write 127.0.0.1",
            ),
            (
                "site:[::1]:81",
                "site:[::1]:81",
                "setting scope has site:[::1]:81, and [::1] is an IP address and has no names below it; write [::1]",
            ),
        ] {
            let pattern: HostPattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), written);
            assert_eq!(written.parse().as_ref(), Ok(&pattern), "{written}");
            let settings = CrawlSettings {
                scope: vec![pattern],
                ..CrawlSettings::default()
            };
            let found = settings.check().err().map(|error| error.to_string());
            assert_eq!(found.unwrap_or_default(), refusal);
        }
        for text in ["site:", "site:*", "site:*.example.org", "site:a b"] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_is_no_host_is_refused() {
        for text in [
            "",
            "http://example.org",
            "a b",
            "*example.org",
            "example.org/path",
            "example.org:",
            "example.org:x",
            "example.org:65536",
            "*:",
            "::1",
            "[::1]:x",
            ":80",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }
}
