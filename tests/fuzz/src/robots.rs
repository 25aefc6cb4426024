//! A robots.txt: the first line is a path, the rest is the file.

use std::time::Duration;

use crawler_fetch::robots::{MAX_BYTES, RuleLine, Rules};

use super::{first_line, percent_decoded};

const AGENT: &str = "crawler";
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Checks that a file means the same however its lines end and whatever surrounds its rules, and that it forbids
/// the paths that its pattern matches.
pub fn robots(data: &[u8]) {
    let (path, file) = first_line(data);
    let path = String::from_utf8_lossy(path);
    let rules = Rules::parse(file, AGENT);
    let said = said(&rules, &path);

    let most = 256 + 16 * file.len();
    assert!(
        rules.n_bytes() <= most,
        "{} bytes of rules",
        rules.n_bytes()
    );
    assert_eq!(rules.allows(&path), said.forbidding.is_none());
    if let Some(line) = &said.forbidding {
        can_be_shown(line, file);
    }
    for path in ["/robots.txt", "/robots.txt?x"] {
        assert!(rules.allows(path), "{path}");
    }
    let whole = percent_decoded(path.as_bytes());
    if !whole.starts_with(b"/robots.txt") {
        let encoded: String = whole.iter().map(|octet| format!("%{octet:02x}")).collect();
        assert_eq!(self::said(&rules, &encoded), said, "every octet encoded");
    }
    // A longer file is cut at another place, and so may differ.
    if file.len() < MAX_BYTES / 2 {
        for (what, same) in respelled(file) {
            assert_eq!(
                self::said(&Rules::parse(&same, AGENT), &path),
                said,
                "{what}"
            );
        }
    }
    Rules::parse(file, "");
    one_rule(first_line(file).0, &path);
}

/// Rules of a file for one path.
#[derive(Debug, PartialEq)]
struct Said {
    forbidding: Option<RuleLine>,
    delay: Option<Duration>,
}

fn said(rules: &Rules, path: &str) -> Said {
    Said {
        forbidding: rules.forbidding(path).cloned(),
        delay: rules.delay(),
    }
}

fn can_be_shown(line: &RuleLine, file: &[u8]) {
    let n_lines = 1 + file.iter().filter(|b| b"\r\n".contains(b)).count();
    assert!((1..=n_lines).contains(&(line.n as usize)), "{line}");
    assert!(!line.text.contains(char::is_control), "{line}");
    assert!(line.text.chars().count() <= 130, "{line}");
}

/// Returns the same file, written in other ways.
fn respelled(file: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut same = vec![
        ("lines that end with LF", with_endings(file, b"\n")),
        ("lines that end with CR", with_endings(file, b"\r")),
        ("lines that end with both", with_endings(file, b"\r\n")),
        (
            "a comment and an unknown record at the end",
            [file, b"\n# Disallow: /\nSitemap: http://a.test/"].concat(),
        ),
    ];
    if !file.starts_with(MARK) {
        same.push(("a byte order mark in front", [MARK, file].concat()));
    }
    same
}

fn with_endings(file: &[u8], ending: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(2 * file.len());
    let mut octets = file.iter().peekable();
    while let Some(&octet) = octets.next() {
        match octet {
            b'\r' => {
                octets.next_if(|&&next| next == b'\n');
                written.extend(ending);
            }
            b'\n' => written.extend(ending),
            octet => written.push(octet),
        }
    }
    written
}

/// Checks that a file of one rule forbids the paths that its pattern matches, and no others.
fn one_rule(line: &[u8], path: &str) {
    let pattern = line.trim_ascii();
    let is_pattern = matches!(pattern.first(), Some(b'/' | b'*'));
    let is_line = !pattern.iter().any(|b| b"\r#".contains(b));
    let is_short = pattern.len() <= 256 && path.len() <= 256;
    if !(is_pattern && is_line && is_short) || path.starts_with("/robots.txt") {
        return;
    }
    let file = [b"User-agent: *\nDisallow: ", pattern].concat();
    let rules = Rules::parse(&file, AGENT);
    let expected = matches(pattern, &percent_decoded(path.as_bytes()));
    assert_eq!(!rules.allows(path), expected, "one rule alone");
}

/// Returns true if a pattern matches, found octet by octet: slow, and in another way than the crawler does.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, is_anchored) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    // Places in the path at which the part of the pattern read so far may end.
    let mut ends = vec![false; path.len() + 1];
    ends[0] = true;
    for (nth, literal) in pattern.split(|&b| b == b'*').enumerate() {
        if nth > 0 {
            let first = ends.iter().position(|&is_end| is_end);
            let first = first.unwrap_or(ends.len());
            ends[first..].fill(true);
        }
        for octet in percent_decoded(literal) {
            for at in (0..path.len()).rev() {
                ends[at + 1] = ends[at] && path[at] == octet;
            }
            ends[0] = false;
        }
    }
    match is_anchored {
        true => ends[path.len()],
        false => ends.contains(&true),
    }
}
