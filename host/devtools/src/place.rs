//! Place in the source of a plugin of what a refusal quotes: plans have no line numbers, and the text of a selector
//! is all that leads back to its author.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sdk;
use crate::watch::is_of_a_tool;

/// Endings of files that have rules.
const ENDINGS: [&str; 6] = ["js", "mjs", "mts", "py", "rs", "ts"];
/// Folders that have no rules of the author.
const OTHERS: [&str; 6] = [
    "build",
    "dist",
    "node_modules",
    "pages",
    sdk::FOLDER,
    "target",
];
/// Largest depth of folders that are looked through.
const DEPTH_MAX: usize = 8;
/// Beginning of what a refusal quotes.
const MARK: &str = ", selector \"";

/// Returns where the sources at or below these paths have the selector that a refusal quotes, as in
/// `src/rules.js:12`. `None` if it quotes none or an empty one, or if no line has it between quotes, such as one that is
/// put together.
pub fn of_selector(refusal: &str, paths: &[PathBuf]) -> Option<String> {
    let (_, rest) = refusal.split_once(MARK)?;
    let (quoted, _) = rest.split_once("\": ")?;
    let selector = quoted.replace("\\\"", "\"").replace("\\\\", "\\");
    // Empty quotes stand for much else.
    if selector.is_empty() {
        return None;
    }
    let literals = ['"', '\'', '`'].map(|quote| format!("{quote}{selector}{quote}"));
    sources(paths).iter().find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        let has = |line: &str| literals.iter().any(|literal| line.contains(literal));
        let at = text.lines().position(has)?;
        Some(format!("{}:{}", file.display(), at + 1))
    })
}

/// Returns the files with rules at or below these paths.
pub fn sources(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_file() {
            true if is_source(path) => files.push(path.clone()),
            true => {}
            false => list(path, 0, &mut files),
        }
    }
    files.sort();
    files
}

/// Lists the files with rules at or below a folder. What cannot be read is left out, because it only helps a message.
fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_other = is_of_a_tool(&path) || OTHERS.iter().any(|other| name == *other);
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if is_other {
            continue;
        }
        if kind.is_dir() && depth < DEPTH_MAX {
            list(&path, depth + 1, files);
        } else if kind.is_file() && is_source(&path) {
            files.push(path);
        }
    }
}

fn is_source(path: &Path) -> bool {
    let ending = path.extension();
    ENDINGS
        .iter()
        .any(|known| ending == Some(OsStr::new(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, selector: &str, expected: Option<usize>) {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("src/rules.js");
        for file in [&rules, &folder.path().join("node_modules/a/a.js")] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, source).unwrap();
        }
        let refusal = format!("plan \"p\", field \"f\", selector {selector:?}: it is wrong");
        let place = expected.map(|line| format!("{}:{line}", rules.display()));
        let paths = [folder.path().to_owned()];
        assert_eq!(of_selector(&refusal, &paths), place);
        // The files alone do as well, as for a process that may not list the folder.
        assert_eq!(of_selector(&refusal, &sources(&paths)), place);
    }

    #[test]
    fn the_line_that_quotes_the_selector_is_told() {
        check("a\nf(\"h1 +\")\nf(\"h1 +\")", "h1 +", Some(2));
        check("f('li..a')", "li..a", Some(1));
        check("\n\nf(`a:has(b)`)", "a:has(b)", Some(3));
        check("f('a[b=\"c]')", "a[b=\"c]", Some(1));
        check("f(r'a\\')", "a\\", Some(1));
    }

    #[test]
    fn a_selector_that_no_line_quotes_has_no_place() {
        check("f(\"h1\" + \" +\")", "h1 +", None);
        check("// h1 + h2", "h1 +", None);
        check("f('')\nf(\"\")", "", None);
        let folder = tempfile::tempdir().unwrap();
        let paths = ["", "gone"].map(|file| folder.path().join(file));
        assert_eq!(of_selector("the file is no component", &paths), None);
        let refusal = "field \"f\", selector \"h1 +\": no";
        assert_eq!(of_selector(refusal, &paths), None);
    }
}
