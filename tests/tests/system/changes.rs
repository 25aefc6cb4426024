//! Changes of items from run to run, as the command line and HTTP show them.

use std::sync::{Arc, Mutex};

use crawler_tests::edited_site;
use crawler_tests::process::Home;
use crawler_tests::web::{Asked, Method, Site, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, lines};

/// Secret of the webhook.
const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn changes_of_a_run_are_read_by_items_key_and_page() {
    let web = edited_site::open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--changes=2"]);
    server.finished("books");
    server.ok(&["resource", "restart", "books"]);
    server.finished("books");

    let present = lines(&server.ok(&["items", "books", "--changes"]));
    // The item of the first page has no key; it is known by its page, and as it was.
    let expected = [
        "added new []",
        r#"changed moved ["url"]"#,
        "removed gone []",
    ];
    assert_eq!(edited_site::told(&present), expected);
    let moved = present.iter().find(|change| change["key"] == "moved");
    let old = json!({"url": web.url("/1").as_str()});
    assert_eq!(moved.expect("it is told")["old"], old);
    let first = lines(&server.ok(&["items", "books", "--changes", "--run=1"]));
    let page = format!("added {} []", web.url("/"));
    assert_eq!(
        edited_site::told(&first),
        ["added gone []", &page, "added moved []"]
    );

    let path = "/crawler/resource/books/changes";
    let page = server.get(&format!("{path}?page_size=1")).json();
    let totals = json!({
        "added": 1, "changed": 1, "unchanged": 1, "removed": 1,
        "repeated": 0, "lacking_key": 1, "complete": true,
    });
    assert_eq!(
        (&page["totals"], &page["next_page_token"]),
        (&totals, &json!("2.1"))
    );
    let rest = server.get(&format!("{path}?page_token=2.1")).json();
    let rest = rest["changes"].as_array().expect("a list of changes");
    let all = page["changes"].as_array().expect("a list of changes");
    assert_eq!(edited_site::told(&[&all[..], &rest[..]].concat()), expected);
    let other = server.http(Method::GET, &format!("{path}?run=1&page_token=2.1"), None);
    assert_eq!(other.status, 400, "{other:?}");
}

#[test]
fn changes_are_told_to_a_folder_and_to_a_webhook() {
    let posted = Arc::<Mutex<Vec<Value>>>::default();
    let noted = Arc::clone(&posted);
    let receiver = Site::new().handle("/feed", move |asked: Asked| {
        let body = String::from_utf8_lossy(&asked.body);
        noted
            .lock()
            .expect("no test panics with it")
            .extend(lines(&body));
        async { StatusCode::NO_CONTENT }
    });
    let receiver = receiver.open();
    let home = Home::new();
    let folder = home.path().join("feed");
    std::fs::create_dir(&folder).expect("the home is new");
    let config = format!(
        "[sink.feed]\nurl = 'file://{}'\nformat = 'jsonl'\npartition = 'all'\nmax-wait = '0s'\nwhat = 'changes'\n\n\
         [sink.hook]\nurl = '{}'\nsecret-file = 'secret'\nallow-networks = ['127.0.0.0/8']\nmax-wait = '0s'\nwhat = 'changes'\n",
        folder.display(),
        receiver.url("/feed"),
    );
    home.write("crawler.toml", &config);
    home.write("secret", SECRET);
    let web = edited_site::open();
    let server = Server::start_in(home, &[]);
    server.push("puppet", &[]);
    let options = ["--changes=2", "--sink=lines,feed,hook"];
    server.add("books", &web.url("/"), &options);
    server.finished("books");
    server.ok(&["resource", "restart", "books"]);
    server.finished("books");

    let files = std::fs::read_dir(folder.join("all")).expect("it has files");
    let files = files.map(|file| std::fs::read_to_string(file.expect("it is listed").path()));
    let in_folder = files.flat_map(|text| lines(&text.expect("it is text")));
    let in_folder: Vec<Value> = in_folder.collect();
    let in_posts = posted.lock().expect("no test panics with it").clone();
    edited_site::check(&web, &in_folder);
    edited_site::check(&web, &in_posts);
}
