//! Reader of code as tokens, so that comments and texts may contain any name.
//!
//! A reader that finds nothing looks like a tidy tree, so each is also tested on code in which it finds something.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

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

/// Returns the top-level modules that code names, by `crate::`, or by as many `super::` as lead to the root.
pub(crate) fn crate_paths(code: &TokenStream, depth: usize) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let tokens: Vec<TokenTree> = code.clone().into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => paths.extend(crate_paths(&group.stream(), depth)),
            TokenTree::Ident(word) if word == "crate" => paths.extend(heads(&tokens[place + 1..])),
            TokenTree::Ident(word) if word == "super" && !follows_a_path(&tokens[..place]) => {
                let mut rest = &tokens[place + 1..];
                let mut n_supers = 1;
                while let [
                    TokenTree::Punct(_),
                    TokenTree::Punct(_),
                    TokenTree::Ident(word),
                    after @ ..,
                ] = rest
                    && word == "super"
                {
                    (rest, n_supers) = (after, n_supers + 1);
                }
                if depth > 0 && n_supers >= depth {
                    paths.extend(heads(rest));
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    paths
}

fn follows_a_path(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Punct(one), TokenTree::Punct(two)] if one.as_char() == ':' && two.as_char() == ':')
}

/// Returns the first names of the path that follows `crate`: `a` for `::a::b`, and `a` and `c` for `::{a::b, c}`.
fn heads(after: &[TokenTree]) -> Vec<String> {
    match after {
        [TokenTree::Punct(one), TokenTree::Punct(two), rest, ..]
            if one.as_char() == ':' && two.as_char() == ':' =>
        {
            match rest {
                TokenTree::Ident(name) => vec![name.to_string()],
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let parts: Vec<TokenTree> = group.stream().into_iter().collect();
                    let parts = parts
                        .split(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == ','));
                    parts
                        .filter_map(|part| part.first())
                        .map(TokenTree::to_string)
                        .collect()
                }
                TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
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

/// Returns a cycle of modules that name each other.
pub(crate) fn cycle(arrows: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        from: &str,
        arrows: &BTreeMap<String, BTreeSet<String>>,
        path: &mut Vec<String>,
    ) -> bool {
        path.push(from.to_owned());
        for to in arrows.get(from).into_iter().flatten() {
            if to == &path[0] {
                path.push(to.clone());
                return true;
            }
            if !path.contains(to) && walk(to, arrows, path) {
                return true;
            }
        }
        path.pop();
        false
    }
    arrows.keys().find_map(|start| {
        let mut path = Vec::new();
        walk(start, arrows, &mut path).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_paths(code: &str, depth: usize, wanted: &[&str]) {
        let found = crate_paths(&code.parse().unwrap(), depth);
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            wanted,
            "{code}"
        );
    }

    #[test]
    fn paths_to_other_modules_are_found() {
        check_paths("use crate::store::keys::Keys;", 1, &["store"]);
        check_paths(
            "use crate::{clock::Clock, model::{id, node}};",
            1,
            &["clock", "model"],
        );
        check_paths("fn f() { crate::fetch::get(); }", 1, &["fetch"]);
        check_paths("use super::sink::Sink;", 1, &["sink"]);
        check_paths("use super::super::{sink, data};", 2, &["data", "sink"]);
        check_paths("use super::keys::Keys;", 2, &[]);
        check_paths(
            "pub(crate) fn f() {} /// crate::api\n// crate::cli\nstruct S;",
            1,
            &[],
        );
    }

    #[test]
    fn a_circle_is_found() {
        let arrows = |pairs: &[(&str, &str)]| {
            let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (from, to) in pairs {
                arrows
                    .entry((*from).to_owned())
                    .or_default()
                    .insert((*to).to_owned());
            }
            arrows
        };
        assert_eq!(cycle(&arrows(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
        assert!(cycle(&arrows(&[("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")])).is_some());
    }

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
