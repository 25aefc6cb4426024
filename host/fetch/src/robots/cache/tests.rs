//! Tests of the cache on a paused clock, with a site whose answers the tests choose.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = KeptRobots::VALID;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn page() -> Url {
    url("http://a.test/x?y")
}

/// A site that counts the requests for its robots.txt.
#[derive(Default)]
struct Site {
    says: Mutex<Option<&'static str>>,
    n_asked: AtomicUsize,
}

const NONE: &str = "none";
const BUSY: &str = "busy";
const UNREACHABLE: &str = "unreachable";
const PORT: &str = "port";

impl Site {
    fn says(&self, what: &'static str) {
        *self.says.lock().unwrap() = Some(what);
    }

    fn n_asked(&self) -> usize {
        self.n_asked.load(Ordering::Relaxed)
    }

    async fn answer(&self, robots: Url) -> Result<Received, FetchError> {
        assert_eq!(robots.path(), "/robots.txt");
        assert_eq!(robots.query(), None);
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(SECOND).await;
        let says = *self.says.lock().unwrap();
        match says.unwrap_or(NONE) {
            NONE => Ok(Received::None),
            BUSY => Ok(Received::Unavailable {
                why: "status 503".to_owned(),
            }),
            UNREACHABLE => Err(FetchError::Connection {
                why: "refused".to_owned(),
            }),
            PORT => Err(FetchError::Port {
                host: "a.test".to_owned(),
                port: 9_000,
            }),
            file => Ok(Received::File(Bytes::from_static(file.as_bytes()))),
        }
    }

    /// Returns `yes` or `no` as the rules decide about a page, or the reason why there are none.
    async fn may(&self, cache: &Cache, page: &Url) -> &'static str {
        self.may_after(cache, page, None).await
    }

    /// Does the same in a process that finds what an earlier one was told.
    async fn may_after(
        &self,
        cache: &Cache,
        page: &Url,
        found: Option<(KeptRobots, Duration)>,
    ) -> &'static str {
        let find = || std::future::ready(found);
        let wanted = cache.origin_rules(page, None, find, |robots| self.answer(robots));
        match wanted.await {
            Ok(wanted) if wanted.rules.allows(page.path()) => "yes",
            Ok(_) => "no",
            Err(error) => error.reason(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_resource_may_not_ask_is_asked_for_another() {
    let (cache, site) = (cache(), Site::default());
    site.says(PORT);
    let other = async {
        tokio::time::sleep(SECOND / 2).await;
        site.may(&cache, &page()).await
    };
    let asked = async {
        let may = site.may(&cache, &page()).await;
        site.says("user-agent: *\ndisallow: /x");
        may
    };
    assert_eq!(futures::join!(asked, other), ("port-denied", "no"));
    assert_eq!(site.n_asked(), 2);
}

fn found(file: Option<&'static str>, age: Duration) -> Option<(KeptRobots, Duration)> {
    let robots = KeptRobots {
        origin: String::new(),
        agent: String::new(),
        at: 0,
        file: file.map(|file| Bytes::from_static(file.as_bytes())),
    };
    Some((robots, age))
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_process_was_told_counts_for_a_day() {
    let (cache, site) = (cache(), Site::default());
    let (other, long_ago) = (url("http://b.test/x"), url("http://c.test/x"));
    let no_x = Some("user-agent: *\ndisallow: /x");
    let fresh = found(no_x, DAY - 2 * SECOND);
    assert_eq!(site.may_after(&cache, &page(), fresh).await, "no");
    let none = found(None, SECOND);
    assert_eq!(site.may_after(&cache, &other, none).await, "yes");
    assert_eq!((site.n_asked(), cache.origins().n_bytes > 0), (0, true));
    // Its day is over before that of this process is.
    tokio::time::advance(2 * SECOND).await;
    assert_eq!(site.may(&cache, &page()).await, "yes");
    assert_eq!(site.n_asked(), 1);
    // An older file counts as long as there is no newer one.
    site.says(BUSY);
    let old = || found(no_x, 2 * DAY);
    assert_eq!(site.may_after(&cache, &long_ago, old()).await, "no");
    assert_eq!(site.n_asked(), 2);
    tokio::time::advance(FIRST_HOLD).await;
    site.says(NONE);
    assert_eq!(site.may_after(&cache, &long_ago, old()).await, "yes");
    assert_eq!(site.n_asked(), 3);
    // A newer file is found although an older one is known.
    site.says(BUSY);
    tokio::time::advance(DAY).await;
    let new = found(no_x, SECOND);
    assert_eq!(site.may_after(&cache, &long_ago, new).await, "no");
    assert_eq!(site.n_asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn until_a_site_is_asked_again_its_pages_wait() {
    let (cache, site) = (cache(), Site::default());
    assert_eq!(cache.hold(&page(), None), None);
    site.says(BUSY);
    assert_eq!(site.may(&cache, &page()).await, "robots-unavailable");
    assert_eq!(cache.hold(&page(), None), Some(FIRST_HOLD));
    tokio::time::advance(FIRST_HOLD).await;
    assert_eq!(cache.hold(&page(), None), Some(Duration::ZERO));
    site.says(NONE);
    assert_eq!(site.may(&cache, &page()).await, "yes");
    assert_eq!(cache.hold(&page(), None), None);
}

fn cache() -> Cache {
    Cache::new("crawler".to_owned())
}

const ALL: &str = "user-agent: *\ndisallow: /";
const OTHERS: &str = "user-agent: *\ndisallow: /\nuser-agent: crawler\nallow: /";

#[tokio::test(start_paused = true)]
async fn a_file_is_fetched_once_for_a_day_by_however_many_ask() {
    let (cache, site) = (cache(), Site::default());
    site.says(ALL);
    let page = page();
    let asked = (0..20).map(|_| site.may(&cache, &page));
    assert_eq!(futures::future::join_all(asked).await, ["no"; 20]);
    assert_eq!(site.n_asked(), 1);
    tokio::time::advance(DAY - 2 * SECOND).await;
    site.says(OTHERS);
    assert_eq!(site.may(&cache, &page).await, "no");
    tokio::time::advance(2 * SECOND).await;
    assert_eq!(site.may(&cache, &page).await, "yes");
    assert_eq!(site.n_asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_scheme_host_and_port_has_its_own() {
    let (cache, site) = (cache(), Site::default());
    for origin in [
        "http://a.test",
        "https://a.test",
        "http://a.test:8080",
        "http://b.test",
    ] {
        site.says(ALL);
        assert_eq!(site.may(&cache, &url(&format!("{origin}/x"))).await, "no");
    }
    assert_eq!(site.n_asked(), 4);
    assert_eq!(site.may(&cache, &url("http://a.test:80/")).await, "no");
    assert_eq!(site.n_asked(), 4);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_leaves_the_fetch_to_the_next() {
    let (cache, site) = (cache(), Site::default());
    let page = page();
    let mut leaves = Box::pin(site.may(&cache, &page));
    let mut stays = Box::pin(site.may(&cache, &page));
    assert!(leaves.as_mut().now_or_never().is_none());
    assert!(stays.as_mut().now_or_never().is_none());
    drop(leaves);
    assert_eq!(stays.await, "yes");
    assert_eq!(site.n_asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_site_that_does_not_tell_is_left_alone_and_asked_again_later_and_later() {
    let (cache, site) = (cache(), Site::default());
    let page = page();
    site.says(BUSY);
    let mut pauses = Vec::new();
    let mut last = Instant::now();
    while pauses.len() < 12 {
        let before = site.n_asked();
        assert_eq!(site.may(&cache, &page).await, "robots-unavailable");
        if site.n_asked() > before {
            pauses.push((Instant::now() - last).as_secs());
            last = Instant::now();
        }
        tokio::time::advance(SECOND).await;
    }
    // One second of each pause is the answer itself.
    assert_eq!(&pauses[..5], [1, 11, 21, 41, 81], "{pauses:?}");
    assert_eq!(pauses[11], 601, "{pauses:?}");
    site.says(ALL);
    tokio::time::advance(LONGEST_HOLD).await;
    assert_eq!(site.may(&cache, &page).await, "no");
}

#[tokio::test(start_paused = true)]
async fn a_site_that_does_not_tell_for_a_month_is_one_without_rules() {
    let (cache, site) = (cache(), Site::default());
    let page = page();
    site.says(BUSY);
    assert_eq!(site.may(&cache, &page).await, "robots-unavailable");
    tokio::time::advance(LONG_GONE - 2 * SECOND).await;
    assert_eq!(site.may(&cache, &page).await, "robots-unavailable");
    tokio::time::advance(20 * SECOND).await;
    assert_eq!(site.may(&cache, &page).await, "yes");
    site.says(ALL);
    tokio::time::advance(LONGEST_HOLD).await;
    assert_eq!(site.may(&cache, &page).await, "no");
}

#[tokio::test(start_paused = true)]
async fn an_old_file_counts_while_no_new_one_can_be_had() {
    for failure in [BUSY, UNREACHABLE] {
        let (cache, site) = (cache(), Site::default());
        let page = page();
        site.says(ALL);
        assert_eq!(site.may(&cache, &page).await, "no");
        site.says(failure);
        tokio::time::advance(2 * LONG_GONE).await;
        for _ in 0..5 {
            assert_eq!(site.may(&cache, &page).await, "no");
        }
        assert_eq!(site.n_asked(), 2);
        tokio::time::advance(FIRST_HOLD).await;
        site.says(NONE);
        assert_eq!(site.may(&cache, &page).await, "yes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_be_reached_fails_its_pages_for_that_reason_all_at_once() {
    let (cache, site) = (cache(), Site::default());
    let page = page();
    site.says(UNREACHABLE);
    let asked = (0..20).map(|_| site.may(&cache, &page));
    assert_eq!(futures::future::join_all(asked).await, ["connection"; 20]);
    assert_eq!(site.n_asked(), 1);
    tokio::time::advance(SECOND).await;
    site.says(NONE);
    assert_eq!(site.may(&cache, &page).await, "yes");
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_known_once_the_file_is() {
    let (cache, site) = (cache(), Site::default());
    site.says("user-agent: *\ncrawl-delay: 3");
    assert_eq!(cache.delay(&page(), None), None);
    assert_eq!(site.may(&cache, &page()).await, "yes");
    assert_eq!(cache.delay(&page(), None), Some(3 * SECOND));
    assert_eq!(cache.delay(&url("http://b.test/"), None), None);
}

#[tokio::test(start_paused = true)]
async fn those_used_least_lately_go_when_there_are_too_many_or_they_are_too_large() {
    let (cache, site) = (cache(), Site::default());
    for n in 0..MAX_ORIGINS + 10 {
        site.may(&cache, &url(&format!("http://{n}.test/"))).await;
        site.may(&cache, &url("http://used.test/")).await;
    }
    let known = |name: &str| cache.origins().by_name.contains_key(name);
    assert!(cache.origins().by_name.len() <= MAX_ORIGINS);
    assert!(known("http://used.test") && !known("http://0.test"));
    assert!(known(&format!("http://{}.test", MAX_ORIGINS + 9)));

    let rules: String = (0..30_000).map(|n| format!("allow: /{n}\n")).collect();
    let large: &'static str = format!("user-agent: *\n{rules}").leak();
    site.says(large);
    let n_bytes = Rules::parse(large.as_bytes(), "crawler").n_bytes();
    for n in 0..2 * MAX_BYTES / n_bytes {
        site.may(&cache, &url(&format!("http://large{n}.test/")))
            .await;
        let origins = cache.origins();
        let sum: usize = origins.by_name.values().map(|o| o.state().n_bytes()).sum();
        assert_eq!(origins.n_bytes, sum);
        assert!(sum <= MAX_BYTES, "{sum}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_memory_is_short_a_quarter_stays_of_those_used_last() {
    let (cache, site) = (cache(), Site::default());
    for n in 0..MAX_ORIGINS {
        site.may(&cache, &url(&format!("http://{n}.test/"))).await;
    }
    cache.shrink();
    let origins = cache.origins();
    let n_known = origins.by_name.len();
    assert!(n_known > 0 && n_known <= MAX_ORIGINS / 4, "{n_known}");
    let last = format!("http://{}.test", MAX_ORIGINS - 1);
    assert!(origins.by_name.contains_key(&last));
}
