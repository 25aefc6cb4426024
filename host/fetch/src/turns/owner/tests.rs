//! Tests of the owner of hosts: its answers at given moments.

use super::super::call::Ended;
use super::super::testing::process;
use super::*;
use Say::{Again, Busy, Return, Unused, Want};

/// An owner that has owned all hosts for long.
struct Stage {
    owner: Owner,
    begun: Instant,
}

/// Message of a worker.
#[derive(Debug, Clone, Copy)]
enum Say {
    Want,
    Busy,
    /// The request ended `.0` milliseconds ago, and the host is left alone for `.1` milliseconds from then on.
    Return(u64, u64),
    /// The same, and the worker wants the host again.
    Again(u64, u64),
    Unused,
}

impl Stage {
    fn new() -> Self {
        Self {
            owner: Owner::default(),
            begun: Instant::now() + Duration::from_secs(1_000),
        }
    }

    fn at(&self, millis: u64) -> Instant {
        self.begun + Duration::from_millis(millis)
    }

    /// Sends a worker's message about a host with a delay of two seconds. Returns the number of turns, or
    /// after how many milliseconds to come again.
    fn say(&mut self, worker: u64, at: u64, say: Say) -> Result<u32, u64> {
        self.say_of("h", 2_000, worker, at, say)
    }

    fn say_of(
        &mut self,
        host: &str,
        delay: u64,
        worker: u64,
        at: u64,
        say: Say,
    ) -> Result<u32, u64> {
        let ended = |ago, pause| {
            Some(Ended {
                ago: Duration::from_millis(ago),
                pause: Duration::from_millis(pause),
            })
        };
        let ask = TurnRequest {
            host: host.into(),
            delay: Duration::from_millis(delay),
            is_wanted: matches!(say, Want | Again(..)),
            is_in_flight: matches!(say, Busy),
            ended: match say {
                Return(ago, pause) | Again(ago, pause) => ended(ago, pause),
                Want | Busy | Unused => None,
            },
        };
        let since = self.begun - Duration::from_secs(900);
        let at = self.at(at);
        match self.owner.ask(&process(worker), &ask, since, at) {
            Answer::Noted => Err(0),
            Answer::Granted(grant) => Ok(grant.turns),
            Answer::Later { after } => Err(after.as_millis() as u64),
        }
    }
}

#[test]
fn a_lease_has_as_many_turns_as_its_time_has_delays() {
    for (delay, n) in [
        (0, 4),
        (1, 4),
        (1_000, 4),
        (2_000, 3),
        (3_000, 2),
        (60_000, 1),
    ] {
        let mut stage = Stage::new();
        assert_eq!(stage.say_of("h", delay, 1, 0, Want), Ok(n), "{delay} ms");
    }
}

#[test]
fn a_host_is_lent_again_when_its_delay_is_over() {
    let mut stage = Stage::new();
    assert_eq!(stage.say(1, 0, Want), Ok(3));
    assert_eq!(stage.say(2, 100, Want), Err(5_900), "three turns take 6 s");
    assert_eq!(stage.say(1, 3_000, Return(500, 0)), Err(0));
    assert_eq!(stage.say(2, 3_100, Want), Err(1_400), "from the end");
    assert_eq!(stage.say(2, 4_500, Want), Ok(3));
}

#[test]
fn a_pause_that_the_host_asked_for_is_kept_by_all() {
    let mut stage = Stage::new();
    stage.say(1, 0, Want).unwrap();
    assert_eq!(stage.say(1, 100, Return(100, 60_000)), Err(0));
    assert_eq!(stage.say(2, 10_000, Want), Err(50_000));
    assert_eq!(stage.say(2, 60_000, Want), Ok(3));
}

#[test]
fn all_keep_the_longest_delay_that_one_asks_for() {
    let mut stage = Stage::new();
    assert_eq!(stage.say_of("h", 4_000, 1, 0, Want), Ok(2));
    stage
        .say_of("h", 4_000, 1, 10, Return(0, 4_000))
        .unwrap_err();
    assert_eq!(stage.say_of("h", 1_000, 2, 20, Want), Err(3_990));
    let since = stage.begun;
    let ask = TurnRequest {
        host: "h".into(),
        delay: Duration::from_secs(1),
        is_wanted: true,
        is_in_flight: false,
        ended: None,
    };
    let at = stage.at(4_010);
    let answer = stage.owner.ask(&process(2), &ask, since, at);
    let delay = Duration::from_secs(4);
    let lasts = LEASE;
    let turns = 2;
    assert_eq!(
        answer,
        Answer::Granted(Grant {
            turns,
            lasts,
            delay
        })
    );
    stage
        .say_of("h", 1_000, 2, 5_000, Return(0, 1_000))
        .unwrap_err();
    // It was asked for last at the beginning.
    assert_eq!(stage.say_of("h", 1_000, 2, 90_000, Want), Ok(4));
}

#[test]
fn a_lease_that_is_not_returned_is_waited_for_with_a_delay() {
    let mut stage = Stage::new();
    stage.say(1, 0, Want).unwrap();
    for at in [1_000, 4_000, 5_000, 6_999] {
        stage.say(2, at, Want).unwrap_err();
    }
    assert_eq!(stage.say(2, 7_000, Want), Ok(3));
}

#[test]
fn a_request_in_flight_keeps_the_host() {
    let mut stage = Stage::new();
    stage.say(1, 0, Want).unwrap();
    for at in [4_000, 8_000, 12_000] {
        stage.say(1, at, Busy).unwrap_err();
        stage.say(2, at + 3_000, Want).unwrap_err();
    }
    stage.say(1, 16_000, Return(0, 0)).unwrap_err();
    assert_eq!(stage.say(2, 16_000, Want), Err(2_000));
    assert_eq!(stage.say(2, 18_000, Want), Ok(3));
    // A request that is never heard of again ends with the time that was told last.
    stage.say(2, 19_000, Busy).unwrap_err();
    assert_eq!(stage.say(1, 25_999, Want), Err(1));
    assert_eq!(stage.say(1, 26_000, Want), Ok(3));
}

#[test]
fn workers_take_turns_in_the_order_in_which_they_came() {
    let mut stage = Stage::new();
    stage.say(1, 0, Want).unwrap();
    assert_eq!(stage.say(2, 10, Want), Err(5_990));
    assert_eq!(stage.say(3, 20, Want), Err(11_980), "after the turns of 2");
    assert_eq!(stage.say(1, 4_000, Again(0, 0)), Err(14_000), "after both");
    assert_eq!(stage.say(3, 6_000, Want), Err(6_000), "2 comes first");
    assert_eq!(stage.say(2, 6_000, Want), Ok(3));
    stage.say(2, 10_000, Return(0, 0)).unwrap_err();
    assert_eq!(stage.say(3, 12_000, Want), Ok(3));
}

#[test]
fn a_turn_is_kept_for_a_moment_and_then_lost() {
    let mut stage = Stage::new();
    stage.say(1, 0, Want).unwrap();
    stage.say(2, 10, Want).unwrap_err();
    stage.say(1, 4_000, Again(0, 0)).unwrap_err();
    stage.say(1, 6_900, Want).unwrap_err();
    assert_eq!(
        stage.say(1, 7_001, Want),
        Ok(3),
        "2 should have come at 6 s"
    );
}

#[test]
fn a_lease_that_nobody_used_costs_no_delay() {
    let mut stage = Stage::new();
    stage.say(1, 0, Want).unwrap();
    stage.say(1, 500, Unused).unwrap_err();
    assert_eq!(stage.say(2, 500, Want), Ok(3));
}

#[test]
fn a_worker_that_asks_again_may_have_its_own_lease_again() {
    let mut stage = Stage::new();
    stage.say(1, 0, Want).unwrap();
    // The answer was lost, and the worker has asked the host alone since.
    assert_eq!(stage.say(1, 3_000, Again(1_000, 0)), Err(1_000));
    assert_eq!(stage.say(1, 4_000, Want), Ok(3));
}

#[test]
fn a_new_owner_waits_for_the_leases_of_the_one_before() {
    let mut owner = Owner::default();
    let since = Instant::now();
    let ask = |delay: u64| TurnRequest {
        host: "h".into(),
        delay: Duration::from_secs(delay),
        is_wanted: true,
        is_in_flight: false,
        ended: None,
    };
    let mut at = |seconds: u64, delay: u64| {
        let now = since + Duration::from_secs(seconds);
        owner.ask(&process(1), &ask(delay), since, now)
    };
    let after = Duration::from_secs(7);
    assert_eq!(at(1, 2), Answer::Later { after });
    // A longer delay counts for the unknown request, too.
    let after = Duration::from_secs(5);
    assert_eq!(at(5, 4), Answer::Later { after });
    assert!(matches!(at(10, 2), Answer::Granted(_)));
}

#[test]
fn hosts_beyond_the_bound_get_no_turn_until_there_is_room() {
    let mut stage = Stage::new();
    stage.owner.max_hosts = 2;
    stage.say_of("a", 2_000, 1, 0, Want).unwrap();
    stage.say_of("b", 2_000, 1, 0, Want).unwrap();
    assert_eq!(stage.say_of("c", 2_000, 1, 0, Want), Err(1_000));
    // No worker was told that the host is being asked.
    assert_eq!(stage.say_of("c", 2_000, 2, 1_000, Busy), Err(0));
    stage
        .say_of("a", 2_000, 1, 1_000, Return(0, 0))
        .unwrap_err();
    stage.say_of("c", 2_000, 1, 2_000, Want).unwrap_err();
    assert_eq!(stage.say_of("c", 2_000, 1, 3_000, Want), Err(7_000));
    assert_eq!(stage.owner.hosts.len(), 2);
}

#[test]
fn a_full_table_is_swept_from_time_to_time() {
    let full = || {
        let mut stage = Stage::new();
        stage.owner.max_hosts = 1;
        stage.say_of("a", 1_000, 1, 0, Want).unwrap();
        stage.say_of("a", 1_000, 1, 0, Return(0, 0)).unwrap_err();
        stage
    };
    let is_kept = |stage: &mut Stage, at| {
        let _granted_or_not = stage.say_of("b", 1_000, 1, at, Want);
        stage.owner.hosts.contains_key("b")
    };
    let free_at = (0..20_000).find(|at| is_kept(&mut full(), *at));
    let (free_at, mut stage) = (free_at.unwrap(), full());
    for at in [free_at - 1, free_at, free_at + 248] {
        assert!(!is_kept(&mut stage, at), "{at}");
    }
    assert!(is_kept(&mut stage, free_at + 249));
}

#[test]
fn hosts_are_forgotten_once_their_delay_is_over() {
    let mut stage = Stage::new();
    for n in 0..3_000 {
        let at = n * 1_000;
        stage.say_of(&format!("h{n}"), 1_000, 1, at, Want).unwrap();
        stage
            .say_of(&format!("h{n}"), 1_000, 1, at, Return(0, 0))
            .unwrap_err();
    }
    assert!(
        stage.owner.hosts.len() <= FIRST_SWEEP,
        "{}",
        stage.owner.hosts.len()
    );
    stage.owner.keep_owned(|host| host == "h2999");
    assert_eq!(stage.owner.hosts.len(), 1);
}
