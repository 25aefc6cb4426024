//! Compares what a command prints with what a page shows.

/// Returns true if lines are as a page shows them: a line `…` stands for any lines, and `…` within a line for
/// any text.
pub(crate) fn is_as_shown(shown: &[String], lines: &[String]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=lines.len()).any(|n| is_as_shown(rest, &lines[n..]))
        }
        Some((first, rest)) => lines.split_first().is_some_and(|(line, lines)| {
            is_line_as_shown(first, line.trim_end()) && is_as_shown(rest, lines)
        }),
    }
}

fn is_line_as_shown(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut line) = line.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return line.is_empty();
    };
    for part in parts {
        match line.find(part) {
            Some(at) => line = &line[at + part.len()..],
            None => return false,
        }
    }
    line.ends_with(last)
}

/// Returns lines without what differs from run to run: times of day, measured numbers, which have a point, and
/// the widths of columns. The guide shows these as they were once, for its readers to see what they look like.
pub(crate) fn without_measures(lines: &[String]) -> Vec<String> {
    let without = |line: &String| {
        let words = line.split_whitespace();
        let words = words.map(|word| if is_measure(word) { "#" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    lines.iter().map(without).collect()
}

/// Returns true for `62.0`, `(0.01`, `549.6µs` and `2026-11-20T16:28:16Z`, and false for versions, addresses and
/// counts.
fn is_measure(word: &str) -> bool {
    let number = word.trim_start_matches('(');
    let begins = number.starts_with(|first: char| first.is_ascii_digit());
    let is_time = number.contains('T') && number.ends_with('Z');
    begins && (is_time || number.matches('.').count() == 1)
}

#[test]
fn outputs_are_compared_except_for_measures_and_gaps() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let is = |shown: &str, printed: &str| {
        let (shown, printed) = (lines(shown), lines(printed));
        is_as_shown(&without_measures(&shown), &without_measures(&printed))
    };
    assert!(is(
        "a  1  62.0 k (0.01 %)  5.1µs",
        "a 1 7.5 k (9.00 %) 1.2ms"
    ));
    assert!(is("x 2026-11-20T16:28:16Z", "x   2027-01-02T03:04:05Z"));
    assert!(is("a…c\n…\nz", "abc\nd\ne\nz"));
    assert!(!is("a  1", "a  2"));
    assert!(!is("0.1.0 127.0.0.1:9091", "0.2.0 127.0.0.1:9092"));
    assert!(!is("a", "a\nb"));
}
