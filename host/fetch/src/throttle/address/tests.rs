//! Tests of moments, promises and ranks, on a clock that the tests set.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const INTERVAL: Duration = Duration::from_millis(250);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// An address, and the moment at which its story begins.
struct Story {
    clock: AddressClock,
    began: Instant,
}

impl Story {
    fn begin() -> Self {
        Self {
            clock: AddressClock::default(),
            began: Instant::now(),
        }
    }

    /// Asks for a turn of a host `at` milliseconds after the beginning. The error holds the moment to come again.
    fn ask(&mut self, host: &str, at: u64, is_begun: bool) -> Result<(), u64> {
        let now = self.began + millis(at);
        let taken = self.clock.take(host, is_begun, INTERVAL, now);
        taken.map_err(|again| u64::try_from((again - self.began).as_millis()).unwrap())
    }

    #[track_caller]
    fn check(&mut self, host: &str, at: u64, expected: Result<(), u64>) {
        assert_eq!(self.ask(host, at, false), expected, "{host} at {at} ms");
    }
}

#[test]
fn hosts_of_an_address_get_moments_of_their_own() {
    let mut story = Story::begin();
    story.check("a", 0, Ok(()));
    story.check("b", 0, Err(250));
    story.check("c", 10, Err(500));
    story.check("d", 20, Err(750));
    // A host that asks too early keeps its moment.
    story.check("c", 30, Err(500));
    for (host, at) in [("b", 250), ("c", 500), ("d", 750)] {
        story.check(host, at, Ok(()));
    }
    story.check("a", 800, Err(1_000));
    // No host waits, so no turn is kept.
    story.check("b", 5_000, Ok(()));
}

#[test]
fn a_promise_is_kept_for_a_while_and_then_given_to_the_next() {
    let mut story = Story::begin();
    story.check("a", 0, Ok(()));
    story.check("gone", 0, Err(250));
    story.check("b", 340, Err(590));
    story.check("c", 351, Ok(()));
    // A host that was promised a later moment is served at the next free one.
    story.check("b", 590, Err(601));
    story.check("b", 601, Ok(()));
}

#[test]
fn a_host_that_comes_late_is_before_those_that_come_for_the_first_time() {
    let mut story = Story::begin();
    story.check("a", 0, Ok(()));
    story.check("late", 0, Err(250));
    for n in 0..10 {
        let host = format!("host{n}");
        story.check(&host, 0, Err(500 + n * 250));
    }
    story.check("host0", 500, Ok(()));
    story.check("new", 600, Err(3_250));
    story.check("late", 650, Err(750));
    // That moment was promised to another host, too. Both have waited, and the first that comes has it.
    story.check("late", 750, Ok(()));
    story.check("host1", 750, Err(1_000));
    story.check("host2", 1_000, Ok(()));
    story.check("host1", 1_000, Err(1_250));
    story.check("host1", 1_250, Ok(()));
}

#[test]
fn a_request_that_was_begun_goes_before_later_moments() {
    let mut story = Story::begin();
    story.check("a", 0, Ok(()));
    for n in 0..10 {
        let host = format!("host{n}");
        story.check(&host, 0, Err(250 + n * 250));
    }
    assert_eq!(story.ask("a", 100, true), Err(250));
    assert_eq!(story.ask("a", 250, true), Ok(()));
    story.check("host0", 250, Err(500));
    story.check("host0", 500, Ok(()));
}

#[test]
fn nobody_is_sent_away_for_longer_than_a_while() {
    let mut story = Story::begin();
    story.check("a", 0, Ok(()));
    for n in 1..2_000 {
        let told = story.ask(&format!("host{n}"), 0, false).unwrap_err();
        assert_eq!(told, (n * 250).min(300_000));
    }
    // The host asks again on the way, and is served at its moment.
    story.check("host1600", 300_000, Err(400_000));
    story.check("host1600", 400_000, Ok(()));
}

#[test]
fn addresses_do_not_hold_each_other_up_and_idle_ones_are_forgotten() {
    let (addresses, began) = (Addresses::default(), Instant::now());
    let take = |n: u32, host: &str, at: Duration| {
        let shared = SharedAddress {
            address: Address::of(IpAddr::V4(n.into())),
            is_begun: false,
        };
        addresses.take(shared, host, INTERVAL, began + at)
    };
    assert_eq!(take(0, "a", Duration::ZERO), Ok(()));
    assert_eq!(take(0, "b", Duration::ZERO), Err(began + INTERVAL));
    for n in 1..FIRST_SWEEP as u32 {
        assert_eq!(take(n, "c", Duration::ZERO), Ok(()));
    }
    assert_eq!(addresses.clocks().by_address.len(), FIRST_SWEEP);
    // The first address has a promise that no host has come for yet.
    assert_eq!(take(9_999, "c", INTERVAL), Ok(()));
    assert_eq!(addresses.clocks().by_address.len(), 2);
    // Both addresses are idle once their hosts stay away.
    let mut clocks = addresses.clocks();
    clocks
        .by_address
        .retain(|_, clock| !clock.is_idle(INTERVAL, began + RANK_FOR));
    assert_eq!(clocks.by_address.len(), 1);
    let later = began + RANK_FOR + 2 * INTERVAL;
    clocks
        .by_address
        .retain(|_, clock| !clock.is_idle(INTERVAL, later));
    assert!(clocks.by_address.is_empty());
}

#[test]
fn an_ipv6_network_is_one_address() {
    let of = |text: &str| Address::of(text.parse().unwrap());
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:9"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:8.8.8.8"), of("8.8.8.8"));
    assert_ne!(of("8.8.8.8"), of("8.8.8.9"));
    assert_eq!(of("8.8.8.8").to_string(), "8.8.8.8");
    assert_eq!(of("2001:db8::1").to_string(), "2001:db8::/64");
}

/// Simulates 200 hosts of one address for 400 s, each coming as late as `late` says, and returns the turns of
/// each. It checks the distance of all turns, their number, and the number of requests for each.
#[track_caller]
fn turns(least: u32, most_asked: u32, late: impl Fn(u64, u64) -> u64) -> Vec<u32> {
    let (mut clock, began) = (AddressClock::default(), Instant::now());
    let mut coming: BinaryHeap<_> = (0..200).map(|host| Reverse((began, host))).collect();
    let (mut turns, mut n_asked) = (vec![0; 200], 0);
    let mut last: Option<Instant> = None;
    while let Some(Reverse((now, host))) = coming.pop()
        && now < began + millis(400_000)
    {
        n_asked += 1;
        let again = match clock.take(&host.to_string(), false, INTERVAL, now) {
            Ok(()) => {
                assert!(last.is_none_or(|last| now >= last + INTERVAL));
                last = Some(now);
                turns[host as usize] += 1;
                // This is the delay of the host itself.
                now + millis(1_000)
            }
            Err(again) => again,
        };
        assert!(again > now);
        // A host whose moment is close waits in the throttle.
        let late = match again - now < millis(20) {
            true => 0,
            false => late(host, n_asked),
        };
        coming.push(Reverse((again + millis(late), host)));
    }
    let all: u32 = turns.iter().sum();
    let asked = n_asked as f64 / f64::from(all);
    assert!(all >= least, "{all} turns");
    assert!(asked < f64::from(most_asked), "{asked} questions a turn");
    turns
}

#[track_caller]
fn check_fair(turns: &[u32]) {
    let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
    assert!(most - least <= 2, "from {least} to {most} turns");
}

#[test]
fn all_hosts_of_an_address_get_as_many_turns() {
    // The hosts come in time, then a few milliseconds late as timers are, then some always later than others.
    check_fair(&turns(1_600, 3, |_, _| 0));
    check_fair(&turns(1_560, 3, |_, n| n % 7));
    check_fair(&turns(1_400, 4, |host, _| host % 2 * 60));
}

#[test]
fn hosts_that_come_much_too_late_have_turns_all_the_same() {
    // This is the case where all places of a crawl are taken: promises are over when their hosts come.
    let late = |host, n| 500 + n * 7_919 % 1_000 + host;
    let turns = turns(1_200, 10, late);
    assert!(*turns.iter().min().unwrap() >= 4, "{turns:?}");
}
