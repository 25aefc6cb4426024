//! User agents that a crawl presents to sites instead of the process's own.
//!
//! A host sees one of several agents until one of its pages fails; each further attempt uses the next. A
//! robots.txt is requested under the process's own name and its rules for that name are obeyed, whichever
//! agent the pages are requested with.

use url::Url;

use crawler_model::links::host_hash;
use crawler_model::settings::Agent;

/// A user agent and the headers that go with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Value of the header `user-agent`.
    pub user_agent: String,
    /// Further headers, sent unless a rule sets them itself.
    pub headers: &'static [(&'static str, &'static str)],
}

/// Desktop browsers, as their makers document them: versions are reduced to the major one (Chromium's
/// user-agent reduction; Firefox's since 120).
const BROWSERS: [(&str, &[(&str, &str)]); 4] = [
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
        CHROMIUM,
    ),
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
        CHROMIUM,
    ),
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
        FIREFOX,
    ),
    (
        "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
        FIREFOX,
    ),
];

const CHROMIUM: &[(&str, &str)] = &[
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
    ),
    ("accept-language", "en-US,en;q=0.9"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "none"),
    ("sec-fetch-user", "?1"),
];

const FIREFOX: &[(&str, &str)] = &[
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    ),
    ("accept-language", "en-US,en;q=0.5"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "none"),
    ("sec-fetch-user", "?1"),
];

/// Returns the identity to present to the URL's host in this attempt, counted from 1. If `None`, the
/// process's own name is used.
pub fn identity(agents: &[Agent], url: &Url, attempt: u32) -> Option<Identity> {
    let n_all = agents.iter().map(alternatives).sum::<usize>();
    let first = host_hash(url) as usize;
    let attempt = attempt.saturating_sub(1) as usize;
    let mut n = first.wrapping_add(attempt).checked_rem(n_all)?;
    for agent in agents {
        let n_of_it = alternatives(agent);
        if n < n_of_it {
            return match agent {
                Agent::Honest => None,
                Agent::Browser => BROWSERS.get(n).map(|(user_agent, headers)| Identity {
                    user_agent: (*user_agent).to_owned(),
                    headers,
                }),
                Agent::Named(words) => Some(Identity {
                    user_agent: words.clone(),
                    headers: &[],
                }),
            };
        }
        n -= n_of_it;
    }
    None
}

fn alternatives(agent: &Agent) -> usize {
    match agent {
        Agent::Honest | Agent::Named(_) => 1,
        Agent::Browser => BROWSERS.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn url(host: &str) -> Url {
        format!("http://{host}/").parse().unwrap()
    }

    fn names(agents: &[Agent], host: &str) -> Vec<Option<String>> {
        let url = url(host);
        let name = |attempt| identity(agents, &url, attempt).map(|i| i.user_agent);
        (1..=6).map(name).collect()
    }

    #[test]
    fn a_host_sees_one_agent_until_its_pages_fail_and_then_all_of_them_in_turn() {
        assert_eq!(identity(&[], &url("a.test"), 1), None);
        assert_eq!(names(&[Agent::Honest], "a.test"), vec![None; 6]);
        let agents = [Agent::Honest, Agent::Browser, Agent::Named("x/1".into())];
        let seen = names(&agents, "a.test");
        assert_eq!(seen, names(&agents, "a.test"));
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 6);
        let first = |n: u32| identity(&agents, &url(&format!("{n}.test")), 1).map(|i| i.user_agent);
        let firsts: BTreeSet<_> = (0..100).map(first).collect();
        assert_eq!(firsts.len(), 6);
    }

    #[test]
    fn a_browser_has_the_headers_of_its_kind() {
        for attempt in 1..=4 {
            let browser = identity(&[Agent::Browser], &url("a.test"), attempt).unwrap();
            assert!(browser.user_agent.starts_with("Mozilla/5.0 ("));
            let names: Vec<_> = browser.headers.iter().map(|(name, _)| *name).collect();
            assert!(names.contains(&"accept") && names.contains(&"sec-fetch-mode"));
        }
    }
}
