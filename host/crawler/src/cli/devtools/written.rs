//! Reports of what `crawler plugin new` and `crawler plugin sdk` have written.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::NewOptions;
use crate::cli::table;
use crawler_devtools::sdk;
use crawler_devtools::template::{COMPONENTIZE_PY, Language};

/// Prints where a new plugin is, and the next steps.
pub fn new_report(options: &NewOptions) -> anyhow::Result<()> {
    let folder = &options.folder;
    let shown = std::env::current_dir().ok();
    let shown = shown.and_then(|here| folder.strip_prefix(here).ok());
    let shown = shown.unwrap_or(folder).display().to_string();
    let (shown, step) = match shown.is_empty() {
        true => (".".to_owned(), String::new()),
        false => (shown.clone(), format!("  cd {shown}\n")),
    };
    let sdk = match options.language {
        Language::Rust => "sdk",
        Language::JavaScript | Language::Python => "src",
    };
    let tools = match options.language {
        Language::Rust => String::new(),
        Language::JavaScript => {
            "  npm install            # what makes a component of the rules\n".to_owned()
        }
        Language::Python => {
            format!("  python3 -m venv .venv && .venv/bin/pip install {COMPONENTIZE_PY}\n")
        }
    };
    table::print_line(&format!(
        "made {shown}, with its SDK in {sdk}\n\nnext:\n{step}{tools}  crawler plugin test    # its saved calls, in the sandbox\n  cat README.md          # and then"
    ))?;
    Ok(())
}

/// Prints what was written of an SDK, and how a plugin in Rust names it, unless it does so already.
pub fn sdk_report(folder: &Path, written: &[PathBuf]) -> anyhow::Result<()> {
    for path in written {
        table::print_line(&format!("wrote {}", path.display()))?;
    }
    let manifest = folder.join("Cargo.toml");
    if !manifest.is_file() {
        return Ok(());
    }
    let text = std::fs::read_to_string(&manifest);
    let text = text.with_context(|| format!("cannot read {}", manifest.display()))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    let patch = table.get("patch").and_then(|patch| patch.get("crates-io"));
    if patch.is_some_and(|patch| patch.get(sdk::PACKAGE).is_some()) {
        return Ok(());
    }
    let (package, sdk) = (sdk::PACKAGE, sdk::FOLDER);
    let version = env!("CARGO_PKG_VERSION");
    table::print_line(&format!(
        "\nname it in {}:\n\n[dependencies]\n{package} = \"{version}\"\n\n[patch.crates-io]\n{package} = {{ path = \"{sdk}\" }}",
        manifest.display()
    ))?;
    Ok(())
}
