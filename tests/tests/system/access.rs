//! Proxies and credentials of a crawl, which its worker's config file defines by name.

use std::time::Duration;

use crawler_tests::process::{Home, Process};
use crawler_tests::web::{Asked, Hit, IntoResponse as _, Site, header};
use crawler_tests::{PATIENCE, guests, until};

use crate::server::Server;
use crate::sites;

#[test]
fn s25_a_crawl_goes_through_the_proxies_that_it_names_and_shows_hosts_what_is_for_them() {
    // The site accepts requests like a proxy: for whole URLs, of a host that does not exist.
    let proxy = sites::chain(2).open();
    let home = Home::new();
    home.write("token", "t0k\n");
    let config = format!(
        "[hosts]\n\"shop.test\" = \"127.0.0.1\"\n\
         [proxies]\nabroad = [\"http://{}\"]\n\
         [credentials.shop]\nhosts = [\"shop.test\"]\ntoken-file = \"token\"\nplain-http = true\n\
         [[plugin]]\npath = {:?}\n\
         [[resource]]\nname = \"ready\"\nplugin = \"puppet\"\nproxy = \"abroad\"\ncredentials = \"shop\"\n\
         params = {{ start = \"http://shop.test/0\" }}\n",
        proxy.address(),
        guests::guest("puppet")
    );
    home.write("crawler.toml", &config);
    let server = Server::start_in(home, &[]);
    let ended = server.finished("ready");
    assert_eq!(ended["counts"]["parsed"], proxy.log().len());
    for hit in proxy.log() {
        assert_eq!(sent(&hit, "host"), "shop.test");
        assert_eq!(sent(&hit, "authorization"), "Bearer t0k");
    }
    // The robots.txt is fetched without credentials.
    let robots = &proxy.robots_log()[0];
    assert_eq!(sent(robots, "host"), "shop.test");
    assert_eq!(sent(robots, "authorization"), "");
}

/// Returns a header of a request; empty if there is none.
fn sent(hit: &Hit, name: &str) -> String {
    let value = hit.headers.get(name).map(|value| value.to_str());
    value
        .map_or("", |value| value.expect("it is ASCII"))
        .to_owned()
}

#[test]
fn s25_hosts_see_what_a_crawl_is_to_look_like_and_its_cookies_survive_a_crash() {
    let gate = sites::Gate::closed();
    let held = gate.clone();
    let web = Site::new()
        .handle("/0", |_| async {
            let links = r#"[{"url": "/picture", "rule": "leaf"}, {"url": "/1"}]"#;
            ([(header::SET_COOKIE, "session=s1")], links).into_response()
        })
        .handle("/picture", |_| async {
            ([(header::CONTENT_TYPE, "image/png")], "pixels").into_response()
        })
        .handle("/1", move |_: Asked| {
            let gate = held.clone();
            async move {
                gate.pass().await;
                "[]"
            }
        })
        .page("/plain", "[]")
        .open();
    let home = Home::new();
    home.write("crawler.toml", "[hosts]\n\"shop.test\" = \"127.0.0.1\"\n");
    let server = Server::start_in(home, &[]);
    server.push("puppet", &[]);
    let at = |path: &str| {
        let url = format!("http://shop.test:{}{path}", web.address().port());
        url.parse().expect("it is a URL")
    };
    let look = [
        "--user-agent=browser",
        "--cookie=shop.test:currency=EUR",
        "--content-types=text/*",
        "--host-rate=1/s",
    ];
    server.add("shop", &at("/0"), &look);
    let hits = |path: &str| {
        let log = web.log().into_iter();
        log.filter(|hit| hit.path == path).collect::<Vec<_>>()
    };
    until("both pages", PATIENCE, || {
        hits("/1").into_iter().chain(hits("/picture")).nth(1)
    });
    let n_before = web.log().len();
    let server = server.killed_and_started_again();
    until("the last page again", PATIENCE, || {
        hits("/1").into_iter().nth(1)
    });
    gate.open();
    let ended = server.finished("shop");
    let counts = &ended["counts"];
    assert_eq!(
        (&counts["parsed"], &counts["other_done"]),
        (&2.into(), &1.into()),
        "{counts}"
    );
    assert_eq!(counts["refused_links"]["content-type"], 1, "{counts}");
    server.add("plain", &at("/plain"), &[]);
    server.finished("plain");

    let of_shop = [hits("/0"), hits("/picture"), hits("/1")].concat();
    for hit in &of_shop {
        let agent = sent(hit, "user-agent");
        assert!(agent.starts_with("Mozilla/5.0 ("), "{agent}");
        assert!(sent(hit, "accept").contains("text/html"), "{hit:?}");
        let mut cookies: Vec<String> = sent(hit, "cookie").split("; ").map(str::to_owned).collect();
        cookies.sort();
        let expected: &[&str] = match hit.path.as_str() {
            "/0" => &["currency=EUR"],
            _ => &["currency=EUR", "session=s1"],
        };
        assert_eq!(cookies, expected, "{}", hit.path);
    }
    // As long as the process counted.
    let mut begun: Vec<_> = web.log().iter().map(|hit| hit.start).collect();
    begun.truncate(n_before);
    for pair in begun.windows(2) {
        let between = pair[1] - pair[0];
        assert!(between >= Duration::from_millis(900), "{between:?}");
    }
    let plain = &hits("/plain")[0];
    assert_eq!(sent(plain, "cookie"), "");
    assert!(
        sent(plain, "user-agent").starts_with("crawler/"),
        "{plain:?}"
    );
}

#[test]
fn s25_proxies_of_the_environment_are_nobodys() {
    let (web, proxy) = (sites::chain(2).open(), Site::new().open());
    let home = Home::new();
    let config = format!(
        "[hosts]\n\"shop.test\" = \"127.0.0.1\"\n[[plugin]]\npath = {:?}\n\
         [[resource]]\nname = \"ready\"\nplugin = \"puppet\"\n\
         params = {{ start = \"http://shop.test:{}/0\" }}\n",
        guests::guest("puppet"),
        web.address().port()
    );
    home.write("crawler.toml", &config);
    let alone = ["worker", "--cluster=false", "--allow-networks=127.0.0.0/8"];
    let mut command = home.command(alone.iter().chain(&["--config=crawler.toml"]));
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"] {
        command.env(name, format!("http://{}", proxy.address()));
    }
    let ended = Process::start(&mut command).wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!((web.log().len(), proxy.log().len()), (2, 0));
}
