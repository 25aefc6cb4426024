//! Tests of due times, of clocks that are changed twice a year, and of clocks that are set.

use jiff::Timestamp;

use super::*;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

fn at(text: &str) -> UnixMillis {
    let at: Timestamp = text.parse().unwrap();
    u64::try_from(at.as_millisecond()).unwrap()
}

fn shown(at: UnixMillis) -> String {
    let at = Timestamp::from_millisecond(i64::try_from(at).unwrap());
    at.unwrap().to_string()
}

fn raw(cron: &str, tz: &str) -> RawSchedule {
    RawSchedule {
        cron: cron.to_owned(),
        tz: tz.to_owned(),
        ..RawSchedule::default()
    }
}

fn spec(raw: RawSchedule) -> ScheduleSpec {
    ScheduleSpec::try_from(raw).unwrap()
}

fn every(every_ms: u64) -> ScheduleSpec {
    spec(RawSchedule {
        every_ms,
        ..RawSchedule::default()
    })
}

/// Checks the due times that follow a time.
#[track_caller]
fn check(cron: &str, tz: &str, after: &str, expected: &[&str]) {
    let spec = spec(raw(cron, tz));
    let mut last = at(after);
    let found = expected.iter().map(|_| {
        last = next_due(&spec, 0, last).unwrap();
        shown(last)
    });
    let found: Vec<String> = found.collect();
    assert_eq!(found, expected, "{cron} in {tz} after {after}");
}

#[test]
fn fields_name_times_as_cron_does() {
    let from = "2026-01-01T00:00:00Z";
    check(
        "0 3 * * *",
        "",
        from,
        &["2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"],
    );
    check(
        "*/20 8-9 * * *",
        "UTC",
        "2026-01-01T08:40:00Z",
        &["2026-01-01T09:00:00Z", "2026-01-01T09:20:00Z"],
    );
    check(
        "0 0 1 jan,JUL *",
        "UTC",
        from,
        &["2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z"],
    );
    // 1 January 2026 is a Thursday. Both 0 and 7 are Sunday.
    for sunday in ["0", "7", "sun"] {
        let cron = format!("0 0 * * {sunday}");
        check(&cron, "UTC", from, &["2026-01-04T00:00:00Z"]);
    }
    // One of both fields of days is enough, unless one of them is a star.
    check(
        "0 0 10 * mon",
        "UTC",
        from,
        &["2026-01-05T00:00:00Z", "2026-01-10T00:00:00Z"],
    );
    check("0 0 29 2 *", "UTC", from, &["2028-02-29T00:00:00Z"]);
}

#[test]
fn a_local_time_that_does_not_exist_is_the_next_one_that_does() {
    check(
        "30 2 * * *",
        "Europe/Paris",
        "2026-03-28T12:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
    );
    // All times that do not exist are one instant, which is also that of three o'clock.
    check(
        "*/30 2,3 * * *",
        "Europe/Paris",
        "2026-03-28T12:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
    );
    // Half an hour is left out.
    check(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T00:00:00Z",
        &["2026-10-03T15:30:00Z"],
    );
    // A whole day is left out.
    check(
        "0 12 30 12 *",
        "Pacific/Apia",
        "2011-12-01T00:00:00Z",
        &["2011-12-30T10:00:00Z"],
    );
}

#[test]
fn a_local_time_that_exists_twice_is_due_once() {
    check(
        "30 2 * * *",
        "Europe/Paris",
        "2026-10-24T12:00:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
    );
    // Between both passes of that hour, and in the second one.
    for after in ["2026-10-25T00:45:00Z", "2026-10-25T01:15:00Z"] {
        check(
            "30 2 * * *",
            "Europe/Paris",
            after,
            &["2026-10-26T01:30:00Z"],
        );
    }
}

#[test]
fn the_next_due_time_is_the_same_from_wherever_it_is_computed() {
    for (cron, tz) in [
        ("*/20 1-3 * * *", "Europe/Paris"),
        ("30 2 * * *", "America/New_York"),
        ("5,35 * * * *", "Australia/Lord_Howe"),
        ("0 */6 * * *", "UTC"),
    ] {
        let spec = spec(raw(cron, tz));
        for begin in [
            "2026-03-06",
            "2026-03-27",
            "2026-04-03",
            "2026-10-02",
            "2026-10-23",
            "2026-10-31",
        ] {
            let begin = at(&format!("{begin}T00:00:00Z"));
            let end = begin + 4 * DAY;
            let mut walk = vec![next_due(&spec, 0, begin).unwrap()];
            while let Some(last) = walk.last().copied().filter(|last| *last <= end) {
                walk.push(next_due(&spec, 0, last).unwrap());
            }
            assert!(walk.is_sorted_by(|a, b| a < b), "{cron} in {tz}");
            for now in (begin..end).step_by(7 * 60_000 + 1) {
                let expected = walk.iter().find(|due| **due > now).copied();
                assert_eq!(next_due(&spec, 0, now), expected, "after {}", shown(now));
            }
        }
    }
}

#[test]
fn an_interval_is_counted_from_the_time_it_was_set() {
    let spec = every(6 * HOUR);
    let since = at("2026-01-01T01:30:00Z");
    let next = |after: u64| next_due(&spec, since, after).unwrap() - since;
    assert_eq!(next(since), 6 * HOUR);
    assert_eq!(next(since + 6 * HOUR - 1), 6 * HOUR);
    assert_eq!(next(since + 6 * HOUR), 12 * HOUR);
    // The clock was set back to before the schedule was set.
    let schedule = Schedule::new(ResourceId(1), spec.clone(), since);
    assert_eq!(schedule.step(since - 2_000), ScheduleStep::Wait);
    for back in [1, HOUR, 30 * HOUR] {
        let due = next_due(&spec, since, since - back);
        assert_eq!(due, Some(since + 6 * HOUR));
    }
}

#[test]
fn what_cannot_be_meant_is_refused_by_its_setting() {
    let check = |raw: RawSchedule, expected: &str| {
        let error = ScheduleSpec::try_from(raw).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check(RawSchedule::default(), "setting cron is missing; ");
    check(raw("0 3 * *", ""), "setting cron takes five fields: ");
    check(
        raw("60 3 * * *", ""),
        "setting cron has \"60\" as minute, which goes from 0 to 59; ",
    );
    check(
        raw("0 3 * * mo", ""),
        "setting cron has \"mo\" as day of the week, which goes from 0 to 7, or sun to sat; ",
    );
    for field in ["", ",", "5-1", "*/0", "5/2", "-1", "1-", "+1", "99999"] {
        let cron = format!("0 {field} 1 1 1");
        assert!(ScheduleSpec::try_from(raw(&cron, "")).is_err(), "{cron}");
    }
    check(
        raw("0 0 30 2 *", ""),
        "setting cron is \"0 0 30 2 *\", a time that never comes",
    );
    let long = format!("{} 3 * * *", "1,".repeat(300));
    check(
        raw(&long, ""),
        "setting cron has 608 bytes; at most 512 are allowed",
    );
    check(
        raw("0 3 * * *", "Europe/Pris"),
        "setting tz takes the name of a time zone, such as Europe/Paris or UTC, not \"Europe/Pris\"",
    );
    let with = |every_ms: u64, jitter_ms: u64, raw: RawSchedule| RawSchedule {
        every_ms,
        jitter_ms,
        ..raw
    };
    check(
        with(HOUR, 0, raw("0 3 * * *", "")),
        "setting every cannot stand beside cron; ",
    );
    check(with(HOUR, 0, raw("", "UTC")), "setting tz is for cron; ");
    for (every_ms, shown) in [(MINUTE - 1, "59s 999ms"), (366 * DAY + 1, "1year 18h 1ms")] {
        let expected = format!("setting every is {shown}; it goes from 1 minute to 366 days");
        check(with(every_ms, 0, RawSchedule::default()), &expected);
    }
    check(
        with(HOUR, DAY + 1, RawSchedule::default()),
        "setting jitter is 1day 1ms; it goes up to 1 day",
    );
    let words = |overlap: &str, missed: &str| RawSchedule {
        overlap: overlap.to_owned(),
        missed: missed.to_owned(),
        ..raw("0 3 * * *", "")
    };
    check(
        words("wait", ""),
        "setting overlap takes skip, queue or restart, not \"wait\"",
    );
    check(
        words("", "all"),
        "setting missed takes once or skip, not \"all\"",
    );
}

#[test]
fn a_schedule_is_json_that_is_read_as_it_was_written() {
    let raw = RawSchedule {
        jitter_ms: 5,
        overlap: "queue".to_owned(),
        missed: "skip".to_owned(),
        ..raw("0  3 * * MON", "europe/paris")
    };
    let now = at("2026-01-01T00:00:00Z");
    let schedule = Schedule::new(ResourceId(7), spec(raw), now);
    let run = Run(2);
    let schedule = schedule.decided(ScheduleOutcome::Started { run }, now + 30 * DAY);
    let text = serde_json::to_string(&schedule).unwrap();
    let of_spec = r#""spec":{"cron":"0 3 * * MON","tz":"Europe/Paris","jitter_ms":5,"overlap":"queue","missed":"skip"}"#;
    assert!(text.contains(of_spec), "{text}");
    assert!(text.contains(r#""outcome":"started","run":2"#), "{text}");
    assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule);
    let why = ScheduleOutcome::failed("é".repeat(1_000));
    assert_eq!(
        why,
        ScheduleOutcome::Failed {
            why: "é".repeat(128)
        }
    );
    let failed = schedule.decided(why, now + 60 * DAY);
    let text = serde_json::to_string(&failed).unwrap();
    assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), failed);
}

#[test]
fn a_start_is_late_by_its_jitter_and_every_leader_agrees() {
    let spec = spec(RawSchedule {
        jitter_ms: DAY,
        ..raw("0 * * * *", "")
    });
    let now = at("2026-01-01T00:30:00Z");
    let starts = |id: u64| {
        let mut schedule = Schedule::new(ResourceId(id), spec.clone(), now);
        let starts = (0..24).map(|_| {
            let (due, starts_at) = (schedule.due.unwrap(), schedule.starts_at().unwrap());
            // A jitter that is longer than the time until the next instant is cut.
            let latest = due + HOUR / 4 * 3;
            assert!((due..latest).contains(&starts_at), "{due} {starts_at}");
            // A leader notices it a bit late.
            schedule = schedule.decided(ScheduleOutcome::Skipped, starts_at + 5_000);
            assert_eq!(schedule.due, Some(due + HOUR));
            starts_at - due
        });
        starts.collect::<Vec<u64>>()
    };
    assert_eq!(starts(1), starts(1));
    assert_ne!(starts(1), starts(2));
    let mut distinct = starts(3);
    distinct.dedup();
    assert!(distinct.len() > 12, "{distinct:?}");
    let exact = Schedule::new(ResourceId(1), every(HOUR), now);
    assert_eq!(exact.starts_at(), exact.due);
}

#[test]
fn a_replaced_schedule_keeps_what_was_decided_and_is_due() {
    let due = at("2026-01-10T03:00:00Z");
    let daily = || raw("0 3 * * *", "");
    let first = Schedule::new(ResourceId(1), spec(daily()), due - HOUR);
    let queue = RawSchedule {
        overlap: "queue".to_owned(),
        ..daily()
    };
    // No leader has decided about it yet.
    let replaced = first.replaced(spec(queue.clone()), due + MINUTE);
    assert_eq!(replaced.spec, spec(queue.clone()));
    assert_eq!((replaced.since, replaced.due), (due - HOUR, Some(due)));
    let waiting = first.waiting().replaced(spec(queue), due + MINUTE);
    assert!(waiting.waits);
    // It was decided, and the clock was set back to before it.
    let decided = first.decided(ScheduleOutcome::Started { run: Run(2) }, due);
    let now = due - MINUTE;
    let other = decided.replaced(spec(raw("0 3,15 * * *", "")), now);
    assert_eq!((other.since, other.due), (now, Some(due + 12 * HOUR)));
    assert_eq!(other.last, decided.last);
}

/// A schedule whose due times start a run at once, and the instants that did.
struct Clocked {
    schedule: Schedule,
    started: Vec<UnixMillis>,
    missed: usize,
}

impl Clocked {
    fn new(spec: ScheduleSpec, now: UnixMillis) -> Self {
        Self {
            schedule: Schedule::new(ResourceId(1), spec, now),
            started: Vec::new(),
            missed: 0,
        }
    }

    /// Looks at the schedule until there is nothing more to do.
    fn look(&mut self, now: UnixMillis) {
        for _ in 0..3 {
            self.schedule = match self.schedule.step(now) {
                ScheduleStep::Wait => {
                    let is_set_back = now < self.schedule.computed_at;
                    assert!(is_set_back || self.schedule.quiet().contains(&now));
                    return;
                }
                ScheduleStep::SetBack(schedule) => *schedule,
                ScheduleStep::Decide {
                    is_missed: true, ..
                } => {
                    self.missed += 1;
                    self.schedule.decided(ScheduleOutcome::Missed, now)
                }
                ScheduleStep::Decide { due, .. } => {
                    self.started.push(due);
                    let run = Run(self.started.len() as u64 + 1);
                    self.schedule.decided(ScheduleOutcome::Started { run }, now)
                }
            };
        }
        panic!("it comes to no end at {}", shown(now));
    }
}

#[test]
fn each_due_time_starts_one_run() {
    let begin = at("2026-03-20T00:00:00Z");
    let mut clocked = Clocked::new(spec(raw("15 */2 * * *", "Europe/Paris")), begin);
    for now in (begin..begin + 20 * DAY).step_by(30_000) {
        clocked.look(now);
    }
    let mut expected = Vec::new();
    let mut last = begin;
    while let Some(due) =
        next_due(&clocked.schedule.spec, begin, last).filter(|d| *d < begin + 20 * DAY)
    {
        expected.push(due);
        last = due;
    }
    assert_eq!(clocked.started, expected);
}

#[test]
fn a_step_backwards_starts_nothing_again() {
    let begin = at("2026-01-10T02:59:00Z");
    let mut clocked = Clocked::new(spec(raw("0 3 * * *", "")), begin);
    clocked.look(begin + 2 * MINUTE);
    assert_eq!(clocked.started, [at("2026-01-10T03:00:00Z")]);
    for back in [MINUTE, HOUR, DAY, 3 * DAY] {
        for now in (begin - back..begin + 10 * MINUTE).step_by(30_000) {
            clocked.look(now);
        }
        assert_eq!(clocked.started.len(), 1, "after a step of {back} ms");
    }
    clocked.look(begin + DAY + 2 * MINUTE);
    assert_eq!(clocked.started.len(), 2);
}

#[test]
fn a_step_behind_the_setting_starts_nothing() {
    let begin = at("2026-01-10T03:00:00Z");
    let mut clocked = Clocked::new(spec(raw("0 3 * * *", "")), begin);
    for now in [begin - 1_500, begin, begin + MINUTE] {
        clocked.look(now);
        assert!(clocked.started.is_empty());
    }
    // The clock was a day ahead.
    clocked.look(begin - DAY - MINUTE);
    clocked.look(begin - DAY + MINUTE);
    assert_eq!(clocked.started, [begin - DAY]);
}

#[test]
fn a_small_step_backwards_leaves_a_decision_for_many_whole() {
    let begin = at("2026-01-10T02:59:30Z");
    let mut clocked = Clocked::new(spec(raw("* * * * *", "")), begin);
    // Nobody led for ten minutes.
    clocked.look(begin + 10 * MINUTE);
    assert_eq!(clocked.started, [at("2026-01-10T03:00:00Z")]);
    for now in [8, 9, 10] {
        clocked.look(begin + now * MINUTE);
        assert_eq!(clocked.started.len(), 1);
    }
    clocked.look(begin + 11 * MINUTE);
    assert_eq!(clocked.started[1..], [at("2026-01-10T03:10:00Z")]);
}

#[test]
fn a_step_forwards_starts_one_run_or_none_as_the_schedule_says() {
    let begin = at("2026-01-10T02:30:00Z");
    for (missed, n_started, n_missed) in [("once", 1, 0), ("skip", 0, 1)] {
        let raw = RawSchedule {
            missed: missed.to_owned(),
            ..raw("0 * * * *", "")
        };
        let mut clocked = Clocked::new(spec(raw), begin);
        let ahead = begin + DAY;
        clocked.look(ahead);
        assert_eq!(
            (clocked.started.len(), clocked.missed),
            (n_started, n_missed)
        );
        // The clock is right again: the schedule goes on, and not a day later.
        clocked.look(begin + MINUTE);
        clocked.look(begin + 90 * MINUTE);
        assert_eq!(clocked.started.len(), n_started + 1, "{missed}");
        assert!(clocked.started.is_sorted_by(|a, b| a < b));
    }
}

#[test]
fn late_is_not_missed_within_five_minutes() {
    let begin = at("2026-01-10T02:30:00Z");
    let raw = RawSchedule {
        missed: "skip".to_owned(),
        ..raw("0 3 * * *", "")
    };
    let schedule = Schedule::new(ResourceId(1), spec(raw), begin);
    let due = schedule.due.unwrap();
    let step = |late| schedule.step(due + late);
    let decide = |is_missed| ScheduleStep::Decide { due, is_missed };
    assert_eq!(step(MISSED_AFTER_MS), decide(false));
    assert_eq!(step(MISSED_AFTER_MS + 1), decide(true));
    // One that waits for the run before is late on purpose.
    let waits = schedule.waiting().step(due + DAY);
    assert_eq!(waits, decide(false));
}

#[test]
fn a_missed_time_takes_no_later_one_with_it() {
    let raw = RawSchedule {
        missed: "skip".to_owned(),
        ..raw("0 * * * *", "")
    };
    let mut clocked = Clocked::new(spec(raw), at("2026-01-10T00:30:00Z"));
    // Nobody led until 2 minutes after the last of these times.
    clocked.look(at("2026-01-10T05:02:00Z"));
    assert_eq!(clocked.missed, 1, "one decision for all");
    assert_eq!(clocked.started, [at("2026-01-10T05:00:00Z")]);
    let next = clocked.schedule.due;
    assert_eq!(next, Some(at("2026-01-10T06:00:00Z")));
}

#[test]
fn a_late_start_leaves_what_is_still_to_start() {
    let raw = RawSchedule {
        jitter_ms: HOUR,
        ..raw("0 * * * *", "")
    };
    let spec = spec(raw);
    let [first, third] = ["03", "05"].map(|hour| at(&format!("2026-01-10T{hour}:00:00Z")));
    for id in 0..20 {
        let schedule = Schedule::new(ResourceId(id), spec.clone(), first - MINUTE);
        let start_of_third = schedule.start_of(third);
        for (now, due) in [(start_of_third - 1, third), (start_of_third, third + HOUR)] {
            let decided = schedule.decided(ScheduleOutcome::Started { run: Run(2) }, now);
            assert_eq!(decided.due, Some(due), "at {}", shown(now));
        }
    }
}

#[test]
fn a_short_interval_with_jitter_loses_no_due_time() {
    let begin = at("2026-01-10T00:00:00Z");
    let spec = spec(RawSchedule {
        every_ms: MINUTE,
        jitter_ms: MINUTE,
        ..RawSchedule::default()
    });
    let mut clocked = Clocked::new(spec, begin);
    for n in 0..720 {
        // Leaders look every 5 seconds at least.
        clocked.look(begin + n * 5_000);
    }
    let expected: Vec<UnixMillis> = (1..60).map(|n| begin + n * MINUTE).collect();
    assert_eq!(clocked.started, expected);
    assert_eq!(clocked.missed, 0);
}

#[test]
fn whatever_the_clock_does_nothing_starts_twice() {
    let mut seed = 7_u64;
    let mut random = move |n: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let specs = [
        spec(raw("0 * * * *", "")),
        spec(raw("30 2 * * *", "Europe/Paris")),
        spec(RawSchedule {
            jitter_ms: 20 * MINUTE,
            missed: "skip".to_owned(),
            ..raw("*/30 * * * *", "")
        }),
        every(7 * HOUR),
    ];
    for spec in specs {
        let mut now = at("2026-03-25T00:00:00Z");
        let mut clocked = Clocked::new(spec, now);
        for _ in 0..2_000 {
            match random(20) {
                0 => now -= random(DAY),
                1 => now += random(2 * DAY),
                _ => now += random(HOUR),
            }
            clocked.look(now);
            assert!(clocked.started.is_sorted_by(|a, b| a < b));
            // A leader need not look again before the start.
            let until = clocked.schedule.starts_at().unwrap();
            let later = now + random(until.saturating_sub(now).max(1));
            assert_eq!(clocked.schedule.step(now), ScheduleStep::Wait);
            assert_eq!(clocked.schedule.step(later), ScheduleStep::Wait);
        }
        // The clock is right from now on: each due time starts its run.
        let decided_until = clocked.schedule.decided_until(now);
        let before = clocked.started.len();
        for _ in 0..20 * 24 * 15 {
            now += 4 * MINUTE;
            clocked.look(now);
        }
        // The last starts may be still to come.
        let end = now - HOUR;
        let Schedule { spec, since, .. } = &clocked.schedule;
        let mut expected = Vec::new();
        let mut last = decided_until;
        while let Some(due) = next_due(spec, *since, last).filter(|due| *due < end) {
            expected.push(due);
            last = due;
        }
        let started = clocked.started[before..].iter().copied();
        let started = started.filter(|due| *due > decided_until && *due < end);
        assert_eq!(started.collect::<Vec<_>>(), expected);
        assert!(!expected.is_empty(), "it goes on");
    }
}
