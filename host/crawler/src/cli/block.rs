//! Statistics of a run as one block of text: the same at the end of `run`, `resource wait` and `demo`, and in
//! `resource get`.

use std::collections::BTreeMap;
use std::fmt::Display;

use url::Url;

use super::table;
use crawler_model::number;
use crawler_model::statistics::{CUT, LostRoot, OTHER_STATUSES, RunStatistics};

/// Number of hosts that are named for each reason of refused links.
const N_HOSTS: usize = 5;

/// Milliseconds of a run below which its rate is left out, because it says nothing.
const MIN_RATED_MS: u64 = 100;
/// Reason of links whose hosts are not in the scope.
const OUT_OF_SCOPE: &str = "out-of-scope";

/// A run that has ended, or goes on.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Counts and statistics of the run.
    pub found: &'a RunStatistics,
    /// Reason why the run has ended, or its standing while it goes on.
    pub end: &'a str,
}

impl<'a> Block<'a> {
    /// Returns the block of a run that has ended.
    pub fn of(found: &'a RunStatistics) -> Self {
        let end = &found.end;
        Self { found, end }
    }

    /// Returns the first line: numbers, time and end.
    pub fn summary(&self) -> String {
        let counts = &self.found.counts;
        let (pages, items) = (counts.pages(), counts.items);
        format!(
            "{}, {}, {}",
            number(pages, "page"),
            number(items, "item"),
            self.took(),
        )
    }

    /// Returns bytes, time, rate and end.
    pub fn took(&self) -> String {
        let counts = &self.found.counts;
        let time = time(counts.took_ms());
        let size = table::size(counts.bytes);
        let rate = match counts.took_ms() < MIN_RATED_MS {
            true => String::new(),
            false => format!(" ({:.1} pages/s)", self.found.rate()),
        };
        let end = table::plain(self.end);
        format!("{size} in {time}{rate}; {end}")
    }

    /// Returns all other lines: a name and a value each. A name that is empty goes on with the one before.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let (counts, statistics) = (&self.found.counts, &self.found.statistics);
        let mut rows = Vec::new();
        let mut outcomes = vec![("parsed", counts.parsed), ("dead", counts.dead)];
        outcomes.extend(counts.outcomes.iter().map(|(word, n)| (word.as_str(), *n)));
        outcomes.retain(|(_, n)| *n > 0);
        outcomes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        add(&mut rows, "outcomes", [listed(outcomes)]);
        let statuses = statistics.statuses.iter().map(|(status, n)| match *status {
            OTHER_STATUSES => format!("others: {n}"),
            status => format!("{status}: {n}"),
        });
        add(&mut rows, "statuses", [joined(statuses)]);
        if counts.held > 0 {
            let held = format!("{}; `crawler quarantine list NAME` tells why", counts.held);
            add(&mut rows, "held items", [held]);
        }
        if counts.kept_bytes > 0 {
            add(&mut rows, "kept files", [table::size(counts.kept_bytes)]);
        }
        if counts.retries > 0 {
            add(&mut rows, "retries", [counts.retries.to_string()]);
        }
        let deaths = most(&counts.dead_by_reason).into_iter().map(|(reason, n)| {
            match statistics.dead_examples.get(reason) {
                Some(url) => format!("{n} {reason}, for example {}", table::plain(url)),
                None => format!("{n} {reason}"),
            }
        });
        add(&mut rows, "dead", deaths);
        let refused = most(&counts.refused_links).into_iter().map(|(reason, n)| {
            let hosts = statistics.refused_hosts.get(reason);
            let hosts = hosts.map(|hosts| hosts.top(N_HOSTS)).unwrap_or_default();
            let hosts = hosts.iter().map(|host| format!("{} {}", host.host, host.n));
            match joined(hosts) {
                hosts if hosts.is_empty() => format!("{n} {reason}"),
                hosts => format!("{n} {reason}: {hosts}"),
            }
        });
        add(&mut rows, "not followed", refused);
        let kinds = statistics
            .kinds
            .iter()
            .map(|(kind, known)| (kind.as_str(), known.items));
        add(&mut rows, "items", [listed(kinds)]);
        add(&mut rows, "always empty", named(statistics.empty_fields()));
        add(&mut rows, "unmatched", named(statistics.unmatched()));
        add(&mut rows, "no page", self.lost_roots());
        rows
    }

    /// Returns all lines, those after the first indented.
    pub fn lines(&self) -> Vec<String> {
        let rows = self.rows().into_iter();
        let rows = rows.map(|(name, value)| format!("  {name:<13} {value}"));
        std::iter::once(self.summary()).chain(rows).collect()
    }

    /// Returns a line for each root request without a page, with the way out of a redirect.
    fn lost_roots(&self) -> Vec<String> {
        let lost = &self.found.statistics.lost_roots;
        lost.iter().map(lost_root).collect()
    }
}

pub(super) fn lost_root(root: &LostRoot) -> String {
    let url = table::plain(&root.url);
    if !root.target.is_empty() {
        let target = table::plain(&root.target);
        let way_out = way_out(root).unwrap_or_default();
        return format!("{url} redirects to {target}, which is not followed{way_out}");
    }
    let end = table::plain(&root.end);
    match root.status {
        0 => format!("{url}: {end}"),
        status => format!("{url}: {end}, status {status}"),
    }
}

/// Returns the reason why a redirect is not followed, and what can be done about it.
fn way_out(root: &LostRoot) -> Option<String> {
    if root.refusal != OUT_OF_SCOPE {
        let refusal = table::plain(&root.refusal);
        return (!refusal.is_empty()).then(|| format!(" ({refusal})"));
    }
    let target: Url = root.target.parse().ok()?;
    // The host itself may be cut.
    if root.target.ends_with(CUT) && target.path() == "/" {
        return None;
    }
    let place = match target.port() {
        Some(port) => format!("{}:{port}", target.host_str()?),
        None => target.host_str()?.to_owned(),
    };
    Some(format!(
        "; start there, or add its host with --scope {place}"
    ))
}

/// Returns a further line: the number of answers that the cache gave.
pub fn from_cache(n: u64) -> String {
    format!("  {:<13} {}", "from cache", number(n, "answer"))
}

/// Formats the time of a run, in the unit that it needs.
fn time(took_ms: u64) -> String {
    match took_ms {
        0..1_000 => format!("{took_ms} ms"),
        _ => format!("{:.1} s", took_ms as f64 / 1_000.0),
    }
}

fn add(
    rows: &mut Vec<(&'static str, String)>,
    name: &'static str,
    values: impl IntoIterator<Item = String>,
) {
    let values = values.into_iter().filter(|value| !value.is_empty());
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    rows.extend(names.zip(values));
}

/// Returns reasons with their numbers, the most frequent first.
fn most(reasons: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let reasons = reasons.iter().filter(|(_, n)| **n > 0);
    let mut reasons: Vec<_> = reasons.map(|(reason, n)| (reason.as_str(), *n)).collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    reasons
}

fn listed<'a>(words: impl IntoIterator<Item = (&'a str, u64)>) -> String {
    let words = words.into_iter();
    joined(words.map(|(word, n)| format!("{} {n}", table::plain(word))))
}

/// Returns a line for each owner with the names of its things, which are in its order.
fn named<'a>(things: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
    for (owner, name) in things {
        match lines.last_mut() {
            Some((last, names)) if *last == owner => names.push(name),
            _ => lines.push((owner, vec![name])),
        }
    }
    let lines = lines.into_iter();
    let lines = lines.map(|(owner, names)| format!("{owner}: {}", names.join(", ")));
    lines.map(|line| table::plain(&line)).collect()
}

fn joined<T: Display>(parts: impl Iterator<Item = T>) -> String {
    parts
        .map(|part| part.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::Counts;
    use crawler_model::resource::{CrawlSettings, Phase};
    use crawler_model::statistics::{HostLinks, Kind, PlanMatches, Statistics, why_ended};

    fn map<V: Clone>(entries: &[(&str, V)]) -> BTreeMap<String, V> {
        let entries = entries.iter().cloned();
        entries
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    #[track_caller]
    fn check(counts: &Counts, statistics: &Statistics, expected: &str) {
        let mut counts = counts.clone();
        counts.note_attempt(1_000, 9_100);
        let settings = CrawlSettings {
            max_pages: Some(600),
            ..CrawlSettings::default()
        };
        let found = RunStatistics {
            end: why_ended(&Phase::Finished, &counts, &settings),
            counts,
            statistics: statistics.clone(),
            ..RunStatistics::default()
        };
        assert_eq!(Block::of(&found).lines().join("\n"), expected.trim());
    }

    #[test]
    fn a_crawl_that_went_well_has_a_short_block() {
        let counts = Counts {
            parsed: 526,
            items: 526,
            bytes: 12_300_000,
            ..Counts::default()
        };
        let kind = Kind {
            items: 526,
            fields: map(&[("title", 526)]),
        };
        let statistics = Statistics {
            statuses: [(200, 526)].into(),
            kinds: map(&[("page", kind)]),
            ..Statistics::default()
        };
        check(
            &counts,
            &statistics,
            "
526 pages, 526 items, 12.3 MB in 8.1 s (64.9 pages/s); nothing is left to fetch
  outcomes      parsed 526
  statuses      200: 526
  items         page 526",
        );
    }

    #[test]
    fn whatever_went_wrong_is_in_the_block() {
        let counts = Counts {
            parsed: 520,
            other_done: 76,
            outcomes: map(&[("gone", 70), ("redirected", 6)]),
            dead: 4,
            dead_by_reason: map(&[("status-503", 1), ("timeout", 3)]),
            retries: 7,
            items: 510,
            bytes: 999,
            due: 1,
            refused_links: map(&[("bad-url", 2), ("out-of-scope", 120)]),
            ..Counts::default()
        };
        let host = |host: &str, n| HostLinks {
            host: host.to_owned(),
            n,
            error: 0,
        };
        let hosts = ["a", "b", "c", "d", "e", "f"].into_iter().zip(1..);
        let statistics = Statistics {
            statuses: [(0, 2), (200, 520), (404, 70)].into(),
            refused_hosts: map(&[("out-of-scope", hosts.map(|(h, n)| host(h, n)).collect())]),
            dead_examples: map(&[("timeout", "http://a.test/slow\u{202e}".to_owned())]),
            lost_roots: vec![
                LostRoot {
                    request: 1,
                    url: "http://a.test/".into(),
                    end: "redirected".into(),
                    status: 0,
                    target: "http://www.a.test/".into(),
                    refusal: "out-of-scope".into(),
                },
                LostRoot {
                    url: "http://b.test/".into(),
                    end: "gone".into(),
                    status: 404,
                    ..LostRoot::default()
                },
                LostRoot {
                    url: "http://c.test/".into(),
                    end: "timeout".into(),
                    ..LostRoot::default()
                },
            ],
            kinds: map(&[
                (
                    "author",
                    Kind {
                        items: 10,
                        fields: map(&[("born", 0), ("name", 9)]),
                    },
                ),
                (
                    "book",
                    Kind {
                        items: 500,
                        fields: map(&[("cover", 0), ("price", 0), ("title", 500)]),
                    },
                ),
            ]),
            plans: map(&[(
                "book",
                PlanMatches {
                    pages: 520,
                    selectors: map(&[("price", 0), ("title", 500)]),
                },
            )]),
        };
        check(
            &counts,
            &statistics,
            "
600 pages, 510 items, 999 B in 8.1 s (74.1 pages/s); --max-pages 600 is reached, and 1 URL is left
  outcomes      parsed 520, gone 70, redirected 6, dead 4
  statuses      others: 2, 200: 520, 404: 70
  retries       7
  dead          3 timeout, for example http://a.test/slow\\u{202e}
                1 status-503
  not followed  120 out-of-scope: f 6, e 5, d 4, c 3, b 2
                2 bad-url
  items         author 10, book 500
  always empty  author: born
                book: cover, price
  unmatched     book: price
  no page       http://a.test/ redirects to http://www.a.test/, which is not followed; start there, or add its host with --scope www.a.test
                http://b.test/: gone, status 404
                http://c.test/: timeout",
        );
    }

    #[test]
    fn a_run_of_less_than_a_second_took_milliseconds() {
        for (ms, expected) in [
            (0, "0 ms"),
            (7, "7 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (8_149, "8.1 s"),
        ] {
            assert_eq!(time(ms), expected);
        }
    }

    #[test]
    fn the_way_out_of_a_redirect_depends_on_the_refusal() {
        let check = |target: &str, refusal: &str, expected: &str| {
            let root = LostRoot {
                url: "http://a.test/".to_owned(),
                target: target.to_owned(),
                refusal: refusal.to_owned(),
                ..LostRoot::default()
            };
            let line =
                format!("http://a.test/ redirects to {target}, which is not followed{expected}");
            assert_eq!(lost_root(&root), line);
        };
        let advice = "; start there, or add its host with --scope";
        let scope = "out-of-scope";
        check("https://b.test/", scope, &format!("{advice} b.test"));
        check(
            "http://b.test:8080/",
            scope,
            &format!("{advice} b.test:8080"),
        );
        check("http://b.test/x…", scope, &format!("{advice} b.test"));
        check("http://b.test…", scope, "");
        check("http://a.test/x", "max-url-length", " (max-url-length)");
        check("http://a.test/x", "", "");
    }
}
