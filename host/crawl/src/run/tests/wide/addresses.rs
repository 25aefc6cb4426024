//! Tests of crawls of many hosts that share an address.

use super::*;

/// Time between two starts at one address: the default of setting `address-rate`.
const INTERVAL: Duration = Duration::from_millis(250);

/// Returns the address of a host: all hosts that begin with `shared` have the same, and the others one each.
fn address_of(host: &str) -> Option<Address> {
    let ip = match host.strip_prefix("site") {
        Some(rest) => {
            let n: u32 = rest.trim_end_matches(".test").parse().unwrap();
            (0x0900_0000 + n).into()
        }
        None => [8, 8, 8, 8].into(),
    };
    Some(Address::of(std::net::IpAddr::V4(ip)))
}

impl Web {
    /// Returns the starts of requests to hosts that begin with `of`, in order.
    fn starts(&self, of: &str) -> Vec<Instant> {
        let asked = self.asked.lock().unwrap();
        let starts = asked.iter().filter(|(host, _, _)| host.starts_with(of));
        starts.map(|(_, _, at)| *at).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn names_of_one_address_are_asked_in_turn_and_all_get_their_page() {
    let (web, began) = (Web::at(address_of), Instant::now());
    let urls = (0..200)
        .map(|n| format!("http://shared{n}.test/"))
        .collect();
    let counts = crawl_all(&web, urls, 16).await;
    assert_eq!(counts.parsed, 200);
    // There are two requests for each host: its robots.txt and its page.
    let starts = web.starts("shared");
    assert_eq!(starts.len(), 400);
    for pair in starts.windows(2) {
        assert!(pair[1] - pair[0] >= INTERVAL, "{:?}", pair[1] - pair[0]);
    }
    assert!(web.shortest_gap() >= DELAY, "{:?}", web.shortest_gap());
    // Hardly a turn is lost.
    let took = began.elapsed();
    assert!(took < INTERVAL * 440, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn names_of_one_address_do_not_hold_up_other_sites() {
    let (web, began) = (Web::at(address_of), Instant::now());
    let shared = (0..200).map(|n| format!("http://shared{n}.test/"));
    let own = (0..100).map(|n| format!("http://site{n}.test/"));
    let counts = crawl_all(&web, shared.chain(own).collect(), 4).await;
    assert_eq!(counts.parsed, 300);
    let last = web.starts("site").into_iter().max().unwrap() - began;
    // The time is that of the delay after each robots.txt, and the pages four at a time.
    assert!(last < DELAY * 2 + LATENCY * 100, "{last:?}");
}
