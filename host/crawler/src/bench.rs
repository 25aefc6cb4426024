//! The web that `crawler bench` crawls, in a process of its own, and the report about the crawl.
//!
//! ```text
//! web        pages, links, redirects and failures, all of which follow from a seed
//! html       the text of a page
//! folder     a folder of HTML files as a web
//! pages      either of the two
//! visits     record of the requests to each host, and of those that were not polite
//! server     the process that answers requests
//! messages   what that process and the one that crawls say to each other
//! report     figures of the crawl
//! ```
//!
//! Nothing is stored of a made-up web: each answer is computed from the seed and the address. Starting the processes
//! and the crawl is left to `app`, and printing to `cli`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub mod folder;
mod html;
pub mod messages;
mod pages;
pub mod report;
pub mod server;
mod visits;
pub mod web;

/// Ending of the names of all hosts.
pub const DOMAIN: &str = "bench.test";

/// Returns the name of a host.
pub fn host_name(host: u32) -> String {
    format!("h{host}.{DOMAIN}")
}

/// Returns the number of the host that a request names: `h7.bench.test:8080`.
fn host_number(name: &str) -> Option<u32> {
    let host = name.split_once(':').map_or(name, |(host, _port)| host);
    let number = host.strip_suffix(DOMAIN)?.strip_suffix('.')?;
    let number: u32 = number.strip_prefix('h')?.parse().ok()?;
    (host == host_name(number)).then_some(number)
}

/// Share of the pages of a web, at most one half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Share {
    per_mille: u32,
}

impl Share {
    /// Returns true for this share of all numbers.
    fn has(self, number: u64) -> bool {
        number % 1_000 < u64::from(self.per_mille)
    }
}

impl FromStr for Share {
    type Err = String;

    /// Parses `1%` or `0.5%`.
    fn from_str(text: &str) -> Result<Self, String> {
        const MAX: u32 = 500;
        let refused = || "write a share from 0% to 50%, like 1% or 0.5%".to_owned();
        let percent = text.strip_suffix('%').ok_or_else(refused)?;
        let (whole, tenth) = percent.split_once('.').unwrap_or((percent, "0"));
        let is_number = |text: &str, max| {
            (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(whole, 2) || !is_number(tenth, 1) {
            return Err(refused());
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| refused());
        let per_mille = 10 * number(whole)? + number(tenth)?;
        match per_mille {
            0..=MAX => Ok(Self { per_mille }),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.per_mille % 10 {
            0 => write!(f, "{}%", self.per_mille / 10),
            tenth => write!(f, "{}.{tenth}%", self.per_mille / 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_by_its_exact_name_only() {
        assert_eq!(host_number(&host_name(7)), Some(7));
        assert_eq!(host_number("h70.bench.test:8080"), Some(70));
        for name in [
            "",
            "h07.bench.test",
            "7.bench.test",
            "h7.test",
            "h7bench.test",
            "h-7.bench.test",
        ] {
            assert_eq!(host_number(name), None, "{name}");
        }
    }

    #[test]
    fn shares_are_percentages_up_to_one_half() {
        for (text, per_mille, shown) in [
            ("0%", 0, "0%"),
            ("1%", 10, "1%"),
            ("1.0%", 10, "1%"),
            ("0.5%", 5, "0.5%"),
            ("50%", 500, "50%"),
        ] {
            let share: Share = text.parse().unwrap();
            assert_eq!(share.per_mille, per_mille, "{text}");
            assert_eq!(share.to_string(), shown);
            let n = (0..1_000).filter(|number| share.has(*number)).count();
            assert_eq!(n, per_mille as usize);
        }
        for text in [
            "", "%", "1", "50.1%", "51%", "100%", "-1%", "+1%", "0.05%", ".5%", "1.%", "a%",
        ] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
