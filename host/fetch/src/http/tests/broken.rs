//! Tests with servers that break off, stall, or do not speak HTTP.

use super::*;

async fn check_connection_error(web: Web, expected: &str) {
    let error = error(get(web.url("/"))).await;
    assert_eq!(error.reason(), "connection", "{error}");
    assert!(
        error.is_transient() && error.to_string().contains(expected),
        "{error}"
    );
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_with_its_whole_cause() {
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort";
    check_connection_error(
        Web::saying(short).await,
        "end of file before message length",
    )
    .await;
    check_connection_error(Web::saying("").await, "connection closed before message").await;
    check_connection_error(
        Web::saying("220 smtp ready\r\n").await,
        "invalid HTTP version",
    )
    .await;
    check_connection_error(Web::new(|_| Reply::Reset).await, "reset").await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", gone.local_addr().unwrap());
    drop(gone);
    let error = error(get(url.parse().unwrap())).await;
    assert_eq!(error.reason(), "connection");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up() {
    let settings = FetchSettings {
        timeout: Duration::from_millis(200),
        ..FetchSettings::default()
    };
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
        let web = Web::new(move |_| Reply::Hang(begun.into())).await;
        let failure = fetcher.fetch(get(web.url("/"))).await.unwrap_err();
        assert_eq!(failure.error.reason(), "timeout", "{failure}");
        let told = "it took longer than 200ms, as set by timeout of [fetch] in the config file";
        assert_eq!(failure.to_string(), told);
        assert!(failure.error.is_transient());
    }
}

#[tokio::test]
async fn an_answer_that_has_begun_may_take_longer_than_it_had_to_begin() {
    let settings = FetchSettings {
        first_byte_timeout: Duration::from_millis(100),
        ..FetchSettings::default()
    };
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n";
    let pause = Duration::from_millis(20);
    let web = Web::new(move |_| Reply::Endless(head.into(), b"x".to_vec(), pause)).await;
    let Answer::Page(page) = fetcher.fetch(get(web.url("/"))).await.unwrap().answer else {
        panic!("not a page");
    };
    assert_eq!(page.body, [b'x'; 15].as_slice());
    assert!(page.record.body > Duration::from_millis(200));
}

#[tokio::test]
async fn an_answer_that_does_not_begin_in_time_is_given_up_by_a_limit_of_its_own() {
    let settings = FetchSettings {
        first_byte_timeout: Duration::from_millis(100),
        ..FetchSettings::default()
    };
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
    let web = Web::new(|_| Reply::Hang("HTTP/1.1 200 OK\r\n".into())).await;
    let failure = fetcher.fetch(get(web.url("/"))).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "it took longer than 100ms, as set by first-byte-timeout of [fetch] in the config file"
    );
    assert!(failure.error.is_transient());
}

/// Each byte comes in time, but the whole answer does not: the timeout bounds all of it.
#[tokio::test]
async fn a_byte_now_and_then_does_not_keep_an_answer_alive() {
    let settings = FetchSettings {
        timeout: Duration::from_millis(300),
        ..FetchSettings::default()
    };
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
    for begin in [
        "",
        "HTTP/1.1 200 OK\r\nx: ",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n",
    ] {
        let pause = Duration::from_millis(20);
        let web = Web::new(move |_| Reply::Endless(begin.into(), b"H".to_vec(), pause)).await;
        let Err(failure) = fetcher.fetch(get(web.url("/"))).await else {
            panic!("{begin:?} was taken for an answer")
        };
        let reason = failure.error.reason();
        let is_no_http = begin.is_empty() && reason == "connection";
        assert!(reason == "timeout" || is_no_http, "{begin:?}: {failure}");
    }
}

#[tokio::test]
async fn a_length_is_taken_at_its_word() {
    let all = |head: &str| format!("HTTP/1.1 200 OK\r\n{head}\r\nabcdef");
    for (head, body) in [
        ("content-length: 2\r\n", "ab"),
        ("content-length: 6\r\n", "abcdef"),
        ("content-length: 6\r\ncontent-length: 6\r\n", "abcdef"),
        ("connection: close\r\n", "abcdef"),
    ] {
        let web = Web::saying(all(head)).await;
        assert_eq!(page(get(web.url("/"))).await.body, body, "{head:?}");
    }
    for head in [
        "content-length: 7\r\n",
        "content-length: 99999999999999\r\n",
        "content-length: 18446744073709551616\r\n",
        "content-length: -1\r\n",
        "content-length: 6\r\ncontent-length: 7\r\n",
        "transfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "transfer-encoding: chunked\r\n\r\n-1\r\n",
    ] {
        let web = Web::saying(all(head)).await;
        let error = error(get(web.url("/"))).await;
        assert_eq!(error.reason(), "connection", "{head:?}: {error}");
    }
    let web = Web::saying(all("content-length: 18446744073709551615\r\n")).await;
    assert_eq!(error(get(web.url("/"))).await.reason(), "headers");
}

#[tokio::test]
async fn headers_beyond_all_bounds_are_an_error() {
    let many = "x: y\r\n".repeat(10_000);
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    for headers in [many, long] {
        let web = Web::saying(format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).await;
        let error = error(get(web.url("/"))).await;
        assert_eq!(error.reason(), "headers", "{error}");
        let setting = "more than 256 headers, as set by max-headers of [fetch] in the config file";
        assert!(error.to_string().contains(setting), "{error}");
    }
    let web = Web::new(|_| {
        Reply::Endless(
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            b"x: y\r\n".repeat(100),
            Duration::ZERO,
        )
    })
    .await;
    assert_eq!(error(get(web.url("/"))).await.reason(), "headers");
    let informed = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(100_000);
    let web = Web::saying([&informed[..], &answer("200 OK", &[], b"end")].concat()).await;
    assert_eq!(&page(get(web.url("/"))).await.body[..], b"end");
}

#[tokio::test]
async fn what_is_wrong_in_a_header_costs_that_header_alone() {
    let mut failed = Vec::new();
    for (line, kept) in [
        (&b"x-latin: caf\xe9"[..], &["x-latin: caf\u{fffd}"][..]),
        (b"x\xff: 1", &[]),
        (b"no colon", &[]),
        (b"x y: 1", &[]),
        (b": 1", &[]),
        (b"x-bell: a\x07b", &[]),
    ] {
        let head = [b"HTTP/1.1 200 \xff\r\n", line, b"\r\nx-good: 1\r\n\r\nbody"].concat();
        let web = Web::saying(head).await;
        let outcome = match fetcher().fetch(get(web.url("/"))).await {
            Ok(Fetched {
                answer: Answer::Page(page),
                ..
            }) => {
                let headers = page.headers.iter().map(|(n, v)| format!("{n}: {v}"));
                headers.collect()
            }
            other => vec![format!("{other:?}")],
        };
        if outcome != [kept, &["x-good: 1"]].concat() {
            failed.push((String::from_utf8_lossy(line).into_owned(), outcome));
        }
    }
    assert_eq!(failed, []);
    let web = Web::saying("HTTP/1.1 200 OK\r\nx-nul: a\0b\r\n\r\nbody").await;
    assert_eq!(error(get(web.url("/"))).await.reason(), "connection");
}

/// The server answers the first request of each connection, reads the second, and closes. It is unknown what
/// it did with that, so the client does not repeat it at once: that is for the crawl, as after any failure.
#[tokio::test]
async fn a_request_that_a_kept_connection_swallows_is_an_error_to_be_tried_again_and_sent_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let (tasks, heard) = (TaskScope::new(), Arc::<Mutex<Vec<_>>>::default());
    let noted = heard.clone();
    tasks.spawn("web", async move {
        for n_connection in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            for n_request in 0..2 {
                read_request(&mut stream).await;
                noted.lock().unwrap().push((n_connection, n_request));
                if n_request == 0 {
                    let kept = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    stream.write_all(kept).await.unwrap();
                }
            }
        }
    });
    let fetcher = fetcher();
    for method in ["GET", "POST"] {
        let mut request = get(url.clone());
        request.method = method.into();
        fetcher.fetch(request.clone()).await.unwrap();
        let failure = fetcher.fetch(request.clone()).await.unwrap_err();
        assert_eq!(failure.error.reason(), "connection", "{failure}");
        assert!(failure.error.is_transient());
    }
    assert_eq!(*heard.lock().unwrap(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
}
