//! Identity of a crawl: its user agents, and the cookies that it begins with.

use std::fmt;
use std::str::FromStr;

use crate::text::as_text;

const MAX_AGENT: usize = 512;
const MAX_COOKIE: usize = 4_096;

/// Default user agent of the process.
pub const USUAL_AGENT: &str = concat!("crawler/", env!("CARGO_PKG_VERSION"));

/// User agent of a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// The user agent of the process: setting `user-agent` of `[fetch]`.
    Honest,
    /// A browser's user agent, with the headers that browsers send when somebody opens a page.
    Browser,
    /// This text.
    Named(String),
}

impl FromStr for Agent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_printable = |c: char| c.is_ascii_graphic() || c == ' ';
        match text.trim() {
            "honest" => Ok(Agent::Honest),
            "browser" => Ok(Agent::Browser),
            named
                if named.is_empty()
                    || named.len() > MAX_AGENT
                    || !named.chars().all(is_printable) =>
            {
                Err(format!(
                    "takes honest, browser, or up to {MAX_AGENT} printable ASCII characters, not {text:?}"
                ))
            }
            named => Ok(Agent::Named(named.to_owned())),
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Agent::Honest => "honest",
            Agent::Browser => "browser",
            Agent::Named(words) => words,
        })
    }
}

/// Cookie that a crawl begins with, written `shop.example:name=value`. With `*.shop.example`, it is also
/// sent to the hosts below.
#[derive(Clone, PartialEq, Eq)]
pub struct CookieSeed {
    /// Host in lower case, without port.
    pub host: String,
    /// True if the cookie is also sent to the hosts below.
    pub and_below: bool,
    /// Name of the cookie; not empty.
    pub name: String,
    /// Value of the cookie, as sent.
    pub value: String,
}

impl fmt::Debug for CookieSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}=…", self.host, self.name)
    }
}

impl FromStr for CookieSeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The message does not repeat the input: a cookie may be as good as a password.
        let refused =
            || "takes cookies like shop.example:name=value or *.shop.example:name=value".to_owned();
        let (host, pair) = text.split_once(':').ok_or_else(refused)?;
        let (name, value) = pair.split_once('=').ok_or_else(refused)?;
        let (host, and_below) = match host.strip_prefix("*.") {
            Some(host) => (host, true),
            None => (host, false),
        };
        // The host gets the form that it has in a URL.
        let host = url::Host::parse(host).map_err(|_| refused())?.to_string();
        // RFC 6265, 4.1.1: the name is a token, and the value has visible characters except some.
        let is_token = |c: char| c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?={}".contains(c);
        let is_value = |c: char| c.is_ascii_graphic() && !",;\\".contains(c);
        let is_meant = !name.is_empty()
            && name.chars().all(is_token)
            && value.chars().all(is_value)
            && name.len() + value.len() <= MAX_COOKIE;
        let (name, value) = (name.to_owned(), value.to_owned());
        is_meant
            .then_some(Self {
                host,
                and_below,
                name,
                value,
            })
            .ok_or_else(refused)
    }
}

impl fmt::Display for CookieSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.and_below { "*." } else { "" };
        write!(f, "{below}{}:{}={}", self.host, self.name, self.value)
    }
}

as_text!(Agent, CookieSeed);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_words_that_fit_into_a_header() {
        for (text, expected) in [
            ("honest", Agent::Honest),
            (" browser ", Agent::Browser),
            (
                "shop/1.0 (+https://a.test)",
                Agent::Named("shop/1.0 (+https://a.test)".into()),
            ),
        ] {
            let agent: Agent = text.parse().unwrap();
            assert_eq!(agent, expected);
            assert_eq!(agent.to_string().parse(), Ok(expected));
        }
        for text in ["", " ", "a\r\nb: c", "h\u{e9}", &"a".repeat(513)] {
            let expected = format!(
                "takes honest, browser, or up to 512 printable ASCII characters, not {text:?}"
            );
            assert_eq!(text.parse::<Agent>(), Err(expected));
        }
    }

    #[test]
    fn a_cookie_names_its_host() {
        for (text, expected) in [
            ("shop.example:a=b", "shop.example:a=b"),
            ("*.Shop.Example:a=b=c", "*.shop.example:a=b=c"),
            ("127.0.0.1:a=", "127.0.0.1:a="),
        ] {
            let seed: CookieSeed = text.parse().unwrap();
            assert_eq!(seed.to_string(), expected);
            assert_eq!(seed.to_string().parse(), Ok(seed));
        }
        for text in [
            "a=b",
            "a.test:a",
            "a.test:=b",
            "a.test:a=b; Path=/",
            "a.test:a b=c",
            "a b:c=d",
            "a.test:a=\"b\r\n",
        ] {
            let error = text.parse::<CookieSeed>().unwrap_err();
            let expected =
                "takes cookies like shop.example:name=value or *.shop.example:name=value";
            assert_eq!(error, expected);
        }
    }
}
