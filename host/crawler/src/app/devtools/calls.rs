//! Names of the saved calls that a command makes again.

use std::path::Path;

use crawler_devtools::saved::{self, CallName};

/// Returns the saved calls of a folder that are wanted, or all of them.
pub(super) fn call_names(folder: &Path, wanted: &[CallName]) -> anyhow::Result<Vec<CallName>> {
    let mut names = match folder.exists() {
        true => saved::names(folder)?,
        false => Vec::new(),
    };
    anyhow::ensure!(
        !names.is_empty(),
        "there are no saved calls in {}; crawler plugin fetch URL --rule RULE saves one",
        folder.display()
    );
    for wanted in wanted {
        anyhow::ensure!(
            names.contains(wanted),
            "there is no call {wanted}: it would be {}",
            saved::path_of(folder, wanted).display()
        );
    }
    names.retain(|name| wanted.is_empty() || wanted.contains(name));
    Ok(names)
}
