//! Tests of turns that are taken over all workers first, and then in the throttle of this one.

use tokio::time::Instant;

use super::*;
use crate::http::send::Entered;
use crate::throttle::{Address, SharedAddress};
use crate::turns::testing::{DELAY, TwoWorkers};
use crawler_model::settings::Rates;

/// Asks a host that another worker owns `n` times, like a redirect that is not retried later, and returns how
/// long that took.
async fn asked(n: usize, rate: &str, shared: Option<SharedAddress>) -> Duration {
    let stage = TwoWorkers::new().await;
    let throttle = Throttle::new(ThrottleSettings {
        address_rate: Some("1/3s".parse().unwrap()),
        ..ThrottleSettings::default()
    });
    let (address_policy, clock) = (
        Arc::new(AddressPolicy::new(Vec::new())),
        Arc::new(StoppedClock),
    );
    let fetcher = HttpFetcher::new(
        FetchSettings::default(),
        address_policy,
        Arc::new(throttle),
        clock,
    );
    let fetcher = fetcher.unwrap();
    fetcher.share_turns(stage.first.clone());
    let pace = Pace {
        rates: rate.parse::<Rates>().unwrap(),
        ..Pace::of_delay(DELAY)
    };
    let host = &stage.of_second(1)[0];
    let begun = Instant::now();
    for _ in 0..n {
        let entered = fetcher.enter(host, shared, &pace, Requester::waiting());
        let entered = tokio::time::timeout(60 * DELAY, entered).await;
        let Entered { permit, turn } = entered.expect("it has its turn").unwrap();
        let pause = permit.finish(None).time;
        turn.unwrap().finish(pause);
    }
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_its_delay_keeps_it() {
    let took = asked(4, "100/s", None).await;
    assert!(took >= 3 * DELAY && took < 4 * DELAY, "{took:?}");
}

/// A lease is not kept for as long as the rate makes the request wait.
#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_a_rate_has_its_turn_and_loses_none() {
    let took = asked(4, "1/3s", None).await;
    assert!(took >= 9 * DELAY && took < 10 * DELAY, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_its_address_has_its_turn() {
    let shared = SharedAddress {
        address: Address::of("203.0.113.7".parse().unwrap()),
        is_begun: true,
    };
    let took = asked(4, "100/s", Some(shared)).await;
    assert!(took >= 9 * DELAY && took < 10 * DELAY, "{took:?}");
}
