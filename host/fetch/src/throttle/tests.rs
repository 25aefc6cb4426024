//! Tests of turns, delays and pauses.

use std::time::Duration;

use futures::FutureExt as _;

use super::*;
use crawler_model::frontier::DelaySource;

mod addresses;

const SECOND: Duration = Duration::from_secs(1);
const NONE: Duration = Duration::ZERO;

fn throttle() -> Throttle {
    Throttle::new(ThrottleSettings {
        parallel: 2,
        host_failures: 3,
        max_host_pause: 8 * SECOND,
        max_adaptive_delay: 20 * SECOND,
        ..ThrottleSettings::default()
    })
}

/// Returns the signal of a host that answers with a page.
fn well(took: Duration) -> Option<HostSignal> {
    let is_page = true;
    Some(HostSignal::Healthy { took, is_page })
}

/// Enters the throttle, and comes again when told to.
async fn enter(throttle: &Throttle, host: &str, delay: Duration) -> Permit {
    loop {
        match throttle
            .enter(host, &Pace::of_delay(delay), Requester::waiting())
            .await
        {
            Ok(permit) => return permit,
            Err(Paused { pause, .. }) => tokio::time::sleep(pause).await,
        }
    }
}

async fn check_wait(
    throttle: &Throttle,
    host: &str,
    delay: Duration,
    expected: Duration,
) -> Permit {
    let asked = Instant::now();
    let permit = enter(throttle, host, delay).await;
    let waited = asked.elapsed();
    // The paused clock advances in steps of a millisecond.
    assert!(
        waited >= expected && waited <= expected + Duration::from_millis(2),
        "waited {waited:?}, expected {expected:?}"
    );
    permit
}

#[tokio::test(start_paused = true)]
async fn the_delay_counts_from_the_end_of_an_answer() {
    let throttle = throttle();
    let permit = check_wait(&throttle, "a:80", SECOND, NONE).await;
    tokio::time::advance(5 * SECOND).await;
    assert_eq!(permit.finish(None).time, SECOND);
    drop(check_wait(&throttle, "b:80", SECOND, NONE).await);
    drop(check_wait(&throttle, "a:80", SECOND, SECOND).await);
    tokio::time::advance(3 * SECOND).await;
    drop(check_wait(&throttle, "a:80", SECOND, NONE).await);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_given_back_starts_no_delay() {
    let throttle = throttle();
    check_wait(&throttle, "a:80", SECOND, NONE)
        .await
        .give_back();
    let permit = check_wait(&throttle, "a:80", SECOND, NONE).await;
    drop(permit);
    tokio::time::advance(SECOND / 2).await;
    let permit = check_wait(&throttle, "a:80", SECOND, SECOND / 2).await;
    permit.give_back();
    drop(check_wait(&throttle, "a:80", SECOND, NONE).await);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_given_back_counts_for_no_rate() {
    let throttle = throttle();
    let pace = Pace {
        rates: "1/30s".parse().unwrap(),
        ..Pace::of_delay(SECOND)
    };
    let enter = async || throttle.enter("a:80", &pace, Requester::waiting()).await;
    for _ in 0..3 {
        enter().await.unwrap().give_back();
    }
    drop(enter().await.unwrap());
    enter().await.unwrap_err();
}

/// The random time is drawn once for each answer; the frontier is told the time that is really waited.
#[tokio::test(start_paused = true)]
async fn a_random_wait_is_added_to_the_delay_and_is_another_each_time() {
    let throttle = throttle();
    let pace = Pace {
        random: 10 * SECOND,
        ..Pace::of_delay(SECOND)
    };
    let mut waits = Vec::new();
    for _ in 0..20 {
        let told = throttle
            .enter("a:80", &pace, Requester::waiting())
            .await
            .unwrap()
            .finish(None)
            .time;
        let asked = Instant::now();
        drop(
            throttle
                .enter("a:80", &pace, Requester::waiting())
                .await
                .unwrap(),
        );
        let waited = asked.elapsed();
        assert!(waited >= told && waited <= told + Duration::from_millis(2));
        assert!((SECOND..=11 * SECOND).contains(&told), "{told:?}");
        waits.push(told);
        tokio::time::advance(11 * SECOND).await;
    }
    let (shortest, longest) = (waits.iter().min(), waits.iter().max());
    assert!(
        *longest.unwrap() > *shortest.unwrap() + 2 * SECOND,
        "{waits:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn with_a_delay_there_is_one_request_at_a_time() {
    let throttle = throttle();
    let permit = enter(&throttle, "a:80", SECOND).await;
    let second = tokio::time::timeout(100 * SECOND, enter(&throttle, "a:80", SECOND)).await;
    assert!(second.is_err());
    drop(permit);
    drop(check_wait(&throttle, "a:80", SECOND, SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn without_a_delay_requests_run_side_by_side_up_to_the_bound() {
    let throttle = throttle();
    let one = check_wait(&throttle, "a:80", NONE, NONE).await;
    let other = check_wait(&throttle, "a:80", NONE, NONE).await;
    let mut third = std::pin::pin!(enter(&throttle, "a:80", NONE));
    assert!(third.as_mut().now_or_never().is_none());
    drop(one);
    drop(third.await);
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn the_origin_of_a_delay_is_told() {
    let throttle = throttle();
    let host_delay = async |delay, signal| enter(&throttle, "a:80", delay).await.finish(signal);
    let is = |time, by| HostDelay { time, by };
    let setting = host_delay(SECOND, well(NONE)).await;
    assert_eq!(setting, is(SECOND, DelaySource::Setting));
    host_delay(5 * SECOND, well(NONE)).await;
    let other = host_delay(SECOND, well(NONE)).await;
    assert_eq!(other, is(5 * SECOND, DelaySource::OtherCrawl));
    let answers = host_delay(SECOND, well(6 * SECOND)).await;
    assert_eq!(answers, is(6 * SECOND, DelaySource::Answers));
    let pause = Some(7 * SECOND);
    let trouble = host_delay(SECOND, Some(HostSignal::Busy { pause })).await;
    assert_eq!(trouble, is(7 * SECOND, DelaySource::Trouble));
}

#[tokio::test(start_paused = true)]
async fn the_strictest_delay_binds_all_until_it_is_asked_for_no_more() {
    let throttle = throttle();
    drop(check_wait(&throttle, "a:80", NONE, NONE).await);
    drop(check_wait(&throttle, "a:80", 5 * SECOND, 5 * SECOND).await);
    let permit = check_wait(&throttle, "a:80", NONE, 5 * SECOND).await;
    assert_eq!(permit.finish(None).time, 5 * SECOND);
    tokio::time::advance(STRICT_FOR + 10 * SECOND).await;
    drop(check_wait(&throttle, "a:80", NONE, NONE).await);
    drop(check_wait(&throttle, "a:80", NONE, NONE).await);
}

#[tokio::test(start_paused = true)]
async fn turns_go_in_order_of_arrival_and_one_who_leaves_holds_up_nobody() {
    let throttle = throttle();
    let order = Mutex::new(Vec::new());
    let permit = enter(&throttle, "a:80", SECOND).await;
    let wait = |name: &'static str| {
        let (throttle, order) = (&throttle, &order);
        async move {
            let permit = enter(throttle, "a:80", SECOND).await;
            order.lock().unwrap().push(name);
            drop(permit);
        }
    };
    let mut leaves = Box::pin(wait("leaves"));
    let (mut first, mut second) = (Box::pin(wait("first")), Box::pin(wait("second")));
    assert!(leaves.as_mut().now_or_never().is_none());
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    drop(permit);
    drop(leaves);
    let began = Instant::now();
    futures::join!(second, first);
    assert_eq!(*order.lock().unwrap(), ["first", "second"]);
    assert!(began.elapsed() >= 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_asks_for_a_pause_has_it_from_all() {
    let throttle = throttle();
    let permit = enter(&throttle, "a:80", NONE).await;
    let pause = Some(5 * SECOND);
    assert_eq!(
        permit.finish(Some(HostSignal::Busy { pause })).time,
        5 * SECOND
    );
    drop(check_wait(&throttle, "b:80", NONE, NONE).await);
    let permit = check_wait(&throttle, "a:80", NONE, 5 * SECOND).await;
    // The pause is limited by the setting.
    let pause = Some(100 * SECOND);
    assert_eq!(
        permit.finish(Some(HostSignal::Busy { pause })).time,
        8 * SECOND
    );
    // This request began before the pause was noted.
    let (permit, late) = (
        enter(&throttle, "d:80", NONE).await,
        enter(&throttle, "d:80", NONE).await,
    );
    let asks = |n: u32| {
        Some(HostSignal::Busy {
            pause: Some(n * SECOND),
        })
    };
    assert_eq!(permit.finish(asks(3)).time, 3 * SECOND);
    tokio::time::advance(SECOND).await;
    assert_eq!(late.finish(asks(4)).time, 4 * SECOND);
    // A host that asks for no pause is left alone a little longer each time.
    for most in [1, 2, 4] {
        let paused = enter(&throttle, "e:80", NONE).await.finish(asks(0)).time;
        assert!(
            paused >= most * SECOND / 2 && paused <= most * SECOND,
            "{paused:?}"
        );
    }
    // This host does not say for how long.
    let permit = enter(&throttle, "c:80", NONE).await;
    let paused = permit.finish(Some(HostSignal::Busy { pause: None })).time;
    assert!(paused >= 4 * SECOND && paused <= 8 * SECOND, "{paused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_fails_again_and_again_is_left_alone_longer_each_time() {
    let throttle = throttle();
    let fail = async || {
        let permit = enter(&throttle, "a:80", NONE).await;
        permit.finish(Some(HostSignal::Failing)).time
    };
    assert_eq!((fail().await, fail().await), (NONE, NONE));
    for most in [1, 2, 4, 8, 8] {
        let (paused, most) = (fail().await, most * SECOND);
        assert!(
            paused >= most / 2 && paused <= most,
            "{paused:?} of {most:?}"
        );
    }
    // The host gets one request at a time until it answers.
    let first = enter(&throttle, "a:80", NONE).await;
    let second = tokio::time::timeout(100 * SECOND, enter(&throttle, "a:80", NONE)).await;
    assert!(second.is_err());
    assert_eq!(first.finish(well(NONE)).time, NONE);
    let (one, other) = (
        enter(&throttle, "a:80", NONE),
        enter(&throttle, "a:80", NONE),
    );
    drop((one.await, other.await));
    assert_eq!((fail().await, fail().await), (NONE, NONE));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_fails_now_and_then_is_asked_as_before() {
    let throttle = throttle();
    for _ in 0..10 {
        for _ in 0..2 {
            let permit = enter(&throttle, "a:80", NONE).await;
            assert_eq!(permit.finish(Some(HostSignal::Failing)).time, NONE);
        }
        let one = check_wait(&throttle, "a:80", NONE, NONE).await;
        drop(check_wait(&throttle, "a:80", NONE, NONE).await);
        tokio::time::advance(SECOND).await;
        assert_eq!(one.finish(well(NONE)).time, NONE);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_here_for_a_long_pause_of_a_host() {
    let throttle = throttle();
    let first = enter(&throttle, "a:80", SECOND).await;
    let pace = Pace::of_delay(SECOND);
    let mut second = std::pin::pin!(throttle.enter("a:80", &pace, Requester::waiting()));
    assert!(second.as_mut().now_or_never().is_none());
    let pause = MAX_WAIT + SECOND;
    let signal = HostSignal::Busy { pause: Some(pause) };
    assert_eq!(first.finish(Some(signal)).time, pause);
    // Both a waiting request and a new one are sent away.
    assert_eq!(second.await.unwrap_err().pause, pause);
    tokio::time::advance(SECOND / 2).await;
    let pause = pause - SECOND / 2;
    let third = throttle
        .enter("a:80", &Pace::of_delay(NONE), Requester::waiting())
        .await;
    assert_eq!(third.unwrap_err().pause, pause);
    tokio::time::advance(pause).await;
    drop(
        throttle
            .enter("a:80", &Pace::of_delay(NONE), Requester::waiting())
            .await
            .unwrap(),
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_before_the_last_failure_is_not_counted_again() {
    let throttle = Throttle::new(ThrottleSettings {
        parallel: 10,
        host_failures: 2,
        ..(*throttle().settings).clone()
    });
    let mut permits = Vec::new();
    for _ in 0..10 {
        permits.push(enter(&throttle, "a:80", NONE).await);
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    for permit in permits {
        assert_eq!(permit.finish(Some(HostSignal::Failing)).time, NONE);
    }
    let permit = enter(&throttle, "a:80", NONE).await;
    assert!(permit.finish(Some(HostSignal::Failing)).time >= SECOND / 2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_host_is_asked_as_seldom_as_it_answers() {
    let throttle = throttle();
    let answered = |permit: Permit, n: u32| permit.finish(well(n * SECOND)).time;
    let permit = enter(&throttle, "a:80", SECOND).await;
    assert_eq!(answered(permit, 6), 6 * SECOND);
    let permit = check_wait(&throttle, "a:80", SECOND, 6 * SECOND).await;
    assert_eq!(answered(permit, 2), 4 * SECOND);
    // A refusal is quick and tells nothing about the time of pages, unless it takes longer.
    let refused = |permit: Permit, n: u32| {
        let (took, is_page) = (n * SECOND, false);
        permit
            .finish(Some(HostSignal::Healthy { took, is_page }))
            .time
    };
    let permit = enter(&throttle, "a:80", SECOND).await;
    assert_eq!(refused(permit, 0), 4 * SECOND);
    let permit = enter(&throttle, "a:80", SECOND).await;
    assert_eq!(refused(permit, 12), 12 * SECOND);
    let permit = enter(&throttle, "a:80", SECOND).await;
    assert_eq!(answered(permit, 2), 3 * SECOND);
    // The delay is never shorter than asked for and never longer than the setting.
    let permit = enter(&throttle, "a:80", 5 * SECOND).await;
    assert_eq!(answered(permit, 0), 5 * SECOND);
    let permit = enter(&throttle, "b:80", SECOND).await;
    assert_eq!(answered(permit, 1_000), 20 * SECOND);
    // A caller that asks for no delay has none.
    let permit = enter(&throttle, "c:80", NONE).await;
    assert_eq!(answered(permit, 6), NONE);
}

#[tokio::test(start_paused = true)]
async fn hosts_that_nobody_asks_for_are_forgotten() {
    let throttle = throttle();
    let kept = enter(&throttle, "kept:80", SECOND).await;
    for n in 0..FIRST_SWEEP - 1 {
        drop(enter(&throttle, &format!("{n}:80"), SECOND).await);
    }
    assert_eq!(throttle.hosts.lock().unwrap().by_name.len(), FIRST_SWEEP);
    tokio::time::advance(STRICT_FOR + 3 * SECOND).await;
    drop(enter(&throttle, "new:80", NONE).await);
    let hosts = throttle.hosts.lock().unwrap();
    assert_eq!(hosts.by_name.len(), 2);
    assert!(hosts.by_name.contains_key("kept:80"));
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_delay_a_host_is_left_alone_by_chance() {
    let throttle = throttle();
    let pace = Pace {
        delay: SECOND,
        random: 4 * SECOND,
        ..Pace::default()
    };
    let mut waits = Vec::new();
    for _ in 0..20 {
        let told = throttle
            .enter("a:80", &pace, Requester::waiting())
            .await
            .unwrap()
            .finish(None)
            .time;
        assert!((SECOND..=5 * SECOND).contains(&told), "{told:?}");
        drop(check_wait(&throttle, "a:80", SECOND, told).await);
        waits.push(told);
        tokio::time::sleep(10 * SECOND).await;
    }
    waits.sort();
    assert!(waits[19] - waits[0] > SECOND, "{waits:?}");
    // The same holds where there is no delay beside it.
    let pace = Pace {
        delay: NONE,
        ..pace
    };
    assert_eq!(throttle.parallel(&pace), 1);
}

#[tokio::test(start_paused = true)]
async fn rates_of_a_host_hold_for_all_who_ask_it() {
    let throttle = throttle();
    let counted = Pace {
        rates: "2/s, 3/4s".parse().unwrap(),
        ..Pace::default()
    };
    let (free, began) = (Pace::default(), Instant::now());
    let mut at = Vec::new();
    for n in 0..6 {
        let pace = if n % 2 == 0 { &counted } else { &free };
        drop(
            throttle
                .enter("a:80", pace, Requester::waiting())
                .await
                .unwrap(),
        );
        at.push(began.elapsed().as_secs());
    }
    assert_eq!(at, [0, 0, 1, 4, 4, 5]);
    // Other hosts have limits of their own.
    let permit = throttle
        .enter("b:80", &counted, Requester::waiting())
        .await
        .unwrap();
    assert_eq!(permit.finish(None).time, NONE);
    drop(
        throttle
            .enter("b:80", &counted, Requester::waiting())
            .await
            .unwrap(),
    );
    drop(check_wait(&throttle, "b:80", NONE, SECOND).await);
    // A requester that would have to wait for long is told to come again.
    let hourly = Pace {
        rates: "1/h".parse().unwrap(),
        ..Pace::default()
    };
    drop(
        throttle
            .enter("c:80", &hourly, Requester::waiting())
            .await
            .unwrap(),
    );
    let other = throttle.enter("c:80", &free, Requester::waiting()).await;
    let pause = 3_600 * SECOND;
    assert_eq!(other.unwrap_err().pause, pause);
    // The rate is forgotten when no caller asks for it any more.
    tokio::time::advance(3 * 3_600 * SECOND + STRICT_FOR).await;
    drop(
        throttle
            .enter("c:80", &free, Requester::waiting())
            .await
            .unwrap(),
    );
    drop(
        throttle
            .enter("c:80", &free, Requester::waiting())
            .await
            .unwrap(),
    );
}

/// A requester that holds nothing while it waits.
fn crawl(number: u64) -> Requester {
    Requester {
        crawl: number,
        max_wait: Some(Duration::from_millis(20)),
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_comes_early_is_told_when_to_come_again() {
    let throttle = throttle();
    let pace = Pace::of_delay(SECOND);
    let permit = throttle.enter("a:80", &pace, crawl(1)).await.unwrap();
    // The request in flight may take long, so its end is not waited for.
    let asked = Instant::now();
    let Err(Paused { pause, .. }) = throttle.enter("a:80", &pace, crawl(1)).await else {
        panic!("one request at a time")
    };
    assert_eq!((pause, asked.elapsed()), (SECOND, NONE));
    drop(permit);
    tokio::time::advance(SECOND - Duration::from_millis(200)).await;
    let Err(Paused { pause, .. }) = throttle.enter("a:80", &pace, crawl(1)).await else {
        panic!("it is early")
    };
    assert_eq!(pause, Duration::from_millis(200));
    // The last milliseconds are waited for in the throttle.
    tokio::time::advance(pause - Duration::from_millis(10)).await;
    drop(throttle.enter("a:80", &pace, crawl(1)).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn turns_go_round_the_crawls_that_come_again() {
    let throttle = throttle();
    let pace = Pace::of_delay(SECOND);
    let turns = Mutex::new(Vec::new());
    // The first crawl always comes before the others.
    let one = |number: u64, head_start: Duration| {
        let (throttle, pace, turns) = (&throttle, &pace, &turns);
        async move {
            for _ in 0..4 {
                loop {
                    match throttle.enter("a:80", pace, crawl(number)).await {
                        Ok(permit) => {
                            turns.lock().unwrap().push(number);
                            tokio::time::sleep(permit.finish(None).time).await;
                            break;
                        }
                        Err(Paused { pause, .. }) => tokio::time::sleep(pause + head_start).await,
                    }
                }
            }
        }
    };
    let late = Duration::from_millis(3);
    futures::join!(one(1, NONE), one(2, late), one(3, late));
    let turns = turns.into_inner().unwrap();
    for (n, three) in turns.chunks(3).enumerate() {
        let mut crawls = three.to_vec();
        crawls.sort_unstable();
        assert_eq!(crawls, [1, 2, 3], "round {n} of {turns:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_does_not_come_again_holds_up_the_others_once() {
    let throttle = throttle();
    let pace = Pace::of_delay(SECOND);
    drop(throttle.enter("a:80", &pace, crawl(1)).await.unwrap());
    let Err(Paused { pause, .. }) = throttle.enter("a:80", &pace, crawl(2)).await else {
        panic!("it is early")
    };
    tokio::time::advance(pause).await;
    // The turn is kept for the second crawl.
    let Err(Paused { pause: behind, .. }) = throttle.enter("a:80", &pace, crawl(1)).await else {
        panic!("it is the turn of another")
    };
    assert_eq!(behind, SECOND);
    tokio::time::advance(behind).await;
    for _ in 0..2 {
        drop(throttle.enter("a:80", &pace, crawl(1)).await.unwrap());
        tokio::time::advance(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_from_before_is_kept_and_shortens_no_other() {
    let throttle = throttle();
    throttle.rest("a", 5 * SECOND);
    throttle.rest("a", SECOND);
    let permit = check_wait(&throttle, "a", NONE, 5 * SECOND).await;
    permit.finish(well(NONE));
    drop(check_wait(&throttle, "a", NONE, NONE).await);
    // No pause is longer than the setting allows.
    throttle.rest("b", 100 * SECOND);
    drop(check_wait(&throttle, "b", NONE, 8 * SECOND).await);
}
