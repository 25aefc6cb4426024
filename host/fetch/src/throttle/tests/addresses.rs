//! Tests of turns of hosts that share an address.

use super::*;

const MILLI: Duration = Duration::from_millis(1);

fn shared(ip: &str) -> Option<SharedAddress> {
    Some(SharedAddress {
        address: Address::of(ip.parse().unwrap()),
        is_begun: false,
    })
}

async fn enter_at(throttle: &Throttle, host: &str, ip: &str) -> Result<Permit, Paused> {
    let pace = Pace::of_delay(SECOND);
    throttle.enter_at(host, shared(ip), &pace, crawl(1)).await
}

#[tokio::test(start_paused = true)]
async fn names_of_one_address_are_spaced_and_those_of_others_are_not() {
    let throttle = throttle();
    drop(enter_at(&throttle, "a:80", "8.8.8.8").await.unwrap());
    let paused = enter_at(&throttle, "b:80", "8.8.8.8").await.unwrap_err();
    assert_eq!(paused.pause, 250 * MILLI);
    assert!(!paused.is_in_trouble);
    drop(enter_at(&throttle, "b:443", "8.8.4.4").await.unwrap());
    let told = paused.into_error("b:80".to_owned());
    assert_eq!((told.reason(), told.is_held()), ("paused", true));
    let told = told.to_string();
    assert!(
        told.contains("8.8.8.8") && told.contains("address-rate of [fetch]"),
        "{told}"
    );
    // The host was not asked, so its own delay does not run.
    tokio::time::advance(250 * MILLI).await;
    drop(enter_at(&throttle, "b:80", "8.8.8.8").await.unwrap());
    // The delay of a host tells nothing about the address.
    let paused = enter_at(&throttle, "a:80", "8.8.8.8").await.unwrap_err();
    assert_eq!((paused.pause, paused.address), (750 * MILLI, None));
    assert!(
        !paused
            .into_error("a:80".to_owned())
            .to_string()
            .contains("8.8")
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_at_the_gate_waits_for_the_address() {
    let throttle = throttle();
    drop(enter_at(&throttle, "a:80", "8.8.8.8").await.unwrap());
    let (began, pace) = (Instant::now(), Pace::of_delay(SECOND));
    let enter = throttle.enter_at("b:80", shared("8.8.8.8"), &pace, Requester::waiting());
    drop(enter.await.unwrap());
    let waited = began.elapsed();
    assert!(waited >= 250 * MILLI && waited < 253 * MILLI, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn addresses_are_not_spaced_where_the_rate_is_off() {
    let throttle = Throttle::new(ThrottleSettings {
        address_rate: None,
        ..ThrottleSettings::default()
    });
    for host in ["a:80", "b:80", "c:80"] {
        drop(enter_at(&throttle, host, "8.8.8.8").await.unwrap());
    }
}
