//! Tests of several workers with crawls of the same hosts, in virtual time, with calls that are slow or lost
//! and workers that come and go: no host is asked twice within its delay, unless a worker went alone.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::super::call::{DEADLINE, Grant, LEASE, MAX_TURNS};
use super::super::testing::peer;
use super::*;
use crawler_model::id::Incarnation;

const N_WORKERS: u64 = 3;
const N_HOSTS: usize = 4;
const N_CRAWLS: usize = 2;
const DELAY: Duration = Duration::from_secs(1);
/// One step of the time.
const STEP: Duration = Duration::from_millis(10);
/// Milliseconds for which a worker that was killed stays in the list.
const TTL: u64 = 2_000;

/// Faults that a simulation injects.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    /// Percentage of calls that get lost, or whose answers do.
    lost: u32,
    /// Milliseconds between two changes of the list.
    change_every: Option<u64>,
    is_killed: bool,
}

struct World {
    random: StdRng,
    faults: Faults,
    now: Instant,
    workers: BTreeMap<u64, Worker>,
    registered: BTreeMap<u64, Peer>,
    /// Events by their moments.
    events: BTreeMap<(Instant, u64), Event>,
    n_events: u64,
    requests: Vec<Request>,
    n_lives: u64,
}

struct Worker {
    member: Member,
    process: u64,
    throttles: Vec<FakeThrottle>,
}

/// The throttle of one host, and the crawls that come there.
#[derive(Clone)]
struct FakeThrottle {
    in_flight: Option<(usize, Instant)>,
    ended: Option<Instant>,
    crawls: Vec<Instant>,
}

enum Event {
    /// A call arrives.
    Call {
        from: u64,
        call: Call,
    },
    /// The answer to a call arrives; `None` if the deadline has passed.
    Answer {
        to: u64,
        call: Call,
        answers: Option<Vec<Answer>>,
    },
    /// A worker sees the list.
    List {
        worker: u64,
        peers: Vec<Peer>,
    },
    Unregistered(u64),
    Start(u64),
}

#[derive(Debug)]
struct Request {
    host: usize,
    process: u64,
    start: Instant,
    end: Option<Instant>,
    is_alone: bool,
}

fn host(n: usize) -> String {
    format!("h{n}.test")
}

impl World {
    fn new(seed: u64, faults: Faults) -> Self {
        let mut world = Self {
            random: StdRng::seed_from_u64(seed),
            faults,
            now: Instant::now(),
            workers: BTreeMap::new(),
            registered: BTreeMap::new(),
            events: BTreeMap::new(),
            n_events: 0,
            requests: Vec::new(),
            n_lives: 0,
        };
        for worker in 1..=N_WORKERS {
            let at = world.below(3_000);
            world.after(at, Event::Start(worker));
        }
        world
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.random_range(0..n)
    }

    fn after(&mut self, millis: u64, event: Event) {
        self.n_events += 1;
        let at = self.now + Duration::from_millis(millis);
        self.events.insert((at, self.n_events), event);
    }

    /// Registers a worker; its process may be a new one.
    fn register(&mut self, worker: u64) {
        self.n_lives += 1;
        let process = self.workers[&worker].process;
        let mut peer = peer(worker);
        peer.node.incarnation = Incarnation(process);
        peer.registration = self.n_lives;
        self.registered.insert(worker, peer);
        self.tell_list();
    }

    /// Tells all workers the list, each a moment later than the others.
    fn tell_list(&mut self) {
        let peers: Vec<Peer> = self.registered.values().cloned().collect();
        for worker in self.workers.keys().copied().collect::<Vec<_>>() {
            let (at, peers) = (self.below(800), peers.clone());
            self.after(at, Event::List { worker, peers });
        }
    }

    fn start(&mut self, worker: u64) {
        self.n_lives += 1;
        let process = self.n_lives;
        let mut peer = peer(worker);
        peer.node.incarnation = Incarnation(process);
        let throttle = FakeThrottle {
            in_flight: None,
            ended: None,
            crawls: vec![self.now; N_CRAWLS],
        };
        let member = Member::new(peer.process());
        let throttles = vec![throttle; N_HOSTS];
        self.workers.insert(
            worker,
            Worker {
                member,
                process,
                throttles,
            },
        );
        self.register(worker);
    }

    fn kill(&mut self, worker: u64) {
        let Some(killed) = self.workers.remove(&worker) else {
            return;
        };
        for throttle in killed.throttles {
            if let Some((nth, _)) = throttle.in_flight {
                self.requests[nth].end = Some(self.now);
            }
        }
        self.after(TTL, Event::Unregistered(worker));
        let back = TTL + 500 + self.below(8_000);
        self.after(back, Event::Start(worker));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(worker) => self.start(worker),
            Event::Unregistered(worker) => {
                self.registered.remove(&worker);
                self.tell_list();
            }
            Event::List { worker, peers } => {
                // A watch tells the lists in order, and the last one holds.
                let is_last = peers.iter().map(|peer| peer.registration).max()
                    == (self.registered.values())
                        .map(|peer| peer.registration)
                        .max()
                    && peers.len() == self.registered.len();
                if let Some(worker) = self.workers.get_mut(&worker).filter(|_| is_last) {
                    worker.member.change(peers, self.now);
                }
            }
            Event::Call { from, call } => {
                let to: u64 = call.to.node.id.as_str()["worker-".len()..].parse().unwrap();
                let lost = self.below(100) < u64::from(self.faults.lost);
                let now = self.now;
                let owner = self.workers.get_mut(&to);
                let owner = owner.filter(|owner| owner.process == call.to.node.incarnation.0);
                let answers = owner.map(|owner| owner.member.receive(&call.asks, now));
                let answers = answers.filter(|_| !lost);
                let at = match answers {
                    Some(_) => self.below(100),
                    None => DEADLINE.as_millis() as u64,
                };
                self.after(
                    at,
                    Event::Answer {
                        to: from,
                        call,
                        answers,
                    },
                );
            }
            Event::Answer { to, call, answers } => {
                let process = call.asks.from.incarnation.0;
                if let Some(worker) = self.workers.get_mut(&to).filter(|w| w.process == process) {
                    (worker.member).answered(&call, answers.as_deref(), self.now);
                }
            }
        }
    }

    fn step(&mut self, n: u64) {
        self.now += STEP;
        while let Some(((at, _), _)) = self.events.first_key_value()
            && *at <= self.now
        {
            let (_, event) = self.events.pop_first().unwrap();
            self.happen(event);
        }
        let ids: Vec<u64> = self.workers.keys().copied().collect();
        for id in &ids {
            self.crawl(*id);
            let worker = self.workers.get_mut(id).unwrap();
            if n.is_multiple_of(25) {
                worker.member.tick(self.now);
            }
            while let Some(call) = self.workers.get_mut(id).unwrap().member.next_call(self.now) {
                let lost = self.below(100) < u64::from(self.faults.lost);
                let from = *id;
                match lost {
                    true => {
                        let (to, answers) = (from, None);
                        self.after(1_000, Event::Answer { to, call, answers });
                    }
                    false => {
                        let at = self.below(100);
                        self.after(at, Event::Call { from, call });
                    }
                }
            }
        }
        let due = (self.faults.change_every).is_some_and(|every| (n * 10).is_multiple_of(every));
        if due && !ids.is_empty() {
            let chosen = self.below(ids.len() as u64) as usize;
            match self.faults.is_killed && self.below(2) == 0 {
                true => self.kill(ids[chosen]),
                false => self.register(ids[chosen]),
            }
        }
    }

    /// Lets the crawls of one worker come to the hosts.
    fn crawl(&mut self, id: u64) {
        let now = self.now;
        let took = match self.below(20) {
            0 => 7_000,
            1 => 2_500,
            _ => self.below(200),
        };
        let took = Duration::from_millis(took);
        let worker = self.workers.get_mut(&id).unwrap();
        for (nth, throttle) in worker.throttles.iter_mut().enumerate() {
            let name = host(nth);
            if let Some((request, end)) = throttle.in_flight
                && end <= now
            {
                self.requests[request].end = Some(now);
                (throttle.in_flight, throttle.ended) = (None, Some(now));
                let known = Arc::from(name.as_str());
                worker.member.end(&known, DELAY, now);
            }
            for crawl in 0..N_CRAWLS {
                if throttle.crawls[crawl] > now {
                    continue;
                }
                if let Err(pause) = worker.member.turn(&name, DELAY, now) {
                    throttle.crawls[crawl] = now + pause;
                    continue;
                }
                let free_at = throttle.ended.map_or(now, |ended| ended + DELAY);
                if throttle.in_flight.is_some() || free_at > now {
                    throttle.crawls[crawl] = free_at.max(now + DELAY / 10);
                    continue;
                }
                if worker.member.begin(&name, DELAY, now) {
                    throttle.in_flight = Some((self.requests.len(), now + took));
                    let holder = worker.member.holders.get(name.as_str());
                    self.requests.push(Request {
                        host: nth,
                        process: worker.process,
                        start: now,
                        end: None,
                        is_alone: holder.is_some_and(Holder::is_alone),
                    });
                }
            }
        }
    }

    fn run(&mut self, seconds: u64) {
        for n in 1..=seconds * 100 {
            self.step(n);
        }
    }

    /// Returns pairs of requests to one host within its delay. Unless `is_strict`, a request of a worker that
    /// went alone is excused, and one that outlasted its lease, because reminders get lost, too.
    fn early(&self, is_strict: bool) -> Vec<String> {
        let mut early = Vec::new();
        for (nth, request) in self.requests.iter().enumerate() {
            for later in &self.requests[nth + 1..] {
                if later.host != request.host {
                    continue;
                }
                let end = request.end.unwrap_or(self.now);
                let is_early = later.start < end + DELAY;
                let outlasted = end >= request.start + LEASE;
                let is_excused = !is_strict && (request.is_alone || later.is_alone || outlasted);
                if is_early && !is_excused {
                    early.push(format!("{request:?}, {later:?}"));
                }
            }
        }
        early
    }
}

#[track_caller]
fn check(faults: Faults, is_strict: bool, n_seeds: u64) {
    for seed in 0..n_seeds {
        let mut world = World::new(seed, faults);
        world.run(60);
        let early = world.early(is_strict);
        assert!(early.is_empty(), "seed {seed}, {faults:?}: {early:#?}");
        for host in 0..N_HOSTS {
            let n = world.requests.iter().filter(|r| r.host == host).count();
            assert!(
                n >= 6,
                "seed {seed}, {faults:?}: host {host} was asked {n} times"
            );
        }
    }
}

#[test]
fn no_host_is_asked_too_soon_while_all_is_well() {
    check(Faults::default(), true, 40);
    // Each crawl gets its share.
    let mut world = World::new(7, Faults::default());
    world.run(120);
    let lives = world.workers.values().map(|worker| worker.process);
    for process in lives.collect::<Vec<_>>() {
        let own = world.requests.iter().filter(|r| r.process == process);
        let n = own.count();
        assert!(
            n * 5 > world.requests.len(),
            "{n} of {}",
            world.requests.len()
        );
    }
}

#[test]
fn no_host_is_asked_too_soon_while_the_list_changes() {
    let faults = Faults {
        change_every: Some(15_000),
        ..Faults::default()
    };
    check(faults, true, 40);
}

#[test]
fn only_who_goes_alone_asks_too_soon() {
    let lossy = Faults {
        lost: 10,
        ..Faults::default()
    };
    check(lossy, false, 40);
    let kills = Faults {
        lost: 3,
        change_every: Some(15_000),
        is_killed: true,
    };
    check(kills, false, 60);
}

/// Returns a worker that has seen the list of the first two.
fn member(own: u64, now: Instant) -> Member {
    let mut member = Member::new(peer(own).process());
    member.change(vec![peer(1), peer(2)], now);
    member
}

/// Returns a host that this worker owns.
fn host_of(worker: u64, now: Instant) -> String {
    let member = member(worker, now);
    let mut hosts = (0..).map(host);
    hosts
        .find(|host| member.ranks.owned_since(host).is_some())
        .unwrap()
}

#[test]
fn nothing_is_asked_before_the_workers_are_known() {
    let now = Instant::now();
    let mut member = Member::new(peer(1).process());
    assert_eq!(member.turn("h", DELAY, now), Err(AGAIN));
    member.change(Vec::new(), now);
    assert_eq!(member.turn("h", DELAY, now), Err(AGAIN));
    member.change(vec![peer(1)], now);
    assert_eq!(member.turn("h", DELAY, now), Ok(()));
    assert!(member.begin("h", DELAY, now), "it is alone");
    assert!(member.next_call(now).is_none());
}

#[test]
fn a_request_from_before_others_came_keeps_the_host() {
    let begun = Instant::now();
    let at = |seconds: u64| begun + Duration::from_secs(seconds);
    for owner in [1, 2] {
        let host = host_of(owner, begun);
        let mut first = Member::new(peer(1).process());
        first.change(vec![peer(1)], begun);
        assert!(first.begin(&host, DELAY, begun));
        let mut second = member(2, at(1));
        first.change(vec![peer(1), peer(2)], at(1));
        for seconds in 1..60 {
            first.tick(at(seconds));
            while let Some(call) = first.next_call(at(seconds)) {
                let answers = second.receive(&call.asks, at(seconds));
                first.answered(&call, Some(&answers), at(seconds));
            }
            let ask = TurnRequest {
                host: host.as_str().into(),
                delay: DELAY,
                is_wanted: true,
                is_in_flight: false,
                ended: None,
            };
            let from = peer(2).process();
            let asks = TurnRequests {
                from,
                asks: vec![ask],
            };
            let owner = if owner == 1 { &mut first } else { &mut second };
            let answers = owner.receive(&asks, at(seconds));
            assert!(matches!(answers[..], [Answer::Later { .. }]), "{seconds} s");
        }
    }
}

#[test]
fn what_comes_during_a_call_goes_with_the_next() {
    let now = Instant::now();
    let mut first = member(1, now);
    let hosts: Vec<String> = (0..100).map(host).collect();
    let foreign = |host: &&String| host_of(2, now) == **host || !owns(1, host, now);
    let foreign: Vec<&String> = hosts.iter().filter(foreign).take(3).collect();
    first.turn(foreign[0], DELAY, now).unwrap_err();
    let call = first.next_call(now).unwrap();
    assert_eq!(call.asks.asks.len(), 1);
    for host in &foreign[1..] {
        first.turn(host, DELAY, now).unwrap_err();
        first.turn(host, DELAY, now).unwrap_err();
    }
    assert!(first.next_call(now).is_none(), "one at a time");
    let lasts = Duration::from_secs(5);
    let grant = Grant {
        turns: MAX_TURNS,
        lasts,
        delay: DELAY,
    };
    let change = first.answered(&call, Some(&[Answer::Granted(grant)]), now);
    assert_eq!(change, OwnerChange::None);
    assert!(first.begin(foreign[0], DELAY, now));
    let call = first.next_call(now).unwrap();
    assert_eq!(call.asks.asks.len(), 2, "each host once");
    // An answer that does not fit counts as none.
    assert_eq!(first.answered(&call, Some(&[]), now), OwnerChange::Lost);
    assert!(first.begin(foreign[1], DELAY, now), "alone");
    first.turn(foreign[2], DELAY, now).unwrap();
    let later = now + ALONE_FOR;
    first.end(&Arc::from(foreign[1].as_str()), DELAY, now);
    first.turn(foreign[1], DELAY, later).unwrap_err();
    let call = first.next_call(later).unwrap();
    let answers = vec![Answer::Noted; call.asks.asks.len()];
    assert_eq!(
        first.answered(&call, Some(&answers), later),
        OwnerChange::Regained
    );
}

fn owns(worker: u64, host: &str, now: Instant) -> bool {
    member(worker, now).ranks.owned_since(host).is_some()
}

#[test]
fn answers_of_an_owner_from_before_are_no_turns() {
    let now = Instant::now();
    let mut first = member(1, now);
    let host = host_of(2, now);
    first.turn(&host, DELAY, now).unwrap_err();
    let call = first.next_call(now).unwrap();
    let again = Peer {
        registration: 9,
        ..peer(2)
    };
    let later = now + STEP;
    first.change(vec![peer(1), again], later);
    let grant = Grant {
        turns: 4,
        lasts: Duration::from_secs(5),
        delay: DELAY,
    };
    first.answered(&call, Some(&[Answer::Granted(grant)]), later);
    assert!(!first.begin(&host, DELAY, later));
    first.turn(&host, DELAY, later).unwrap_err();
    assert_eq!(first.next_call(later).unwrap().to.registration, 9);
}

#[test]
fn hosts_that_are_not_asked_any_more_are_forgotten_and_others_bounded() {
    let now = Instant::now();
    let mut first = member(1, now);
    first.max_hosts = 3;
    for n in 0..3 {
        first.turn(&host(n), DELAY, now).unwrap_err();
    }
    assert_eq!(first.turn(&host(3), DELAY, now), Err(AGAIN));
    while let Some(call) = first.next_call(now) {
        let after = Duration::from_secs(1);
        let answers = vec![Answer::Later { after }; call.asks.asks.len()];
        first.answered(&call, Some(&answers), now);
    }
    first.tick(now + Duration::from_secs(60));
    assert_eq!(first.holders.len(), 0);
}

#[test]
fn a_worker_alone_goes_on_where_there_is_no_room_for_its_hosts() {
    let now = Instant::now();
    let mut alone = Member::new(peer(1).process());
    alone.change(vec![peer(1)], now);
    alone.max_hosts = 1;
    for n in 0..3 {
        let host: Arc<str> = host(n).into();
        assert_eq!(alone.turn(&host, DELAY, now), Ok(()));
        assert!(alone.begin(&host, DELAY, now));
        alone.end(&host, DELAY, now);
    }
    assert_eq!(alone.holders.len(), 1);
}
