//! Tests of pages that go through proxies, and of what hosts see of that.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};

use super::tls::{Secure, WHOLE, say};
use super::*;
use crate::credentials::Credential;
use crawler_model::settings::ProxyChoice;

fn through(address: SocketAddr, scheme: &str) -> ProxySettings {
    ProxySettings {
        url: format!("{scheme}://{address}").parse().unwrap(),
        login: None,
    }
}

/// Returns settings in which names of tests are on loopback, except for `private.test`. The proxies are
/// called `abroad`.
fn settings(proxies: Vec<ProxySettings>) -> FetchSettings {
    let at = |name: &str, ip: &str| (name.to_owned(), vec![ip.parse().unwrap()]);
    FetchSettings {
        hosts: [
            at("a.test", "127.0.0.1"),
            at("private.test", "10.0.0.1"),
            (
                "both.test".to_owned(),
                ["127.0.0.1", "10.0.0.1"]
                    .map(|ip| ip.parse().unwrap())
                    .into(),
            ),
        ]
        .into(),
        proxies: [("abroad".parse().unwrap(), proxies)].into(),
        ..FetchSettings::default()
    }
}

fn fetching(settings: FetchSettings) -> HttpFetcher {
    fetcher_with(&["127.0.0.0/8"], &[], settings)
}

fn abroad(url: &str) -> FetchRequest {
    FetchRequest {
        proxy: Some("abroad".parse().unwrap()),
        ..get(url.parse().unwrap())
    }
}

async fn body(fetcher: &HttpFetcher, request: FetchRequest) -> String {
    match fetcher.fetch(request).await.unwrap().answer {
        Answer::Page(page) => String::from_utf8(page.body.to_vec()).unwrap(),
        Answer::Redirect { to } => panic!("led to {to}"),
    }
}

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let prefix = format!("{name}: ");
    request.lines().find_map(|line| line.strip_prefix(&prefix))
}

/// Returns an address without a listener.
async fn gone() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn pages_go_through_proxies_in_turn_and_tell_which() {
    let one = Web::saying(answer("200 OK", &[], b"one")).await;
    let two = Web::saying(answer("200 OK", &[], b"two")).await;
    let mut with_login = through(two.address, "http");
    with_login.login = Some(("ann".to_owned(), "q: &@/%41".to_owned()));
    let fetcher = fetching(settings(vec![through(one.address, "http"), with_login]));
    let mut bodies = Vec::new();
    for _ in 0..4 {
        bodies.push(body(&fetcher, abroad("http://a.test/x")).await);
    }
    assert_eq!(bodies, ["one", "two", "one", "two"]);
    let (to_one, to_two) = (one.heard(), two.heard());
    assert!(to_one[0].starts_with("GET http://a.test/x HTTP/1.1\r\n"));
    assert_eq!(header(&to_one[0], "proxy-authorization"), None);
    let login = Some("Basic YW5uOnE6ICZALyU0MQ==");
    assert_eq!(header(&to_two[0], "proxy-authorization"), login);
    let Answer::Page(page) = fetcher
        .fetch(abroad("http://a.test/"))
        .await
        .unwrap()
        .answer
    else {
        panic!("it does not redirect")
    };
    // Rules are not told the address of the proxy.
    let record = &page.record;
    assert_eq!(
        (record.proxy.as_deref(), record.address),
        (Some("abroad/1"), None)
    );
}

#[tokio::test]
async fn a_resource_that_says_nothing_takes_those_called_default_and_may_take_none() {
    let proxy = Web::saying(answer("200 OK", &[], b"proxy")).await;
    let site = Web::saying(answer("200 OK", &[], b"site")).await;
    let mut settings = settings(Vec::new());
    let name = "default".parse().unwrap();
    settings.proxies = [(name, vec![through(proxy.address, "http")])].into();
    let fetcher = fetching(settings);
    assert_eq!(body(&fetcher, get(site.url("/"))).await, "proxy");
    let direct = FetchRequest {
        proxy: Some(ProxyChoice::Direct),
        ..get(site.url("/"))
    };
    assert_eq!(body(&fetcher, direct).await, "site");
    let robots = FetchRequest {
        robots: Robots::Obey,
        ..get(site.url("/"))
    };
    assert_eq!(body(&fetcher, robots).await, "proxy");
    // The robots.txt went the same way.
    assert_eq!((proxy.heard().len(), site.heard().len()), (3, 1));
    let error = fetcher.fetch(abroad("http://a.test/")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "setting proxy names \"abroad\", which is not in [proxies] of this worker's config file; add it there and restart the worker, or change the setting"
    );
}

#[tokio::test]
async fn a_proxy_without_connection_is_replaced_at_once_and_with_none_left_pages_come_again_later()
{
    let well = Web::saying(answer("200 OK", &[], b"well")).await;
    let lost = ProxySettings {
        url: "http://proxy.invalid:3128".parse().unwrap(),
        login: None,
    };
    let bad = vec![through(gone().await, "http"), lost];
    let mut some = bad.clone();
    some.push(through(well.address, "http"));
    let fetcher = fetching(settings(some));
    for _ in 0..3 {
        assert_eq!(body(&fetcher, abroad("http://a.test/")).await, "well");
    }
    assert_eq!(well.heard().len(), 3);

    let fetcher = fetching(settings(bad));
    for n in 0..2 {
        let failure = fetcher.fetch(abroad("http://a.test/")).await.unwrap_err();
        assert_eq!(failure.error.reason(), "no-proxy", "{n}: {failure}");
        assert!(failure.error.is_transient());
        let now = StoppedClock.unix_millis();
        assert!(
            failure.host_ready_at > now + 1_000,
            "{}",
            failure.host_ready_at
        );
    }
}

#[tokio::test]
async fn a_proxy_that_is_only_in_the_config_is_found_and_a_site_that_is_down_is_not_its_fault() {
    let proxy = Web::saying(answer("502 Bad Gateway", &[], b"")).await;
    let mut set = settings(vec![ProxySettings {
        url: format!("http://throttle.test:{}", proxy.address.port())
            .parse()
            .unwrap(),
        login: None,
    }]);
    set.hosts
        .insert("throttle.test".to_owned(), vec![proxy.address.ip()]);
    let fetcher = fetching(set);
    for _ in 0..3 {
        let fetched = fetcher.fetch(abroad("http://a.test/")).await.unwrap();
        let Answer::Page(page) = fetched.answer else {
            panic!("it does not redirect")
        };
        assert_eq!(page.status, 502);
    }
    // A page on the host of the proxy is refused, because its name would not be judged.
    let failure = fetcher
        .fetch(abroad("http://throttle.test:81/"))
        .await
        .unwrap_err();
    assert_eq!(failure.error.reason(), "bad-request", "{failure}");
    assert_eq!(proxy.heard().len(), 3);
}

#[tokio::test]
async fn a_site_that_says_407_costs_its_own_pages_alone() {
    let refusing = Web::saying(answer("407 Proxy Authentication Required", &[], b"")).await;
    let proxies = vec![
        through(refusing.address, "http"),
        through(refusing.address, "http"),
    ];
    let fetcher = fetching(settings(proxies));
    for n in 1..=4 {
        let failure = fetcher.fetch(abroad("http://a.test/")).await.unwrap_err();
        assert_eq!(
            (failure.error.reason(), refusing.heard().len()),
            ("proxy", n)
        );
        assert!(failure.error.is_transient());
    }
}

#[tokio::test]
async fn a_proxy_that_does_not_accept_us_rests_when_several_hosts_were_not_answered() {
    let refusing = Web::saying(answer("407 Proxy Authentication Required", &[], b"")).await;
    let mut set = settings(vec![through(refusing.address, "http")]);
    let loopback = vec![refusing.address.ip()];
    set.hosts
        .extend((0..6).map(|n| (format!("{n}.test"), loopback.clone())));
    let fetcher = fetching(set);
    let mut reasons = Vec::new();
    for n in 0..6 {
        let failure = fetcher
            .fetch(abroad(&format!("http://{n}.test/")))
            .await
            .unwrap_err();
        reasons.push(failure.error.reason());
    }
    assert_eq!(
        reasons,
        ["proxy", "proxy", "proxy", "proxy", "no-proxy", "no-proxy"]
    );
    assert_eq!(refusing.heard().len(), 5);
}

/// Pages that were sent before the proxy rests are answered after that.
#[tokio::test]
async fn pages_that_are_under_way_when_a_proxy_begins_to_rest_are_not_charged_for_it() {
    const N: usize = 12;
    let held = Arc::new(tokio::sync::Barrier::new(N));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, tasks) = (listener.local_addr().unwrap(), TaskScope::new());
    tasks.spawn("proxy", async move {
        let mut answered = FuturesUnordered::new();
        loop {
            tokio::select! {
                Ok((mut stream, _)) = listener.accept() => {
                    let held = Arc::clone(&held);
                    answered.push(async move {
                        read_request(&mut stream).await;
                        held.wait().await;
                        let refusal = answer("407 Who", &[], b"");
                        stream.write_all(&refusal).await.unwrap();
                    });
                }
                Some(()) = answered.next() => {}
            }
        }
    });
    let mut set = settings(vec![through(address, "http")]);
    let names = (0..N).map(|n| (format!("{n}.test"), vec![address.ip()]));
    set.hosts.extend(names);
    let fetcher = fetching(set);
    let pages = (0..N).map(|n| fetcher.fetch(abroad(&format!("http://{n}.test/"))));
    let outcomes = futures::future::join_all(pages).await;
    let reasons = outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap_err().error.reason());
    let mut reasons: Vec<_> = reasons.collect();
    reasons.sort_unstable();
    let (held, charged) = reasons.split_at(N - 4);
    assert_eq!(
        (held, charged),
        (&["no-proxy"; N - 4][..], &["proxy"; 4][..])
    );
}

/// A robots.txt that came through a proxy is known only to requests that go through it.
#[tokio::test]
async fn robots_are_those_that_came_the_way_that_the_page_takes() {
    let site = Web::saying(answer("404 Not Found", &[], b"")).await;
    let proxy = Web::saying(answer("200 OK", &[], b"user-agent: *\ndisallow: /")).await;
    let fetcher = fetching(settings(vec![through(proxy.address, "http")]));
    let page = |proxy: Option<ProxyChoice>| FetchRequest {
        robots: Robots::Obey,
        proxy,
        ..get(site.url("/page"))
    };
    let abroad = || page(Some("abroad".parse().unwrap()));
    for _ in 0..2 {
        let failure = fetcher.fetch(abroad()).await.unwrap_err();
        assert_eq!(failure.error.reason(), "robots", "{failure}");
        fetcher.fetch(page(None)).await.unwrap();
    }
    assert_eq!((proxy.heard().len(), site.heard().len()), (1, 3));
    let slow = Web::saying(answer("200 OK", &[], b"user-agent: *\ncrawl-delay: 3")).await;
    let fetcher = fetching(settings(vec![through(slow.address, "http")]));
    assert_eq!(fetcher.per_host(&site.url("/"), None), 64);
    let (politeness, hop) = fetcher.prepared(abroad()).unwrap();
    fetcher.admit(&hop.url, &politeness).await.unwrap();
    assert_eq!(fetcher.per_host(&site.url("/"), None), 1);
}

#[tokio::test]
async fn what_breaks_after_the_page_was_asked_for_is_not_sent_again() {
    let breaking = Web::new(|_| Reply::Reset).await;
    let well = Web::saying(answer("200 OK", &[], b"well")).await;
    let proxies = [&breaking, &well].map(|proxy| through(proxy.address, "http"));
    let fetcher = fetching(settings(proxies.into()));
    let mut post = abroad("http://a.test/buy");
    post.method = "POST".into();
    let failure = fetcher.fetch(post).await.unwrap_err();
    assert_eq!(failure.error.reason(), "connection", "{failure}");
    assert_eq!((breaking.heard().len(), well.heard().len()), (1, 0));
}

#[tokio::test]
async fn what_is_behind_a_proxy_is_judged_as_far_as_it_is_known_here() {
    let proxy = Web::saying(answer("200 OK", &[], b"proxied")).await;
    let set = || settings(vec![through(proxy.address, "http")]);
    let fetcher = fetching(set());
    for (url, reason) in [
        ("http://private.test/", "address-denied"),
        ("http://both.test/", "address-denied"),
        ("http://10.0.0.1/", "address-denied"),
        ("http://nowhere.invalid/", "resolve"),
        ("ftp://a.test/", "scheme"),
    ] {
        let failure = fetcher.fetch(abroad(url)).await.unwrap_err();
        assert_eq!(failure.error.reason(), reason, "{url}");
    }
    assert_eq!(proxy.heard().len(), 0);
    let trusting = fetching(FetchSettings {
        proxy_resolves: true,
        ..set()
    });
    assert_eq!(
        body(&trusting, abroad("http://nowhere.invalid/")).await,
        "proxied"
    );
    // The name is not looked up for its port either, which then counts like that of any site.
    let failure = trusting
        .fetch(abroad("http://nowhere.invalid:25/"))
        .await
        .unwrap_err();
    assert_eq!(failure.error.reason(), "port-denied");
    let failure = trusting
        .fetch(abroad("http://10.0.0.1/"))
        .await
        .unwrap_err();
    assert_eq!(failure.error.reason(), "address-denied");
}

#[tokio::test]
async fn https_goes_through_a_tunnel_that_is_asked_for_with_the_login() {
    let proxy = Web::saying("HTTP/1.1 403 Forbidden\r\n\r\n").await;
    let mut with_login = through(proxy.address, "http");
    with_login.login = Some(("ann".to_owned(), "pw".to_owned()));
    let fetcher = fetching(settings(vec![with_login]));
    let failure = fetcher
        .fetch(abroad("https://a.test/secret"))
        .await
        .unwrap_err();
    assert_eq!(failure.error.reason(), "connection", "{failure}");
    let heard = proxy.heard();
    assert!(
        heard[0].starts_with("CONNECT a.test:443 HTTP/1.1\r\n"),
        "{heard:?}"
    );
    assert!(!heard[0].contains("secret"));
    let asked = heard[0].to_ascii_lowercase();
    assert!(asked.contains("proxy-authorization: basic"), "{asked}");
    let refusing = Web::saying(answer("407 Who", &[], b"")).await;
    let fetcher = fetching(settings(vec![through(refusing.address, "http")]));
    let failure = fetcher.fetch(abroad("https://a.test/")).await.unwrap_err();
    assert_eq!(failure.error.reason(), "no-proxy", "{failure}");
}

/// Forwards a connection to the site and records the requests on it, but not those of a connection that is
/// only a probe.
async fn tunnel(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    site: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
) {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        match client.read_u8().await {
            Ok(byte) => asked.push(byte),
            Err(_) => return,
        }
    }
    heard
        .lock()
        .unwrap()
        .push(String::from_utf8(asked).unwrap());
    let begun = b"HTTP/1.1 200 Connected\r\n\r\n";
    client.write_all(begun).await.unwrap();
    client.flush().await.unwrap();
    let mut server = TcpStream::connect(site).await.unwrap();
    // Either side may close the connection.
    let _end = copy_bidirectional(&mut client, &mut server).await;
}

#[tokio::test]
async fn https_pages_come_through_the_tunnels_of_http_and_https_proxies() {
    let site = Secure::trusted("good.test", |stream| say(stream, WHOLE, true)).await;
    let to = site.address;
    let (heard, plain) = (
        Arc::<Mutex<Vec<String>>>::default(),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let noted = Arc::clone(&heard);
    let secure = Secure::trusted("proxy.test", move |client| {
        tunnel(client, to, Arc::clone(&noted))
    });
    let secure = secure.await;
    let (plain_at, tasks) = (plain.local_addr().unwrap(), TaskScope::new());
    let noted = Arc::clone(&heard);
    tasks.spawn("proxy", async move {
        while let Ok((client, _)) = plain.accept().await {
            tunnel(client, to, Arc::clone(&noted)).await;
        }
    });
    let url = format!("https://good.test:{}/", to.port());
    for (n, proxy) in [
        format!("http://proxy.test:{}", plain_at.port()),
        format!("https://proxy.test:{}", secure.address.port()),
    ]
    .iter()
    .enumerate()
    {
        let login = Some(("ann".to_owned(), "pw".to_owned()));
        let url_of_proxy = proxy.parse().unwrap();
        let mut set = settings(vec![ProxySettings {
            url: url_of_proxy,
            login,
        }]);
        for name in ["good.test", "proxy.test"] {
            set.hosts.insert(name.to_owned(), vec![to.ip()]);
        }
        // The proxy's authority alone does not make the site trusted.
        set.ca = vec![secure.authority.clone()];
        let failure = fetching(set.clone()).fetch(abroad(&url)).await.unwrap_err();
        let why = failure.error.to_string();
        assert!(why.contains("invalid peer certificate"), "{why}");
        set.ca.push(site.authority.clone());
        assert_eq!(body(&fetching(set), abroad(&url)).await, "here", "{proxy}");
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), 2 * (n + 1));
        for asked in &heard[2 * n..] {
            let (connect, rest) = asked.split_once("\r\n").unwrap();
            assert_eq!(connect, format!("CONNECT good.test:{} HTTP/1.1", to.port()));
            let rest = rest.to_ascii_lowercase();
            assert!(
                rest.contains("proxy-authorization: basic yw5uonb3"),
                "{rest}"
            );
        }
    }
}

/// A SOCKS5 proxy (RFC 1928) for user `ann` with password `pw` (RFC 1929) that connects every client to
/// `site`. It records the kind of address that it was asked for.
async fn socks(site: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<u8>>>, TaskScope) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, tasks) = (listener.local_addr().unwrap(), TaskScope::new());
    let kinds = Arc::<Mutex<Vec<u8>>>::default();
    let noted = Arc::clone(&kinds);
    tasks.spawn("socks", async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut n = [0; 2];
            client.read_exact(&mut n).await.unwrap();
            let mut methods = vec![0; usize::from(n[1])];
            client.read_exact(&mut methods).await.unwrap();
            if !methods.contains(&2) {
                client.write_all(&[5, 0xff]).await.unwrap();
                continue;
            }
            client.write_all(&[5, 2]).await.unwrap();
            let mut login = [0; 8];
            client.read_exact(&mut login).await.unwrap();
            let is_ann = &login == b"\x01\x03ann\x02pw";
            client.write_all(&[1, u8::from(!is_ann)]).await.unwrap();
            if !is_ann {
                continue;
            }
            let mut asked = [0; 4];
            client.read_exact(&mut asked).await.unwrap();
            noted.lock().unwrap().push(asked[3]);
            let n_rest = match asked[3] {
                1 => 6,
                _ => usize::from(client.read_u8().await.unwrap()) + 2,
            };
            client.read_exact(&mut vec![0; n_rest]).await.unwrap();
            let answer = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            client.write_all(&answer).await.unwrap();
            let mut server = TcpStream::connect(site).await.unwrap();
            // The site closes the connection.
            let _end = copy_bidirectional(&mut client, &mut server).await;
        }
    });
    (address, kinds, tasks)
}

#[tokio::test]
async fn socks5_is_told_the_address_that_was_judged_and_socks5h_the_name() {
    let site = Web::saying(answer("200 OK", &[], b"site")).await;
    let url = format!("http://a.test:{}/", site.address.port());
    for (scheme, kind) in [("socks5", 1), ("socks5h", 3)] {
        let (address, kinds, _tasks) = socks(site.address).await;
        let mut proxy = through(address, scheme);
        proxy.login = Some(("ann".to_owned(), "pw".to_owned()));
        let fetcher = fetching(settings(vec![proxy]));
        assert_eq!(body(&fetcher, abroad(&url)).await, "site");
        assert_eq!(*kinds.lock().unwrap(), [kind], "{scheme}");
        let mut proxy = through(address, scheme);
        proxy.login = Some(("ann".to_owned(), "PW".to_owned()));
        let fetcher = fetching(settings(vec![proxy]));
        let failure = fetcher.fetch(abroad(&url)).await.unwrap_err();
        assert_eq!(failure.error.reason(), "no-proxy", "{failure}");
    }
}

#[tokio::test]
async fn hosts_are_shown_what_is_for_them_also_on_the_way_of_a_redirect_and_no_others() {
    let site = Web::new(|request| match request.contains(" /from ") {
        true => Reply::Close(answer("302 Found", &["Location: /to"], b"")),
        false => Reply::Close(answer("200 OK", &[], b"")),
    });
    let site = site.await;
    let hosts = vec!["a.test".parse().unwrap()];
    let credential = Credential::basic(hosts, "ann", "pw", true).unwrap();
    let mut set = settings(Vec::new());
    set.proxies.clear();
    set.credentials = [("shop".parse().unwrap(), credential)].into();
    set.hosts
        .insert("b.test".to_owned(), vec![site.address.ip()]);
    let fetcher = fetching(set);
    let port = site.address.port();
    let shop = |url: String| FetchRequest {
        credentials: "shop".parse().unwrap(),
        ..get(url.parse().unwrap())
    };
    body(&fetcher, shop(format!("http://a.test:{port}/from"))).await;
    body(&fetcher, shop(format!("http://b.test:{port}/"))).await;
    let mut own = shop(format!("http://a.test:{port}/"));
    own.headers = vec![("Authorization".to_owned(), "mine".to_owned())];
    body(&fetcher, own).await;
    body(
        &fetcher,
        get(format!("http://a.test:{port}/").parse().unwrap()),
    )
    .await;
    let heard = site.heard();
    let shown: Vec<_> = heard
        .iter()
        .map(|request| header(request, "authorization"))
        .collect();
    let basic = Some("Basic YW5uOnB3");
    assert_eq!(shown, [basic, basic, None, Some("mine"), None]);
    let mut unknown = get(site.url("/"));
    unknown.credentials = "shop, forum".parse().unwrap();
    let error = fetcher.fetch(unknown).await.unwrap_err().error;
    assert!(
        matches!(&error, FetchError::NotSetUp { name, .. } if name == "forum"),
        "{error}"
    );
}
