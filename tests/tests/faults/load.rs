//! Load during the faults: clients that add, read, change and delete, each with names of its own, and crawls of a
//! closure, one after the other.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crawler_tests::closure::{Closure, Plan, Visit};
use crawler_tests::random::Random;
use crawler_tests::web::{Asked, Method, Site, Web};
use crawler_tests::{PATIENCE, pass};
use serde_json::{Value, json};

use crate::caller::{Answer, Caller};
use crate::checker::life_of;
use crate::fleet::MasterAddresses;
use crate::history::{Answered, Call, Crawl, History, Request, Shown};

/// Delay between two requests of the crawls that keep a distance.
pub(crate) const DELAY: Duration = Duration::from_millis(200);
/// Prefix of the names of crawls that come to an end.
pub(crate) const CLOSURE: &str = "closure-";
const N_CLIENTS: usize = 3;
const N_NAMES: usize = 2;
/// Number of the crawls that keep a distance.
pub(crate) const N_CHAINS: usize = N_CLIENTS * N_NAMES;

/// Clients and crawls at work. They end with [`Load::end`].
pub(crate) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    webs: Vec<Web>,
    begun: Instant,
}

#[derive(Default)]
struct Shared {
    calls: Mutex<Vec<Call>>,
    crawls: Mutex<Vec<Crawl>>,
    is_paused: AtomicBool,
    n_busy: Mutex<usize>,
    is_over: AtomicBool,
}

/// A name that one client has.
struct Name {
    name: String,
    host: String,
    n_lives: usize,
    is_there: bool,
    is_paused: bool,
}

impl Load {
    pub(crate) fn begin(addresses: &MasterAddresses, random: &mut Random) -> Self {
        let (shared, begun) = (Arc::<Shared>::default(), Instant::now());
        let (mut threads, mut webs) = (Vec::new(), Vec::new());
        for client in 0..N_CLIENTS {
            let mut names = Vec::new();
            for nth in 0..N_NAMES {
                let web = chain(u8::try_from(client * N_NAMES + nth + 1).expect("a few"));
                names.push(Name {
                    name: format!("c{client}-{nth}"),
                    host: web.address().to_string(),
                    n_lives: 0,
                    is_there: false,
                    is_paused: false,
                });
                webs.push(web);
            }
            let caller = Caller::new(addresses.clone(), random.fork());
            let (shared, random) = (shared.clone(), random.fork());
            threads.push(std::thread::spawn(move || {
                client_works(&shared, caller, random, names, begun);
            }));
        }
        let caller = Caller::new(addresses.clone(), random.fork());
        let (ours, drains) = (shared.clone(), random.fork());
        threads.push(std::thread::spawn(move || {
            workers_drain(&ours, caller, drains);
        }));
        let caller = Caller::new(addresses.clone(), random.fork());
        let (ours, random) = (shared.clone(), random.fork());
        threads.push(std::thread::spawn(move || {
            closures(&ours, caller, random);
        }));
        Self {
            shared,
            threads,
            webs,
            begun,
        }
    }

    /// Waits until a page of each chain was asked for.
    pub(crate) fn gets_under_way(&self) {
        crawler_tests::until("a page of each chain", PATIENCE, || {
            let is_asked = |web: &Web| web.log().iter().any(|hit| hit.path != "/robots.txt");
            self.webs.iter().all(is_asked).then_some(())
        });
    }

    /// Lets clients finish the calls in progress and begin no others.
    pub(crate) fn pause(&mut self) {
        self.shared.is_paused.store(true, Ordering::SeqCst);
        crawler_tests::until("the end of all calls", Duration::from_secs(180), || {
            (*lock(&self.shared.n_busy) == 0).then_some(())
        });
        // A thread that ends before it is told to has failed.
        if let Some(ended) = self.threads.iter().position(JoinHandle::is_finished) {
            join(self.threads.swap_remove(ended));
        }
    }

    pub(crate) fn resume(&self) {
        self.shared.is_paused.store(false, Ordering::SeqCst);
    }

    /// Returns the part of the history that the load has seen so far.
    pub(crate) fn history(&self) -> History {
        let requests = self.webs.iter().flat_map(Web::log).filter_map(|hit| {
            let moment = |at: Instant| at.saturating_duration_since(self.begun);
            let url = format!("http://host{}", hit.path);
            Some(Request {
                life: life_of(&url)
                    .filter(|_| hit.path != "/robots.txt")?
                    .to_owned(),
                start: moment(hit.start),
                end: hit.end.map(moment),
            })
        });
        History {
            calls: lock(&self.shared.calls).clone(),
            crawls: lock(&self.shared.crawls).clone(),
            requests: requests.collect(),
            ..History::default()
        }
    }

    /// Waits for the crawl in progress, and ends.
    pub(crate) fn end(&mut self) {
        self.resume();
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(join);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // A failing test waits for nobody.
        self.shared.is_over.store(true, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens endless chains of pages, one for each first part of a path, on a host of its own.
fn chain(n: u8) -> Web {
    let page = |asked: Asked| async move {
        let Some((chain, n)) = asked.path.rsplit_once('/') else {
            return "[]".to_owned();
        };
        match n.parse::<u64>() {
            Ok(n) => format!(r#"[{{"url": "{chain}/{}"}}]"#, n + 1),
            Err(_) => "[]".to_owned(),
        }
    };
    let site = Site::new().handle("/*", page);
    site.open_apart([127, 0, 1, n].into())
}

fn join(thread: JoinHandle<()>) {
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Mark of a client that is making a call; a pause waits for it.
struct Busy<'a>(&'a Shared);

impl<'a> Busy<'a> {
    fn new(shared: &'a Shared) -> Self {
        *lock(&shared.n_busy) += 1;
        Self(shared)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        *lock(&self.0.n_busy) -= 1;
    }
}

/// Waits while the load is paused. Returns `None` when it is over.
fn may_call(shared: &Shared) -> Option<Busy<'_>> {
    while !shared.is_over.load(Ordering::SeqCst) {
        // The call is counted first, so that a pause that begins now waits for it.
        let busy = Busy::new(shared);
        if !shared.is_paused.load(Ordering::SeqCst) {
            return Some(busy);
        }
        drop(busy);
        pass(Duration::from_millis(50));
    }
    None
}

fn client_works(
    shared: &Shared,
    mut caller: Caller,
    mut random: Random,
    mut names: Vec<Name>,
    begun: Instant,
) {
    while let Some(busy) = may_call(shared) {
        let nth = usize::try_from(random.below(names.len() as u64)).expect("a few");
        let at = begun.elapsed();
        let name = &mut names[nth];
        if let Some(what) = turn(&mut caller, &mut random, name) {
            lock(&shared.calls).push(Call {
                name: name.name.clone(),
                begun: at,
                ended: begun.elapsed(),
                what,
            });
        }
        drop(busy);
        pass(Duration::from_millis(random.below(400)));
    }
}

fn generation(resource: &Value) -> u64 {
    let generation = resource["generation"].as_u64();
    generation.unwrap_or_else(|| panic!("no generation in {resource}"))
}

/// Makes one call about a name. Returns the answer if it says something.
fn turn(caller: &mut Caller, random: &mut Random, name: &mut Name) -> Option<Answered> {
    let refused = |answer: Answer| Answered::Refused {
        why: format!("{} {}", answer.status, answer.text),
    };
    let path = format!("/crawler/resource/{}", name.name);
    let choice = random.below(15);
    if choice < 5 {
        let answer = caller.read(&path);
        return Some(match answer.status {
            200 => {
                let resource = answer.json();
                let id = resource["spec"]["id"].as_str();
                let id = id.and_then(|id| id.parse().ok());
                Answered::Read {
                    shown: Some(Shown {
                        id: id.unwrap_or_else(|| panic!("no id in {resource}")),
                        generation: generation(&resource),
                        concurrency: resource["spec"]["crawl"]["concurrency"].as_u64(),
                    }),
                }
            }
            404 => Answered::Read { shown: None },
            _ => refused(answer),
        });
    }
    if !name.is_there {
        name.n_lives += 1;
        let life = format!("{}-{}", name.name, name.n_lives);
        let start = format!("http://{}/{life}/0", name.host);
        let delay = u64::try_from(DELAY.as_millis()).expect("a short time");
        let answer = caller.add(&json!({
            "name": name.name,
            "plugin": "puppet",
            "params": {"start": start},
            "crawl": {"delay_ms": delay, "max_depth": 4_000_000_000_u32},
        }));
        (name.is_there, name.is_paused) = (true, false);
        return Some(match answer.status {
            200 => Answered::Added { life },
            _ => refused(answer),
        });
    }
    match choice {
        5 | 6 => {
            let answer = caller.read(&format!("{path}/items"));
            if answer.status != 200 {
                return Some(refused(answer));
            }
            let life = |line: &str| {
                let item: Value = serde_json::from_str(line).unwrap_or_default();
                let life = item["url"].as_str().and_then(life_of);
                life.map_or_else(|| line.to_owned(), str::to_owned)
            };
            let lives: BTreeSet<String> = answer.text.lines().map(life).collect();
            Some(Answered::Items { lives })
        }
        7 | 8 => {
            let concurrency = 1 + random.below(8);
            let change = json!({"name": name.name, "crawl": {"concurrency": concurrency}});
            let answer = caller.change(Method::PATCH, "/crawler/resource", &change);
            Some(match answer.status {
                200 => Answered::Updated {
                    concurrency,
                    generation: generation(&answer.json()),
                },
                _ => refused(answer),
            })
        }
        9..=11 => {
            let verb = if name.is_paused { "resume" } else { "pause" };
            name.is_paused = !name.is_paused;
            let answer = caller.change(Method::POST, &format!("{path}/{verb}"), &json!({}));
            (answer.status != 200).then(|| refused(answer))
        }
        _ => {
            let answer = caller.delete(&name.name);
            name.is_there = false;
            Some(match answer.status {
                200 => Answered::Deleted,
                _ => refused(answer),
            })
        }
    }
}

/// Drains one worker after the other for a while, so that it gives its crawls to the others.
fn workers_drain(shared: &Shared, mut caller: Caller, mut random: Random) {
    while let Some(busy) = may_call(shared) {
        let worker = 1 + random.below(4);
        let path = format!("/crawler/node/worker-{worker}/drain");
        // The worker's record is gone while it is being restarted: there is nothing to drain then.
        let answer = caller.change(Method::POST, &path, &json!({}));
        assert!(matches!(answer.status, 200 | 404), "{answer:?}");
        pass(Duration::from_millis(500 + random.below(3_000)));
        if answer.status == 200 {
            let answer = caller.change(Method::POST, &format!("{path}?undo"), &json!({}));
            assert!(matches!(answer.status, 200 | 404), "{answer:?}");
        }
        drop(busy);
        pass(Duration::from_millis(random.below(8_000)));
    }
}

/// Crawls one closure after the other, each to its end.
fn closures(shared: &Shared, mut caller: Caller, mut random: Random) {
    let mut n = 0;
    while !shared.is_over.load(Ordering::SeqCst) {
        n += 1;
        let plan = Plan {
            n_pages: 300,
            seed: random.below(1 << 32),
            max_depth: 40,
            pace: Duration::from_millis(5),
        };
        let (max_depth, n_shards) = (plan.max_depth, 1 + random.below(3));
        let closure = Closure::open(plan);
        let name = format!("{CLOSURE}{n}");
        let answer = caller.add(&json!({
            "name": name,
            "plugin": "puppet",
            "params": {"root": closure.root()},
            "limits": {"cpu": 2_000, "timeout": 20_000},
            "placement": {"shards": n_shards},
            "crawl": {
                "scope": ["127.0.0.2", "127.0.0.3", "127.0.0.4"],
                "max_depth": max_depth,
                "delay_ms": 50,
                "max_retry_wait_ms": 2_000,
            },
        }));
        assert_eq!(answer.status, 200, "{answer:?}");
        let crawl = finished(shared, &mut caller, (&closure, n_shards), &name);
        lock(&shared.crawls).push(crawl);
        let answer = caller.delete(&name);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

/// Waits for the end of a crawl of a closure in this number of shards, and returns its result.
fn finished(
    shared: &Shared,
    caller: &mut Caller,
    (closure, n_shards): (&Closure, u64),
    name: &str,
) -> Crawl {
    let path = format!("/crawler/resource/{name}");
    let begun = Instant::now();
    let resource = loop {
        let answer = caller.read(&path);
        assert_eq!(answer.status, 200, "{answer:?}");
        let resource = answer.json();
        match resource["phase"].as_str() {
            Some("Finished") => break resource,
            Some("Failed") => panic!("{name} has failed: {resource}"),
            _ => {}
        }
        // Faults pause now and then, for long enough.
        let limit = Duration::from_secs(600);
        assert!(begun.elapsed() < limit, "{name} does not end: {resource}");
        pass(Duration::from_millis(300));
        while shared.is_paused.load(Ordering::SeqCst) && !shared.is_over.load(Ordering::SeqCst) {
            pass(Duration::from_millis(50));
        }
    };
    let items = caller.read(&format!("{path}/items"));
    assert_eq!(items.status, 200, "{items:?}");
    let shown = |visit: Visit| match n_shards {
        1 => format!("{visit:?}"),
        // A page is as deep as the link that came first, and links come from several owners.
        _ => format!("{} in state {}", visit.url, visit.state),
    };
    let visits = Visit::read(&items.text);
    let count = |field: &str| resource["counts"][field].as_u64().unwrap_or_default();
    Crawl {
        name: name.to_owned(),
        pages: closure.pages(),
        asked: closure.account().asked,
        known_items: closure.items().into_iter().map(shown).collect(),
        items: visits.into_iter().map(shown).collect(),
        n_due: count("due"),
        n_dead: count("dead"),
    }
}
