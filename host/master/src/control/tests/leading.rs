//! Tests that only the leader makes changes, and that each call is carried out once.

use super::*;
use crawler_model::id::ResourceId;
use crawler_store::catalog::encode;
use crawler_store::election::ElectionStatus;
use crawler_store::racing_store::Read;

/// Makes the master lose its leadership without noticing.
async fn deposed(bench: &Bench) {
    let prefix = bench.catalog().keys().election();
    let listing = bench.catalog().store().list(&prefix).await.unwrap();
    let mut txn = Txn::new();
    for entry in listing.entries {
        txn = txn.delete(entry.key);
    }
    bench.write(txn).await;
}

#[tokio::test]
async fn f07_f09_a_master_that_was_deposed_changes_nothing_and_says_so() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let before = bench.catalog().store().list("/crawler/").await.unwrap();
    deposed(&bench).await;
    let text = "this master does not lead, and nobody does at present";
    check_refused(bench.add("b").await, Code::Unavailable, text);
    check_refused(bench.update("a", |_| ()).await, Code::Unavailable, text);
    check_refused(bench.restart("a").await, Code::Unavailable, text);
    check_refused(bench.delete("a").await, Code::Unavailable, text);
    check_refused(bench.push("shop@1.0.0").await, Code::Unavailable, text);
    let after = bench.catalog().store().list("/crawler/").await.unwrap();
    let without_election = before
        .entries
        .iter()
        .filter(|e| !e.key.contains("/election/"));
    assert!(after.entries.iter().eq(without_election));
    // A deposed master still answers reads.
    assert_eq!(bench.phase("a").await, Phase::Running);
}

#[test]
fn who_leads_is_told_as_far_as_it_is_known() {
    let told =
        |election_status: &ElectionStatus| ControlError::not_leading(election_status).to_string();
    let nobody = ElectionStatus::default();
    assert_eq!(
        told(&nobody),
        "this master does not lead, and nobody does at present"
    );
    let away = ElectionStatus {
        fault: Some("the store does not answer: no route".to_owned()),
        ..nobody
    };
    assert_eq!(
        told(&away),
        "this master does not lead, and who does is not known: the store does not answer: no route"
    );
}

#[tokio::test]
async fn a_call_that_is_sent_again_is_carried_out_once() {
    let bench = bench().await;
    let [added, changed, restarted] =
        ["add", "change", "restart"].map(|id| id.parse::<RequestId>().unwrap());
    let add = || bench.control.add_resource(spec("a", "books"), &added);
    let first = add().await.unwrap().resource;
    assert_eq!(add().await.unwrap().resource.id, first.id);
    let name = first.spec.name.clone();
    for _ in 0..2 {
        let change = |present: &Resource| {
            let mut spec = present.spec.clone();
            spec.crawl.max_pages = Some(spec.crawl.max_pages.unwrap_or(0) + 1);
            Ok(spec)
        };
        let updated = bench.control.update_resource(&name, change, &changed);
        let resource = updated.await.unwrap().resource;
        assert_eq!(
            (resource.generation, resource.spec.crawl.max_pages),
            (Generation(2), Some(1))
        );
        let restarted = bench.control.restart_resource(&name, unchanged, &restarted);
        assert_eq!(restarted.await.unwrap().resource.run.0, 2);
    }
    // Earlier calls are still known, but not for ever.
    assert_eq!(add().await.unwrap().resource.id, first.id);
    for _ in 0..20 {
        bench.update("a", |_| ()).await.unwrap();
    }
    check_refused(
        add().await,
        Code::AlreadyExists,
        "resource a exists already",
    );
}

/// Returns the transaction of a deletion of `a` whose answer was lost.
async fn late_delete(bench: &Bench, request: &RequestId) -> Txn {
    let (id, shard) = bench.shard("a").await;
    let keys = bench.catalog().keys();
    let owner = shard.owner.unwrap().node;
    Txn::new()
        .delete(keys.resource(&shard.resource))
        .delete(keys.shard(id))
        .delete(keys.assignment(&owner, id))
        .put(keys.ended(&shard.resource, request), encode(&id.resource))
}

#[tokio::test]
async fn a_delete_that_takes_effect_while_it_is_sent_again_is_done() {
    // The call reads the resource and the ended calls.
    for nth in 1..=2 {
        let bench = bench().await;
        bench.add("a").await.unwrap();
        let request = RequestId::random();
        let late = late_delete(&bench, &request).await;
        bench.store.race_after(Read::Get, nth, late);
        let name = "a".parse().unwrap();
        let deleted =
            bench
                .control
                .delete_resource(&name, false, Precondition::default(), &request);
        deleted.await.unwrap();
        assert!(bench.store.has_raced());
        assert_eq!(bench.check_consistent().await, 0);
    }
}

#[tokio::test]
async fn an_add_that_took_effect_and_was_deleted_while_it_is_sent_again_makes_no_other() {
    // The call reads the resource and the ended calls.
    for nth in 1..=2 {
        let bench = bench().await;
        let request = RequestId::random();
        let keys = bench.catalog().keys();
        let ended = keys.ended(&"a".parse().unwrap(), &request);
        let late = Txn::new().put(ended, encode(&ResourceId(1)));
        bench.store.race_after(Read::Get, nth, late);
        let added = bench.control.add_resource(spec("a", "books"), &request);
        let refused = added.await.unwrap_err();
        assert_eq!(
            refused.code(),
            Code::NotFound,
            "after read {nth}: {refused}"
        );
        assert!(bench.store.has_raced());
        assert_eq!(bench.check_consistent().await, 0);
    }
}

#[tokio::test]
async fn a_delete_that_is_sent_again_leaves_the_next_life_of_the_name_alone() {
    let bench = bench().await;
    let [add, delete, restart] =
        ["add", "delete", "restart"].map(|id| id.parse::<RequestId>().unwrap());
    let name = "a".parse().unwrap();
    let added = bench.control.add_resource(spec("a", "books"), &add);
    added.await.unwrap();
    let restarted = bench.control.restart_resource(&name, unchanged, &restart);
    assert_eq!(restarted.await.unwrap().resource.run.0, 2);
    bench
        .control
        .delete_resource(&name, false, Precondition::default(), &delete)
        .await
        .unwrap();
    bench
        .control
        .delete_resource(&name, false, Precondition::default(), &delete)
        .await
        .unwrap();
    let next = bench.add("a").await.unwrap().resource;
    bench
        .control
        .delete_resource(&name, false, Precondition::default(), &delete)
        .await
        .unwrap();
    let present = bench.control.resource(&name).await.unwrap().resource;
    assert_eq!(present.id, next.id);
    // A repeated restart of the first life does not begin a run of the next.
    let again = bench
        .control
        .restart_resource(&name, unchanged, &restart)
        .await;
    assert_eq!(again.unwrap_err().code(), Code::NotFound);
    assert_eq!(
        bench.control.resource(&name).await.unwrap().resource.run.0,
        1
    );
    // A repeated addition of the first life does not add another resource.
    bench.delete("a").await.unwrap();
    check_refused(
        bench.control.add_resource(spec("a", "books"), &add).await,
        Code::NotFound,
        "resource a was added or changed by this call, and deleted since",
    );
}

#[tokio::test]
async fn one_id_for_calls_of_two_names_is_two_calls() {
    let bench = bench().await;
    let request: RequestId = "the-same".parse().unwrap();
    for name in ["a", "b"] {
        let added = bench.control.add_resource(spec(name, "books"), &request);
        assert_eq!(added.await.unwrap().resource.spec.name.as_str(), name);
    }
    for name in ["a", "b"] {
        let name = name.parse().unwrap();
        let deleted =
            bench
                .control
                .delete_resource(&name, false, Precondition::default(), &request);
        deleted.await.unwrap();
        assert!(bench.control.present(&name).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn f21_calls_of_all_kinds_at_once_come_to_an_end() {
    let bench = bench().await;
    // The first deletion of each name finds a resource.
    for name in ["r-0", "r-1"] {
        bench.add(name).await.unwrap();
    }
    let (name, version) = ("books".parse().unwrap(), "1.0.0".parse().unwrap());
    let calls = (0..40).map(|n| {
        let (bench, name, version) = (&bench, &name, &version);
        async move {
            let of = format!("r-{}", n % 5);
            match n % 4 {
                0 => ("add", bench.add(&of).await.is_ok()),
                1 => ("delete", bench.delete(&of).await.is_ok()),
                2 => ("push", bench.push("books@1.0.0").await.is_ok()),
                _ => {
                    let deleted = bench.control.delete_plugin(name, version);
                    ("delete of the plugin", deleted.await.is_ok())
                }
            }
        }
    });
    let deadline = std::time::Duration::from_secs(60);
    let answers = tokio::time::timeout(deadline, join_all(calls))
        .await
        .expect("no call waits for another that waits for it");
    // It does not matter here which calls are refused.
    for kind in ["add", "delete", "push"] {
        assert!(answers.contains(&(kind, true)), "{kind}: {answers:?}");
    }
    bench.check_consistent().await;
}

#[tokio::test]
async fn f22_nodes_of_every_version_are_seen() {
    let bench = bench().await;
    let id: crawler_model::id::NodeId = "worker-9".parse().unwrap();
    let key = bench
        .catalog()
        .keys()
        .node(crawler_model::node::Role::Worker, &id);
    // A later version may write such a record.
    let record = r#"{"id":"worker-9","role":"worker","address":"a:1","incarnation":7,"capacity":3,
        "version":"9.9.9","interface":"9.0.0","started_at":1,"mood":{"good":true}}"#;
    bench.write(Txn::new().put(key, record)).await;
    let nodes = bench.control.nodes().await.unwrap();
    let seen = nodes.nodes.iter().find(|view| view.node.id == id);
    assert_eq!(seen.map(|view| view.node.version.as_str()), Some("9.9.9"));
}
