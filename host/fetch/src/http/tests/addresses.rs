//! Tests of which requests share the turns of their address.

use std::net::IpAddr;

use super::*;
use crate::throttle::{Address, SharedAddress};

const SHARED: &str = "203.0.112.7";

/// Returns a fetcher that knows its names without a lookup, and its throttle.
fn knowing(rate: Option<&str>) -> (HttpFetcher, Arc<Throttle>) {
    let ips = |texts: &[&str]| texts.iter().map(|ip| ip.parse().unwrap()).collect();
    let hosts: [(&str, Vec<IpAddr>); 4] = [
        ("one.test", ips(&[SHARED])),
        ("two.test", ips(&[SHARED, "203.0.112.1"])),
        ("half.test", ips(&["10.9.9.9", SHARED])),
        ("inside.test", ips(&["127.0.0.7"])),
    ];
    let settings = FetchSettings {
        hosts: hosts.map(|(name, ips)| (name.to_owned(), ips)).into(),
        ..FetchSettings::default()
    };
    let throttle = Arc::new(Throttle::new(ThrottleSettings {
        address_rate: rate.map(|rate| rate.parse().unwrap()),
        ..ThrottleSettings::default()
    }));
    let address_policy = Arc::new(AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]));
    let clock = Arc::new(StoppedClock);
    let fetcher = HttpFetcher::new(settings, address_policy, Arc::clone(&throttle), clock);
    (fetcher.unwrap(), throttle)
}

async fn address(fetcher: &HttpFetcher, url: &str, delay: u64) -> Option<Address> {
    let hop = Hop::get(url.parse().unwrap(), false, None);
    let pace = Pace::of_delay(Duration::from_millis(delay));
    fetcher.address(&hop, &pace).await
}

#[tokio::test]
async fn a_request_counts_for_the_address_that_is_tried_first() {
    let (fetcher, _) = knowing(Some("4/s"));
    let shared = Some(Address::of(SHARED.parse().unwrap()));
    for host in ["one.test", "two.test", "half.test", SHARED] {
        let found = address(&fetcher, &format!("http://{host}/"), 1_000).await;
        assert_eq!(found, shared, "{host}");
    }
    let literal = address(&fetcher, "http://[2001:4860::8]/", 1_000).await;
    assert_eq!(literal, Some(Address::of("2001:4860::9".parse().unwrap())));
}

#[tokio::test]
async fn hosts_of_ones_own_and_those_without_delay_share_no_turns() {
    let (fetcher, _) = knowing(Some("4/s"));
    for (url, delay) in [
        ("http://one.test/", 0),
        ("http://inside.test/", 1_000),
        ("http://127.0.0.1:8080/", 1_000),
        ("http://localhost/", 0),
    ] {
        assert_eq!(address(&fetcher, url, delay).await, None, "{url}");
    }
    let (fetcher, _) = knowing(None);
    assert_eq!(address(&fetcher, "http://one.test/", 1_000).await, None);
}

#[tokio::test]
async fn a_page_whose_address_has_no_turn_is_held_and_nothing_is_asked() {
    let (fetcher, throttle) = knowing(Some("1/h"));
    let shared = SharedAddress {
        address: Address::of(SHARED.parse().unwrap()),
        is_begun: false,
    };
    let pace = Pace::of_delay(Duration::from_secs(1));
    let other = throttle.enter_at("other.test:80", Some(shared), &pace, Requester::waiting());
    drop(other.await.unwrap());
    let request = FetchRequest {
        requester: Requester {
            crawl: Requester::new_crawl(),
            max_wait: Some(Duration::ZERO),
        },
        ..get("http://one.test/".parse().unwrap())
    };
    // A request for a robots.txt is held like one for a page.
    let robots = FetchRequest {
        robots: Robots::Obey,
        ..request.clone()
    };
    for failure in [
        fetcher.fetch(request).await.unwrap_err(),
        fetcher.prepare(robots).await.unwrap_err(),
    ] {
        assert!(failure.error.is_held() && !failure.is_of_host);
        assert!(failure.error.to_string().contains(SHARED));
        assert!(failure.host_ready_at > StoppedClock.unix_millis() + 200_000);
    }
}
