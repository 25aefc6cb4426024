//! Tests of the records that a page keeps of its fetch.

use super::*;
use crawler_model::settings::USUAL_AGENT;
use crawler_process::telemetry::testing::Log;

/// Returns the log lines of fetching these URLs, without their times and those of other modules.
async fn told(fetcher: &HttpFetcher, requests: Vec<FetchRequest>) -> Vec<String> {
    let (log, _guard) = Log::of_this_thread("crawler_fetch::http=debug");
    for request in requests {
        let _told_in_the_log = fetcher.fetch(request).await;
    }
    let without_time = |line: String| {
        let (_time, line) = line.split_once(' ').unwrap();
        line.trim_start().to_owned()
    };
    log.lines().into_iter().map(without_time).collect()
}

#[tokio::test]
async fn every_hop_has_a_line_in_the_log_and_one_that_is_not_made_tells_why() {
    let web = Web::new(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        Reply::Close(match path {
            "/robots.txt" => answer("200 OK", &[], b"user-agent: *\ndisallow: /private"),
            "/moved" => answer("301 Moved", &["location: /page"], b""),
            "/reset" => return Reply::Reset,
            _ => answer("200 OK", &[], b"page"),
        })
    })
    .await;
    let obeying = |path: &str| FetchRequest {
        robots: Robots::Obey,
        ..get(web.url(path))
    };
    let requests = vec![
        obeying("/moved"),
        obeying("/private"),
        get(web.url("/reset")),
        get("http://10.0.0.1/".parse().unwrap()),
        get("ftp://a.test/".parse().unwrap()),
    ];
    let lines = told(&fetcher(), requests).await;
    let at = |path: &str| web.url(path).to_string();
    let expected = [
        vec![
            at("/robots.txt"),
            "status=200".to_owned(),
            "DEBUG fetched".to_owned(),
        ],
        vec![
            at("/moved"),
            "status=301".to_owned(),
            at("/page"),
            "took_ms=".to_owned(),
        ],
        vec![
            at("/page"),
            "bytes=4".to_owned(),
            web.address.to_string(),
            "version=\"1.1\"".to_owned(),
            "wait_ms=".to_owned(),
            "first_byte_ms=".to_owned(),
            "body_ms=".to_owned(),
        ],
        vec![
            at("/private"),
            "reason=\"robots\"".to_owned(),
            "Disallow: /private".to_owned(),
        ],
        vec![at("/reset"), "reason=\"connection\"".to_owned()],
        vec![
            "http://10.0.0.1/".to_owned(),
            "reason=\"address-denied\"".to_owned(),
        ],
        vec!["ftp://a.test/".to_owned(), "reason=\"scheme\"".to_owned()],
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, parts) in lines.iter().zip(expected) {
        for part in parts {
            assert!(line.contains(&part), "{part} in {line}");
        }
    }
}

#[tokio::test]
async fn whoever_crawls_sites_of_others_is_asked_once_for_a_contact() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    // A name with one public address counts as outside; the first address is connected to.
    let addresses = ["127.0.0.1", "8.8.8.8"].map(|ip| ip.parse().unwrap());
    let outside = || FetchRequest {
        names_port: true,
        ..get(format!("http://shop.test:{}/", web.address.port())
            .parse()
            .unwrap())
    };
    let with_agent = |agent: &str| {
        let settings = FetchSettings {
            user_agent: agent.to_owned(),
            hosts: [("shop.test".to_owned(), addresses.to_vec())].into(),
            ..FetchSettings::default()
        };
        fetcher_with(&["127.0.0.0/8"], &[], settings)
    };
    let n_asked = async |fetcher: HttpFetcher, requests| {
        let lines = told(&fetcher, requests).await;
        let asks =
            |line: &&String| line.starts_with("WARN") && line.contains("set contact of [fetch]");
        lines.iter().filter(asks).count()
    };
    assert_eq!(
        n_asked(with_agent(USUAL_AGENT), vec![outside(), outside()]).await,
        1
    );
    assert_eq!(
        n_asked(with_agent(USUAL_AGENT), vec![get(web.url("/"))]).await,
        0
    );
    let named = with_agent("crawler/1.0 (+https://shop.example/bot)");
    assert_eq!(n_asked(named, vec![outside()]).await, 0);
}

fn value<'a>(metadata: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = metadata.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

#[tokio::test]
async fn a_page_tells_who_answered_how_long_each_part_took_and_how_much_came() {
    let web = Web::new(|_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=gbk\r\n";
        let head = format!("{head}content-length: 8\r\nconnection: close\r\n\r\nabcd");
        Reply::Endless(
            head.into_bytes(),
            b"efgh".to_vec(),
            Duration::from_millis(60),
        )
    });
    let web = web.await;
    let page = page(get(web.url("/"))).await;
    let metadata = page.metadata();
    let known = |name| value(&metadata, name);
    assert_eq!(known("charset-source"), Some("header"));
    assert_eq!(known("address"), Some(web.address.to_string().as_str()));
    assert_eq!(known("http-version"), Some("1.1"));
    assert_eq!(known("body-bytes"), Some("8"));
    // There is no lookup for a literal address, and no proxy.
    assert_eq!((known("lookup-ms"), known("proxy")), (None, None));
    let millis = |name| known(name).unwrap().parse::<u64>().unwrap();
    assert!(millis("body-ms") >= 50, "{metadata:?}");
    assert!(millis("first-byte-ms") >= millis("connect-ms"));
    assert!(known("wait-ms").is_some());
}

#[tokio::test]
async fn a_page_on_a_connection_that_was_there_tells_of_none() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let tasks = TaskScope::new();
    tasks.spawn("web", async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            read_request(&mut stream).await;
            let kept = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx";
            stream.write_all(kept).await.unwrap();
        }
    });
    let fetcher = fetcher();
    let mut connected = Vec::new();
    for _ in 0..2 {
        let fetched = fetcher.fetch(get(url.clone())).await.unwrap();
        let Answer::Page(page) = fetched.answer else {
            panic!("it does not redirect")
        };
        connected.push(page.record.connect.is_some());
    }
    assert_eq!(connected, [true, false]);
}

#[tokio::test]
async fn a_name_is_looked_up_and_the_page_tells_how_long_that_took() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    let hosts = [("a.test".to_owned(), vec![web.address.ip()])];
    let settings = FetchSettings {
        hosts: hosts.into(),
        ..FetchSettings::default()
    };
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
    let url = format!("http://a.test:{}/", web.address.port());
    let fetched = fetcher.fetch(get(url.parse().unwrap())).await.unwrap();
    let Answer::Page(page) = fetched.answer else {
        panic!("it does not redirect")
    };
    assert!(page.record.lookup.is_some());
    assert!(page.record.connect >= page.record.lookup);
}
