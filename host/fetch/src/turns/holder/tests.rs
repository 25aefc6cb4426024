//! Tests of an asking worker at one host: its actions at given moments.

use super::super::call::Grant;
use super::*;

const DELAY: Duration = Duration::from_secs(2);

struct Stage {
    holder: Holder,
    begun: Instant,
}

impl Stage {
    fn new() -> Self {
        Self {
            holder: Holder::default(),
            begun: Instant::now(),
        }
    }

    fn at(&self, millis: u64) -> Instant {
        self.begun + Duration::from_millis(millis)
    }

    fn turn(&mut self, at: u64) -> TurnDecision {
        let now = self.at(at);
        self.holder.turn(DELAY, now)
    }

    fn later(&self, at: u64) -> TurnDecision {
        TurnDecision::Later(self.at(at))
    }

    fn begin(&mut self, at: u64) -> bool {
        let now = self.at(at);
        self.holder.begin(DELAY, now)
    }

    fn end(&mut self, at: u64) -> bool {
        let now = self.at(at);
        self.holder.end(Duration::ZERO, now)
    }

    fn tick(&mut self, at: u64) -> Due {
        let now = self.at(at);
        self.holder.tick(true, now)
    }

    /// Returns the news for the owner: true if turns are wanted, true if a request is in flight, and how many
    /// milliseconds ago the last one ended.
    fn tell(&mut self, at: u64) -> Option<(bool, bool, Option<u128>)> {
        let now = self.at(at);
        let ask = self.holder.tell(&"h".into(), now)?;
        let ago = ask.ended.map(|ended| ended.ago.as_millis());
        Some((ask.is_wanted, ask.is_in_flight, ago))
    }

    /// Asks, and gets this number of turns.
    fn granted(&mut self, asked: u64, now: u64, turns: u32) {
        assert_eq!(self.turn(asked), TurnDecision::AskOwner);
        self.tell(asked).unwrap();
        let grant = Grant {
            turns,
            lasts: LEASE,
            delay: DELAY,
        };
        let (asked, now) = (self.at(asked), self.at(now));
        (self.holder).answered(Answer::Granted(grant), asked, now);
    }
}

#[test]
fn the_owner_is_asked_once_and_told_what_came_of_it() {
    let mut stage = Stage::new();
    assert_eq!(stage.turn(0), TurnDecision::AskOwner);
    assert_eq!(
        stage.turn(10),
        stage.later(35),
        "the answer may be here then"
    );
    assert_eq!(stage.tell(10), Some((true, false, None)));
    let grant = Grant {
        turns: 2,
        lasts: LEASE,
        delay: DELAY,
    };
    let (asked, now) = (stage.at(10), stage.at(20));
    stage.holder.answered(Answer::Granted(grant), asked, now);
    assert_eq!(stage.turn(30), TurnDecision::Free);
    assert!(stage.begin(40));
    assert_eq!(stage.tell(40), Some((false, true, None)));
    assert!(!stage.begin(50), "one at a time");
    assert!(!stage.end(100), "there is another turn");
    assert_eq!(stage.tell(100), None, "the lease is in use");
    assert_eq!(stage.turn(200), stage.later(2_100));
    assert!(!stage.begin(2_000));
    assert!(stage.begin(2_100));
    assert!(stage.end(2_300), "the last turn is over");
    assert_eq!(stage.tell(2_310), Some((false, false, Some(10))));
    assert_eq!(stage.turn(2_320), TurnDecision::AskOwner);
    assert_eq!(stage.tell(2_320), Some((true, false, None)), "it was told");
}

#[test]
fn a_lease_that_ran_out_at_the_gate_is_no_turn() {
    let mut stage = Stage::new();
    stage.granted(0, 900, 4);
    assert_eq!(stage.turn(4_999), TurnDecision::Free);
    assert!(!stage.begin(5_000), "it counts from before the call");
    assert_eq!(stage.turn(5_000), TurnDecision::AskOwner);
}

#[test]
fn a_lease_goes_back_when_no_turn_fits_into_it_or_nobody_comes() {
    let mut stage = Stage::new();
    stage.granted(0, 0, 4);
    assert!(stage.begin(0));
    assert!(stage.end(3_500), "the next turn would be at 5.5 s");
    let mut stage = Stage::new();
    stage.granted(0, 0, 4);
    assert_eq!(stage.tick(499), Due::Nothing);
    assert_eq!(stage.tick(500), Due::Tell);
    assert_eq!(stage.tell(500), Some((false, false, None)));
    assert_eq!(stage.tick(501), Due::Forget);
    let mut stage = Stage::new();
    stage.granted(0, 0, 4);
    assert!(stage.begin(0));
    assert!(!stage.end(100));
    assert_eq!(stage.tick(2_500), Due::Nothing, "the delay is no idleness");
    assert_eq!(stage.tick(2_600), Due::Tell);
    assert_eq!(stage.tell(2_600), Some((false, false, Some(2_500))));
}

#[test]
fn whoever_is_told_to_come_later_asks_again_then() {
    let mut stage = Stage::new();
    assert_eq!(stage.turn(0), TurnDecision::AskOwner);
    let after = Duration::from_secs(3);
    let now = stage.at(100);
    (stage.holder).answered(Answer::Later { after }, now, now);
    assert_eq!(stage.turn(200), stage.later(3_100), "from the answer on");
    assert_eq!(stage.turn(3_100), TurnDecision::AskOwner);
}

#[test]
fn without_an_owner_the_delay_is_twice_as_long() {
    let mut stage = Stage::new();
    assert_eq!(stage.turn(0), TurnDecision::AskOwner);
    let until = stage.at(6_000);
    stage.holder.unanswered(until);
    assert_eq!(stage.turn(1_000), TurnDecision::Free);
    assert!(stage.begin(1_000));
    assert!(!stage.end(1_100), "nobody would hear it");
    assert_eq!(stage.turn(1_200), stage.later(5_100));
    assert!(!stage.begin(5_099));
    assert!(stage.begin(5_100));
    stage.end(5_200);
    assert_eq!(
        stage.turn(6_000),
        TurnDecision::AskOwner,
        "it may answer by now"
    );
    assert_eq!(stage.tell(6_000), Some((true, false, Some(800))));
}

#[test]
fn the_owner_is_reminded_of_a_request_in_flight() {
    let mut stage = Stage::new();
    stage.granted(0, 0, 1);
    assert!(stage.begin(0));
    assert_eq!(stage.tick(1_999), Due::Nothing);
    for at in [2_000, 4_000, 6_000] {
        assert_eq!(stage.tick(at), Due::Tell);
        assert_eq!(stage.tell(at), Some((false, true, None)));
        assert_eq!(stage.tick(at + 1), Due::Nothing);
        assert_eq!(stage.turn(at + 1), stage.later(at + 2_001), "no wish yet");
    }
    let until = stage.at(20_000);
    stage.holder.unanswered(until);
    assert_eq!(stage.tick(6_100), Due::Tell, "it was not heard");
    assert!(stage.end(10_000));
}

#[test]
fn a_new_owner_is_told_of_what_the_one_before_knew() {
    let mut stage = Stage::new();
    stage.granted(0, 0, 4);
    assert!(stage.begin(0));
    stage.holder.owner_changed();
    assert_eq!(stage.tick(1), Due::Tell, "a request is in flight");
    assert_eq!(stage.tell(1), Some((false, true, None)));
    assert!(stage.end(100));
    stage.tell(100).unwrap();
    stage.holder.owner_changed();
    assert_eq!(stage.tick(200), Due::Tell);
    assert_eq!(stage.tell(200), Some((false, false, Some(100))));
    assert_eq!(stage.tick(4_099), Due::Nothing, "it may go alone yet");
    assert_eq!(stage.tick(4_100), Due::Forget);
}

#[test]
fn a_late_answer_to_nobody_is_no_turn() {
    let mut stage = Stage::new();
    let grant = Grant {
        turns: 4,
        lasts: LEASE,
        delay: DELAY,
    };
    let now = stage.at(0);
    stage.holder.answered(Answer::Granted(grant), now, now);
    assert!(!stage.begin(0));
}

#[test]
fn a_pause_longer_than_the_lease_gives_it_back() {
    let mut stage = Stage::new();
    stage.granted(0, 0, 4);
    assert!(stage.begin(0));
    let now = stage.at(100);
    assert!(stage.holder.end(Duration::from_secs(60), now));
    let ask = stage.holder.tell(&"h".into(), now).unwrap();
    assert_eq!(ask.ended.unwrap().pause, Duration::from_secs(60));
    assert_eq!(stage.tick(60_099), Due::Nothing);
    assert_eq!(stage.tick(60_100), Due::Forget);
}
