//! A worker alone: a config file, no master, no store.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

use crawler_tests::guests;
use crawler_tests::process::{Ended, Home};
use serde_json::Value;

use crate::server::{lines, text};
use crate::sites;

fn crawl(home: &Home, config: &str) -> Ended {
    home.write("crawler.toml", config);
    let alone = ["worker", "--cluster=false", "--config", "crawler.toml"];
    home.run(alone.iter().chain(&["--allow-networks=127.0.0.0/8"]))
}

fn config(resources: &[(&str, &url::Url)]) -> String {
    let mut config = format!("[[plugin]]\npath = {:?}\n", guests::guest("puppet"));
    for (name, start) in resources {
        config += &format!(
            "[[resource]]\nname = \"{name}\"\nplugin = \"puppet\"\nparams = {{ start = \"{start}\" }}\n"
        );
    }
    config
}

/// Returns all items below a folder, of files whose names start like this.
fn items(folder: &Path, start: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("there is a folder of items") {
        let path = entry.expect("a folder can be listed").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            found.extend(items(&path, start));
        } else if name.starts_with(start) && name.ends_with(".jsonl") {
            found.extend(lines(&fs::read_to_string(&path).expect("items are text")));
        }
    }
    found
}

#[test]
fn s16_a_worker_alone_crawls_what_its_config_file_says() {
    let web = sites::chain(3).open();
    let home = Home::new();
    let both = config(&[("all", &web.url("/0")), ("end", &web.url("/1"))]);
    let ended = crawl(&home, &both);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let folder = home.path().join("crawler-data/items");
    let mut urls: Vec<String> = items(&folder, "1-")
        .iter()
        .map(|record| text(&record["item"]["url"]).to_owned())
        .collect();
    urls.sort();
    let expected = ["/0", "/1", "/1", "/2", "/2"].map(|path| web.url(path).to_string());
    assert_eq!(urls, expected);
    assert!(!home.path().join("crawler-data/store").exists());

    // Each start is another run, stored beside the first.
    let ended = crawl(&home, &both);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let runs = items(&folder, "");
    let of_run = |run: u64| runs.iter().filter(|record| record["run"] == run).count();
    assert_eq!((of_run(1), of_run(2)), (5, 5));
    assert_eq!(web.log().len(), 10);
}

#[test]
fn f38_a_worker_alone_asks_the_store_nothing() {
    let web = sites::chain(2).open();
    let home = Home::new();
    let store = TcpListener::bind("127.0.0.1:0").expect("a free port");
    store.set_nonblocking(true).expect("a socket takes it");
    let address = store.local_addr().expect("it is bound");
    home.write("crawler.toml", &config(&[("all", &web.url("/0"))]));
    let etcd = format!("--etcd=http://{address}");
    let alone = ["worker", "--cluster=false", "--config=crawler.toml", &etcd];
    let ended = home.run(alone.iter().chain(&["--allow-networks=127.0.0.0/8"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(web.log().len(), 2);
    let asked = store.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(
        asked,
        Err(ErrorKind::WouldBlock),
        "it has connected to the store"
    );
}

#[test]
fn s16_a_resource_that_fails_does_not_stop_the_others() {
    let web = sites::chain(2).open();
    let home = Home::new();
    let mut config = config(&[("good", &web.url("/0"))]);
    config += "[[resource]]\nname = \"bad\"\nplugin = \"absent\"\n";
    let ended = crawl(&home, &config);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("1 of 2 resources failed"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        items(&home.path().join("crawler-data/items"), "1-").len(),
        2
    );
}
