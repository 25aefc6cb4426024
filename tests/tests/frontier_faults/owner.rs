//! Ownership of a frontier under a running `crawler up`: a frontier of another cluster, and one that another
//! process opens.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawler_data::DataRoot;
use crawler_frontier::FrontierError;
use crawler_frontier::durable::{DurableFrontier, DurableSettings, Frontiers, OpenOptions};
use crawler_model::id::{Digest, Epoch, ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_process::clock::SystemClock;
use crawler_tests::closure::Closure;
use crawler_tests::process::Home;
use crawler_tests::up::Up;
use crawler_tests::{PATIENCE, until};

use crate::root::{begun, closure, goes_on, waits};

fn id_of(up: &Up) -> String {
    up.resource("web")["spec"]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_frontier_of_another_cluster_is_named_and_both_go_on_when_each_has_its_own() {
    let homes = [Home::new(), Home::new()];
    let closures = [closure(), closure()];
    let folders = [0, 1].map(|n| {
        let mut up = begun(&homes[n], &closures[n]);
        let id = id_of(&up);
        up.process.kill();
        closures[n].begin_life();
        homes[n].path().join("data/frontiers").join(id)
    });
    let away = homes[1].path().join("away");
    fs::rename(&folders[1], &away).unwrap();
    fs::rename(&folders[0], &folders[1]).unwrap();
    let n_asked = closures.each_ref().map(Closure::n_asked);
    let up = Up::start(&homes[1], &[]);
    waits(&up, &["FrontierForeign"]);
    let seen = up.resource("web");
    let reason = seen["reason"].as_str().unwrap();
    assert!(reason.contains(" belongs to cluster "), "{reason}");
    let asked_since = closures.each_ref().map(Closure::n_asked);
    assert_eq!(asked_since, n_asked, "it was crawled on");

    // The folders are swapped right after a try; the next one is seconds away. A try that is under way would read
    // from one folder and write into the other.
    let n_tries = || {
        let lines = up.process.stderr().into_iter();
        lines
            .filter(|line| line.contains("the crawl waits"))
            .count()
    };
    let before = n_tries();
    until("another try", PATIENCE, || {
        (n_tries() > before).then_some(())
    });
    fs::rename(&folders[1], &folders[0]).unwrap();
    fs::rename(&away, &folders[1]).unwrap();
    let first = Up::start(&homes[0], &[]);
    goes_on(up, &closures[1]);
    goes_on(first, &closures[0]);
}

/// Opens a frontier in a data root, as a process would that takes it for its own. Returns `None` if its owner was
/// faster.
async fn steal(root: &Path, shard: ShardId) -> Option<DurableFrontier> {
    let data = DataRoot::open(root.to_str().unwrap()).unwrap();
    let cluster = fs::read(root.join("cluster.json")).unwrap();
    let cluster: serde_json::Value = serde_json::from_slice(&cluster).unwrap();
    let frontiers = Frontiers::new(data.object_store(), DurableSettings::default());
    let frontiers = Arc::new(frontiers);
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open = OpenOptions {
        shard,
        cluster: cluster["id"].as_str().unwrap().to_owned(),
        epoch: Epoch(1),
        run: Run(1),
        plugin: Digest::of(b"another"),
        created: true,
        storage_epoch,
        clock: Arc::new(SystemClock),
        delay: Duration::ZERO,
        carry: None,
        sinks: Default::default(),
        division: None,
        changes: Default::default(),
    };
    match Box::pin(frontiers.open(open)).await {
        Ok(frontier) => Some(frontier),
        Err(FrontierError::Fenced { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_frontier_that_another_process_opens_is_named_and_taken_back() {
    let home = Home::new();
    let closure = closure();
    let up = begun(&home, &closure);
    let shard = ShardId::only(ResourceId(id_of(&up).parse().unwrap()));
    // A second `up` gets no further than the store.
    let refused = Up::try_start(&home, &[]);
    let refused = refused.err().expect("the data root is in use");
    assert!(
        refused.stderr.contains("is in use by process"),
        "{}",
        refused.stderr
    );
    assert_eq!(up.resource("web")["phase"], "Running");

    let root = home.path().join("data");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // The state is shown until the next try, which comes later each time.
    let mut thieves = Vec::new();
    let reason = until("fenced crawl", PATIENCE, || {
        thieves.extend(runtime.block_on(steal(&root, shard)));
        let seen = up.resource("web");
        let reason = seen["reason"].as_str().unwrap_or_default().to_owned();
        (seen["phase"] == "Pending" && reason.starts_with("FrontierFenced")).then_some(reason)
    });
    println!("waits after {} thefts: {reason}", thieves.len());
    assert!(
        reason.contains("another process has opened the frontier"),
        "{reason}"
    );
    goes_on(up, &closure);
    drop(thieves);
}
