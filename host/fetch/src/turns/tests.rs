//! Tests of shared turns of two workers in one process, which call each other.

use std::sync::atomic::Ordering;

use super::call::{LEASE, TurnRequest};
use super::testing::{DELAY, Network, TwoWorkers, process};
use super::*;

/// Waits until a host has a turn, takes it, and returns how long that took.
async fn taken(turns: &Turns, host: &str) -> (TurnInUse, Duration) {
    let begun = Instant::now();
    loop {
        match turns.turn(host, DELAY) {
            Ok(()) => match turns.begin(host, DELAY) {
                Some(turn) => return (turn, begun.elapsed()),
                None => tokio::time::sleep(SHORTEST).await,
            },
            Err(pause) => tokio::time::sleep(pause).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_workers_ask_a_host_as_one() {
    let stage = TwoWorkers::new().await;
    let host = &stage.of_second(1)[0];
    let ends = Mutex::new(Vec::new());
    let crawl = async |turns: &Turns| {
        for _ in 0..10 {
            let (turn, _) = taken(turns, host).await;
            let begun = Instant::now();
            tokio::time::sleep(Duration::from_millis(100)).await;
            ends.lock().unwrap().push((begun, Instant::now()));
            turn.finish(DELAY);
        }
    };
    let begun = Instant::now();
    tokio::join!(crawl(&stage.first), crawl(&stage.second));
    let ends = ends.into_inner().unwrap();
    for pair in ends.windows(2) {
        assert!(
            pair[1].0 >= pair[0].1 + DELAY,
            "{:?}",
            pair[1].0 - pair[0].1
        );
    }
    // The time is that of twenty requests of a tenth of a second with their delays, and little more.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    let n_calls = stage.network.n_calls.load(Ordering::Relaxed);
    assert!(n_calls < 40, "{n_calls} calls");
    stage.scope.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn many_hosts_are_asked_for_in_one_call() {
    let stage = TwoWorkers::new().await;
    let hosts = stage.of_second(200);
    for host in &hosts {
        stage.first.turn(host, DELAY).unwrap_err();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let n_calls = stage.network.n_calls.load(Ordering::Relaxed);
    let n_asks = stage.network.n_asks.load(Ordering::Relaxed);
    assert!(n_calls <= 2 && n_asks == hosts.len(), "{n_calls}, {n_asks}");
    for host in &hosts {
        assert!(stage.first.begin(host, DELAY).is_some(), "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_not_reached_is_not_waited_for() {
    let stage = TwoWorkers::new().await;
    let hosts = stage.of_second(2);
    for is_slow in [false, true] {
        stage.network.is_cut.store(!is_slow, Ordering::Relaxed);
        stage.network.is_slow.store(is_slow, Ordering::Relaxed);
        let (turn, took) = taken(&stage.first, &hosts[0]).await;
        assert!(took <= DEADLINE + Duration::from_millis(100), "{took:?}");
        drop(turn);
        let (turn, took) = taken(&stage.first, &hosts[0]).await;
        assert!(took >= 2 * DELAY, "{took:?}");
        drop(turn);
        // Another host of this owner is not asked about meanwhile.
        let (turn, took) = taken(&stage.first, &hosts[1]).await;
        assert!(took < Duration::from_millis(10), "{took:?}");
        drop(turn);
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    stage.network.is_slow.store(false, Ordering::Relaxed);
    let n_before = stage.network.n_calls.load(Ordering::Relaxed);
    tokio::time::sleep(LEASE * 2).await;
    drop(taken(&stage.first, &hosts[0]).await);
    assert!(stage.network.n_calls.load(Ordering::Relaxed) > n_before);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_ends_its_turn() {
    let stage = TwoWorkers::new().await;
    let host = &stage.of_second(1)[0];
    drop(taken(&stage.first, host).await);
    let (_turn, took) = taken(&stage.second, host).await;
    // The lease of the first worker is returned once it is unused; the second comes when it was told to.
    let expected = Duration::from_secs(1)..Duration::from_secs(5);
    assert!(expected.contains(&took), "{took:?}");
}

#[tokio::test]
async fn calls_have_bounds() {
    let turns = Turns::new(process(1), Arc::new(Arc::<Network>::default()));
    let ask = TurnRequest {
        host: "a.test".into(),
        delay: DELAY,
        is_wanted: true,
        is_in_flight: false,
        ended: None,
    };
    let refused = |asks: Vec<TurnRequest>| {
        let from = process(2);
        turns
            .receive(TurnRequests { from, asks })
            .unwrap_err()
            .to_string()
    };
    let many = vec![ask.clone(); call::MAX_ASKS + 1];
    assert_eq!(refused(many), "1025 hosts at once, at most 1024");
    for n_bytes in [0, MAX_NAME + 1] {
        let host = "x".repeat(n_bytes).into();
        let named = TurnRequest {
            host,
            ..ask.clone()
        };
        let expected = format!("the name of a host has {n_bytes} bytes; it has 1 to 512");
        assert_eq!(refused(vec![named]), expected);
    }
    let delay = MAX_DELAY + Duration::from_secs(1);
    let slow = TurnRequest { delay, ..ask };
    assert_eq!(refused(vec![slow]), "a delay of 86401s, at most 86400s");
    let long = "x".repeat(MAX_NAME + 1);
    assert_eq!(turns.turn(&long, DELAY), Ok(()), "nobody is asked for it");
    assert!(turns.begin(&long, DELAY).is_some());
}
