//! A web follows from its seed, and all of its pages can be reached.

use std::collections::{BTreeSet, HashSet};

use super::*;

const PORT: u16 = 40_000;

fn settings(n_hosts: u32, n_pages: u32) -> WebSettings {
    WebSettings {
        seed: 1,
        n_hosts,
        n_pages,
        errors: "2%".parse().unwrap(),
        redirects: "5%".parse().unwrap(),
    }
}

fn web(n_hosts: u32, n_pages: u32) -> Web {
    Web::new(settings(n_hosts, n_pages))
}

/// Returns host and path of a link on a page of this host.
fn place(host: u32, link: &str) -> (u32, String) {
    match link.strip_prefix("http://") {
        None => (host, link.to_owned()),
        Some(rest) => {
            let (name, path) = rest.split_once('/').unwrap();
            (crate::bench::host_number(name).unwrap(), format!("/{path}"))
        }
    }
}

/// Addresses that a crawl from page 0 finds, by what is there.
#[derive(Default)]
struct Crawled {
    pages: BTreeSet<u32>,
    n_redirects: usize,
    n_forbidden: usize,
    n_missing: usize,
}

fn crawl(web: &Web) -> Crawled {
    let mut crawled = Crawled::default();
    let mut seen = HashSet::new();
    let mut due = vec![(0, "/".to_owned())];
    while let Some((host, path)) = due.pop() {
        if !seen.insert((host, path.clone())) {
            continue;
        }
        match web.find(host, &path) {
            Found::Page(page) => {
                assert!(crawled.pages.insert(page), "{path} is found twice");
                let links = web.links(page, PORT);
                due.extend(links.iter().map(|link| place(host, link)));
            }
            Found::Redirect(to) => {
                crawled.n_redirects += 1;
                due.push((host, to));
            }
            Found::Forbidden => crawled.n_forbidden += 1,
            Found::Nothing => {
                assert!(path.starts_with("/missing/"), "{path}");
                crawled.n_missing += 1;
            }
            Found::Robots => panic!("{path}"),
        }
    }
    crawled
}

#[test]
fn every_page_can_be_reached() {
    for (n_hosts, n_pages) in [(1, 1), (1, 1_000), (4, 200), (100, 100), (300, 5_000)] {
        let crawled = crawl(&web(n_hosts, n_pages));
        let all: BTreeSet<u32> = (0..n_pages).collect();
        assert!(crawled.pages == all, "{n_hosts} {n_pages}");
    }
}

#[test]
fn failures_redirects_and_forbidden_pages_have_their_shares() {
    let web = web(8, 10_000);
    let crawled = crawl(&web);
    let n_failing = (0..10_000).filter(|page| web.fails_first(*page)).count();
    for (n, expected) in [
        (n_failing, 200),
        (crawled.n_missing, 200),
        (crawled.n_redirects, 500),
        (crawled.n_forbidden, 200),
    ] {
        assert!(n.abs_diff(expected) < expected / 3, "{n} {expected}");
    }
    let spotless = Web::new(WebSettings {
        errors: Share::default(),
        redirects: Share::default(),
        ..settings(8, 1_000)
    });
    let crawled = crawl(&spotless);
    assert_eq!((crawled.n_missing, crawled.n_redirects), (0, 0));
    assert!((0..1_000).all(|page| !spotless.fails_first(page)));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let of_seed = |seed| {
        Web::new(WebSettings {
            seed,
            ..settings(4, 50)
        })
    };
    let (one, same, other) = (of_seed(1), of_seed(1), of_seed(2));
    for page in 0..50 {
        let html = one.html(page, PORT);
        assert_eq!(html, same.html(page, PORT));
        assert_ne!(html, other.html(page, PORT));
    }
}

#[test]
fn pages_have_sizes_like_those_of_the_web() {
    let web = web(4, 4_000);
    let mut sizes: Vec<usize> = (0..4_000).map(|page| web.html(page, PORT).len()).collect();
    sizes.sort_unstable();
    let at = |percent: usize| sizes[sizes.len() * percent / 100];
    assert!((13_000..18_000).contains(&at(50)), "{}", at(50));
    assert!((100_000..250_000).contains(&at(99)), "{}", at(99));
    let largest = *sizes.last().unwrap();
    assert!(largest <= MAX_SIZE as usize + 2_000, "{largest}");
}

#[test]
fn a_page_has_its_links_mostly_to_known_pages_of_its_host() {
    let web = web(4, 4_000);
    let (mut n_links, mut n_own) = (0, 0);
    for page in 0..4_000 {
        let links = web.links(page, PORT);
        assert!((10..=62).contains(&links.len()), "{}", links.len());
        n_links += links.len();
        n_own += links.iter().filter(|link| link.starts_with('/')).count();
        let html = web.html(page, PORT);
        assert_eq!(html.matches("<a href=").count(), links.len());
    }
    let percent = n_own * 100 / n_links;
    assert!((85..95).contains(&percent), "{percent}");
}

#[test]
fn only_addresses_that_the_web_writes_lead_somewhere() {
    let web = web(4, 200);
    assert_eq!(web.find(3, "/"), Found::Page(3));
    assert_eq!(web.find(4, "/"), Found::Nothing);
    assert_eq!(web.find(1, "/robots.txt"), Found::Robots);
    let path = web.path(41);
    assert_eq!(web.find(1, &path), Found::Page(41));
    for (host, path) in [
        (2, path.clone()),
        (1, path.replace("41", "041")),
        (1, path.replace("41", "200")),
        (1, "/other/41.html".to_owned()),
        (1, "/go/1".to_owned()),
        (1, "/missing/41.html".to_owned()),
        (1, String::new()),
    ] {
        assert_eq!(web.find(host, &path), Found::Nothing, "{path}");
    }
    assert_eq!(web.find(0, "/private/1.html"), Found::Forbidden);
}

#[test]
fn rules_of_a_site_may_have_a_crawl_delay() {
    let without = "user-agent: *\ndisallow: /private/\n";
    assert_eq!(robots(FORBIDDEN, Duration::ZERO), without);
    let with = format!("{without}crawl-delay: 0.25\n");
    assert_eq!(robots(FORBIDDEN, Duration::from_millis(250)), with);
}
