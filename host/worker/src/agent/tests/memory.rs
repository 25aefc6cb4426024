//! Test with one crawl that uses far too much memory beside ten that do not.

use std::sync::atomic::AtomicU64;

use object_store::memory::InMemory;
use tokio::time::Instant;

use super::bench::{RuntimeClock, Wanted, data_in, settings, stay_registered};
use super::*;
use crawler_crawl::doubles::{page, report, requests};
use crawler_fetch::Answer;
use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_model::crawl::{Item, Page, PageContext};
use crawler_model::frontier::DelaySource;
use crawler_model::id::ResourceId;
use crawler_model::plugin::Description;
use crawler_model::resource::ShardState;
use crawler_plugin::{CallConfig, CallOutput, CallReport};
use crawler_process::clock::Clock as _;
use crawler_process::memory::{self, Memory};

const MIB: u64 = 1 << 20;
/// Limit of the process, and memory of the machine.
const ALLOWED: u64 = 400 * MIB;
const MACHINE: u64 = 500 * MIB;
/// Memory of each page of the hungry crawl while its rule runs: together more than the machine has.
const N_HUNGRY_PAGES: u64 = 16;
const HUNGRY_CALL: u64 = 50 * MIB;
const N_GOOD: u64 = 10;
const N_GOOD_PAGES: u64 = 30;
const HUNGRY: u64 = 99;
const NAMES: [&str; N_GOOD as usize] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// Memory of a machine, as the twins use it.
#[derive(Default)]
struct Machine {
    used: AtomicU64,
    most: AtomicU64,
}

/// A part of the memory, until this is dropped.
struct Used(Arc<Machine>, u64);

impl Used {
    fn grow(&mut self, bytes: u64) {
        self.1 += bytes;
        let used = self.0.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.0.most.fetch_max(used, Ordering::Relaxed);
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        self.0.used.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// Site that has every page; one host answers once per 100 ms.
struct Web(RuntimeClock);

#[async_trait]
impl Fetch for Web {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        Ok(Fetched {
            answer: Answer::Page(page(&request.url, &request.url, 200)),
            host_ready_at: self.0.unix_millis() + 100,
            delay_by: DelaySource::default(),
        })
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        64
    }
}

/// Plugin in which each page of the hungry crawl grows for five seconds, and each of a good one leads to the next.
struct Crowd {
    description: Description,
    machine: Arc<Machine>,
}

#[async_trait]
impl Rules for Crowd {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, config: CallConfig, _now: u64) -> CallReport {
        let first = &config.params["first"];
        let roots: Vec<String> = match *first == HUNGRY.to_string() {
            true => (0..N_HUNGRY_PAGES)
                .map(|n| format!("http://hungry{n}.test/0"))
                .collect(),
            false => vec![format!("http://good{first}.test/1")],
        };
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        report(Ok(CallOutput {
            requests: requests("http://site.test/", &roots),
            ..CallOutput::default()
        }))
    }

    async fn parse(
        &self,
        config: CallConfig,
        _rule: &str,
        page: Arc<Page>,
        _context: PageContext,
    ) -> CallReport {
        let n: u64 = page.url.path()[1..].parse().unwrap();
        let mut links = Vec::new();
        if n == 0 {
            let (mut held, mut used) = (config.account.reserve(0), Used(self.machine.clone(), 0));
            while used.1 < HUNGRY_CALL {
                tokio::time::sleep(Duration::from_millis(100)).await;
                used.grow(MIB);
                held.set(used.1);
            }
            tokio::time::sleep(2 * SECOND).await;
        } else if n < N_GOOD_PAGES {
            links.push(format!("/{}", n + 1));
        }
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        report(Ok(CallOutput {
            items: vec![Item {
                schema: "page".into(),
                json: format!("{{\"n\":{n}}}"),
            }],
            requests: requests(page.url.as_str(), &links),
            n_bad_urls: 0,
        }))
    }
}

struct OneCrowd(Arc<Machine>);

#[async_trait]
impl LoadRules for OneCrowd {
    async fn load(&self, _digest: Digest) -> Result<Arc<dyn Rules>, PluginError> {
        let description = Description {
            name: "books".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
            rules: vec!["page".into()],
            schemas: Vec::new(),
            plans: Vec::new(),
            hosts: Vec::new(),
            params: None,
            limits: [].into(),
        };
        let machine = self.0.clone();
        Ok(Arc::new(Crowd {
            description,
            machine,
        }))
    }
}

async fn record(parts: &AgentParts, id: u64) -> ShardRecord {
    let key = parts.catalog.keys().shard(ShardId::only(ResourceId(id)));
    let record = parts.catalog.read::<ShardRecord>(&key).await.unwrap();
    record.unwrap().value
}

/// Waits until a crawl has ended. Returns true if it was put back on the way.
async fn until_idle(parts: &AgentParts, id: u64) -> bool {
    let began = Instant::now();
    let mut was_put_back = false;
    loop {
        let record = record(parts, id).await;
        if let Some(waits) = &record.waits {
            assert_eq!(waits.condition, "MemoryShort");
            assert!(waits.why.contains("--memory"), "{}", waits.why);
            was_put_back = true;
        }
        if record.state == ShardState::Idle {
            return was_put_back;
        }
        assert!(began.elapsed() < 20 * MINUTE, "{id}: {record:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hungry_crawl_is_put_back_and_ten_others_finish() {
    let machine = Arc::new(Machine::default());
    let clock = RuntimeClock(Instant::now());
    let (folder, store, mut parts) =
        parts(Arc::new(OneCrowd(machine.clone())), Arc::new(Web(clock)));
    parts.clock = Arc::new(clock);
    let objects = Arc::new(InMemory::new());
    parts.frontiers = Arc::new(Frontiers::new(objects, DurableSettings::default()));
    parts.memory = Memory::of(ALLOWED);
    let registered = watch::Sender::new(None);
    parts.registered = registered.subscribe();
    let parts = Arc::new(parts);
    let scope = TaskScope::new();
    scope.spawn("registration", stay_registered(store, registered));
    let sampled = machine.clone();
    let resident = move || Some(sampled.used.load(Ordering::Relaxed));
    let watch = memory::watch(parts.memory.clone(), resident, scope.stop_signal());
    scope.spawn("memory", watch);
    let agent = TaskScope::new();
    agent.spawn("agent", run(parts.clone(), agent.stop_signal()));

    let good = NAMES.into_iter().zip(1..);
    for (name, id) in good.chain([("hungry", HUNGRY)]) {
        let wanted = Wanted {
            name,
            id,
            first: id,
            crawl: CrawlSettings {
                delay_ms: Some(0),
                ..settings()
            },
            ..Wanted::default()
        };
        let txn = wanted.txn(&parts);
        parts.catalog.store().commit(txn).await.unwrap();
    }
    let good = futures::future::join_all((1..=N_GOOD).map(|id| until_idle(&parts, id)));
    let (good, was_put_back) = tokio::join!(good, until_idle(&parts, HUNGRY));
    assert_eq!(good, [false; N_GOOD as usize], "only the hungry one");
    assert!(was_put_back);
    let most = machine.most.load(Ordering::Relaxed);
    assert!(most < MACHINE, "{} MiB", most / MIB);
    assert!(most >= ALLOWED, "{} MiB: nothing was short", most / MIB);
    // No page is lost, and no item is written twice.
    for id in 1..=N_GOOD {
        let counts = record(&parts, id).await.counts;
        assert_eq!((counts.items, counts.dead), (N_GOOD_PAGES, 0));
    }
    let counts = record(&parts, HUNGRY).await.counts;
    assert_eq!((counts.items, counts.dead), (N_HUNGRY_PAGES, 0));
    let items = data_in(&folder)
        .items_folder(ResourceId(HUNGRY))
        .unwrap()
        .join("0");
    let files = std::fs::read_dir(items).unwrap();
    let lines = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let n_lines: usize = lines.map(|text| text.lines().count()).sum();
    assert_eq!(n_lines as u64, N_HUNGRY_PAGES);
    agent.stop(MINUTE).await;
    scope.stop(SECOND).await;
}
