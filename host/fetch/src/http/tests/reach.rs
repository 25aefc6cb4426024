//! Tests of addresses and names that are not reached.

use super::*;

#[tokio::test]
async fn nothing_reaches_an_address_that_was_not_allowed() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    let port = web.address.port();
    let fetcher = fetcher_with(&[], &[], FetchSettings::default());
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:7f00:1]"] {
        let url: Url = format!("http://{host}:{port}/").parse().unwrap();
        let error = fetcher.fetch(get(url)).await.unwrap_err().error;
        assert_eq!(error.reason(), "address-denied", "{host}: {error}");
        assert!(error.to_string().contains("--allow-networks"), "{error}");
    }
    assert_eq!(web.heard(), [""; 0]);
}

#[tokio::test]
async fn a_host_of_the_config_is_at_its_address_and_judged_like_any_other() {
    let web = Web::saying(answer("200 OK", &[], b"here")).await;
    let url: Url = format!("http://Shop.test:{}/a", web.address.port())
        .parse()
        .unwrap();
    let settings = || FetchSettings {
        hosts: [("shop.test".to_owned(), vec![web.address.ip()])].into(),
        ..FetchSettings::default()
    };
    let denied = fetcher_with(&[], &[], settings());
    let error = denied.fetch(get(url.clone())).await.unwrap_err().error;
    assert_eq!(error.reason(), "address-denied", "{error}");
    let allowed = fetcher_with(&["127.0.0.0/8"], &[], settings());
    // The host is inside the allowed networks, which is known without a lookup: it has no delay, and several
    // requests at once.
    assert!(allowed.per_host(&url, None) > 1);
    let Ok(Fetched {
        answer: Answer::Page(page),
        ..
    }) = allowed.fetch(get(url)).await
    else {
        panic!("no page")
    };
    assert_eq!(&page.body[..], b"here");
    assert!(
        web.heard()[0].contains("host: shop.test:"),
        "{:?}",
        web.heard()
    );
}

#[tokio::test]
async fn nothing_reaches_an_own_node_by_address_or_name() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    let other = Web::saying(answer("200 OK", &[], b"")).await;
    let own = [web.address.to_string()];
    let fetcher = fetcher_with(&["127.0.0.0/8"], &own, FetchSettings::default());
    for host in ["127.0.0.1", "127.0.0.2", "localhost"] {
        let url: Url = format!("http://{host}:{}/", web.address.port())
            .parse()
            .unwrap();
        let error = fetcher.fetch(get(url)).await.unwrap_err().error;
        assert_eq!(error.reason(), "own-node", "{host}: {error}");
    }
    assert_eq!(web.heard(), [""; 0]);
    let url = format!("http://localhost:{}/", other.address.port());
    fetcher.fetch(get(url.parse().unwrap())).await.unwrap();
}

#[tokio::test]
async fn a_name_without_address_cannot_be_resolved() {
    let error = error(get("http://no-such-name.invalid/".parse().unwrap())).await;
    assert_eq!(error.reason(), "resolve", "{error}");
    assert!(error.is_transient());
}
