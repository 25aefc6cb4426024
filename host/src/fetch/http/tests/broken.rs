//! Servers that break off, stall, or do not speak HTTP.

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
        assert!(failure.error.is_transient());
    }
}
