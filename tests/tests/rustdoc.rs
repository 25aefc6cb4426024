//! The documentation of Rust, about a thousand pages that were not written for crawlers, crawled by the example
//! plugin `rustdoc`. URLs, titles and headings are those that a walk over the files finds with a parser of its
//! own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crawler_tests::process::Home;
use crawler_tests::random::Random;
use crawler_tests::rustdoc::{BELOW, STARTS, Truth, folder, open, site, walk, walk_where};
use crawler_tests::up::Up;
use crawler_tests::web::Web;
use crawler_tests::{guests, soak};
use serde::Deserialize;
use serde_json::Value;

/// Deadline on a busy machine, with a program that was built without optimisation.
const DEADLINE: Duration = Duration::from_secs(300);
/// Deadline for all of the documentation.
const LONG_DEADLINE: Duration = Duration::from_secs(3_600);
const N_KILLS: usize = 3;
/// Number of pages that a kill may cost: 64 that are being fetched, and those that are not durable yet. The latter
/// are at most those of two flushes, 100 ms, at 640 pages a second, which a program without optimisation does not
/// reach.
const N_LOST: usize = 64 + 64;
/// Divisor for the HTML files of the site: links lead to more than this part of them.
const LINKED: usize = 2;
/// Limits so wide that none takes effect.
const LIMITS: [&str; 7] = [
    "memory=512MiB",
    "cpu=5s",
    "timeout=60s",
    "body=16MiB",
    "requests=50000",
    "captures=1000000",
    "capture-bytes=64MiB",
];

#[derive(Deserialize)]
struct Page {
    url: String,
    title: String,
    headings: Vec<Heading>,
}

#[derive(Deserialize)]
struct Heading {
    level: u8,
    text: String,
}

#[test]
fn a_crawl_of_the_documentation_finds_what_a_walk_finds() {
    let Some((folder, web)) = open() else { return };
    let base = web.url("/");
    let truth = walk(&folder, &base, &STARTS, &BELOW);
    let home = Home::new();
    let (text, log) = crawl(&home, &arguments(&web, &STARTS, &BELOW), DEADLINE);
    let pages = text
        .lines()
        .map(|line| serde_json::from_str::<Page>(line).expect("an item is a page"));
    let mut found = BTreeMap::new();
    for page in pages {
        let headings = page.headings.into_iter().map(|h| (h.level, h.text));
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
        "missing {missing:?}, surplus {surplus:?}\n{log}"
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

#[test]
fn a_crawl_that_obeys_robots_finds_what_a_walk_finds_that_does() {
    const ROBOTS: &str = "User-agent: *\nDisallow: /core/arch/\nAllow: /core/arch/x86_64/\n\
                          Disallow: /*/print.html$\n";
    const STARTS: [&str; 4] = [
        "/core/arch/index.html",
        "/core/arch/aarch64/index.html",
        "/core/arch/x86_64/index.html",
        "/rust-by-example/index.html",
    ];
    const BELOW: [&str; 5] = [
        "/core/arch/index.html",
        "/core/arch/aarch64/struct.",
        "/core/arch/x86_64/struct.",
        "/core/arch/x86_64/type.",
        "/rust-by-example/",
    ];
    let Some(folder) = folder() else { return };
    let web = site(&folder).page("/robots.txt", ROBOTS).open();
    let may = |path: &str| {
        let is_of_another = path.starts_with("/core/arch/") && !path.contains("/x86_64/");
        !is_of_another && !path[1..].ends_with("/print.html")
    };
    let all = walk(&folder, &web.url("/"), &STARTS, &BELOW);
    let allowed = walk_where(&folder, &web.url("/"), &STARTS, &BELOW, may);
    assert!(allowed.len() > 100 && all.len() > allowed.len() + 100);

    let home = Home::new();
    let ceilings = LIMITS.map(|limit| format!("--limit-ceiling={limit}"));
    let ceilings: Vec<&str> = ceilings.iter().map(String::as_str).collect();
    let up = Up::start(&home, &ceilings);
    let guest = guests::guest("rustdoc").display().to_string();
    up.ok(["plugin", "push", &guest]);
    let add = ["resource", "add", "docs", "--plugin=rustdoc"].map(str::to_owned);
    up.ok(add.into_iter().chain(arguments(&web, &STARTS, &BELOW)));
    let docs = up.finished("docs", DEADLINE);
    let found = by_url(&up.ok(["items", "docs"]));
    let urls = |pages: &BTreeMap<String, Truth>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(found.into_keys().collect::<Vec<_>>(), urls(&allowed));
    let asked = web.log();
    let forbidden = asked.iter().find(|hit| !may(&hit.path));
    assert!(forbidden.is_none(), "{forbidden:?}");
    assert_eq!(web.robots_log().len(), 1);
    let agent = &web.robots_log()[0].headers["user-agent"];
    assert!(agent.as_bytes().starts_with(b"crawler/"), "{agent:?}");

    // Pages that were not fetched are listed, with the line that forbids them, and no others were given up.
    let reasons = docs["counts"]["dead_by_reason"].as_object();
    let reasons: Vec<&String> = reasons.into_iter().flat_map(|map| map.keys()).collect();
    assert_eq!(reasons, ["robots"], "{docs}");
    for (path, line) in [
        ("/core/arch/index.html", "line 2, Disallow: /core/arch/"),
        (
            "/rust-by-example/print.html",
            "line 4, Disallow: /*/print.html$",
        ),
    ] {
        let why = up.ok(["frontier", "why", "docs", web.url(path).as_str()]);
        assert!(why.contains("dead: robots") && why.contains(line), "{why}");
    }

    up.ok(["resource", "update", "docs", "--robots=ignore"]);
    up.ok(["resource", "restart", "docs"]);
    up.wait_for("docs", "end of the second run", DEADLINE, |docs| {
        docs["run"] == 2 && docs["phase"] == "Finished"
    });
    let asked: BTreeSet<String> = web.log().iter().map(|hit| hit.path.clone()).collect();
    let missing = all.keys().find(|url| {
        let url: url::Url = url.parse().expect("what was walked is a URL");
        !asked.contains(url.path())
    });
    assert_eq!(missing, None);
    let told = up.ok(["resource", "logs", "docs"]);
    assert!(
        told.contains("what robots.txt forbids is fetched too, as set by --robots"),
        "{told}"
    );
    up.stop();
}

#[test]
fn rustdoc_crashes_leave_what_an_undisturbed_crawl_finds() {
    let Some((folder, web)) = open() else { return };
    let (starts, below) = match soak() {
        true => (vec!["/std/index.html"], vec!["/"]),
        false => (STARTS.to_vec(), BELOW.to_vec()),
    };
    let mut arguments = arguments(&web, &starts, &below);
    arguments.push("--max-depth=1000".to_owned());
    let home = Home::new();
    let started = std::time::Instant::now();
    let (undisturbed, _) = crawl(&home, &arguments, LONG_DEADLINE);
    let undisturbed = by_url(&undisturbed);
    let n_needed = web.log().len();
    if soak() {
        let n_files = n_html(&folder);
        let n_found = undisturbed.len();
        assert!(n_found > n_files / LINKED, "{n_found} of {n_files} files");
    }
    println!(
        "undisturbed: {} pages, {n_needed} requests, {:.1?}",
        undisturbed.len(),
        started.elapsed()
    );

    let started = std::time::Instant::now();
    let ceilings = LIMITS.map(|limit| format!("--limit-ceiling={limit}"));
    let ceilings: Vec<&str> = ceilings.iter().map(String::as_str).collect();
    let mut up = Up::start(&home, &ceilings);
    up.ok([
        "plugin",
        "push",
        &guests::guest("rustdoc").display().to_string(),
    ]);
    let add = ["resource", "add", "docs", "--plugin=rustdoc"].map(str::to_owned);
    up.ok(add.into_iter().chain(arguments));
    let mut random = Random::new("rustdoc crashes");
    for nth in 1..=N_KILLS {
        let part = n_needed / (N_KILLS + 1);
        let within = usize::try_from(random.below(part as u64)).expect("fewer than pages");
        let moment = n_needed + part * nth + within / 2;
        web.wait_for("page of the next part", LONG_DEADLINE, |log| {
            log.len() >= moment
        });
        up.process.kill();
        up = Up::start(&home, &ceilings);
    }
    let docs = up.finished("docs", LONG_DEADLINE);
    let found = by_url(&up.ok(["items", "docs"]));
    up.stop();
    let n_again = web.log().len().saturating_sub(2 * n_needed);
    println!(
        "killed: {} pages, {n_again} requests again, {:.1?}; {}",
        found.len(),
        started.elapsed(),
        docs["counts"]
    );
    let missing = undisturbed.keys().filter(|url| !found.contains_key(*url));
    let surplus = found.keys().filter(|url| !undisturbed.contains_key(*url));
    let (missing, surplus): (Vec<_>, Vec<_>) = (missing.collect(), surplus.collect());
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing {missing:?}, surplus {surplus:?}"
    );
    for (url, page) in &undisturbed {
        assert_eq!(&found[url], page, "{url}");
    }
    assert_eq!(docs["run"], 1, "{docs}");
    assert_eq!(docs["counts"]["dead"], 0, "{docs}");
    let refused = docs["counts"]["refused_links"].as_object();
    let refused = refused.expect("links are counted by reason");
    let bound = refused.keys().find(|reason| reason.starts_with("max-"));
    assert_eq!(bound, None, "a limit was reached: {docs}");
    assert!(n_again <= N_KILLS * N_LOST, "{n_again}");
}

/// Number of HTML files below a folder.
fn n_html(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let paths = entries.map(|entry| entry.expect("a file can be listed").path());
    let n = |path: PathBuf| match path.is_dir() {
        true => n_html(&path),
        false => usize::from(path.extension().is_some_and(|e| e == "html")),
    };
    paths.map(n).sum()
}

/// Returns the arguments that make a crawl see everything that these starts lead to.
fn arguments(web: &Web, starts: &[&str], below: &[&str]) -> Vec<String> {
    let starts: Vec<String> = starts
        .iter()
        .map(|path| web.url(path).to_string())
        .collect();
    let params = [
        format!("--param=start={}", starts.join(",")),
        format!("--param=below={}", below.join(",")),
    ];
    let limits = LIMITS.iter().map(|limit| format!("--limit={limit}"));
    params.into_iter().chain(limits).collect()
}

/// Crawls in the foreground. Returns the items and the log.
#[track_caller]
fn crawl(home: &Home, arguments: &[String], deadline: Duration) -> (String, String) {
    let plugin = guests::guest("rustdoc").display().to_string();
    let fixed = [
        "run",
        &plugin,
        "--allow-networks=127.0.0.0/8",
        "--output=pages.jsonl",
    ];
    let fixed = fixed.map(str::to_owned);
    let mut crawl = home.start(fixed.iter().chain(arguments));
    let ended = crawl.wait(deadline);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = fs::read_to_string(home.path().join("pages.jsonl"));
    (text.expect("the crawl wrote items"), ended.stderr)
}

/// Returns items by their URLs, each of which must occur once.
#[track_caller]
fn by_url(lines: &str) -> BTreeMap<String, Value> {
    let mut items = BTreeMap::new();
    for line in lines.lines() {
        let item: Value = serde_json::from_str(line).expect("an item is JSON");
        let url = item["url"]
            .as_str()
            .expect("an item has its URL")
            .to_owned();
        assert!(items.insert(url, item).is_none(), "twice: {line}");
    }
    items
}
