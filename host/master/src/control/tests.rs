//! Tests of the calls, with twins of the store, of admission and of workers.

use futures::future::join_all;

use super::*;
use crate::twin::{Answer, Workers};
use crate::{Code, WORKER_CALL_DEADLINE};
use bench::{Bench, bench, check_refused, spec, unchanged};
use crawler_model::access::{Grants, Role};
use crawler_model::id::{Generation, PluginName, PluginVersion, RequestId};
use crawler_model::resource::{Assignment, Deleting, Phase, ResourceSpec, ShardState};

pub(super) mod bench;
mod changes;
mod events;
mod leading;
mod lifecycle;
mod logs;
mod node_events;
mod nodes;
mod params;
mod passes;
mod phases;
mod placement;
mod runs;
mod schedules;
mod statistics;
mod watching;
mod webhooks;

#[tokio::test]
async fn an_added_resource_is_assigned_at_once_and_its_name_is_taken() {
    let bench = bench().await;
    let added = bench.add("a").await.unwrap();
    assert_eq!(added.phase, Phase::Running);
    assert_eq!(added.shards.len(), 1);
    assert!(added.resource.assigned_node.starts_with("worker-"));
    check_refused(
        bench.add("a").await,
        Code::AlreadyExists,
        "resource a exists already",
    );
    assert_eq!(bench.check_consistent().await, 1);
}

#[tokio::test]
async fn f13_a_name_is_not_taken_by_one_that_begins_like_it() {
    let bench = bench().await;
    bench.add("ab").await.unwrap();
    bench.add("a").await.unwrap();
    bench.delete("a").await.unwrap();
    assert_eq!(bench.phase("ab").await, Phase::Running);
    check_refused(
        bench.delete("a").await,
        Code::NotFound,
        "there is no resource a",
    );
}

#[tokio::test]
async fn f13_a_name_is_not_taken_by_those_in_its_namespace() {
    let bench = bench().await;
    for name in ["team", "team/books", "team/books/new", "team-2"] {
        bench.add(name).await.unwrap();
    }
    let all = listed(&bench, &Grants::all(), 1).await;
    assert_eq!(all, ["team", "team-2", "team/books", "team/books/new"]);
    bench.delete("team").await.unwrap();
    assert_eq!(bench.phase("team/books").await, Phase::Running);
    check_refused(
        bench.delete("team").await,
        Code::NotFound,
        "there is no resource team",
    );
    bench.delete("team/books").await.unwrap();
    assert_eq!(bench.check_consistent().await, 2);
}

/// Lists the resources that the grants cover, in pages of this size.
async fn listed(bench: &Bench, grants: &Grants, max: usize) -> Vec<String> {
    let query = ResourceQuery {
        max,
        ..ResourceQuery::default()
    };
    listed_by(bench, query, grants).await
}

/// Lists the resources that the query selects, in pages of its size.
async fn listed_by(bench: &Bench, mut query: ResourceQuery, grants: &Grants) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let page = bench.control.resources(&query, grants).await.unwrap();
        assert!(page.entries.len() <= query.max);
        let views = page.entries.into_iter();
        names.extend(views.map(|view| view.resource.spec.name.to_string()));
        query.after = page.next;
        match &query.after {
            None => return names,
            Some(next) => assert!(grants.covers(next.as_str()), "the token names {next}"),
        }
    }
}

#[tokio::test]
async fn a_list_has_and_names_only_what_the_caller_may_see() {
    let bench = bench().await;
    for name in ["a", "b/1", "b/2", "c", "d/1", "e", "f/1", "f/2"] {
        bench.add(name).await.unwrap();
    }
    let namespaces = ["b", "f"].map(|space| space.parse().unwrap());
    let grants = Grants {
        roles: [Role::Viewer].into(),
        namespaces: namespaces.into(),
    };
    for max in 1..6 {
        let names = listed(&bench, &grants, max).await;
        assert_eq!(names, ["b/1", "b/2", "f/1", "f/2"], "in pages of {max}");
    }
}

#[tokio::test]
async fn keys_that_are_no_names_do_not_end_a_list() {
    let bench = bench().await;
    for name in ["a", "b", "b/1", "c"] {
        bench.add(name).await.unwrap();
    }
    let all = bench.catalog().keys().resources();
    for no_name in ["!1", "!2", "!3", "a!1", "a!2", "b/!", "b/1!", "c!1", "c!2"] {
        let key = format!("{all}{no_name}");
        bench.write(Txn::new().put(key, "{}")).await;
    }
    let grants = Grants {
        roles: [Role::Viewer].into(),
        namespaces: ["b".parse().unwrap()].into(),
    };
    for max in 1..7 {
        let names = listed(&bench, &Grants::all(), max).await;
        assert_eq!(names, ["a", "b", "b/1", "c"], "in pages of {max}");
        assert_eq!(listed(&bench, &grants, max).await, ["b/1"]);
    }
}

#[tokio::test]
async fn a_list_has_what_it_is_filtered_by_in_pages_of_any_size() {
    let bench = bench().await;
    for name in ["a", "b", "ba", "b/1", "c"] {
        bench.add(name).await.unwrap();
    }
    let label = |spec: &mut ResourceSpec| {
        spec.labels = [("team".to_owned(), "shop".to_owned())].into();
    };
    for name in ["b", "c"] {
        bench.update(name, label).await.unwrap();
    }
    bench.end("ba", ShardState::Finished).await;
    let all = ResourceQuery::default;
    let labels = [("team".to_owned(), "shop".to_owned())].into();
    let plugin = |text: &str| Some(text.parse().unwrap());
    let cases = [
        (
            ResourceQuery {
                name_prefix: "b".to_owned(),
                ..all()
            },
            "b b/1 ba",
        ),
        (ResourceQuery { labels, ..all() }, "b c"),
        (
            ResourceQuery {
                phase: Some("Finished"),
                ..all()
            },
            "ba",
        ),
        (
            ResourceQuery {
                plugin: plugin("books@1.0.0"),
                ..all()
            },
            "a b b/1 ba c",
        ),
        (
            ResourceQuery {
                plugin: plugin("books@2.0.0"),
                ..all()
            },
            "",
        ),
        (
            ResourceQuery {
                plugin: plugin("other"),
                ..all()
            },
            "",
        ),
    ];
    for (query, expected) in cases {
        for max in 1..4 {
            let query = ResourceQuery {
                max,
                ..query.clone()
            };
            let names = listed_by(&bench, query.clone(), &Grants::all()).await;
            assert_eq!(names.join(" "), expected, "{query:?}");
        }
    }
    let namespaces = [("b", "b/1"), ("b/", "b/1"), ("b/1", "b/1"), ("a", "")];
    let grants = Grants {
        roles: [Role::Viewer].into(),
        namespaces: ["b".parse().unwrap()].into(),
    };
    for (prefix, expected) in namespaces {
        let query = ResourceQuery {
            max: 10,
            name_prefix: prefix.to_owned(),
            ..all()
        };
        let names = listed_by(&bench, query, &grants).await;
        assert_eq!(names.join(" "), expected, "{prefix}");
    }
}

#[tokio::test]
async fn f17_without_a_worker_a_resource_waits_and_says_why() {
    let bench = Bench::new().await;
    bench.push("books@1.0.0").await.unwrap();
    let added = bench.add("a").await.unwrap();
    assert_eq!(
        added.phase,
        Phase::Pending("no worker is registered".into())
    );
    assert_eq!(added.resource.assigned_node, "");
    bench.register("worker-1", 0).await;
    assert_eq!(
        bench.phase("a").await,
        Phase::Pending("0/1 workers: 1 at capacity".into())
    );
}

#[tokio::test]
async fn without_its_plugin_a_call_is_refused_and_a_seed_waits() {
    let bench = bench().await;
    let other = || spec("a", "other");
    check_refused(
        bench
            .control
            .add_resource(other(), &RequestId::random())
            .await,
        Code::FailedPrecondition,
        "there is no plugin other",
    );
    assert!(bench.control.seed_resource(other()).await.unwrap());
    assert!(!bench.control.seed_resource(other()).await.unwrap());
    assert_eq!(
        bench.phase("a").await,
        Phase::Pending("plugin other is not pushed yet".into())
    );
}

#[tokio::test]
async fn a_resource_pins_the_highest_version_there_is() {
    let bench = bench().await;
    for version in ["1.10.0", "1.9.0"] {
        bench.push(&format!("books@{version}")).await.unwrap();
    }
    let pinned = bench.add("a").await.unwrap().resource.pinned.unwrap();
    assert_eq!(pinned.version.to_string(), "1.10.0");
    bench.push("books@2.0.0").await.unwrap();
    let present = bench.control.resource(&"a".parse().unwrap()).await.unwrap();
    assert_eq!(present.resource.pinned, Some(pinned));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_answer_holds_up_no_add() {
    let bench = Bench::with(Arc::new(Workers::new(Answer::Mute))).await;
    bench.push("books@1.0.0").await.unwrap();
    bench.register("worker-1", 1_000).await;
    let began = tokio::time::Instant::now();
    for name in ["a", "b", "c"] {
        bench.add(name).await.unwrap();
    }
    assert!(began.elapsed() < WORKER_CALL_DEADLINE);
}

#[tokio::test]
async fn s10_an_update_changes_settings_in_place_and_nothing_else() {
    let bench = bench().await;
    let before = bench.add("a").await.unwrap();
    let after = bench.update("a", |spec| spec.crawl.max_pages = Some(7));
    let after = after.await.unwrap();
    assert_eq!(after.resource.generation, before.resource.generation.next());
    let mut expected = spec("a", "books");
    expected.crawl.max_pages = Some(7);
    assert_eq!(after.resource.spec, expected);
    assert_eq!(
        (after.resource.id, after.resource.run),
        (before.resource.id, before.resource.run)
    );
    let (id, shard) = bench.shard("a").await;
    let keys = bench.catalog().keys();
    let key = keys.assignment(&shard.owner.unwrap().node, id);
    let mirror: Versioned<Assignment> = bench.catalog().read(&key).await.unwrap().unwrap();
    assert_eq!(mirror.value.generation, after.resource.generation);
    assert_eq!(mirror.value.epoch, shard.epoch);
}

#[tokio::test]
async fn an_update_that_a_crawl_cannot_take_is_refused() {
    let bench = bench().await;
    check_refused(
        bench.update("a", |_| ()).await,
        Code::NotFound,
        "there is no resource a",
    );
    bench.add("a").await.unwrap();
    check_refused(
        bench
            .update("a", |spec| spec.plugin = "other".parse().unwrap())
            .await,
        Code::FailedPrecondition,
        "plugin of resource a can only change with a new run",
    );
    let params = |spec: &mut ResourceSpec| drop(spec.params.insert("a".into(), "b".into()));
    check_refused(
        bench.update("a", params).await,
        Code::FailedPrecondition,
        "params of resource a can only change with a new run",
    );
    check_refused(
        bench
            .update("a", |spec| spec.crawl.max_pages = Some(0))
            .await,
        Code::InvalidArgument,
        "setting max-pages must be above zero",
    );
}

#[tokio::test]
async fn archives_are_refused_where_the_data_root_has_none() {
    let mut bench = bench().await;
    bench.add("a").await.unwrap();
    let archive = |spec: &mut ResourceSpec| spec.crawl.archive = Some(ArchiveForm::Warc);
    bench.update("a", archive).await.unwrap();
    bench.set_data(DataRoot::open("s3://books").unwrap());
    let expected = "setting archive is warc, and the data root of this cluster is in a bucket, which has no archives; set archive to off";
    let refused = bench.update("a", archive).await;
    check_refused(refused, Code::InvalidArgument, expected);
    let off = bench.update("a", |spec| spec.crawl.archive = Some(ArchiveForm::Off));
    off.await.unwrap();
}

#[tokio::test]
async fn two_updates_at_once_are_both_kept() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let pages = bench.update("a", |spec| spec.crawl.max_pages = Some(7));
    let depth = bench.update("a", |spec| spec.crawl.max_depth = Some(3));
    let (pages, depth) = futures::join!(pages, depth);
    let (pages, depth) = (pages.unwrap(), depth.unwrap());
    let generations = [pages, depth].map(|view| view.resource.generation);
    assert!(generations.contains(&Generation(3)), "{generations:?}");
    let present = bench.control.resource(&"a".parse().unwrap()).await.unwrap();
    let crawl = present.resource.spec.crawl;
    assert_eq!((crawl.max_pages, crawl.max_depth), (Some(7), Some(3)));
}

#[tokio::test]
async fn a_crawl_that_is_over_is_not_assigned_again_by_an_update() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let (id, shard) = bench.shard("a").await;
    let keys = bench.catalog().keys();
    let mirror = keys.assignment(&shard.owner.unwrap().node, id);
    bench.end("a", ShardState::Finished).await;
    bench.write(Txn::new().delete(mirror)).await;
    let updated = bench.update("a", |_| ()).await;
    assert_eq!(updated.unwrap().phase, Phase::Finished);
    assert_eq!(bench.loads().await, [0, 0]);
}

#[tokio::test]
async fn f01_a_deletion_takes_the_assignment_with_it_and_the_next_life_is_another() {
    let bench = bench().await;
    let first = bench.add("a").await.unwrap().resource.id;
    bench.delete("a").await.unwrap();
    assert_eq!(bench.check_consistent().await, 0);
    assert_eq!(bench.loads().await, [0, 0]);
    let second = bench.add("a").await.unwrap().resource;
    assert!(second.id > first);
    assert_eq!((second.generation.0, second.run.0), (1, 1));
}

#[tokio::test]
async fn a_purge_names_those_who_may_still_write() {
    let bench = bench().await;
    let id = bench.add("a").await.unwrap().resource.id;
    let owner = bench.shard("a").await.1.owner.unwrap();
    let name = "a".parse().unwrap();
    bench
        .control
        .delete_resource(&name, true, Precondition::default(), &RequestId::random())
        .await
        .unwrap();
    let key = bench.catalog().keys().deleting(id);
    let deleting: Versioned<Deleting> = bench.catalog().read(&key).await.unwrap().unwrap();
    assert_eq!(deleting.value.owners, [owner]);
}

#[tokio::test]
async fn phases_follow_the_shard() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let failed = ShardState::Failed {
        reason: "root gave up".into(),
    };
    for (state, phase) in [
        (ShardState::Idle, Phase::Running),
        (failed, Phase::Failed("root gave up".into())),
        (ShardState::Finished, Phase::Finished),
    ] {
        bench.end("a", state).await;
        assert_eq!(bench.phase("a").await, phase);
    }
}

#[tokio::test]
async fn a_resource_without_a_shard_is_not_called_finished() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let key = bench.catalog().keys().shard(bench.shard("a").await.0);
    bench.write(Txn::new().delete(key)).await;
    assert_ne!(bench.phase("a").await, Phase::Finished);
}

#[tokio::test]
async fn a_version_never_changes_its_bytes() {
    let bench = bench().await;
    let first = bench.push("books@1.1.0").await.unwrap();
    let again = bench.push("books@1.1.0").await.unwrap();
    assert_eq!(
        (again.digest, again.pushed_at),
        (first.digest, first.pushed_at)
    );
    let other = bench.push("books@1.1.0 other").await;
    assert_eq!(other.unwrap_err().code(), Code::AlreadyExists);
    let large = "x".repeat(101).into();
    check_refused(
        bench.control.push_plugin(Push::default(), large).await,
        Code::ResourceExhausted,
        "the plugin has more than 100 bytes",
    );
}

#[tokio::test]
async fn items_that_readers_could_stumble_over_are_refused_unless_that_is_said() {
    let bench = Bench::new().await;
    let open = r#"{"required": ["title", "pence"]}"#;
    let less = r#"{"required": ["title"]}"#;
    bench.push(&format!("books@1.1.0 {open}")).await.unwrap();
    // The highest version below counts, and none above.
    bench.push(&format!("books@1.0.0 {less}")).await.unwrap();
    let refused = bench.push(&format!("books@1.2.0 {less}")).await;
    check_refused(
        refused,
        Code::FailedPrecondition,
        r#"the items of books@1.2.0 differ from those of version 1.1.0: item book: "pence" may be missing now"#,
    );
    let none = bench.push("books@1.2.0").await;
    check_refused(
        none,
        Code::FailedPrecondition,
        "the items of books@1.2.0 differ from those of version 1.1.0: item book: there are none of it any more",
    );
    // A version that is not released yet does not hide a release.
    let early = bench.push(&format!("books@1.2.0-rc.1 {less}")).await;
    early.unwrap_err();
    bench
        .push(&format!("books@2.0.0-rc.1 {open}"))
        .await
        .unwrap();
    bench.push(&format!("books@2.0.0 {less}")).await.unwrap();
    let push = Push {
        allow_breaking: true,
        ..Push::default()
    };
    let said = format!("books@1.2.0 {less}");
    let pushed = bench.control.push_plugin(push, said.clone().into()).await;
    pushed.unwrap();
    // An existing version is not checked again.
    bench.push(&said).await.unwrap();
}

#[tokio::test]
async fn a_plugin_in_use_stays_and_one_name_of_its_bytes_is_deleted_apart_from_another() {
    let bench = bench().await;
    let (name, version): (PluginName, PluginVersion) =
        ("books".parse().unwrap(), "1.0.0".parse().unwrap());
    bench.add("a").await.unwrap();
    check_refused(
        bench.control.delete_plugin(&name, &version).await,
        Code::FailedPrecondition,
        "plugin books@1.0.0 is used by resource a",
    );
    bench.delete("a").await.unwrap();

    let push = Push {
        name: Some(("shop".parse().unwrap(), "3.0.0".parse().unwrap())),
        ..Push::default()
    };
    let shop = bench
        .control
        .push_plugin(push, "books@1.0.0".into())
        .await
        .unwrap();
    bench.control.delete_plugin(&name, &version).await.unwrap();
    let piece = bench.control.plugin_piece(shop.digest, 0).await.unwrap();
    assert_eq!(piece, "books@1.0.0");
    bench
        .control
        .delete_plugin(&shop.name, &shop.version)
        .await
        .unwrap();
    check_refused(
        bench.control.delete_plugin(&shop.name, &shop.version).await,
        Code::NotFound,
        "there is no plugin shop@3.0.0",
    );
}

#[tokio::test]
async fn a_plugin_that_a_waiting_resource_is_about_to_pin_counts_as_used() {
    let bench = bench().await;
    bench
        .control
        .seed_resource(spec("a", "other"))
        .await
        .unwrap();
    let other = bench.push("other@1.0.0").await.unwrap();
    check_refused(
        bench
            .control
            .delete_plugin(&other.name, &other.version)
            .await,
        Code::FailedPrecondition,
        "plugin other@1.0.0 is used by resource a",
    );
}

#[tokio::test]
async fn a_push_waits_for_a_deletion_that_may_be_about_to_remove_the_same_bytes() {
    let bench = Bench::new().await;
    let deletion = bench.control.decision_lock.lock().await;
    let mut push = std::pin::pin!(bench.push("books@1.0.0"));
    let early = tokio::time::timeout(std::time::Duration::from_millis(200), push.as_mut()).await;
    assert!(early.is_err(), "{early:?}");
    drop(deletion);
    let pushed = push.await.unwrap();
    let piece = bench.control.plugin_piece(pushed.digest, 0).await.unwrap();
    assert_eq!(piece, "books@1.0.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s9_many_adds_and_deletes_at_once_leave_a_consistent_state() {
    let bench = Arc::new(bench().await);
    let scope = crawler_process::task::TaskScope::new();
    scope.spawn("reconciler", bench.reconciler().run(scope.stop_signal()));
    let calls = (0..200).map(|n| {
        let bench = bench.clone();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        scope.spawn(format!("call {n}"), async move {
            let name = format!("r{}", n % 20);
            let result = match n / 20 % 2 {
                0 => bench.add(&name).await.map(drop),
                _ => bench.delete(&name).await,
            };
            sender.send(result).unwrap();
        });
        receiver
    });
    let calls: Vec<_> = calls.collect();
    let (mut added, mut deleted) = (0, 0);
    for (n, result) in join_all(calls).await.into_iter().enumerate() {
        match (n / 20 % 2, result.unwrap()) {
            (0, Ok(())) => added += 1,
            (_, Ok(())) => deleted += 1,
            (0, Err(error)) => assert_eq!(error.code(), Code::AlreadyExists, "{error}"),
            (_, Err(error)) => assert_eq!(error.code(), Code::NotFound, "{error}"),
        }
    }
    scope.stop(std::time::Duration::from_secs(10)).await;
    assert!(added >= 20);
    let left = bench.check_consistent().await;
    assert_eq!(left, added - deleted);
    let loads = bench.loads().await;
    assert_eq!(loads.iter().sum::<u32>() as usize, left);
}
