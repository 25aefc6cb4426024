//! The documentation of Rust, about a thousand pages that nobody wrote for crawlers, crawled by the
//! example plugin `rustdoc`: URLs, titles and headings are those that a walk over the files finds
//! with a parser of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crawler_tests::guests;
use crawler_tests::process::Home;
use crawler_tests::rustdoc::{BELOW, STARTS, Truth, open, walk};
use serde::Deserialize;

/// On a busy machine, with a program that was built without optimisation.
const DEADLINE: Duration = Duration::from_secs(300);

#[derive(Deserialize)]
struct Page {
    url: String,
    title: String,
    headings: Vec<Heading>,
}

#[derive(Deserialize)]
struct Heading {
    text: String,
}

#[test]
fn a_crawl_of_the_documentation_finds_what_a_walk_finds() {
    let Some((folder, web)) = open() else { return };
    let base = web.url("/");
    let truth = walk(&folder, &base, &STARTS, &BELOW);
    let home = Home::new();
    let start = STARTS.map(|path| web.url(path).to_string()).join(",");
    let plugin = guests::guest("rustdoc").display().to_string();
    let mut crawl = home.start([
        "run",
        &plugin,
        "--param",
        &format!("start={start}"),
        "--param",
        &format!("below={}", BELOW.join(",")),
        "--limit=memory=512MiB",
        "--limit=cpu=5s",
        "--limit=timeout=60s",
        "--limit=body=16MiB",
        "--limit=requests=50000",
        "--allow-networks=127.0.0.0/8",
        "--output=pages.jsonl",
    ]);
    let ended = crawl.wait(DEADLINE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text =
        std::fs::read_to_string(home.path().join("pages.jsonl")).expect("the crawl wrote items");
    let pages = text
        .lines()
        .map(|line| serde_json::from_str::<Page>(line).expect("an item is a page"));
    let mut found = BTreeMap::new();
    for page in pages {
        let headings = page.headings.into_iter().map(|heading| heading.text);
        let told = Truth {
            title: page.title,
            headings: headings.collect(),
        };
        let twice = found.insert(page.url.clone(), told);
        assert_eq!(twice, None, "{} came twice", page.url);
    }
    let urls = |pages: &BTreeMap<String, Truth>| pages.keys().cloned().collect::<BTreeSet<_>>();
    let (missing, surplus): (Vec<_>, Vec<_>) = (
        urls(&truth).difference(&urls(&found)).cloned().collect(),
        urls(&found).difference(&urls(&truth)).cloned().collect(),
    );
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing {missing:?}, surplus {surplus:?}\n{}",
        ended.stderr
    );
    for (url, page) in &truth {
        assert_eq!(&found[url], page, "{url}");
    }

    // Links to files that are missing are asked for too, but nothing is asked for twice.
    let mut asked = BTreeSet::new();
    for hit in web.log() {
        assert!(
            asked.insert(hit.path.clone()),
            "{} was asked for twice",
            hit.path
        );
    }
}
