//! Rules of a robots.txt for one agent: RFC 9309, and `crawl-delay` in addition.
//!
//! Rules for other agents are not kept, so a file with rules for a thousand of them costs nothing. Every file
//! can be read: lines that are no records are skipped, as the RFC demands (2.2.4 and 2.3.1.5).
//!
//! The parser goes beyond the RFC, like other crawlers do: well-known misspellings of `user-agent` and
//! `disallow` count, and so does a space in place of the colon. A site that wrote them meant them.

use std::fmt;
use std::time::Duration;

use memchr::memchr2;

use super::pattern::{Pattern, decoded};

/// Number of bytes up to which a file is read (RFC 9309, 2.5: at least 500 KiB).
pub const MAX_BYTES: usize = 500 << 10;

/// Maximum number of characters of a rule that are kept for display.
const SHOWN: usize = 120;

/// Rules of a robots.txt for one agent.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Rules, the most specific first; among equally specific ones, those that allow come first.
    rules: Vec<Rule>,
    /// Indices of the rules, sorted by the prefixes of their patterns: a path is compared only with rules
    /// whose prefix it shares.
    by_head: Vec<u32>,
    delay: Option<Duration>,
}

#[derive(Debug, Clone)]
struct Rule {
    allows: bool,
    pattern: Pattern,
    line: RuleLine,
}

/// A line of a robots.txt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLine {
    /// Line number, counted from 1.
    pub n: u32,
    /// Text of the rule, shortened, and without characters that could harm a terminal.
    pub text: Box<str>,
}

impl fmt::Display for RuleLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {}", self.n, self.text)
    }
}

impl Rules {
    /// Parses the rules for the agent with this product token. Of a file longer than [`MAX_BYTES`] only the
    /// whole lines up to there count: half a line could say the opposite of the whole.
    pub fn parse(bytes: &[u8], agent: &str) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut reading = Reading::default();
        for (n, line) in (1..).zip(lines(whole_lines(bytes))) {
            reading.line(n, line, agent);
        }
        reading.group()
    }

    /// Returns true if the path (with its query, as in a URL) may be fetched.
    pub fn allows(&self, path: &str) -> bool {
        self.forbidding(path).is_none()
    }

    /// Returns the rule that forbids the path, if there is one.
    pub fn forbidding(&self, path: &str) -> Option<&RuleLine> {
        if matches!(path.strip_prefix("/robots.txt"), Some(rest) if rest.is_empty() || rest.starts_with('?'))
        {
            return None;
        }
        let path = decoded(path);
        let mut deciding: Option<(u32, &Rule)> = None;
        self.each_beginning_like(&path, |place, rule| {
            let is_before = deciding.is_none_or(|(before, _)| place < before);
            if is_before && rule.pattern.matches(&path) {
                deciding = Some((place, rule));
            }
        });
        let (_, deciding) = deciding?;
        (!deciding.allows).then_some(&deciding.line)
    }

    /// Calls `each` for every rule whose prefix the path begins with, in no particular order.
    fn each_beginning_like<'a>(&'a self, path: &[u8], mut each: impl FnMut(u32, &'a Rule)) {
        let rule = |place: u32| &self.rules[place as usize];
        let mut alike = self.by_head.as_slice();
        for length in 0..=path.len() {
            // All of these share `length` octets with the path; those that have no more come first.
            let begins = |place: &u32| rule(*place).pattern.head().len() == length;
            let n_whole = alike.partition_point(begins);
            let (whole, longer) = alike.split_at(n_whole);
            whole.iter().for_each(|&place| each(place, rule(place)));
            let Some(&next) = path.get(length) else {
                return;
            };
            let octet = |place: &u32| rule(*place).pattern.head()[length];
            let from = longer.partition_point(|place| octet(place) < next);
            let to = longer.partition_point(|place| octet(place) <= next);
            alike = &longer[from..to];
            if alike.is_empty() {
                return;
            }
        }
    }

    /// Returns the time between two requests that `crawl-delay` asks for; the longest, if there are several.
    pub fn delay(&self) -> Option<Duration> {
        self.delay
    }

    /// Returns the approximate size in bytes in memory.
    pub fn n_bytes(&self) -> usize {
        let of_rule = |rule: &Rule| {
            size_of::<Rule>() + size_of::<u32>() + rule.pattern.n_bytes() + rule.line.text.len()
        };
        size_of::<Self>() + self.rules.iter().map(of_rule).sum::<usize>()
    }
}

/// Groups that may apply to the agent, while the file is read.
#[derive(Debug, Default)]
struct Reading {
    /// Merged groups of the agent. `None` as long as no line names it.
    named: Option<Rules>,
    /// Merged groups of `*`.
    of_all: Rules,
    /// True if the group that is being read names the agent.
    is_named: bool,
    is_of_all: bool,
    /// True while no rule of that group has come yet, so that another `user-agent` line belongs to it too.
    is_opening: bool,
}

/// Known fields of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
}

impl Reading {
    fn line(&mut self, n: u32, line: &[u8], agent: &str) {
        let content = line.split(|&b| b == b'#').next().unwrap_or_default();
        let Some((field, value)) = record(content.trim_ascii()) else {
            return;
        };
        match field {
            Field::UserAgent => {
                if !self.is_opening {
                    (self.is_named, self.is_of_all) = (false, false);
                }
                self.is_opening = true;
                if value
                    .strip_prefix(b"*")
                    .is_some_and(|rest| !continues(rest))
                {
                    self.is_of_all = true;
                } else if product_token(value).eq_ignore_ascii_case(agent.as_bytes()) {
                    self.is_named = true;
                    self.named.get_or_insert_default();
                }
            }
            Field::Allow | Field::Disallow => {
                self.is_opening = false;
                let Some(pattern) = Pattern::parse(value) else {
                    return;
                };
                let allows = field == Field::Allow;
                self.each(|group| {
                    group.rules.push(Rule {
                        allows,
                        pattern: pattern.clone(),
                        line: RuleLine {
                            n,
                            text: shown(allows, value),
                        },
                    });
                });
            }
            Field::CrawlDelay => {
                if let Some(delay) = seconds(value) {
                    self.each(|group| group.delay = group.delay.max(Some(delay)));
                }
            }
        }
    }

    /// Applies a change to the groups that the present line belongs to.
    fn each(&mut self, mut change: impl FnMut(&mut Rules)) {
        if self.is_of_all {
            change(&mut self.of_all);
        }
        if let Some(named) = self.named.as_mut().filter(|_| self.is_named) {
            change(named);
        }
    }

    fn group(self) -> Rules {
        let mut group = self.named.unwrap_or(self.of_all);
        group.rules.sort_by_key(|rule| {
            let n_octets = rule.pattern.n_octets();
            std::cmp::Reverse((n_octets, rule.allows))
        });
        group.rules.shrink_to_fit();
        let n_rules = u32::try_from(group.rules.len()).unwrap_or(u32::MAX);
        group.by_head = (0..n_rules).collect();
        let head = |place: &u32| group.rules[*place as usize].pattern.head();
        group
            .by_head
            .sort_by(|one, other| head(one).cmp(head(other)));
        group
    }
}

fn whole_lines(bytes: &[u8]) -> &[u8] {
    match bytes.get(..MAX_BYTES) {
        Some(start) if bytes.len() > MAX_BYTES => {
            let end = start.iter().rposition(|&b| matches!(b, b'\n' | b'\r'));
            &start[..end.unwrap_or(0)]
        }
        _ => bytes,
    }
}

/// Splits the text into lines, which end with CR, LF or both.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr2(b'\n', b'\r', text) else {
            rest = None;
            return Some(text);
        };
        let n_ending = if text[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = Some(&text[end + n_ending..]);
        Some(&text[..end])
    })
}

fn record(line: &[u8]) -> Option<(Field, &[u8])> {
    let split = |at: usize| Some((field(line[..at].trim_ascii())?, line[at + 1..].trim_ascii()));
    let colon = line.iter().position(|&b| b == b':');
    if let Some(record) = colon.and_then(split) {
        return Some(record);
    }
    // A colon that ends a word marks an unknown record; another one may be part of a path.
    if colon.is_some_and(|at| !continues(&line[at + 1..])) {
        return None;
    }
    line.iter()
        .position(u8::is_ascii_whitespace)
        .and_then(split)
}

fn field(name: &[u8]) -> Option<Field> {
    const FIELDS: [(Field, &[&str]); 4] = [
        (Field::UserAgent, &["user-agent", "useragent", "user agent"]),
        (Field::Allow, &["allow"]),
        (
            Field::Disallow,
            &[
                "disallow",
                "dissallow",
                "dissalow",
                "disalow",
                "diasllow",
                "disallaw",
            ],
        ),
        (Field::CrawlDelay, &["crawl-delay", "crawl delay"]),
    ];
    let is_it = |spelling: &&str| name.eq_ignore_ascii_case(spelling.as_bytes());
    let found = FIELDS.iter().find(|(_, names)| names.iter().any(is_it));
    found.map(|&(field, _)| field)
}

/// Returns the name that a user agent goes by in a robots.txt: `crawler` of `crawler/1.0`.
pub(crate) fn product_of(user_agent: &str) -> String {
    let token = product_token(user_agent.as_bytes());
    String::from_utf8_lossy(token).into_owned()
}

/// Returns the product token at the start of a user agent: `crawler` of `crawler/1.0 (about)`. The RFC allows
/// letters, `-` and `_`; digits are accepted too, because `crawler2` would otherwise be read as `crawler`.
fn product_token(value: &[u8]) -> &[u8] {
    let end = value.iter().position(|&b| !is_token(b));
    &value[..end.unwrap_or(value.len())]
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Returns true if the following text belongs to the same word.
fn continues(rest: &[u8]) -> bool {
    rest.first().is_some_and(|b| !b.is_ascii_whitespace())
}

fn seconds(value: &[u8]) -> Option<Duration> {
    let seconds: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    // A number too large for a time becomes the longest time: it still says that a request is to wait.
    let is_time = seconds >= 0.0 && seconds.is_finite();
    is_time.then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

fn shown(allows: bool, value: &[u8]) -> Box<str> {
    let value = &value[..value.len().min(4 * SHOWN)];
    let field = if allows { "Allow: " } else { "Disallow: " };
    let text = String::from_utf8_lossy(value);
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let text = field.chars().chain(text.chars().take(SHOWN).map(harmless));
    text.collect::<String>().into()
}

#[cfg(test)]
mod tests;
