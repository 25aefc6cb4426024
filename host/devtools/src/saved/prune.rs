//! Removal of the calls of rules that a plugin no longer has.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::page::BodyFile;
use super::{CallName, CallTarget, ENDING, SavedCall, SavedError, names, path_of};

/// A call that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// Name of the call.
    pub name: CallName,
    /// Rule that is gone.
    pub rule: String,
}

/// Removes those of the named calls whose rule is not among `rules`, with the bodies that no other call of the folder
/// uses. A call that cannot be read stays, and while there is one, so do all bodies: it may use any.
pub fn prune(
    folder: &Path,
    named: &[CallName],
    rules: &[Arc<str>],
) -> Result<Vec<Pruned>, SavedError> {
    let (mut pruned, mut bodies) = (Vec::new(), Vec::new());
    let (mut used, mut is_all_read) = (BTreeSet::new(), true);
    for name in names(folder)? {
        let Ok(call) = SavedCall::read(folder, &name) else {
            is_all_read = false;
            continue;
        };
        let CallTarget::Rule { rule, page } = call.called else {
            continue;
        };
        let BodyFile(body) = page.body;
        let is_known = rules.iter().any(|known| **known == *rule);
        if is_known || !named.contains(&name) {
            used.insert(body);
            continue;
        }
        bodies.push(body);
        pruned.push(Pruned { name, rule });
    }
    for Pruned { name, .. } in &pruned {
        remove(&path_of(folder, name))?;
    }
    let may_go = |body: &String| is_all_read && !used.contains(body) && !body.ends_with(ENDING);
    bodies.retain(may_go);
    bodies.sort();
    bodies.dedup();
    for body in bodies {
        let path = folder.join(body);
        if path.exists() {
            remove(&path)?;
        }
    }
    Ok(pruned)
}

fn remove(path: &Path) -> Result<(), SavedError> {
    std::fs::remove_file(path).map_err(|source| SavedError::Io {
        doing: "remove",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        r#"{"rule": "list", "page": {"url": "http://a.test/", "body": "list.html"}}"#;

    /// Makes a folder with these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn files(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Prunes all calls but those of these rules.
    fn pruned(folder: &Path, rules: &[&str]) -> Vec<String> {
        let rules: Vec<Arc<str>> = rules.iter().map(|rule| (*rule).into()).collect();
        let pruned = prune(folder, &names(folder).unwrap(), &rules).unwrap();
        pruned
            .into_iter()
            .map(|gone| format!("{} {}", gone.name, gone.rule))
            .collect()
    }

    #[test]
    fn calls_of_rules_that_are_gone_are_removed_with_their_bodies() {
        let detail = LIST.replace("list", "detail");
        let folder = folder(&[
            ("detail.call.json", &detail),
            ("detail.html", "<p>"),
            ("list.call.json", LIST),
            ("list.html", "<p>"),
            ("root.call.json", "{}"),
        ]);
        assert_eq!(pruned(folder.path(), &["list", "detail"]), [""; 0]);
        assert_eq!(pruned(folder.path(), &["list"]), ["detail detail"]);
        assert_eq!(
            files(folder.path()),
            ["list.call.json", "list.html", "root.call.json"]
        );
    }

    #[test]
    fn a_body_that_another_call_uses_stays() {
        let other = LIST.replace("\"list\"", "\"other\"");
        let all = [
            ("list.call.json", LIST),
            ("list.html", ""),
            ("other.call.json", &other),
        ];
        let shared = folder(&all);
        assert_eq!(pruned(shared.path(), &["list"]), ["other other"]);
        assert_eq!(files(shared.path()), ["list.call.json", "list.html"]);
        // A file without a body to it is no reason to fail.
        std::fs::remove_file(shared.path().join("list.html")).unwrap();
        assert_eq!(pruned(shared.path(), &[]), ["list list"]);
        let unread = folder(&[
            ("list.call.json", LIST),
            ("list.html", ""),
            ("odd.call.json", "{"),
        ]);
        assert_eq!(pruned(unread.path(), &[]), ["list list"]);
        assert_eq!(files(unread.path()), ["list.html", "odd.call.json"]);
    }

    #[test]
    fn only_named_calls_are_removed() {
        let folder = folder(&[("list.call.json", LIST), ("list.html", "")]);
        assert_eq!(prune(folder.path(), &[], &[]).unwrap(), []);
        assert_eq!(files(folder.path()).len(), 2);
    }
}
