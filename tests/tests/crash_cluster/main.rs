//! `crawler up`, killed at any point of its work and restarted on the same folders: an answered call holds, a call
//! without an answer is carried out wholly or not at all, and a crawl that was cut off goes on in the same run and
//! yields all its items.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stdout,
    reason = "what a loop has seen is part of its result"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crawler::demo::{self, START, Shop};
use crawler_api::client::Client;
use crawler_api::spec::SpecRequest;
use crawler_master::control::Precondition;
use crawler_model::id::{Digest, ResourceName};
use crawler_model::resource::CrawlSettings;
use crawler_process::task::TaskScope;
use crawler_proto as proto;
use crawler_tests::process::{Home, Process};
use crawler_tests::random::Random;
use crawler_tests::{PATIENCE, guests, soak};
use serde_json::Value;
use url::Url;

use checks::{check_whole, goes_on, sorted};
use clients::{Caller, Interfaces, state_of};
use store::Left;

mod checks;
mod clients;
mod store;

const N_CALLERS: usize = 3;
/// Delay between two requests of the long crawl, in milliseconds: the crawl takes longer than most lives.
const DELAY_MS: u64 = 5;

/// A folder that many processes use, one after the other, and the facts that must hold in it.
struct Setup {
    home: Home,
    random: Random,
    callers: Vec<Caller>,
    n_pushed: u64,
    wasm: Vec<u8>,
    start: String,
    truth: Vec<Value>,
    /// Every id that was ever seen, with the life of the name that has it.
    ids: BTreeMap<String, (ResourceName, u64)>,
    /// Life of the long crawl's name.
    shop_life: u64,
    n_shops_finished: u64,
}

/// A running process.
struct Up {
    process: Process,
    grpc: String,
    http: String,
    client: Client,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn crashes_lose_nothing_that_was_answered() {
    let scope = TaskScope::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base: Url = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let shop = Arc::new(Shop::new());
    let truth = shop.truth(&base);
    let serving = demo::serve(listener, shop, scope.stop_signal());
    scope.spawn("shop", async move { serving.await.unwrap() });

    let mut random = Random::new("crashes");
    let start = base.join(START).unwrap().to_string();
    let callers = (0..N_CALLERS).map(|n| Caller::new(n, random.fork(), &start));
    let mut setup = Setup {
        home: Home::new(),
        callers: callers.collect(),
        n_pushed: 0,
        wasm: std::fs::read(guests::guest("books")).unwrap(),
        start,
        truth,
        ids: BTreeMap::new(),
        shop_life: 0,
        n_shops_finished: 0,
        random,
    };

    let up = setup.up().await;
    up.client
        .push_plugin(None, false, setup.wasm.clone().into())
        .await
        .unwrap();
    setup.add_shop(&up.client).await;
    setup.live_and_kill(up).await;
    let n_rounds = if soak() { 19 } else { 7 };
    for _ in 0..n_rounds {
        if setup.random.below(4) == 0 {
            setup.kill_while_it_starts();
        }
        let left = store::records(&setup.data()).await;
        let up = setup.up().await;
        setup.check(&up, &left).await;
        setup.live_and_kill(up).await;
    }

    let left = store::records(&setup.data()).await;
    setup.leave_an_orphan();
    let up = setup.up().await;
    setup.check(&up, &left).await;
    setup.check_the_end(&up).await;
    let n_answered: u64 = setup.callers.iter().map(|caller| caller.n_answered).sum();
    println!(
        "{n_answered} calls answered, {} ids, {} pushes tried, {} long crawls ended between kills",
        setup.ids.len(),
        setup.n_pushed,
        setup.n_shops_finished,
    );
    assert!(n_answered > 0);
    up.process.terminate();
    let mut process = up.process;
    assert_eq!(process.wait(PATIENCE).code, Some(0));
}

fn shop() -> ResourceName {
    "shop".parse().unwrap()
}

impl Setup {
    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn start(&self) -> Process {
        let folders = ["--data=data", "--state=state"];
        let ports = ["--http=:0", "--grpc=:0", "--allow-networks=127.0.0.0/8"];
        self.home
            .start(["up"].into_iter().chain(folders).chain(ports))
    }

    async fn up(&self) -> Up {
        let process = self.start();
        let grpc = process.word_after("grpc=", PATIENCE);
        let http = process.word_after("http=", PATIENCE);
        let client = Client::connect(&format!("http://{grpc}")).await.unwrap();
        Up {
            process,
            grpc,
            http,
            client,
        }
    }

    fn kill_while_it_starts(&mut self) {
        let mut process = self.start();
        let moment = Duration::from_millis(self.random.below(400));
        let started = Instant::now();
        crawler_tests::until("moment", PATIENCE, || {
            (started.elapsed() >= moment).then_some(())
        });
        process.kill();
    }

    /// Leaves a file as a push does that is killed after its bytes and before its record.
    fn leave_an_orphan(&self) {
        let digest = Digest::of(b"orphan");
        let path = self.data().join(format!("plugins/{digest}.wasm"));
        std::fs::write(path, "orphan").unwrap();
    }

    async fn add_shop(&mut self, client: &Client) {
        self.shop_life += 1;
        let spec = SpecRequest {
            plugin: Some("books".parse().unwrap()),
            params: BTreeMap::from([("start".to_owned(), self.start.clone())]),
            crawl: CrawlSettings {
                delay_ms: Some(DELAY_MS),
                ..CrawlSettings::default()
            },
            ..SpecRequest::named(shop())
        };
        client.add_resource(spec).await.unwrap();
    }

    /// Lets all clients call, until the process is killed at a random moment.
    async fn live_and_kill(&mut self, up: Up) {
        let Up {
            mut process,
            grpc,
            http,
            client,
        } = up;
        let master = format!("http://{grpc}");
        let items = ["--master", &master, "items", "shop", "--follow"];
        let mut items = self.home.start(items);
        let killed = AtomicBool::new(false);
        let interfaces = Interfaces {
            grpc: client,
            http,
            killed: &killed,
        };
        let moment = Duration::from_millis(self.random.below(1_500));
        let kill = async {
            tokio::time::sleep(moment).await;
            killed.store(true, Ordering::SeqCst);
            process.kill();
        };
        let work = self
            .callers
            .iter_mut()
            .map(|caller| caller.work(&interfaces));
        let work = futures::future::join_all(work);
        let push = clients::push(&interfaces, &self.wasm, &mut self.n_pushed);
        tokio::join!(kill, work, push);
        // The command would wait for the master to come back, which has another port then.
        items.kill();
        let mut lines = items.stdout();
        let last = lines.pop().unwrap_or_default();
        let is_whole = serde_json::from_str::<Value>(&last).is_ok();
        lines.extend(is_whole.then_some(last));
        let items = lines.iter().map(|line| {
            serde_json::from_str::<Value>(line)
                .unwrap_or_else(|e| panic!("{e} in a line of a killed run: {line:?}"))
        });
        self.check_items(items.collect(), "crawler items");
    }

    /// Compares the answers of a restarted process with the expected state.
    async fn check(&mut self, up: &Up, left: &BTreeMap<ResourceName, Left>) {
        let seen = self.seen_again(up, left).await;
        for (name, seen) in &seen {
            check_whole(seen);
            let life = match self.callers.iter().find_map(|c| c.slots.get(name)) {
                Some(slot) => slot.life,
                None if *name == shop() => self.shop_life,
                None => panic!("{name} was never added"),
            };
            let id = seen.spec().id.clone();
            let known = self.ids.entry(id.clone()).or_insert((name.clone(), life));
            assert_eq!(*known, (name.clone(), life), "id {id} was given twice");
            let others = self
                .ids
                .values()
                .filter(|known| **known == (name.clone(), life));
            assert_eq!(others.count(), 1, "{name} has changed its id");
        }
        for (name, slot) in self.callers.iter_mut().flat_map(|c| &mut c.slots) {
            let state = seen.get(name).map(state_of);
            let possible = &slot.possible;
            assert!(
                possible.contains(&state),
                "{name} is {state:?}, not of {possible:?}"
            );
            slot.possible = vec![state];
        }
        let runs = store::items(&self.data(), left[&shop()].resource.id).await;
        let was_finished = seen[&shop()].phase == "Finished";
        if was_finished {
            assert_eq!(sorted(runs.last().unwrap()), self.truth);
        }
        for (n, run) in runs.into_iter().enumerate() {
            self.check_items(run, &format!("run {}", n + 1));
        }
        if was_finished {
            self.n_shops_finished += 1;
            up.client
                .delete_resource(&shop(), false, Precondition::default())
                .await
                .unwrap();
            self.add_shop(&up.client).await;
        }
    }

    /// Returns all resources, once those without a worker are assigned again.
    async fn seen_again(
        &self,
        up: &Up,
        left: &BTreeMap<ResourceName, Left>,
    ) -> BTreeMap<ResourceName, proto::Resource> {
        let start = Instant::now();
        loop {
            let resources = up
                .client
                .resources(proto::ListResourcesRequest::default())
                .await
                .unwrap();
            let seen = resources
                .into_iter()
                .map(|r| (r.spec().name.parse().unwrap(), r));
            let seen: BTreeMap<ResourceName, proto::Resource> = seen.collect();
            let names: BTreeSet<&ResourceName> = seen.keys().collect();
            assert_eq!(names, left.keys().collect());
            let load: u32 = up
                .client
                .nodes(proto::ListNodesRequest::default())
                .await
                .unwrap()
                .iter()
                .map(|node| node.load)
                .sum();
            let n_running = seen.values().filter(|r| r.phase == "Running").count();
            let goes_on = seen.iter().all(|(name, seen)| goes_on(seen, &left[name]));
            if goes_on && n_running == load as usize {
                return seen;
            }
            let elapsed = start.elapsed();
            assert!(
                elapsed < PATIENCE,
                "not taken up again: load {load}, {seen:#?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn check_items(&self, items: Vec<Value>, whose: &str) {
        let n_items = items.len();
        let urls: BTreeSet<&str> = items.iter().map(|i| i["url"].as_str().unwrap()).collect();
        assert_eq!(urls.len(), n_items, "{whose} has an item twice");
        let all_true = items.iter().all(|item| self.truth.contains(item));
        assert!(all_true, "{whose} has an item that the shop does not sell");
    }

    /// Checks that everything comes to its end by itself, and that deleted data goes away.
    async fn check_the_end(&mut self, up: &Up) {
        let start = Instant::now();
        let resource = loop {
            let resources = up
                .client
                .resources(proto::ListResourcesRequest::default())
                .await
                .unwrap();
            resources.iter().for_each(check_whole);
            if resources
                .iter()
                .all(|resource| resource.phase == "Finished")
            {
                break up.client.resource(&shop()).await.unwrap();
            }
            assert!(start.elapsed() < PATIENCE, "not finished: {resources:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        println!("the long crawl has finished in run {}", resource.run);
        let master = format!("http://{}", up.grpc);
        let lines = self.home.ok(["--master", &master, "items", "shop"]);
        let items: Vec<Value> = lines
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(sorted(&items), self.truth);

        // Items are read by id, after the name is free.
        up.client
            .delete_resource(&shop(), false, Precondition::default())
            .await
            .unwrap();
        let by_id = self
            .home
            .ok(["--master", &master, "items", &resource.spec().id]);
        assert_eq!(by_id, lines);

        let plugins = up.client.plugins("").await.unwrap();
        let named = plugins
            .into_iter()
            .map(|plugin| format!("{}.wasm", plugin.digest));
        let files = std::fs::read_dir(self.data().join("plugins")).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = files.collect();
        // Files of plugins that no longer exist are deleted an hour later.
        let lacking: Vec<String> = named.filter(|name| !files.contains(name)).collect();
        assert_eq!(lacking, [""; 0], "records without bytes");
    }
}
