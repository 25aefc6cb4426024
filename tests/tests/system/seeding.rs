//! Resources in the config file: added once, kept while they wait, run when they can.

use std::fs;
use std::time::Duration;

use crawler_model::settings::SETTINGS;
use crawler_tests::process::Home;
use crawler_tests::web::Site;
use crawler_tests::{guests, repository};
use serde_json::json;

use crate::server::{Server, text};
use crate::sites;

/// Returns a config with one plugin that exists, a resource for it, and one for a plugin that does not exist.
fn config(start: &url::Url) -> String {
    let puppet = guests::guest("puppet");
    format!(
        "[[plugin]]\npath = {puppet:?}\n\n\
         [[resource]]\nname = \"ready\"\nplugin = \"puppet\"\nparams = {{ start = \"{start}\" }}\n\n\
         [[resource]]\nname = \"later\"\nparams = {{ start = \"{start}\" }}\n"
    )
}

#[test]
fn s07_resources_of_the_config_file_are_added_once_and_wait_for_their_plugin() {
    let web = sites::chain(1).open();
    let home = Home::new();
    home.write("crawler.toml", &config(&web.url("/0")));
    let server = Server::start_in(home, &[]);
    server.finished("ready");
    let later = server.resource("later");
    assert_eq!(later["phase"], "Pending");
    assert_eq!(later["reason"], "plugin later is not pushed yet");
    assert_eq!(later["spec"]["assigned_node"], "");
    assert_eq!(web.count("/0"), 1);

    server.push("puppet", &["--as=later@1.0.0"]);
    server.finished("later");
    assert_eq!(web.count("/0"), 2);

    let before = server.get("/crawler/resource").json();
    let server = Server::start_in(server.stop(), &[]);
    let after = server.get("/crawler/resource").json();
    for n in 0..2 {
        let (before, after) = (&before["resources"][n], &after["resources"][n]);
        for field in ["spec", "phase", "generation", "run"] {
            assert_eq!(before[field], after[field]);
        }
    }
    assert_eq!(after["resources"].as_array().map(Vec::len), Some(2));
    let log = server.process.stderr();
    assert!(
        !log.iter()
            .any(|line| line.contains("resource of the config file added"))
    );
    assert_eq!(web.count("/0"), 2);
}

#[test]
fn f17_what_cannot_be_placed_is_kept_over_restarts_and_placed_when_it_can() {
    let web = sites::chain(1).open();
    let home = Home::new();
    let later = config(&web.url("/0"))
        .split_once("[[resource]]")
        .map(|(_, rest)| format!("[[resource]]{rest}"));
    let file = home.write("first.toml", &later.expect("the config has resources"));
    let server = Server::start_in(home, &["--config", &file.display().to_string()]);
    let id = server.in_phase("later", "Pending")["spec"]["id"].clone();
    assert_eq!(server.load(), 0);

    // Without a config file, the store alone knows of the resources.
    let server = Server::start_in(server.stop(), &[]);
    assert_eq!(server.in_phase("later", "Pending")["spec"]["id"], id);
    server.push("puppet", &["--as=later@1.0.0"]);
    assert_eq!(server.finished("later")["spec"]["id"], id);
    assert_eq!(
        server.in_phase("ready", "Pending")["reason"],
        "plugin puppet is not pushed yet"
    );
    assert_eq!(web.count("/0"), 1);
}

#[test]
fn the_example_config_runs_as_it_stands() {
    let shop = repository().join("plugins/books/pages");
    let page = |name: &str| fs::read_to_string(shop.join(name)).expect("the plugin has pages");
    let web = Site::new()
        .page("/catalogue/page-1.html", page("list.html"))
        .page("/catalogue/page-2.html", page("last.html"))
        .page("/book/7.html", page("book.html"))
        .page("/book/8.html", page("book.html"))
        .page("/book/9.html", page("book.html"))
        .open();
    let example = repository().join("host/crawler/src/config/example.toml");
    let mut config = fs::read_to_string(example).expect("the example is there");
    let quoted = |guest: &str| format!("{:?}", guests::guest(guest));
    // Only values outside of this machine are replaced, and the night.
    for (there, here) in [
        ("22:00-06:00", "00:00-24:00".to_owned()),
        ("proxy = \"abroad\"", "proxy = \"direct\"".to_owned()),
        ("\"traces/authorization\"", "\"traces\"".to_owned()),
        ("\"webhook/chat\"", "\"chat\"".to_owned()),
        ("\"sink/warehouse\"", "\"warehouse\"".to_owned()),
        ("\"sink/events\"", "\"warehouse\"".to_owned()),
        ("\"sink/nats-ca.pem\"", "\"more.pem\"".to_owned()),
        ("\"sink/shop\"", "\"chat\"".to_owned()),
        ("\"plugins/books\"", quoted("books")),
        ("\"/opt/rules/forum.wasm\"", quoted("forum_list")),
        (
            "https://books.example/",
            web.url("/catalogue/page-1.html").to_string(),
        ),
    ] {
        assert!(config.contains(there), "the example has no {there}");
        config = config.replace(there, &here);
    }
    // A server with certificates is asked over TLS, by the tests of TLS.
    let (before, tls) = config.split_once("[tls]\n").expect("the example has [tls]");
    let (_, after) = tls.split_once("\n\n").expect("a table follows");
    let config = format!("{before}{after}");
    let home = Home::new();
    home.write("crawler.toml", &config);
    for secret in [
        "proxy",
        "shop-password",
        "forum-token",
        "traces",
        "warehouse",
    ] {
        home.write(secret, "secret");
    }
    // The base64 of 32 bytes. Nobody is at the address that it is for.
    home.write("chat", &format!("{}=", "c".repeat(43)));
    let authority = rcgen::generate_simple_self_signed(["shop.example".to_owned()]);
    let authority = authority.expect("it is a name");
    home.write("more.pem", &authority.cert.pem());
    let server = Server::start_in(home, &[]);
    let books = server.finished("books");
    assert_eq!(
        (&books["counts"]["parsed"], &books["counts"]["items"]),
        (&json!(5), &json!(3))
    );
    let crawl = json!({
        "delay_ms": 250, "random_delay_ms": 50, "host_rate": "10/s, 300/m", "rate": "5000/h",
        "hours": "00:00-24:00", "concurrency": 4,
        "user_agents": ["honest", "shop-reader/2.0 (+https://shop.example/bot)"],
        "cookies": "keep", "cookie_seeds": ["books.example:currency=EUR"], "max_pages": 10_000, "max_depth": 20,
        "content_types": "text/*, application/json",
        "proxy": "direct",
        "credentials": "shop",
        "scope": ["books.example", "*.books.example"],
        "max_attempts": 3, "max_retry_wait_ms": 60_000, "max_bytes": 20_u64 << 30,
        "max_url_length": 1_000, "max_segment_repeats": 2, "max_pattern_urls": 5_000,
        "max_hosts": 10_000,
        "max_disk": 2_u64 << 30, "max_undelivered": 64_u64 << 20,
        "unchanged": "skip", "robots": "obey", "max_crawl_delay_ms": 30_000,
    });
    let taken = books["spec"]["crawl"].as_object().expect("it is an object");
    for (field, value) in crawl.as_object().expect("it is an object") {
        assert_eq!(taken.get(field), Some(value), "{field}");
    }
    for setting in SETTINGS {
        assert!(taken.contains_key(setting.field), "{}", setting.field);
    }
    assert_eq!(taken.len(), SETTINGS.len());
    assert_eq!(text(&books["spec"]["plugin"]), "books@0.1.0");
    let pause = crawler_tests::web::shortest_pause(&web.log());
    assert!(pause >= Some(Duration::from_millis(245)), "{pause:?}");
    // This plugin has another name for itself.
    assert_eq!(
        server.resource("forum")["reason"],
        "plugin forum is not pushed yet"
    );
}
