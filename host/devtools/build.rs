//! Lists the files of the SDK for Rust, which the program carries with it: what a plugin is built with, without tests.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Parts of the folder `plugin-sdk` that a plugin is built with.
const PARTS: [&str; 13] = [
    "Cargo.toml",
    "src",
    "wit",
    "extract/Cargo.toml",
    "extract/src",
    "macros/Cargo.toml",
    "macros/src",
    "pattern/Cargo.toml",
    "pattern/src",
    "schema/Cargo.toml",
    "schema/src",
    "selector/Cargo.toml",
    "selector/src",
];

fn main() -> Result<(), Box<dyn Error>> {
    // Read when the script runs: the folder in which it was compiled may have been moved since.
    let sdk = Path::new(&variable("CARGO_MANIFEST_DIR")?)
        .join("../../plugin-sdk")
        .canonicalize()?;
    let mut files = Vec::new();
    for part in PARTS {
        println!("cargo:rerun-if-changed={}", sdk.join(part).display());
        list(&sdk.join(part), &mut files)?;
    }
    files.sort();
    let mut code = "&[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&sdk)?.display().to_string();
        let path = file.display().to_string();
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    code.push_str("]\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("sdk.rs"), code)?;
    Ok(())
}

/// Returns a variable of the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its folders in variables"
)]
fn variable(name: &str) -> Result<String, std::env::VarError> {
    std::env::var(name)
}

/// Lists the files at or below a path, except those of tests.
fn list(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with('.') || name == "tests" || name == "tests.rs" {
        return Ok(());
    }
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        list(&entry?.path(), files)?;
    }
    Ok(())
}
