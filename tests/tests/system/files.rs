//! Bodies that rules want kept: named in items, read back, bounded, and removed with their resource.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crawler_model::id::Digest;
use crawler_tests::web::{Asked, Method, Site, Web};
use crawler_tests::{PATIENCE, until};
use serde_json::Value;

use crate::server::{Server, text};
use crate::sites::Gate;

const VASE: &[u8] = b"\x89PNG\0a vase";
const BOWL: &[u8] = b"\xff\xd8a bowl";
const MANUAL: &[u8] = b"%PDF-1.4 \0 how to wash a vase";

/// Opens a shop with three pictures, of which two are the same, and a manual, which is held back by the gate.
fn shop(gate: &Gate) -> Web {
    let picture = |body: &'static [u8]| {
        move |_: Asked| async move { ([("content-type", "image/png")], body) }
    };
    let gate = gate.clone();
    let manual = move |_: Asked| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            ([("content-type", "application/pdf")], MANUAL)
        }
    };
    Site::new()
        .page(
            "/",
            "<img src=1.png> <img src=2.png> <img src=3.png> <a href=manual.pdf>Manual</a>",
        )
        .handle("/1.png", picture(VASE))
        .handle("/2.png", picture(BOWL))
        .handle("/3.png", picture(VASE))
        .handle("/manual.pdf", manual)
        .open()
}

fn crawl(server: &Server, web: &Web, arguments: &[&str]) {
    server.push("files", &[]);
    let start = format!("start={}", web.url("/"));
    let add = ["resource", "add", "files", "--param", &start];
    server.ok(&[&add, arguments].concat());
}

/// Returns the folder of the kept files of a resource.
fn folder(server: &Server, resource: &Value) -> PathBuf {
    let id = text(&resource["spec"]["id"]);
    server.home.path().join("crawler-data/files").join(id)
}

/// Returns the digests that name files in the folder; each names its file.
pub(crate) fn digests(folder: &Path) -> BTreeSet<String> {
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("there is a folder");
        entries.map(|entry| entry.expect("it is listed").path())
    };
    let files = entries(folder).flat_map(|folder| entries(&folder).collect::<Vec<_>>());
    // One that a kill has cut off has a number behind its name; a sweep removes it after an hour.
    let files = files.filter(|file| !file.to_string_lossy().contains('#'));
    let digest = |file: PathBuf| {
        let digest = Digest::of(&fs::read(&file).expect("it is read")).to_string();
        assert!(file.ends_with(&digest), "{}", file.display());
        digest
    };
    files.map(digest).collect()
}

#[test]
fn files_are_named_in_items_after_a_kill_and_go_with_a_purge() {
    let gate = Gate::closed();
    let web = shop(&gate);
    let server = Server::start();
    crawl(&server, &web, &[]);
    web.wait_for("manual", PATIENCE, |log| {
        log.iter().any(|hit| hit.path == "/manual.pdf")
    });
    let server = server.killed_and_started_again();
    gate.open();
    let resource = server.finished("files");
    let items = server.items("files");
    let named = |item: &Value| {
        let path = text(&item["url"]).rsplit('/').next();
        let kind = text(&item["media_type"]).to_owned();
        let size = item["size"].as_u64().expect("a number");
        (path.expect("a path").to_owned(), kind, size)
    };
    let found: Vec<_> = items.iter().map(named).collect();
    let file =
        |path: &str, kind: &str, body: &[u8]| (path.to_owned(), kind.to_owned(), body.len() as u64);
    let expected = [
        file("1.png", "image/png", VASE),
        file("2.png", "image/png", BOWL),
        file("3.png", "image/png", VASE),
        file("manual.pdf", "application/pdf", MANUAL),
    ];
    assert_eq!(found, expected);
    let bodies = [VASE, BOWL, VASE, MANUAL];
    assert_eq!(
        resource["counts"]["kept_bytes"],
        bodies.concat().len(),
        "what is kept again counts again"
    );
    let folder = folder(&server, &resource);
    let of_items = items.iter().map(|item| text(&item["digest"]).to_owned());
    assert_eq!(digests(&folder), of_items.collect());
    for (item, body) in items.iter().zip(bodies) {
        let digest = text(&item["digest"]);
        assert_eq!(digest, Digest::of(body).to_string());
        let copy = server.home.path().join("copy");
        let path = copy.display().to_string();
        server.ok(&["file", "files", digest, "-o", &path]);
        assert_eq!(fs::read(&copy).expect("it was written"), body);
        let over_http = server.bytes(&format!("/crawler/resource/files/files/{digest}"));
        assert_eq!(over_http, body);
    }
    let nothing = Digest::of(b"").to_string();
    let path = format!("/crawler/resource/files/files/{nothing}");
    let missing = server.http(Method::GET, &path, None);
    assert_eq!(missing.status, 404, "{missing:?}");

    server.ok(&["resource", "delete", "files", "--purge"]);
    until("end of the files", PATIENCE, || {
        (!folder.exists()).then_some(())
    });
}

#[test]
fn files_beyond_their_bounds_are_given_up_by_name() {
    let gate = Gate::closed();
    gate.open();
    let web = shop(&gate);
    let server = Server::start();
    let max_file = format!("--max-file={}", VASE.len());
    // A byte is left, so that the manual is asked for.
    let max_kept = format!("--max-kept={}", VASE.len() + BOWL.len() + 1);
    let bounds = [max_file.as_str(), &max_kept, "--concurrency=1"];
    crawl(&server, &web, &bounds);
    let counts = &server.finished("files")["counts"];
    let dead = ["max-file", "max-kept"].map(|reason| &counts["dead_by_reason"][reason]);
    assert_eq!(dead, [1, 1], "{counts}");
    let manual = web.url("/manual.pdf").to_string();
    let why = server.ok(&["frontier", "why", "files", &manual]);
    assert!(
        why.contains("that setting max-file allows for a kept file"),
        "{why}"
    );
    let log = server.ok(&["resource", "logs", "files"]);
    assert!(log.contains("--max-kept allows here"), "{log}");
    // There is room now.
    server.ok(&["resource", "update", "files", "--max-kept=1MiB"]);
    server.ok(&["frontier", "redrive", "files", "--reason=max-kept"]);
    until("all pictures", PATIENCE, || {
        (server.items("files").len() == 3).then_some(())
    });
}
