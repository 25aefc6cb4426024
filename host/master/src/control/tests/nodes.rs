//! Tests of the calls about nodes.

use super::*;
use crawler_model::id::Incarnation;
use crawler_model::status::{ProcessTotals, WorkerStatus};
use crawler_store::catalog::encode;

/// Returns totals as the process of this incarnation writes them.
fn totals(incarnation: u64, pages: u64) -> WorkerStatus {
    let since_start = ProcessTotals::default();
    let mut totals = WorkerStatus::of(Incarnation(incarnation), 7, &[], since_start);
    totals.pages = pages;
    totals
}

#[tokio::test]
async fn a_worker_is_shown_with_its_shards_their_weights_and_its_totals() {
    let bench = bench().await;
    let mut heavy = spec("heavy", "books");
    heavy.placement.weight = 7;
    let request = RequestId::random();
    bench.control.add_resource(heavy, &request).await.unwrap();
    bench.add("b").await.unwrap();
    let keys = bench.catalog().keys();
    let [one, two] = ["worker-1", "worker-2"].map(|id| keys.status(&id.parse().unwrap()));
    // The workers are registered with incarnation 1.
    let txn = Txn::new()
        .put(one, encode(&totals(1, 30)))
        .put(two, encode(&totals(2, 40)));
    bench.write(txn).await;
    let view = bench.control.nodes().await.unwrap();
    assert_eq!(view.broken, []);
    let mut shown: Vec<(u32, u64)> = view.nodes.iter().map(|n| (n.load, n.weight)).collect();
    shown.sort_unstable();
    assert_eq!(shown, [(1, 1), (1, 7)]);
    let told: Vec<Option<u64>> = view
        .nodes
        .iter()
        .map(|n| n.totals.as_ref().map(|t| t.pages))
        .collect();
    assert_eq!(told, [Some(30), None]);
}

#[tokio::test]
async fn f20_records_of_nodes_that_do_not_decode_are_shown_and_hide_no_other() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let (shard, record) = bench.shard("a").await;
    let owner = record.owner.unwrap().node;
    let assignment = bench.catalog().keys().assignment(&owner, shard);
    let keys = [
        "/crawler/election/zz",
        "/crawler/nodes/master/master-9",
        "/crawler/nodes/worker/worker-1/foreign",
        "/crawler/nodes/worker/worker-3",
        "/crawler/status/worker-2",
        &assignment,
    ];
    let txn = keys
        .iter()
        .fold(Txn::new(), |txn, key| txn.put(*key, "{\"id\": 7"));
    bench.write(txn).await;
    let view = bench.control.nodes().await.unwrap();
    let ids: Vec<&str> = view.nodes.iter().map(|n| n.node.id.as_str()).collect();
    assert_eq!(ids, ["worker-1", "worker-2"]);
    // An assignment that does not decode still counts.
    assert_eq!(view.nodes.iter().map(|n| n.load).sum::<u32>(), 1);
    let mut broken: Vec<&str> = view.broken.iter().map(|b| b.key.as_str()).collect();
    broken.sort_unstable();
    let mut expected = keys;
    expected.sort_unstable();
    assert_eq!(broken, expected);
    for record in &view.broken {
        assert!(record.why.contains("does not decode"), "{record:?}");
    }
}
