//! Guests as components: from the folder in `CRAWLER_GUESTS`, or built here.

use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;

/// Returns the component of a guest: `name` is its crate's name, `folder` its crate's folder in the
/// repository.
pub(crate) fn component(name: &str, folder: &str) -> Bytes {
    let file = Path::new(name).with_extension("wasm");
    let given = guests().map(|guests| guests.join(&file));
    let path = given
        .filter(|path| path.is_file())
        .unwrap_or_else(|| build(folder).join(&file));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    bytes.into()
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no settings beside the environment"
)]
fn guests() -> Option<PathBuf> {
    std::env::var_os("CRAWLER_GUESTS").map(PathBuf::from)
}

/// Builds where cargo keeps the files of tests; its own lock keeps two builds apart.
fn build(folder: &str) -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--release"])
        .args(["--target", "wasm32-wasip2", "--manifest-path"])
        .arg(manifest.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .status()
        .expect("cargo can be started");
    assert!(
        status.success(),
        "{folder} does not build; is the target there? rustup target add wasm32-wasip2"
    );
    target.join("wasm32-wasip2/release")
}
