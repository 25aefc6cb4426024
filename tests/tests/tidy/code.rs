//! Reader of code as tokens, so that comments and texts may contain any name.
//!
//! A reader that finds nothing looks like a tidy tree, so each is also tested on code in which it finds something.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

/// Returns the text without the modules of unit tests. A module in a file of its own leaves its declaration here.
pub(crate) fn without_tests(text: &str) -> String {
    const MARK: &str = "#[cfg(test)]\n";
    let mut left = String::new();
    let mut rest = text;
    while let Some(mark) = rest.find(MARK) {
        let (before, marked) = rest.split_at(mark);
        left.push_str(before);
        let item = &marked[MARK.len()..];
        let line = item.lines().next().unwrap_or_default();
        let is_module = ["mod ", "pub mod ", "pub(crate) mod "]
            .iter()
            .any(|start| line.starts_with(start));
        if is_module && line.ends_with('{') {
            let end = item.find("\n}\n").map_or(item.len(), |end| end + 3);
            rest = &item[end..];
        } else {
            left.push_str(MARK);
            rest = item;
        }
    }
    left + rest
}

pub(crate) fn collect_words(code: TokenStream, words: &mut BTreeSet<String>) {
    for token in code {
        match token {
            TokenTree::Group(group) => collect_words(group.stream(), words),
            TokenTree::Ident(word) => {
                words.insert(word.to_string());
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Collects the literals of code, without documentation.
pub(crate) fn collect_literals(code: TokenStream, literals: &mut Vec<String>) {
    let mut is_doc = false;
    for token in code {
        match token {
            TokenTree::Group(group) => collect_literals(group.stream(), literals),
            TokenTree::Ident(word) => is_doc = word == "doc",
            TokenTree::Literal(literal) if !is_doc => literals.push(literal.to_string()),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Number of `select!`, and of those that declare that their order holds.
pub(crate) fn count_selects(code: TokenStream) -> (usize, usize) {
    let (mut all, mut biased) = (0, 0);
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        if let [.., TokenTree::Ident(name), TokenTree::Punct(mark)] = &tokens[..place]
            && name == "select"
            && mark.as_char() == '!'
        {
            all += 1;
            let first = group.stream().into_iter().next();
            let is_biased = |first| matches!(first, TokenTree::Ident(word) if word == "biased");
            biased += usize::from(first.is_some_and(is_biased));
        }
        let inner = count_selects(group.stream());
        (all, biased) = (all + inner.0, biased + inner.1);
    }
    (all, biased)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_told_from_documentation() {
        let mut literals = Vec::new();
        let code = "/// as \"/crawler/ids\"\nconst A: &str = \"/crawler/nodes/x\";";
        collect_literals(code.parse().unwrap(), &mut literals);
        assert_eq!(literals, ["\"/crawler/nodes/x\""]);
    }

    #[test]
    fn a_select_without_an_order_is_found() {
        let code = "fn f() { tokio::select! { biased; a = b => { select! { c => d } } } }";
        assert_eq!(count_selects(code.parse().unwrap()), (2, 1));
    }

    #[test]
    fn only_modules_of_tests_are_left_out() {
        let declared = "a\n#[cfg(test)]\nmod twin;\nb\n#[cfg(test)]\nfn helper() {}\nc\n";
        let inline = "#[cfg(test)]\nmod tests {\n    fn a() {\n    }\n}\n";
        let text = format!("{declared}{inline}d\n{inline}");
        assert_eq!(without_tests(&text), format!("{declared}d\n"));
    }
}
