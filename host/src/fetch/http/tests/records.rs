//! What a page tells of how it was got.

use super::*;

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
    // Nobody asked for the address of an address, or for a proxy.
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
