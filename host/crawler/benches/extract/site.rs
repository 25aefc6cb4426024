//! Pages of the installed documentation of Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Size in bytes below which a page is an index page that leads elsewhere.
const SMALLEST: u64 = 4 << 10;

/// Returns `n_pages` files, spread evenly over the standard library; `None` if they are not installed.
pub(crate) fn files(n_pages: usize) -> Option<Vec<PathBuf>> {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output();
    let asked = asked.expect("rustc can be started");
    let sysroot = String::from_utf8_lossy(&asked.stdout);
    let folder = Path::new(sysroot.trim()).join("share/doc/rust/html/std");
    let mut all = Vec::new();
    below(&folder, &mut all);
    all.sort();
    let step = all.len() / n_pages;
    (step > 0).then(|| all.into_iter().step_by(step).take(n_pages).collect())
}

fn below(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            below(&path, all);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
            && entry
                .metadata()
                .is_ok_and(|metadata| metadata.len() >= SMALLEST)
        {
            all.push(path);
        }
    }
}

/// Returns the address and the text of a page.
pub(crate) fn read(file: &Path) -> (String, String) {
    let html = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let path = file.display().to_string();
    let (_, path) = path.rsplit_once("/html/").expect("it lies there");
    (format!("http://docs.test/{path}"), html)
}
