//! Pages of the documentation that comes with the compiler: a real site that every machine has.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Returns `n_pages` pages of these sizes, in bytes, evenly from all of the documentation, with their paths. If it
/// is not installed, a line says so, and the list is empty.
pub(crate) fn pages(n_pages: usize, sizes: Range<u64>) -> Vec<(String, String)> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(sysroot.unwrap().stdout).unwrap();
    let root = Path::new(sysroot.trim()).join("share/doc/rust/html");
    if !root.is_dir() {
        println!(
            "skipped: rustdoc: the documentation of Rust is not installed (rustup component add rust-docs)"
        );
        return Vec::new();
    }
    let mut paths = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "html")
                && sizes.contains(&path.metadata().unwrap().len())
            {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let step = (paths.len() / n_pages).max(1);
    let pages: Vec<_> = paths
        .into_iter()
        .step_by(step)
        .take(n_pages)
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(path).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        pages.len(),
        n_pages,
        "there are not enough pages of {sizes:?}"
    );
    pages
}
