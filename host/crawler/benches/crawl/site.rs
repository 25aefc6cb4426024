//! The documentation of Rust, served from memory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;

use super::{BELOW, START};

/// Returns the folder of the documentation; `None` if it is not installed.
pub(crate) fn folder() -> Option<PathBuf> {
    let asked = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .expect("rustc can be started");
    let sysroot = String::from_utf8_lossy(&asked.stdout);
    let folder = Path::new(sysroot.trim()).join("share/doc/rust/html");
    folder.join(&START[1..]).is_file().then_some(folder)
}

/// Returns a router for the pages of a folder.
pub(crate) fn router(folder: &Path) -> Router {
    let mut pages = HashMap::new();
    let below = folder.join(BELOW.trim_matches('/'));
    read(folder, &below, &mut pages);
    let pages = Arc::new(pages);
    Router::new().fallback(move |request: Request| {
        let page = answer(&pages, request.uri().path());
        async move { page }
    })
}

fn read(folder: &Path, below: &Path, pages: &mut HashMap<String, Bytes>) {
    let entries = std::fs::read_dir(below).expect("the folder can be read");
    for entry in entries {
        let path: PathBuf = entry.expect("the folder can be read").path();
        if path.is_dir() {
            read(folder, &path, pages);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let name = path.strip_prefix(folder).expect("it lies in the folder");
            let bytes = std::fs::read(&path).expect("the page can be read");
            pages.insert(format!("/{}", name.display()), bytes.into());
        }
    }
}

fn answer(pages: &HashMap<String, Bytes>, path: &str) -> Response {
    match pages.get(path) {
        Some(page) => {
            let html = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
            (html, page.clone()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
