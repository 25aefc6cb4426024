//! Tests of the order of hosts, and of lanes that are partly outside of memory.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

fn lane(host: u64, priority: i32) -> LaneId {
    LaneId {
        host: HostId(host),
        priority,
    }
}

fn position(due: UnixMillis, entry: u64) -> QueuePosition {
    QueuePosition { due, entry }
}

#[track_caller]
fn check(bench: &mut Workbench<&str>, now: UnixMillis, per_host: u32, expected: &str) {
    let found = match bench.take(now, TakeLimits::all(per_host)) {
        Next::Url(_, _, url) => url.to_owned(),
        Next::At(at) => format!("at {at}"),
        Next::Full => "full".to_owned(),
    };
    assert_eq!(found, expected);
}

#[test]
fn urls_of_a_host_come_by_priority_then_due_time_then_age() {
    let mut bench = Workbench::default();
    bench.put(lane(1, 0), position(0, 1), "old");
    bench.put(lane(1, 0), position(0, 2), "young");
    bench.put(lane(1, 5), position(0, 3), "first");
    bench.put(lane(1, 9), position(70, 4), "due-later");
    for expected in ["first", "old"] {
        check(&mut bench, 50, 9, expected);
    }
    check(&mut bench, 70, 9, "due-later");
    check(&mut bench, 70, 9, "young");
    check(&mut bench, 70, 9, "full");
}

#[test]
fn what_ends_while_urls_are_read_in_is_not_taken_again() {
    let mut bench = Workbench::default();
    let begin = Cursor {
        priority: 0,
        at: position(0, 1),
    };
    bench.restore(
        HostId(1),
        HostClock::default(),
        HostHealth::default(),
        &[begin],
    );
    for entry in [1, 2] {
        bench.hold(lane(1, 0), position(0, entry));
    }
    let (id, _) = bench.begin_refill().unwrap();
    bench.release(lane(1, 0), position(0, 1), 0, 0);
    bench.release(lane(1, 0), position(0, 2), 0, 0);
    // The URL was given back and has not ended.
    bench.put(lane(1, 0), position(0, 2), "given-back");
    let read = [(1, "ended"), (2, "given-back"), (3, "new")];
    let read = read.map(|(entry, url)| (position(0, entry), url));
    bench.fill(id, read.into(), true);
    for expected in ["given-back", "new", "full"] {
        check(&mut bench, 0, 9, expected);
    }
}

#[test]
fn free_places_go_round_the_hosts() {
    let mut bench = Workbench::default();
    for (entry, url) in [(0, "a0"), (1, "a1"), (2, "a2"), (3, "a3")] {
        bench.put(lane(1, 0), position(0, entry), url);
    }
    bench.put(lane(2, 0), position(0, 9), "b9");
    for expected in ["a0", "b9", "a1"] {
        check(&mut bench, 0, 2, expected);
    }
    check(&mut bench, 0, 2, "full");
    check(&mut bench, 0, 3, "a2");
}

#[test]
fn hosts_that_have_answered_leave_those_never_reached_an_eighth() {
    const UNREADY: TakeLimits = TakeLimits {
        ready: None,
        answered: Some(1),
        unreached: Some(1),
    };
    let mut bench = Workbench::default();
    for host in 0..20 {
        bench.put(lane(host, 0), position(0, host), "unreached");
        let answered = HostId(100 + host);
        bench.update_health(answered, HostHealth::record_answer);
        bench.put(lane(answered.0, 0), position(5, 100 + host), "answered");
    }
    let mut taken = Vec::new();
    while let Next::Url(_, _, url) = bench.take(10, UNREADY) {
        taken.push(url);
    }
    let unreached = taken.iter().enumerate();
    let unreached = unreached.filter(|(_, url)| **url == "unreached");
    let places: Vec<usize> = unreached.map(|(place, _)| place).collect();
    assert_eq!(places[..3], [7, 15, 22]);
    assert_eq!((places.len(), taken.len()), (20, 40));
    // A host that has answered once and died is none of them.
    let failure = HostFailure {
        until: 0,
        reason: "connect".to_owned(),
        gives_up: false,
    };
    let dead = HostId(100);
    bench.update_health(dead, |health| health.record_failure(0, &failure));
    assert_eq!(bench.health(dead).kind(), HostKind::Unreached);
}

#[test]
fn a_host_waits_for_its_clock_and_no_commit_turns_it_back() {
    let mut bench = Workbench::default();
    for (entry, url) in [(0, "a0"), (1, "a1"), (2, "a2")] {
        bench.put(lane(1, 0), position(0, entry), url);
    }
    check(&mut bench, 0, 2, "a0");
    check(&mut bench, 0, 2, "a1");
    bench.release(lane(1, 0), position(0, 0), 0, 900);
    bench.release(lane(1, 0), position(0, 1), 0, 300);
    check(&mut bench, 899, 1, "at 900");
    check(&mut bench, 900, 1, "a2");
    assert_eq!(bench.n_buffered(), 0);
    check(&mut bench, 901, 1, "full");
}

#[test]
fn a_host_that_waits_for_its_urls_to_be_read_in_holds_up_no_other() {
    let mut bench = Workbench::default();
    let at = position(3, 7);
    bench.restore(
        HostId(1),
        HostClock::default(),
        HostHealth::default(),
        &[Cursor { priority: 0, at }],
    );
    bench.put(lane(2, 0), position(0, 9), "b");
    check(&mut bench, 5, 9, "b");
    check(&mut bench, 5, 9, "full");
    let (to_refill, after) = bench.begin_refill().unwrap();
    assert_eq!((to_refill, after), (lane(1, 0), position(3, 6)));
    assert!(bench.begin_refill().is_none());
    bench.fill(to_refill, vec![(at, "a")], true);
    check(&mut bench, 5, 9, "a");
}

#[test]
fn no_moment_is_named_while_something_that_may_come_sooner_is_read_in() {
    let mut bench = Workbench::default();
    let begin = Cursor {
        priority: 0,
        at: position(0, 7),
    };
    bench.restore(
        HostId(1),
        HostClock::default(),
        HostHealth::default(),
        &[begin],
    );
    bench.put(lane(2, 0), position(500, 9), "b");
    check(&mut bench, 5, 9, "full");
    let (to_refill, _) = bench.begin_refill().unwrap();
    check(&mut bench, 5, 9, "full");
    bench.fill(to_refill, vec![(position(40, 7), "a")], true);
    check(&mut bench, 5, 9, "at 40");
}

#[test]
fn a_higher_priority_that_comes_late_goes_first() {
    let mut bench = Workbench::default();
    bench.set_capacity(usize::MAX, 1);
    for (entry, url) in [(1, "a1"), (2, "a2"), (3, "a3")] {
        bench.put(lane(1, 0), position(0, entry), url);
    }
    let put = bench.put(lane(1, 8), position(0, 4), "late");
    assert!(put.precedes_cursor, "a lane of its own");
    check(&mut bench, 0, 9, "late");
    check(&mut bench, 0, 9, "a1");
    check(&mut bench, 0, 9, "full");
}

#[test]
fn a_host_of_many_priorities_has_few_lanes_and_loses_no_url() {
    let mut bench = Workbench::default();
    let host = HostId(1);
    let n_urls = 10_000;
    for n in 0..n_urls {
        // Odd priorities grow and even ones fall, so that both ends are met.
        let priority = if n % 2 == 0 { -n } else { n };
        let lane = bench.lane_for(host, priority);
        assert!(lane.priority <= priority || n >= MAX_LANES as i32);
        bench.put(lane, position(0, 1 + n as u64), priority);
    }
    assert_eq!(bench.n_lanes(), MAX_LANES);
    assert_eq!(bench.save(host).1.len(), MAX_LANES);
    let mut taken = Vec::new();
    while let Next::Url(lane, position, priority) = bench.take(0, TakeLimits::all(1)) {
        bench.release(lane, position, 0, 0);
        taken.push(priority);
    }
    // URLs above all lanes share the highest, and those below all of them the lowest.
    assert!(
        taken[..n_urls as usize / 2]
            .iter()
            .all(|&priority| priority > 0)
    );
    taken.sort_unstable_by_key(|priority| priority.abs());
    assert!(taken.iter().map(|priority| priority.abs()).eq(0..n_urls));
    assert_eq!(bench.save(host).1.len(), 0);
    assert_eq!(bench.lane_for(host, 7).priority, 7);
}

#[test]
fn what_sorts_before_the_saved_cursor_says_so() {
    let mut bench = Workbench::default();
    let id = lane(1, 0);
    assert!(bench.put(id, position(5, 1), "first").precedes_cursor);
    bench.save(HostId(1));
    assert!(!bench.put(id, position(5, 2), "behind").precedes_cursor);
    assert!(bench.put(id, position(4, 3), "before").precedes_cursor);
    let (_, cursors) = bench.save(HostId(1));
    assert_eq!(cursors[0].at, position(4, 3));
    check(&mut bench, 9, 9, "before");
    let (_, cursors) = bench.save(HostId(1));
    assert_eq!(cursors[0].at, position(4, 3), "in flight is not gone");
    bench.release(id, position(4, 3), 0, 0);
    let (_, cursors) = bench.save(HostId(1));
    assert_eq!(cursors[0].at, position(5, 1));
}

#[test]
fn a_lane_that_was_saved_before_it_was_read_in_still_begins_with_its_first() {
    let first = Cursor {
        priority: 0,
        at: position(7, 1),
    };
    let mut cursors = vec![first];
    for _ in 0..3 {
        let mut bench = Workbench::<&str>::default();
        bench.restore(
            HostId(1),
            HostClock::default(),
            HostHealth::default(),
            &cursors,
        );
        let (_, after) = bench.begin_refill().unwrap();
        assert!(after < first.at, "{after:?}");
        cursors = bench.save(HostId(1)).1;
    }
}

/// Rest of a lane, as on a disk: all URLs that were queued and have not ended.
#[derive(Default)]
struct Disk(BTreeMap<LaneId, BTreeSet<QueuePosition>>);

impl Disk {
    fn read(
        &self,
        id: LaneId,
        after: QueuePosition,
        max: usize,
    ) -> (Vec<(QueuePosition, QueuePosition)>, bool) {
        let behind = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        let mut found: Vec<_> = self.0[&id].range(behind).map(|t| (*t, *t)).collect();
        let is_all = found.len() <= max;
        found.truncate(max);
        (found, is_all)
    }
}

/// Puts, takes, releases, retries, saves and reads in at random, with scans that overlap with all of these, and
/// checks that each URL comes in its order and that no saved cursor skips one.
#[test]
fn any_room_gives_what_an_endless_one_gives() {
    for seed in 0..200 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut bench = Workbench::<QueuePosition>::default();
        let max_buffered = match rng.random_range(0..3) {
            0 => usize::MAX,
            1 => rng.random_range(8..40),
            _ => rng.random_range(1..8),
        };
        bench.set_capacity(max_buffered, rng.random_range(1..12));
        let mut disk = Disk::default();
        let mut flying: Vec<(LaneId, QueuePosition)> = Vec::new();
        let (mut now, mut entry) = (1_000, 1);
        let mut saved = BTreeMap::<LaneId, QueuePosition>::new();
        let mut reading = None;
        for step in 0..3_000 {
            now += rng.random_range(0..3);
            let is_ending = step > 2_000;
            match rng.random_range(0..8) {
                0 | 1 if !is_ending => {
                    let id = lane(rng.random_range(0..3), rng.random_range(0..2));
                    let at = position(now + rng.random_range(0..40) - 20, entry);
                    entry += 1;
                    disk.0.entry(id).or_default().insert(at);
                    if bench.put(id, at, at).precedes_cursor {
                        save(&mut bench, id.host, &mut saved);
                    }
                }
                2 if reading.is_none() => {
                    reading = bench.begin_refill().map(|(id, after)| {
                        let (urls, is_all) = disk.read(id, after, rng.random_range(1..9));
                        (id, urls, is_all)
                    });
                }
                3 => {
                    if let Some((id, urls, is_all)) = reading.take() {
                        bench.fill(id, urls, is_all);
                    }
                }
                4 if !flying.is_empty() => {
                    let (id, at) = flying.swap_remove(rng.random_range(0..flying.len()));
                    assert!(disk.0.get_mut(&id).unwrap().remove(&at));
                    bench.release(id, at, 0, 0);
                    if !is_ending && rng.random_range(0..3) == 0 {
                        let again = position(now + rng.random_range(0..30), at.entry);
                        disk.0.get_mut(&id).unwrap().insert(again);
                        bench.put(id, again, again);
                    }
                    save(&mut bench, id.host, &mut saved);
                }
                5 if rng.random_range(0..50) == 0 => now += 15_000,
                _ => {
                    if let Next::Url(id, at, url) = bench.take(now, TakeLimits::all(100)) {
                        assert_eq!(at, url);
                        let is_waiting = |t: &&QueuePosition| !flying.contains(&(id, **t));
                        let first = disk.0[&id].iter().find(is_waiting);
                        assert_eq!(first, Some(&at), "seed {seed}, step {step}");
                        flying.push((id, at));
                    }
                }
            }
            check_sums(&bench);
            for (id, queue) in &disk.0 {
                if let Some(first) = queue.first() {
                    let cursor = saved.get(id).copied();
                    assert!(
                        cursor.is_some_and(|cursor| cursor <= *first),
                        "seed {seed}, step {step}"
                    );
                }
            }
        }
        if let Some((id, urls, is_all)) = reading.take() {
            bench.fill(id, urls, is_all);
        }
        now += 100;
        loop {
            let mut has_moved = false;
            while let Some((id, after)) = bench.begin_refill() {
                let (urls, is_all) = disk.read(id, after, 5);
                bench.fill(id, urls, is_all);
                has_moved = true;
            }
            if let Next::Url(id, at, _) = bench.take(now, TakeLimits::all(100)) {
                flying.push((id, at));
            }
            if let Some((id, at)) = flying.pop() {
                disk.0.get_mut(&id).unwrap().remove(&at);
                bench.release(id, at, 0, 0);
                has_moved = true;
            }
            if !has_moved {
                break;
            }
        }
        let left: usize = disk.0.values().map(BTreeSet::len).sum();
        assert_eq!(left, 0, "seed {seed}");
    }
}

/// Checks that the sums agree with the hosts, and that no more URLs are in memory than there is room for.
fn check_sums(bench: &Workbench<QueuePosition>) {
    let lanes = || bench.hosts.all_whole().flat_map(|host| host.lanes.values());
    let n_buffered: usize = lanes().map(|lane| lane.n_buffered()).sum();
    assert_eq!(bench.n_buffered, n_buffered);
    let n_asleep = bench
        .asleep
        .iter()
        .filter(|(_, id)| bench.hosts.whole(*id).is_none());
    assert_eq!(bench.n_lanes, lanes().count() + n_asleep.count());
    assert_eq!(
        bench.n_to_refill,
        lanes().filter(|lane| lane.needs_refill()).count()
    );
    let mut queue = bench.queues.values().flatten();
    let needs_refill = |(_, id): &&(u64, HostId)| bench.hosts.whole(*id).unwrap().needs_refill();
    let may_sleep = queue.clone().count() > 1 && !queue.all(|position| needs_refill(&position));
    assert!(n_buffered <= bench.max_buffered || !may_sleep);
}

#[test]
fn where_there_is_no_room_those_whose_turn_comes_last_sleep() {
    let mut bench = Workbench::<u64>::default();
    bench.set_capacity(8, 4);
    for host in 0..1_000 {
        bench.put(lane(host, 0), position(host * 1_000, host + 1), host);
        assert!(bench.n_buffered() <= 8);
    }
    for host in 0..1_000 {
        let now = host * 1_000;
        let found = loop {
            match bench.take(now, TakeLimits::all(1)) {
                Next::Url(_, _, found) => break found,
                Next::Full => {
                    let (id, _) = bench.begin_refill().unwrap();
                    let HostId(host) = id.host;
                    let url = (position(host * 1_000, host + 1), host);
                    bench.fill(id, vec![url], true);
                }
                Next::At(at) => panic!("nothing before {at} at {now}"),
            }
        };
        assert_eq!(found, host);
        bench.release(lane(host, 0), position(now, host + 1), now, now);
    }
}

#[test]
fn where_the_room_shrinks_what_is_beyond_it_leaves_the_memory_at_once() {
    let mut bench = Workbench::<u64>::default();
    for host in 0..100 {
        bench.put(lane(host, 0), position(0, host + 1), host);
    }
    assert_eq!(bench.n_buffered(), 100);
    bench.set_capacity(8, 4);
    assert!(bench.n_buffered() <= 8);
    bench.set_capacity(100, 4);
    let mut found = BTreeSet::new();
    while found.len() < 100 {
        match bench.take(0, TakeLimits::all(1)) {
            Next::Url(_, _, host) => assert!(found.insert(host)),
            Next::Full => {
                let (id, _) = bench.begin_refill().unwrap();
                let HostId(host) = id.host;
                bench.fill(id, vec![(position(0, host + 1), host)], true);
            }
            Next::At(at) => panic!("nothing before {at}"),
        }
    }
}

#[test]
fn hosts_that_wait_long_make_room_for_those_that_need_not() {
    let mut bench = Workbench::<u64>::default();
    bench.set_capacity(8, 4);
    for host in 0..16 {
        bench.put(lane(host, 0), position(0, host + 1), host);
    }
    // The hosts in memory are all to be asked in an hour only.
    let mut n_taken = 0;
    while let Next::Url(id, at, _) = bench.take(0, TakeLimits::all(1)) {
        n_taken += 1;
        bench.release(id, at, 0, 3_600_000);
        bench.put(id, position(3_600_000, at.entry), id.host.0);
        while let Some((id, _)) = bench.begin_refill() {
            let HostId(host) = id.host;
            bench.fill(id, vec![(position(0, host + 1), host)], true);
        }
    }
    assert_eq!(n_taken, 16);
    assert!(bench.n_buffered() <= 8);
}

#[test]
fn hosts_that_wait_keep_nothing_but_a_cursor() {
    let mut bench = Workbench::<u64>::default();
    bench.set_capacity(8, 4);
    for host in 0..1_000 {
        bench.put(lane(host, 7), position(host, host + 1), host);
    }
    let (n_whole, n_short) = bench.hosts.counted();
    assert_eq!((n_whole + n_short, bench.n_lanes()), (1_000, 1_000));
    assert!(n_whole <= 8, "{n_whole}");
    // The cursor is after the URL, so that a URL queued before it has the cursor saved again.
    assert_eq!(bench.save(HostId(999)).1[0].at, position(999, 999));
    let put = |bench: &mut Workbench<u64>, due| bench.put(lane(999, 7), position(due, 2_000), 0);
    assert!(!put(&mut bench, 1_000).precedes_cursor);
    assert!(put(&mut bench, 998).precedes_cursor);
}

#[test]
fn a_host_with_nothing_left_is_forgotten_once_its_clock_is_over() {
    let mut bench = Workbench::<&str>::default();
    bench.put(lane(1, 0), position(0, 1), "page");
    bench.update_health(HostId(1), HostHealth::record_answer);
    check(&mut bench, 0, 1, "page");
    bench.forget_idle(1_000);
    bench.release(lane(1, 0), position(0, 1), 0, 500);
    assert_eq!(bench.hosts.counted(), (0, 1));
    bench.forget_idle(499);
    assert!(bench.knows(HostId(1)));
    assert_eq!(bench.clock(HostId(1)), 500);
    assert!(bench.health(HostId(1)).has_answered);
    bench.forget_idle(500);
    assert!(!bench.knows(HostId(1)));
    // A host without any URL or clock is forgotten, too.
    bench.update_health(HostId(2), |_| {});
    bench.forget_idle(0);
    assert_eq!(bench.hosts.counted(), (0, 0));
}

fn save(
    bench: &mut Workbench<QueuePosition>,
    host: HostId,
    saved: &mut BTreeMap<LaneId, QueuePosition>,
) {
    saved.retain(|id, _| id.host != host);
    for cursor in bench.save(host).1 {
        let id = LaneId {
            host,
            priority: cursor.priority,
        };
        saved.insert(id, cursor.at);
    }
}

#[test]
fn counts_of_hosts_are_kept_for_a_while_of_one_clock() {
    let mut bench = Workbench::default();
    for host in 0..1_000 {
        bench.put(lane(host, 0), position(0, host + 1), "url");
    }
    let mut n_ready = |now| {
        let by_state = bench.hosts_by_state(now, 1_000);
        // One host after the other has to wait.
        bench.postpone(HostId(now % 1_000), 90_000);
        by_state[&HostState::Ready]
    };
    assert_eq!(n_ready(50_000), 1_000);
    // The numbers of so many hosts are valid for ten milliseconds.
    assert_eq!((n_ready(50_009), n_ready(50_010)), (1_000, 998));
    assert_eq!(n_ready(50_001), 997);
}
