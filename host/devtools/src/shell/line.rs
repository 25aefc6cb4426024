//! Parser of the lines that a user types.
//!
//! ```text
//! h3 > a -> @href                                   one field: SELECTOR, or SELECTOR -> TAKE
//! article { title: h3; link: h3 a -> @href }        rows, and fields in each of them
//! /links \.pdf$                                     a command
//! ```

use crawler_extract::{Field, Group, Plan, Take};

/// Commands: name, argument, and effect.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("/fetch", "URL", "fetch another page; relative to this one"),
    ("/page", "", "where it came from, and how"),
    ("/headers", "", "of the answer"),
    ("/source", "", "the beginning of the page, as HTML"),
    (
        "/links",
        "[PATTERN]",
        "absolute addresses that the page links to",
    ),
    ("/all", "", "the last table, with all rows and whole values"),
    ("/rust", "", "the last table as a struct for the SDK"),
    ("/save", "FILE", "the body, as it was received"),
    ("/help", "", "this"),
    ("/quit", "", "as Ctrl-D"),
];

/// Parts of an element that can be read, each with its explanation.
pub const TAKES: &[(&str, &str)] = &[
    ("text", "its text, white space folded; if nothing is said"),
    ("raw", "its text as written"),
    ("inner", "the HTML between its tags"),
    ("@NAME", "the value of an attribute"),
    ("present", "whether it is there"),
    ("tag", "its name"),
];

/// A line that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Empty line.
    Empty,
    /// Command.
    Command(Command),
    /// Query.
    Query(Query),
}

/// Command of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Fetches this address, relative to that of the page.
    Fetch(String),
    /// Prints where the page came from.
    Page,
    /// Prints the headers of the answer.
    Headers,
    /// Prints the HTML.
    Source,
    /// Prints the links whose addresses match this regular expression.
    Links(Option<String>),
    /// Prints the last table whole.
    All,
    /// Prints the last query as code.
    Rust,
    /// Saves the body in this file.
    Save(String),
    /// Prints the lines that can be typed.
    Help,
    /// Ends the shell.
    Quit,
}

/// Query for a page: one field of it, or rows with fields in each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Selector of the rows. If `None`, the whole page is one row.
    pub rows: Option<String>,
    /// Fields, at least one.
    pub fields: Vec<QueryField>,
}

/// Field of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryField {
    /// Name of the field's column.
    pub name: String,
    /// Selector within the row; empty for the row itself.
    pub selector: String,
    /// Part of the element that is read.
    pub take: Take,
}

impl Line {
    /// Parses a line, or explains why it means nothing.
    pub fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Line::Empty);
        }
        if is_address(text) {
            return Ok(Line::Command(Command::Fetch(text.to_owned())));
        }
        if text.starts_with('/') {
            return command(text).map(Line::Command);
        }
        query(text).map(Line::Query)
    }
}

fn command(text: &str) -> Result<Command, String> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let known = COMMANDS.iter().find(|(known, ..)| *known == name);
    let Some((_, wanted, _)) = known else {
        let names: Vec<&str> = COMMANDS.iter().map(|(name, ..)| *name).collect();
        return Err(format!(
            "there is no command {name}; there are {}",
            names.join(", ")
        ));
    };
    match (*wanted, rest) {
        ("", "") => {}
        ("", rest) => {
            return Err(format!(
                "nothing belongs behind {name}, and there is {rest:?}"
            ));
        }
        (wanted, "") if !wanted.starts_with('[') => {
            return Err(format!("{name} needs more: {name} {wanted}"));
        }
        _ => {}
    }
    let given = || rest.to_owned();
    Ok(match name {
        "/fetch" => Command::Fetch(given()),
        "/page" => Command::Page,
        "/headers" => Command::Headers,
        "/source" => Command::Source,
        "/links" => Command::Links((!rest.is_empty()).then(given)),
        "/all" => Command::All,
        "/rust" => Command::Rust,
        "/save" => Command::Save(given()),
        "/help" => Command::Help,
        _ => Command::Quit,
    })
}

fn query(text: &str) -> Result<Query, String> {
    let Some(open) = outside(text, '{').next() else {
        let (selector, take) = selector_and_take(text)?;
        if selector.is_empty() {
            return Err("there is no selector before ->".to_owned());
        }
        let name = "value".to_owned();
        let fields = vec![QueryField {
            name,
            selector,
            take,
        }];
        return Ok(Query { rows: None, fields });
    };
    let rows = text[..open].trim();
    if rows.is_empty() {
        return Err("there is no selector of rows before {".to_owned());
    }
    let rest = &text[open + 1..];
    let Some(close) = outside(rest, '}').next() else {
        let why =
            "the } of the fields is missing, or a quotation mark, [ or ( before it is not closed";
        return Err(why.to_owned());
    };
    let behind = rest[close + 1..].trim();
    if !behind.is_empty() {
        return Err(format!(
            "nothing belongs behind }}, and there is {behind:?}"
        ));
    }
    let mut fields: Vec<QueryField> = Vec::new();
    let inner = &rest[..close];
    let ends = outside(inner, ';').chain([inner.len()]);
    let mut start = 0;
    for end in ends {
        let part = inner[start..end].trim();
        start = end + 1;
        if part.is_empty() {
            continue;
        }
        let field = named(part)?;
        if fields.iter().any(|other| other.name == field.name) {
            return Err(format!("there are two fields {}", field.name));
        }
        fields.push(field);
    }
    if fields.is_empty() {
        return Err(format!(
            "there are no fields in the braces; write them as in {rows} {{ title: h3; link: a -> @href }}"
        ));
    }
    let rows = Some(rows.to_owned());
    Ok(Query { rows, fields })
}

/// Parses a named field, such as `link: h3 a -> @href`.
fn named(part: &str) -> Result<QueryField, String> {
    let is_name = |name: &str| {
        let mut chars = name.chars();
        let begins = chars
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let goes_on = chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
        begins && goes_on && !matches!(name, "self" | "super" | "crate" | "_")
    };
    // A pseudo-class follows its colon directly: `a:first-child` is a selector.
    let parts = part.split_once(':');
    let parts =
        parts.filter(|(_, rest)| rest.starts_with(char::is_whitespace) || rest.starts_with("->"));
    let parts = parts.map(|(name, rest)| (name.trim().to_ascii_lowercase(), rest));
    let Some((name, rest)) = parts.filter(|(name, _)| is_name(name)) else {
        return Err(format!(
            "{part:?} has no name; write it as in title: {part}"
        ));
    };
    let (selector, take) = selector_and_take(rest)?;
    Ok(QueryField {
        name,
        selector,
        take,
    })
}

fn selector_and_take(text: &str) -> Result<(String, Take), String> {
    let Some(arrow) = outside(text, '-').find(|at| text[*at..].starts_with("->")) else {
        return Ok((text.trim().to_owned(), Take::Text));
    };
    let selector = text[..arrow].trim().to_owned();
    let take = text[arrow + 2..].trim();
    let take = match take {
        "text" => Take::Text,
        "raw" => Take::TextRaw,
        "inner" => Take::Inner,
        "present" => Take::Present,
        "tag" => Take::Tag,
        _ => match take.strip_prefix('@').map(str::trim) {
            Some(name) if !name.is_empty() && !name.contains(char::is_whitespace) => {
                Take::Attr(name.to_owned())
            }
            _ => {
                let takes: Vec<&str> = TAKES.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "{take:?} is nothing to read of an element; there are {}",
                    takes.join(", ")
                ));
            }
        },
    };
    Ok((selector, take))
}

/// Returns true if the text is an address; no selector has a scheme.
fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Returns true if a line goes on because braces are open.
pub fn is_open(text: &str) -> bool {
    let text = text.trim_start();
    !(text.starts_with('/') || is_address(text))
        && outside(text, '{').next().is_some()
        && outside(text, '}').next().is_none()
}

/// Returns the places of an ASCII character outside of quotation marks and brackets.
fn outside(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let (mut quote, mut is_escaped, mut n_open) = (None, false, 0_u32);
    text.char_indices().filter_map(move |(at, c)| {
        let was_escaped = is_escaped;
        is_escaped = c == '\\' && !was_escaped;
        if was_escaped {
            return None;
        }
        match (quote, c) {
            (Some(mark), _) => {
                if c == mark {
                    quote = None;
                }
                return None;
            }
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '(') => n_open += 1,
            (None, ']' | ')') => n_open = n_open.saturating_sub(1),
            _ => {}
        }
        (c == wanted && n_open == 0).then_some(at)
    })
}

impl Query {
    /// Returns the query as a plan.
    pub fn plan(&self) -> Plan {
        let group = |selector: &String| Group {
            name: "rows".to_owned(),
            parent: None,
            selector: selector.clone(),
        };
        let fields = self.fields.iter().map(|field| Field {
            name: field.name.clone(),
            group: self.rows.as_ref().map(|_| 0),
            selector: field.selector.clone(),
            take: field.take.clone(),
            first: false,
            keep: true,
        });
        Plan {
            name: "shell".to_owned(),
            groups: self.rows.iter().map(group).collect(),
            fields: fields.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, selector: &str, take: Take) -> QueryField {
        let (name, selector) = (name.to_owned(), selector.to_owned());
        QueryField {
            name,
            selector,
            take,
        }
    }

    #[track_caller]
    fn reads(text: &str, rows: Option<&str>, fields: &[QueryField]) {
        let query = Query {
            rows: rows.map(str::to_owned),
            fields: fields.to_vec(),
        };
        assert_eq!(Line::read(text), Ok(Line::Query(query)), "{text}");
    }

    #[test]
    fn a_selector_alone_reads_text() {
        reads("h3 > a", None, &[field("value", "h3 > a", Take::Text)]);
        let href = || Take::Attr("href".to_owned());
        reads(" h3 a -> @href ", None, &[field("value", "h3 a", href())]);
        reads("h3 a->@href", None, &[field("value", "h3 a", href())]);
        for (word, take) in [
            ("text", Take::Text),
            ("raw", Take::TextRaw),
            ("inner", Take::Inner),
            ("present", Take::Present),
            ("tag", Take::Tag),
        ] {
            reads(&format!("p -> {word}"), None, &[field("value", "p", take)]);
        }
        // A selector may contain characters of the syntax in quotation marks and brackets.
        let selector = r#"a[title="{->}"], a[href='x;}']:not(.b-c)"#;
        reads(selector, None, &[field("value", selector, Take::Text)]);
    }

    #[test]
    fn rows_have_fields() {
        reads(
            "article { title: h3; link: h3 a:first-child -> @href;id:->@id }",
            Some("article"),
            &[
                field("title", "h3", Take::Text),
                field("link", "h3 a:first-child", Take::Attr("href".to_owned())),
                field("id", "", Take::Attr("id".to_owned())),
            ],
        );
        reads(
            "li[data-x='{']{A: b[c=';'];}",
            Some("li[data-x='{']"),
            &[field("a", "b[c=';']", Take::Text)],
        );
    }

    #[test]
    fn commands_begin_with_a_slash() {
        let is = |text: &str, command: Command| {
            assert_eq!(Line::read(text), Ok(Line::Command(command)), "{text}");
        };
        is("/page", Command::Page);
        is(" /fetch ../x?p=2 ", Command::Fetch("../x?p=2".to_owned()));
        is(
            "https://a.test/",
            Command::Fetch("https://a.test/".to_owned()),
        );
        is("/links", Command::Links(None));
        is("/links \\.pdf$", Command::Links(Some("\\.pdf$".to_owned())));
        is("/quit", Command::Quit);
        assert_eq!(Line::read("  "), Ok(Line::Empty));
        for (name, wanted, _) in COMMANDS {
            let text = format!("{name} {wanted}");
            assert!(matches!(Line::read(&text), Ok(Line::Command(_))), "{text}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_the_way_out() {
        #[track_caller]
        fn check(text: &str, why: &str) {
            assert_eq!(Line::read(text), Err(why.to_owned()), "{text}");
        }
        let commands = "/fetch, /page, /headers, /source, /links, /all, /rust, /save, /help, /quit";
        check(
            "/fetsh x",
            &format!("there is no command /fetsh; there are {commands}"),
        );
        check("/fetch", "/fetch needs more: /fetch URL");
        check(
            "/page 2",
            "nothing belongs behind /page, and there is \"2\"",
        );
        check(
            "a -> href",
            "\"href\" is nothing to read of an element; there are text, raw, inner, @NAME, present, tag",
        );
        check("-> text", "there is no selector before ->");
        check("{ a: b }", "there is no selector of rows before {");
        let unclosed =
            "the } of the fields is missing, or a quotation mark, [ or ( before it is not closed";
        check("li { a: b", unclosed);
        check("li { a: b[c }", unclosed);
        check(
            "li { a: b } p",
            "nothing belongs behind }, and there is \"p\"",
        );
        check("li { h3 }", "\"h3\" has no name; write it as in title: h3");
        let pseudo = "\"a:first-child\" has no name; write it as in title: a:first-child";
        check("li { a:first-child }", pseudo);
        let word = "\"self: a\" has no name; write it as in title: self: a";
        check("li { self: a }", word);
        check("li { a: b; A: c }", "there are two fields a");
        check(
            "li { ; }",
            "there are no fields in the braces; write them as in li { title: h3; link: a -> @href }",
        );
    }

    #[test]
    fn a_line_goes_on_while_braces_are_open() {
        assert!(is_open("li { a: b;"));
        assert!(!is_open("li { a: b }"));
        assert!(!is_open("li[a='{']"));
        assert!(!is_open("/links {"));
        assert!(!is_open("https://a.test/{id"));
    }
}
