//! Tests of new runs, and of dead letters that are tried again.

use std::time::Duration;

use super::*;
use crate::control::runs::dead_letters;
use crawler_model::crawl::Counts;
use crawler_model::drift::{Action, Decision};
use crawler_model::event::{Event, EventKind};
use crawler_model::frontier::FrontierStats;
use crawler_model::id::Run;
use crawler_model::resource::{Deleting, Redrive, ShardRecord, Waits};

/// Creates a crawl that was opened and has numbers; `state` says whether it is over.
async fn opened(state: ShardState) -> Bench {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    bench
        .record("a", |shard| {
            shard.state = state;
            (shard.created, shard.storage_epoch, shard.counts.parsed) = (true, 7, 12);
            shard.redrive = Some(Redrive::default());
        })
        .await;
    bench
}

#[tokio::test]
async fn a_restart_begins_a_new_run_out_of_every_phase() {
    let failed = ShardState::Failed {
        reason: "root gave up".into(),
    };
    for state in [
        ShardState::Assigned,
        ShardState::Idle,
        ShardState::Finished,
        failed,
    ] {
        let bench = opened(state).await;
        let (id, before) = bench.shard("a").await;
        let resource = bench.restart("a").await.unwrap().resource;
        assert_eq!(
            (resource.run, resource.assigned_node.as_str()),
            (Run(2), "")
        );
        assert_eq!(
            (resource.id, resource.generation),
            (id.resource, Generation(1))
        );
        let (_, after) = bench.shard("a").await;
        let expected = ShardRecord {
            owner: None,
            former_owners: before.writers(),
            state: ShardState::Free,
            epoch: before.epoch.next(),
            redrive: None,
            counts: Counts::default(),
            ..before
        };
        assert_eq!(after, expected);
        assert_eq!(bench.loads().await, [0, 0], "no assignment is left");
    }
}

#[tokio::test]
async fn runs_that_are_over_are_remembered_with_their_numbers() {
    let bench = opened(ShardState::Finished).await;
    let name = "a".parse().unwrap();
    bench.restart("a").await.unwrap();
    bench
        .record("a", |shard| {
            (shard.counts.parsed, shard.counts.items) = (5, 7)
        })
        .await;
    bench.restart("a").await.unwrap();
    let runs = bench.control.runs(&name).await.unwrap();
    assert_eq!(runs.present.resource.run, Run(3));
    let told: Vec<_> = runs
        .earlier
        .iter()
        .map(|ended| {
            (
                ended.run.0,
                ended.outcome.as_str(),
                ended.pages,
                ended.items,
            )
        })
        .collect();
    assert_eq!(told, [(1, "finished", 12, 0), (2, "stopped", 5, 7)]);
    assert!(runs.earlier.iter().all(|ended| ended.started_at > 0));
    // A record of a later version holds up no run.
    let key = bench.catalog().keys().runs(runs.present.resource.id);
    bench.write(Txn::new().put(key.clone(), "7")).await;
    bench.restart("a").await.unwrap();
    let runs = bench.control.runs(&name).await.unwrap();
    assert_eq!((runs.present.resource.run, runs.earlier.len()), (Run(4), 1));
    bench.delete("a").await.unwrap();
    assert_eq!(bench.catalog().store().get(&key).await.unwrap(), None);
}

#[tokio::test]
async fn what_waits_for_its_plugin_is_restarted_too() {
    let bench = bench().await;
    bench
        .control
        .seed_resource(spec("a", "other"))
        .await
        .unwrap();
    let restarted = bench.restart("a").await.unwrap();
    assert_eq!(restarted.resource.run, Run(2));
    let waits = Phase::Pending("plugin other is not pushed yet".into());
    assert_eq!(restarted.phase, waits);
    let (name, call) = ("a".parse().unwrap(), RequestId::random());
    let paused = bench.control.pause_resource(&name, true, &call).await;
    let paused_for = Phase::Paused("plugin other is not pushed yet".into());
    assert_eq!(paused.unwrap().phase, paused_for);
}

#[tokio::test]
async fn a_restarted_crawl_is_assigned_again_and_its_old_owner_may_record_nothing() {
    let bench = opened(ShardState::Finished).await;
    let (_, before) = bench.shard("a").await;
    let restarted = bench.restart("a").await.unwrap();
    let reason = restarted.phase.reason();
    assert!(reason.ends_with(" takes it in a moment"), "{restarted:?}");
    assert!(bench.shard("a").await.1.epoch > before.epoch);

    let scope = crawler_process::task::TaskScope::new();
    scope.spawn("reconciler", bench.reconciler().run(scope.stop_signal()));
    let assigned = async {
        while bench.phase("a").await != Phase::Running {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), assigned)
        .await
        .unwrap();
    scope.stop(Duration::from_secs(10)).await;
    let (_, after) = bench.shard("a").await;
    assert!(after.owner.is_some());
    assert_eq!(bench.check_consistent().await, 1);
}

#[tokio::test]
async fn a_deletion_waits_for_whom_a_restart_has_just_stopped() {
    let bench = opened(ShardState::Assigned).await;
    let (id, before) = bench.shard("a").await;
    bench.restart("a").await.unwrap();
    bench.delete("a").await.unwrap();
    let key = bench.catalog().keys().deleting(id.resource);
    let deleting: Option<Versioned<Deleting>> = bench.catalog().read(&key).await.unwrap();
    assert_eq!(deleting.unwrap().value.owners, [before.owner.unwrap()]);
}

#[tokio::test]
async fn a_restart_gives_up_a_frontier_that_is_missing_and_no_other() {
    for (condition, created) in [("FrontierMissing", false), ("StorageUnavailable", true)] {
        let bench = opened(ShardState::Assigned).await;
        let (condition, why) = (condition.to_owned(), "why".to_owned());
        bench
            .record("a", |shard| shard.waits = Some(Waits { condition, why }))
            .await;
        bench.restart("a").await.unwrap();
        let (_, after) = bench.shard("a").await;
        assert_eq!((after.created, after.waits), (created, None));
    }
}

#[tokio::test]
async fn a_restart_of_nothing_is_refused_and_two_at_once_are_two_runs() {
    let bench = bench().await;
    check_refused(
        bench.restart("a").await,
        Code::NotFound,
        "there is no resource a",
    );
    bench.add("a").await.unwrap();
    let (one, other) = futures::join!(bench.restart("a"), bench.restart("a"));
    let runs = [one, other].map(|view| view.unwrap().resource.run);
    assert!(runs.contains(&Run(3)), "{runs:?}");
}

/// Orders a redrive beside the `present` one, if there is one. Returns the record of the shard afterwards.
async fn redrive_order(present: Option<&str>, asked: &str) -> Result<ShardRecord, ControlError> {
    let order = |reason: &str| Redrive::of(Some(reason).filter(|reason| !reason.is_empty()));
    let bench = opened(ShardState::Finished).await;
    let redrive = present.map(order);
    bench.record("a", |shard| shard.redrive = redrive).await;
    let resource = bench.control.existing(&"a".parse().unwrap()).await?;
    let leadership = bench.control.leadership()?;
    let event = || Event::of(EventKind::Redriven, Run(1));
    let request = RequestId::random();
    assert!(
        bench
            .control
            .order_redrive(&leadership, &resource, &order(asked), (&request, event()))
            .await?
    );
    assert_eq!(bench.loads().await, [0, 0], "no assignment is left");
    assert!(
        !bench
            .control
            .order_redrive(&leadership, &resource, &order(asked), (&request, event()))
            .await?
    );
    Ok(bench.shard("a").await.1)
}

#[tokio::test]
async fn f26_a_redrive_frees_the_shard_with_the_order_and_keeps_run_and_numbers() {
    let record = redrive_order(None, "timeout").await.unwrap();
    assert_eq!((&record.owner, &record.state), (&None, &ShardState::Free));
    assert_eq!((record.created, record.storage_epoch), (true, 7));
    assert_eq!((record.epoch.0, record.counts.parsed), (2, 12));
    assert_eq!(record.redrive, Some(Redrive::of(Some("timeout"))));
}

#[tokio::test]
async fn a_decision_frees_the_shard_and_waits_for_its_worker() {
    let bench = opened(ShardState::Finished).await;
    let resource = bench.control.existing(&"a".parse().unwrap()).await.unwrap();
    let leadership = bench.control.leadership().unwrap();
    let decision = Decision {
        action: Action::Drop,
        holds: [(1, 9)].into(),
    };
    let with_decision = |_id, shard: ShardRecord| {
        let decisions = vec![decision.clone()];
        Some(ShardRecord { decisions, ..shard })
    };
    let event = Event::of(EventKind::HeldDecided, Run(1));
    let request = RequestId::random();
    let ordered = bench
        .control
        .order(&leadership, &resource, with_decision, (&request, event));
    assert!(ordered.await.unwrap());
    let (_, record) = bench.shard("a").await;
    assert_eq!(record.state, ShardState::Free);
    assert_eq!(record.decisions, std::slice::from_ref(&decision));
    // The next run has the same frontier, and the items are still held there.
    bench.restart("a").await.unwrap();
    assert_eq!(bench.shard("a").await.1.decisions, [decision]);
}

#[tokio::test]
async fn an_order_beside_one_that_waits_asks_for_both() {
    for (present, asked, left) in [
        ("timeout", "timeout", &["timeout"][..]),
        ("timeout", "connection", &["connection", "timeout"]),
        ("timeout", "", &[]),
        ("", "timeout", &[]),
        ("", "", &[]),
    ] {
        let record = redrive_order(Some(present), asked).await.unwrap();
        let reasons = left.iter().map(|reason| (*reason).to_owned()).collect();
        assert_eq!(
            record.redrive,
            Some(Redrive { reasons }),
            "{present} {asked}"
        );
    }
}

#[tokio::test]
async fn f26_a_redrive_is_about_dead_letters_of_the_present_run() {
    let bench = opened(ShardState::Finished).await;
    let resource = bench.control.existing(&"a".parse().unwrap()).await.unwrap();
    let resource = resource.value;
    let stats = |run, dead: &[(&str, u64)]| {
        let dead = dead.iter().map(|(reason, n)| ((*reason).to_owned(), *n));
        FrontierStats {
            run: Run(run),
            counts: Counts {
                dead_by_reason: dead.collect(),
                ..Counts::default()
            },
            ..FrontierStats::default()
        }
    };
    let dead = [("timeout", 3), ("connection", 1), ("redriven", 0)];
    let n_dead = |run, reason| dead_letters(&resource, stats(run, &dead), &Redrive::of(reason));
    assert_eq!(n_dead(1, None).unwrap(), 4);
    assert_eq!(n_dead(1, Some("timeout")).unwrap(), 3);
    let check = |reason, run, text: &str, hint: &str| {
        let error = n_dead(run, reason).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.hint().as_str()),
            (text, hint)
        );
    };
    let none = "run 1 of resource a has no dead letters";
    let there_are = "there are connection (1), timeout (3)";
    for reason in ["poison", "redriven"] {
        let text = format!("{none} given up for {reason}");
        check(Some(reason), 1, &text, there_are);
    }
    let look = "`crawler frontier stats a` shows what became of its URLs";
    check(None, 2, none, look);
}
