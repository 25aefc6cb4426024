//! A URL: the lines are the URL, a pattern of setting `scope`, and a link that is found there; the last
//! two may be missing.

use std::num::NonZeroU32;

use crawler_model::canonical::canonical;
use crawler_model::crawl::{Request, host_of};
use crawler_model::links::{host_hash, shard_of};
use crawler_model::pattern::path_pattern;
use crawler_model::scope::{Bounds, RootHosts};
use crawler_model::settings::CrawlSettings;
use crawler_model::settings::HostPattern;
use url::{Position, Url};

use super::{first_line, percent_decoded};

/// Checks that the canonical form of a URL is canonical and names the same page of the same host, and that a crawl
/// may always go to the hosts of its root requests.
pub fn url(data: &[u8]) {
    let (base, rest) = first_line(data);
    let (pattern, rest) = first_line(rest);
    let (link, _) = first_line(rest);
    let [base, pattern, link] = [base, pattern, link].map(String::from_utf8_lossy);
    let Ok(base) = Url::parse(&base) else {
        return;
    };
    let pattern = pattern.parse::<HostPattern>().ok();
    for url in [base.join(&link).ok(), Some(base)].into_iter().flatten() {
        let _whatever_its_scheme = (canonical(&url), path_pattern(&url), host_hash(&url));
        if matches!(url.scheme(), "http" | "https") {
            one_form(&url);
            one_pattern(&url);
            in_scope(&url, pattern.as_ref());
        }
    }
    if let Some(pattern) = pattern {
        let written = pattern.to_string();
        assert_eq!(written.parse(), Ok(pattern), "{written}");
    }
}

fn one_form(url: &Url) {
    let form = canonical(url).into_owned();
    let again: Url = form.parse().expect("a canonical URL is a URL");
    assert_eq!(again.as_str(), form, "the parser changes it");
    assert_eq!(canonical(&again), form);
    assert_eq!(again.scheme(), url.scheme());
    assert_eq!(host_of(&again), host_of(url));
    let sent = url[..Position::AfterQuery].trim_end_matches('?');
    let (said, sent) = (
        percent_decoded(form.trim_end_matches('?').as_bytes()),
        percent_decoded(sent.as_bytes()),
    );
    assert_eq!(said, sent, "another page");
    let fingerprint = Request::get(url.clone(), "page").fingerprint();
    assert_eq!(
        Request::get(again.clone(), "page").fingerprint(),
        fingerprint
    );

    let mut elsewhere = url.clone();
    elsewhere.set_fragment(Some("part"));
    assert_eq!(canonical(&elsewhere), form, "a fragment counts");
    for n_shards in [1, 7, 32].map(|n| NonZeroU32::new(n).expect("it is not 0")) {
        let shard = shard_of(url, n_shards);
        assert!(shard.0 < n_shards.get());
        assert_eq!(shard_of(&again, n_shards), shard);
    }
}

/// Checks that URLs that differ only in their digits are counted by the same pattern.
fn one_pattern(url: &Url) {
    let parameters = |query: &str| {
        let with_other_digits = |parameter: &str| match parameter.split_once('=') {
            Some((name, value)) => format!("{}={}", other_digits(name), other_digits(value)),
            None => other_digits(parameter),
        };
        let parameters: Vec<String> = query.split('&').map(with_other_digits).collect();
        parameters.join("&")
    };
    let mut other = url.clone();
    other.set_path(&other_digits(url.path()));
    other.set_query(url.query().map(parameters).as_deref());
    assert_eq!(path_pattern(&other), path_pattern(url), "{url} and {other}");
}

/// Returns the same text with sevens for digits, except for those of an encoded octet.
fn other_digits(text: &str) -> String {
    let mut n_encoded = 0;
    let other = text.chars().map(|c| {
        let is_encoded = n_encoded > 0;
        n_encoded = match c {
            '%' if !is_encoded => 2,
            _ => u32::saturating_sub(n_encoded, 1),
        };
        if c.is_ascii_digit() && !is_encoded {
            '7'
        } else {
            c
        }
    });
    other.collect()
}

fn in_scope(url: &Url, pattern: Option<&HostPattern>) {
    let (host, port) = (
        url.host_str().unwrap_or_default(),
        url.port_or_known_default(),
    );
    let root_hosts = RootHosts::of(std::slice::from_ref(url));
    let mut settings = CrawlSettings::default();
    let refusal = |settings: &CrawlSettings, root_hosts: &RootHosts| {
        let bounds = Bounds {
            root_hosts,
            settings,
        };
        let request = Request::get(url.clone(), "page");
        (bounds.refusal(&request, 1), bounds.names_port(url))
    };
    let (of_root, names_port) = refusal(&settings, &root_hosts);
    assert_ne!(
        of_root.map(|refusal| refusal.as_str()),
        Some("out-of-scope")
    );
    assert!(names_port);

    // A `*` in a host would be read as a pattern.
    if !host.contains('*') {
        let own: HostPattern = host.parse().expect("the host of a URL is a pattern");
        assert!(own.admits(host, port), "{own}");
        let below: HostPattern = format!("*.{own}").parse().expect("so is what is below it");
        assert!(below.admits(host, port), "{below}");
        assert!(below.admits(&format!("www.{host}"), port), "{below}");
        assert!(!below.admits(&format!("www{host}"), port), "{below}");
    }
    if let Some(pattern) = pattern {
        settings.scope = vec![pattern.clone()];
        let (refusal, _) = refusal(&settings, &RootHosts::of(&[]));
        let is_out = refusal.map(|refusal| refusal.as_str()) == Some("out-of-scope");
        let is_long = url[..Position::AfterQuery].len() > settings.max_url_length() as usize;
        assert!(is_long || is_out != pattern.admits(host, port), "{pattern}");
    }
}
