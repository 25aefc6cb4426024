//! Names of a page that a line may use, for completion.

use std::collections::BTreeSet;

use crawler_extract::{Budget, Take, extract};

use super::line::{COMMANDS, TAKES};
use super::plan::plan_of;

/// Names that are offered at once.
const OFFERED_MAX: usize = 100;

/// Longest name that is offered, in characters.
const LONGEST: usize = 100;

/// Names of elements, classes and ids. Names that a selector or a terminal would take for something else are
/// left out.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Completions {
    tags: BTreeSet<String>,
    classes: BTreeSet<String>,
    ids: BTreeSet<String>,
}

impl Completions {
    /// Returns the names of a page; a page that cannot be read has none.
    pub fn of(page: &str) -> Self {
        let plan = plan_of(&[
            ("tags", "*", Take::Tag),
            ("classes", "[class]", Take::Attr("class".to_owned())),
            ("ids", "[id]", Take::Attr("id".to_owned())),
        ]);
        let Ok(captures) = extract(&plan, page, &Budget::default()) else {
            return Self::default();
        };
        let of = |field: usize| {
            let values = captures.values(field);
            let names = values.flat_map(|(_, text)| text.split_ascii_whitespace());
            names.filter(|name| is_plain(name)).map(str::to_owned)
        };
        Self {
            tags: of(0).collect(),
            classes: of(1).collect(),
            ids: of(2).collect(),
        }
    }

    /// Returns the start of the word that ends the line, and its completions.
    pub fn completed(&self, line: &str) -> (usize, Vec<String>) {
        let typed = line.trim_start();
        if typed.starts_with('/') {
            let commands = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
            let fit = commands.filter(|name| name.starts_with(typed));
            return (line.len() - typed.len(), fit.collect());
        }
        if let Some(arrow) = line.rfind("->") {
            let rest = &line[arrow + 2..];
            let word = rest.trim_start();
            if !word.contains([';', '}', ' ']) {
                let takes = TAKES.iter().map(|(take, _)| take.trim_end_matches("NAME"));
                let fit = takes.filter(|take| take.starts_with(word));
                return (line.len() - word.len(), fit.map(str::to_owned).collect());
            }
        }
        let start = line.trim_end_matches(is_part).len();
        let (word, before) = (&line[start..], line[..start].chars().next_back());
        let names = match before {
            Some('.') => &self.classes,
            Some('#') => &self.ids,
            _ => &self.tags,
        };
        let fit = names.iter().filter(|name| name.starts_with(word));
        (start, fit.take(OFFERED_MAX).cloned().collect())
    }
}

/// Returns true if the character may stand in a name that needs no escapes.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

fn is_plain(name: &str) -> bool {
    let begins = name
        .chars()
        .next()
        .is_some_and(|c| is_part(c) && !c.is_numeric());
    begins && name.chars().all(is_part) && name.chars().nth(LONGEST).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, start: usize, expected: &[&str]) {
        let page = "<title>x</title><table class='price  pricey'><tr id=seven class=row>";
        let (found, names) = Completions::of(page).completed(line);
        assert_eq!(
            (found, names),
            (
                start,
                expected.iter().map(|&name| name.to_owned()).collect()
            ),
            "{line}"
        );
    }

    #[test]
    fn what_the_page_has_is_offered() {
        check("t", 0, &["table", "tbody", "title", "tr"]);
        check("table > tr", 8, &["tr"]);
        check("table.pri", 6, &["price", "pricey"]);
        check(".", 1, &["price", "pricey", "row"]);
        check("tr#", 3, &["seven"]);
        check("tr { price: .r", 13, &["row"]);
        check("x", 0, &[]);
    }

    #[test]
    fn what_a_terminal_would_obey_is_not() {
        let long = "x".repeat(101);
        let page = format!("<p class='a\u{1b}]0;x\u{7} b&#27;c d:e 1f {long} ok' id='\u{202e}x'>");
        let names = Completions::of(&page);
        let expected = vec!["ok".to_owned()];
        assert_eq!(names.completed("."), (1, expected));
        assert_eq!(names.completed("#"), (1, Vec::new()));
    }

    #[test]
    fn so_are_commands_and_what_can_be_read() {
        check("/h", 0, &["/headers", "/help"]);
        check(" /he", 1, &["/headers", "/help"]);
        check(
            "tr -> ",
            6,
            &["text", "raw", "inner", "@", "present", "tag"],
        );
        check("tr->t", 4, &["text", "tag"]);
        check("tr { a: b -> @id; c: .ro", 22, &["row"]);
    }
}
