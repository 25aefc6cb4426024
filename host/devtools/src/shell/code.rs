//! Prints a query as code for the SDK.

use std::fmt::Write as _;

use crawler_extract::Take;

use super::query_result::QueryResult;

/// Returns a struct that reads the same as the query. A field is optional or a list if it is so on this page.
pub fn rust(found: &QueryResult) -> String {
    let query = found.query();
    let mut code = String::new();
    let mut begin = |name: &str| {
        let _infallible = writeln!(code, "#[derive(Debug, Extract)]\nstruct {name} {{");
    };
    let Some(rows) = &query.rows else {
        begin("Found");
        let field = &query.fields[0];
        let (name, kind) = match (&field.take, found.n_rows()) {
            (Take::Present, _) => ("value", "bool"),
            (_, 1) => ("value", "String"),
            _ => ("values", "Vec<String>"),
        };
        code += &css(&field.selector, &field.take);
        let _infallible = writeln!(code, "    {name}: {kind},\n}}");
        return code;
    };
    begin("Found");
    let _infallible = writeln!(code, "    #[rows({rows:?})]");
    code += "    rows: Vec<Row>,\n}\n\n#[derive(Debug, Extract)]\nstruct Row {\n";
    for (n, field) in query.fields.iter().enumerate() {
        let kind = match (&field.take, found.counts(n)) {
            (Take::Present, _) => "bool",
            (_, (1, 1)) => "String",
            (_, (_, 0 | 1)) => "Option<String>",
            _ => "Vec<String>",
        };
        code += &css(&field.selector, &field.take);
        let _infallible = writeln!(code, "    {}: {kind},", ident(&field.name));
    }
    code += "}\n";
    code
}

fn css(selector: &str, take: &Take) -> String {
    let key = match take {
        Take::Text => String::new(),
        Take::TextRaw => ", raw".to_owned(),
        Take::Inner => ", inner".to_owned(),
        Take::Attr(name) => format!(", attr = {name:?}"),
        Take::Present => ", present".to_owned(),
        Take::Tag => ", tag".to_owned(),
    };
    format!("    #[css({selector:?}{key})]\n")
}

/// Returns the name of the struct's field; keywords become raw identifiers.
fn ident(name: &str) -> String {
    const WORDS: &[&str] = &[
        "as", "async", "await", "break", "const", "continue", "dyn", "else", "enum", "extern",
        "false", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "match", "mod", "move",
        "mut", "pub", "ref", "return", "static", "struct", "trait", "true", "type", "unsafe",
        "use", "where", "while", "abstract", "become", "box", "do", "final", "macro", "override",
        "priv", "try", "typeof", "unsized", "virtual", "yield",
    ];
    match WORDS.contains(&name) {
        true => format!("r#{name}"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crawler_extract::Budget;

    use super::super::line::Line;
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let page = "<li id=1><a href=/7>Seven</a><b>x</b><li id=2>none<b>y</b><b>z</b>";
        let Ok(Line::Query(query)) = Line::read(line) else {
            panic!("{line} is no query");
        };
        let found = QueryResult::read(&query, page, &Budget::default()).unwrap();
        assert_eq!(rust(&found), expected, "{line}");
    }

    #[test]
    fn rows_are_a_struct_in_a_struct() {
        check(
            r#"li[id="1"], li { type: -> @id; link: a -> @href; has: a -> present; bold: b }"#,
            // A test of the SDK compiles this file.
            include_str!("../../../../plugin-sdk/tests/shell/rows.txt"),
        );
    }

    #[test]
    fn one_field_is_a_struct() {
        check(
            "a",
            "#[derive(Debug, Extract)]\nstruct Found {\n    #[css(\"a\")]\n    value: String,\n}\n",
        );
        check(
            "b -> inner",
            "#[derive(Debug, Extract)]\nstruct Found {\n    #[css(\"b\", inner)]\n    values: Vec<String>,\n}\n",
        );
    }
}
