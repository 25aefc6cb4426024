//! Tests of pages of servers with all kinds of robots.txt.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn obeying(url: Url) -> FetchRequest {
    FetchRequest {
        robots: Robots::Obey,
        ..get(url)
    }
}

/// Returns the path of a request.
fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap_or_default()
}

/// Creates a site with this robots.txt and pages that say "page".
async fn site(robots: Vec<u8>) -> Web {
    Web::new(move |request| {
        Reply::Close(match path(request) {
            "/robots.txt" => robots.clone(),
            "/in" => answer("302 Found", &["Location: /private/x"], b""),
            _ => answer("200 OK", &[], b"page"),
        })
    })
    .await
}

fn text(robots: &str) -> Vec<u8> {
    answer("200 OK", &[], robots.as_bytes())
}

/// Fetches a page and returns its status, or why there is none.
async fn outcome(fetcher: &HttpFetcher, url: Url) -> Result<u16, FetchError> {
    match fetcher.fetch(obeying(url)).await {
        Ok(fetched) => match fetched.answer {
            Answer::Page(page) => Ok(page.status),
            Answer::Redirect { to } => panic!("led to {to}"),
        },
        Err(failure) => Err(failure.error),
    }
}

/// Checks that this robots.txt allows `/private/x` to be fetched (`yes`), or the reason why not.
async fn check(robots: Vec<u8>, expected: &str) {
    let web = site(robots).await;
    let found = outcome(&fetcher(), web.url("/private/x")).await;
    let found = found.map_or_else(|error| error.reason(), |_| "yes");
    assert_eq!(found, expected);
    let paths: Vec<String> = web.heard().iter().map(|r| path(r).to_owned()).collect();
    let n_pages = usize::from(expected == "yes");
    assert_eq!(paths[0], "/robots.txt");
    assert_eq!(paths.iter().filter(|p| *p == "/private/x").count(), n_pages);
}

const PRIVATE: &str = "User-agent: *\nDisallow: /private/\n";

#[tokio::test]
async fn what_robots_forbid_is_not_asked_for_and_the_line_is_told() {
    let web = site(text(PRIVATE)).await;
    let fetcher = fetcher();
    let error = outcome(&fetcher, web.url("/private/x?y"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{} forbids it: line 2, Disallow: /private/",
            web.url("/robots.txt")
        )
    );
    assert_eq!(outcome(&fetcher, web.url("/public")).await.unwrap(), 200);
    // A redirect to a forbidden page is refused like a link.
    let error = outcome(&fetcher, web.url("/in")).await.unwrap_err();
    assert_eq!(error.reason(), "robots");
    let heard = web.heard();
    let paths: Vec<&str> = heard.iter().map(|request| path(request)).collect();
    assert_eq!(paths, ["/robots.txt", "/public", "/in"]);
    let agent = heard[0].to_ascii_lowercase();
    assert!(agent.contains("user-agent: crawler/"), "{agent}");
}

#[tokio::test]
async fn robots_that_are_ignored_are_not_asked_for() {
    let web = site(text(PRIVATE)).await;
    page(get(web.url("/private/x"))).await;
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_site_is_obeyed_by_the_name_that_we_go_by() {
    check(
        text("user-agent: crawler\ndisallow: /\nuser-agent: *\nallow: /"),
        "robots",
    )
    .await;
    check(
        text("user-agent: *\ndisallow: /\nuser-agent: Crawler\ndisallow:"),
        "yes",
    )
    .await;
    check(text(&format!("\u{feff}{PRIVATE}")), "robots").await;
}

#[tokio::test]
async fn without_a_robots_txt_everything_may_be_fetched() {
    for status in [
        "404 Not Found",
        "401 Unauthorized",
        "403 Forbidden",
        "410 Gone",
    ] {
        check(answer(status, &[], PRIVATE.as_bytes()), "yes").await;
    }
}

#[tokio::test]
async fn a_site_that_does_not_give_its_robots_is_left_alone() {
    for status in [
        "500 Oops",
        "503 Busy",
        "501 Never",
        "429 Slow",
        "304 As It Was",
        "301 Somewhere",
    ] {
        check(answer(status, &[], b""), "robots-unavailable").await;
    }
    // The same holds for a robots.txt that cannot be decoded.
    for coding in ["klingon", "gzip"] {
        let coding = format!("content-encoding: {coding}");
        let unreadable = answer("200 OK", &[&coding], PRIVATE.as_bytes());
        check(unreadable, "robots-unavailable").await;
    }
    let headers = vec!["x: y"; 1_000];
    let too_many = answer("200 OK", &headers, PRIVATE.as_bytes());
    check(too_many, "robots-unavailable").await;
}

#[tokio::test]
async fn files_of_every_kind_can_be_read() {
    let large = format!("{PRIVATE}#{}\ndisallow: /\n", "x".repeat(10 << 20));
    check(text(&large), "robots").await;
    check(
        text(&format!(
            "user-agent: *\ndisallow: /{}",
            "x".repeat(10 << 20)
        )),
        "yes",
    )
    .await;
    let binary: Vec<u8> = (0..200_000_u32).map(|n| (n * 7 % 256) as u8).collect();
    check(answer("200 OK", &[], &binary), "yes").await;
    check(
        answer("200 OK", &["Content-Type: text/html"], b"<html>user-agent"),
        "yes",
    )
    .await;
    check(text(""), "yes").await;
}

#[tokio::test]
async fn redirects_are_followed_to_other_hosts_five_times() {
    let rules = site(text(PRIVATE)).await;
    let there = rules.url("/robots.txt");
    let web = Web::new(move |request| {
        Reply::Close(match path(request) {
            "/robots.txt" => answer("301 Moved", &["Location: /2"], b""),
            "/5" => answer("302 Found", &[&format!("Location: {there}")], b""),
            "/page" | "/private/x" => answer("200 OK", &[], b"page"),
            n => {
                let next: u32 = n[1..].parse::<u32>().unwrap() + 1;
                answer("307 Found", &[&format!("Location: /{next}")], b"")
            }
        })
    })
    .await;
    let fetcher = fetcher();
    let error = outcome(&fetcher, web.url("/private/x")).await.unwrap_err();
    assert_eq!(error.reason(), "robots");
    assert_eq!(outcome(&fetcher, web.url("/page")).await.unwrap(), 200);
    assert_eq!(rules.heard().len(), 1);
}

#[tokio::test]
async fn redirects_without_end_are_a_site_without_robots() {
    let web = Web::new(|request| {
        Reply::Close(match path(request) {
            "/page" => answer("200 OK", &[], b"page"),
            _ => answer("302 Found", &["Location: /robots.txt"], b""),
        })
    })
    .await;
    assert_eq!(outcome(&fetcher(), web.url("/page")).await.unwrap(), 200);
    assert_eq!(web.heard().len(), 1 + 5 + 1);
}

#[tokio::test]
async fn a_redirect_of_robots_is_judged_by_the_address_policy() {
    for to in [
        "http://169.254.169.254/robots.txt",
        "file:///etc/passwd",
        "http://u:p@127.0.0.1/",
    ] {
        let location = format!("Location: {to}");
        check(answer("302 Found", &[&location], b""), "robots-unavailable").await;
    }
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_fails_for_that_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = outcome(&fetcher(), url.parse().unwrap()).await.unwrap_err();
    assert_eq!(error.reason(), "connection");
    let error = outcome(&fetcher(), "http://10.0.0.1/".parse().unwrap()).await;
    assert_eq!(error.unwrap_err().reason(), "address-denied");
}

#[tokio::test]
async fn a_robots_txt_that_hangs_is_a_failure_of_its_host() {
    let settings = FetchSettings {
        timeout: Duration::from_millis(300),
        ..FetchSettings::default()
    };
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
    for begun in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nuser-agent: *\n",
    ] {
        let web = Web::new(move |_| Reply::Hang(begun.into())).await;
        let failure = fetcher.prepare(obeying(web.url("/"))).await.unwrap_err();
        assert_eq!(failure.error.reason(), "timeout", "{failure:?}");
        assert!(failure.is_of_host, "{failure:?}");
        let heard = web.heard();
        assert!(heard.iter().all(|request| path(request) == "/robots.txt"));
    }
}

#[tokio::test]
async fn the_delay_that_robots_ask_for_is_kept_between_all_requests_up_to_its_limit() {
    let web = site(text("user-agent: *\ncrawl-delay: 0.2")).await;
    let fetcher = fetcher();
    assert_eq!(fetcher.per_host(&web.url("/"), None), 64);
    let both = [web.url("/1"), web.url("/2")].map(|url| outcome(&fetcher, url));
    futures::future::join_all(both).await;
    assert_eq!(fetcher.per_host(&web.url("/"), None), 1);
    let times: Vec<Instant> = web
        .heard
        .lock()
        .unwrap()
        .iter()
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(times.len(), 3);
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= Duration::from_millis(200), "{pair:?}");
    }

    let slow = site(text("user-agent: *\ncrawl-delay: 1e9")).await;
    let request = FetchRequest {
        max_crawl_delay: 2 * SECOND,
        ..obeying(slow.url("/"))
    };
    let fetched = fetcher.fetch(request).await.unwrap();
    assert_eq!(fetched.host_ready_at, 5_000 + 2_000);
    assert_eq!(fetched.delay_by, DelaySource::Robots);
}

#[tokio::test]
async fn what_is_forbidden_takes_nothing_of_the_time_that_its_host_is_given() {
    let web = site(text(PRIVATE)).await;
    let fetcher = fetcher();
    let ready_at = async |path: &str| {
        let request = FetchRequest {
            delay: Some(Duration::from_millis(300)),
            ..obeying(web.url(path))
        };
        let fetched = fetcher.fetch(request).await;
        fetched.map_or_else(|failure| failure.host_ready_at, |f| f.host_ready_at)
    };
    // Only the robots.txt was requested.
    assert_eq!(ready_at("/private/x").await, 5_300);
    // Nothing was requested.
    assert_eq!(ready_at("/private/y").await, 0);
    // The page that redirects was requested.
    assert_eq!(ready_at("/in").await, 5_300);
}
