//! Tests of which ports are fetched from, and of the role of a name's addresses. No public address is
//! reached; the check of addresses before connecting is tested in `resolve`.

use super::*;
use crate::resolve::tests::by_rote;

#[tokio::test]
async fn a_redirect_or_link_to_a_port_that_nobody_named_says_how_to_name_it() {
    let location = "location: http://8.8.8.8:25/mail";
    let web = Web::saying(answer("302 Found", &[location], b"")).await;
    let fetched = fetcher().fetch(get(web.url("/"))).await.unwrap();
    let Answer::Redirect { to } = fetched.answer else {
        panic!("followed");
    };
    let error = error(get(to)).await;
    assert_eq!(error.reason(), "port-denied");
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(
        text.contains("8.8.8.8:25") && text.contains("scope") && text.contains("--allow-ports"),
        "{text}"
    );
}

fn rebound(answers: &[&[&str]]) -> (HttpFetcher, Arc<Mutex<usize>>) {
    let address_policy = Arc::new(AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]));
    let (resolver, n_asked) = by_rote(address_policy.clone(), answers);
    let fetcher = HttpFetcher::resolving(
        resolver,
        FetchSettings::default(),
        address_policy,
        Arc::default(),
        Arc::new(StoppedClock),
    );
    (fetcher.unwrap(), n_asked)
}

fn at_a_name(web: &Web, names_port: bool) -> FetchRequest {
    let url = format!("http://rebound.test:{}/", web.address.port());
    FetchRequest {
        names_port,
        delay: Some(Duration::ZERO),
        ..get(url.parse().unwrap())
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_what_was_judged_is_connected_to() {
    let web = Web::saying(answer("200 OK", &[], b"here")).await;
    let (fetcher, n_asked) = rebound(&[&["127.0.0.1"], &["10.0.0.1"]]);
    fetcher.fetch(at_a_name(&web, true)).await.unwrap();
    assert_eq!(*n_asked.lock().unwrap(), 1);
    // The next connection resolves and judges the name anew.
    let failure = fetcher.fetch(at_a_name(&web, true)).await.unwrap_err();
    assert_eq!(failure.error.reason(), "address-denied", "{failure}");
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_name_that_moves_between_the_judgement_of_its_port_and_the_connection_is_judged_twice() {
    let web = Web::saying(answer("200 OK", &[], b"here")).await;
    for (second, reason) in [("10.0.0.1", "address-denied"), ("8.8.8.8", "port-denied")] {
        let (fetcher, n_asked) = rebound(&[&["127.0.0.1"], &[second]]);
        let failure = fetcher.fetch(at_a_name(&web, false)).await.unwrap_err();
        assert_eq!(failure.error.reason(), reason, "{failure}");
        assert_eq!(*n_asked.lock().unwrap(), 2);
    }
    assert_eq!(web.heard(), [""; 0]);
}

#[tokio::test]
async fn of_several_addresses_only_those_that_may_be_reached_are_connected_to() {
    let web = Web::saying(answer("200 OK", &[], b"here")).await;
    let (fetcher, _) = rebound(&[&["10.0.0.1", "::ffff:169.254.169.254", "127.0.0.1"]]);
    fetcher.fetch(at_a_name(&web, true)).await.unwrap();
    let (fetcher, _) = rebound(&[&["10.0.0.1", "fd00:ec2::254", "::1"]]);
    let failure = fetcher.fetch(at_a_name(&web, true)).await.unwrap_err();
    assert_eq!(failure.error.reason(), "address-denied", "{failure}");
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_redirect_from_an_allowed_name_to_a_private_one_reaches_nothing() {
    let settings = |hosts: &[(&str, &str)]| FetchSettings {
        hosts: hosts
            .iter()
            .map(|(name, ip)| ((*name).to_owned(), vec![ip.parse().unwrap()]))
            .collect(),
        ..FetchSettings::default()
    };
    let web = Web::new(|request| {
        let location = match request.split(' ').nth(1).unwrap() {
            "/1" => "location: /2",
            "/2" => "location: http://metadata.test/latest",
            path => panic!("asked for {path}"),
        };
        Reply::Close(answer("302 Found", &[location], b""))
    })
    .await;
    let hosts = [
        ("shop.test", "127.0.0.1"),
        ("metadata.test", "169.254.169.254"),
    ];
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings(&hosts));
    let url = format!("http://shop.test:{}/1", web.address.port());
    let fetched = fetcher.fetch(get(url.parse().unwrap())).await.unwrap();
    let Answer::Redirect { to } = fetched.answer else {
        panic!("followed");
    };
    assert_eq!(to.as_str(), "http://metadata.test/latest");
    let failure = fetcher.fetch(get(to)).await.unwrap_err();
    assert_eq!(failure.error.reason(), "address-denied");
}

#[tokio::test]
async fn a_redirect_to_another_scheme_or_with_a_password_is_refused_with_its_reason() {
    for (location, reason) in [
        ("file:///etc/passwd", "scheme"),
        ("data:text/html,x", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("gopher://127.0.0.1:70/1", "scheme"),
        ("//user:secret@127.0.0.1/", "bad-request"),
        ("http://8.8.8.8@[fd00:ec2::254]/", "bad-request"),
    ] {
        let header = format!("location: {location}");
        let web = Web::saying(answer("302 Found", &[&header], b"")).await;
        let fetched = fetcher().fetch(get(web.url("/"))).await.unwrap();
        let Answer::Redirect { to } = fetched.answer else {
            panic!("{location} was followed");
        };
        assert_eq!(error(get(to)).await.reason(), reason, "{location}");
    }
}

/// The redirect goes to the same host and port, with credentials: the next hop is judged, and no request is sent.
#[tokio::test]
async fn a_redirect_to_the_same_host_with_a_password_sends_nothing() {
    let web = Web::new(|request| {
        let host = request.lines().find_map(|line| line.strip_prefix("host: "));
        let location = format!("location: http://user:secret@{}/next", host.unwrap());
        Reply::Close(answer("302 Found", &[&location], b""))
    })
    .await;
    let error = error(get(web.url("/"))).await;
    assert_eq!(error.reason(), "bad-request");
    assert!(!error.to_string().contains("secret"));
    assert_eq!(web.heard().len(), 1);
}
