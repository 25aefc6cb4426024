//! Tests of calls that this process makes by itself.

use ipnet::IpNet;

use super::*;
use crate::http::post::{PostAnswer, PostClient, PostError};

const LIMIT: Duration = Duration::from_secs(30);

fn client(url: Url, allow_networks: &[&str]) -> PostClient {
    let networks = allow_networks
        .iter()
        .map(|network| network.parse().unwrap());
    let networks: Vec<IpNet> = networks.collect();
    let settings = FetchSettings {
        hosts: [("hooks.test".to_owned(), vec!["127.0.0.1".parse().unwrap()])].into(),
        ..FetchSettings::default()
    };
    PostClient::new(url, networks, settings).unwrap()
}

async fn post(client: &PostClient, limit: Duration) -> Result<PostAnswer, PostError> {
    let headers = vec![("webhook-id", "msg_1".to_owned())];
    client.post(headers, "{}".into(), limit).await
}

#[tokio::test]
async fn a_body_is_posted_once_and_a_redirect_is_an_answer() {
    let location = ["location: http://127.0.0.1:1/"];
    let web = Web::saying(answer("302 Found", &location, b"")).await;
    let url = web.url("/hook?x=1");
    let answer = post(&client(url, &["127.0.0.0/8"]), LIMIT).await.unwrap();
    assert_eq!((answer.status, answer.retry_after), (302, None));
    let heard = web.heard();
    assert_eq!(heard.len(), 1);
    assert!(
        heard[0].starts_with("POST /hook?x=1 HTTP/1.1\r\n"),
        "{heard:?}"
    );
    assert!(heard[0].contains("webhook-id: msg_1\r\n"), "{heard:?}");
    assert!(heard[0].ends_with("\r\n\r\n{}"), "{heard:?}");
}

#[tokio::test]
async fn private_addresses_are_refused_by_number_and_by_name_unless_allowed() {
    let web = Web::saying(answer("204 No Content", &[], b"")).await;
    for host in ["127.0.0.1", "localhost", "hooks.test", "[::ffff:7f00:1]"] {
        let url: Url = format!("http://{host}:{}/", web.address.port())
            .parse()
            .unwrap();
        let error = post(&client(url.clone(), &["10.0.0.0/8"]), LIMIT)
            .await
            .unwrap_err();
        assert!(
            matches!(error, PostError::Address { .. }),
            "{host}: {error}"
        );
        assert_eq!(web.heard(), [""; 0]);
    }
    let named = format!("http://hooks.test:{}/", web.address.port());
    let allowed = client(named.parse().unwrap(), &["127.0.0.0/8"]);
    assert_eq!(post(&allowed, LIMIT).await.unwrap().status, 204);
}

#[tokio::test]
async fn the_wait_that_a_receiver_asks_for_is_returned() {
    let web = Web::saying(answer("503 Busy", &["Retry-After: 90"], b"")).await;
    let answer = post(&client(web.url("/"), &["127.0.0.0/8"]), LIMIT).await;
    let expected = PostAnswer {
        status: 503,
        retry_after: Some("90".to_owned()),
    };
    assert_eq!(answer.unwrap(), expected);
}

#[tokio::test]
async fn a_receiver_that_hangs_is_given_up_in_time() {
    let web = Web::new(|_| Reply::Hang(Vec::new())).await;
    let limit = Duration::from_millis(200);
    let error = post(&client(web.url("/"), &["127.0.0.0/8"]), limit)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "no answer within 200ms");
}
