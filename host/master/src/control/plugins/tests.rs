//! Tests of the calls about plugins and their bytes.

use super::super::tests::bench::{Bench, spec};
use super::*;

async fn push(bench: &Bench, name: &str, bytes: &'static str) -> PluginRecord {
    let push = Push {
        name: Some((name.parse().unwrap(), version())),
        ..Push::default()
    };
    let pushed = bench.control.push_plugin(push, bytes.into());
    pushed.await.unwrap()
}

async fn delete(bench: &Bench, name: &str) -> Result<(), ControlError> {
    let name: PluginName = name.parse().unwrap();
    bench.control.delete_plugin(&name, &version()).await
}

fn bytes_of(bench: &Bench, plugin: &PluginRecord) -> std::path::PathBuf {
    let name = format!("plugins/{}.wasm", plugin.digest);
    bench.control.parts.data.folder().unwrap().join(name)
}

fn version() -> PluginVersion {
    "1.0.0".parse().unwrap()
}

#[tokio::test]
async fn bytes_go_with_the_last_version_that_has_them() {
    let bench = Bench::new().await;
    let plugin = push(&bench, "one", "a@1.0.0").await;
    push(&bench, "two", "a@1.0.0").await;
    let sweep = async || {
        // The file gets the age of more than an hour.
        let file = std::fs::File::open(bytes_of(&bench, &plugin)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        bench.control.drop_orphan_plugins().await.unwrap()
    };
    delete(&bench, "one").await.unwrap();
    assert_eq!(sweep().await, 0);
    delete(&bench, "two").await.unwrap();
    assert_eq!(sweep().await, 1);
    assert!(!bytes_of(&bench, &plugin).exists());
}

#[tokio::test]
async fn f13_versions_of_a_plugin_are_not_those_of_its_namespace() {
    let bench = Bench::new().await;
    let push = async |plugin: &str, field: &str| {
        let text = format!(r#"{plugin} {{"required": ["{field}"]}}"#);
        bench.push(&text).await.unwrap();
    };
    let newest = async |name: &str| {
        let name = name.parse().unwrap();
        let found = bench.control.plugin(&name).await.unwrap();
        format!("{}@{}", found.name, found.version)
    };
    push("team@1.0.0", "title").await;
    // These items would be refused in a version of the same plugin.
    push("team/books@1.1.0", "pence").await;
    push("team@1.0.1", "title").await;
    assert_eq!(newest("team").await, "team@1.0.1");
    assert_eq!(newest("team/books").await, "team/books@1.1.0");
    assert_eq!(bench.control.plugins().await.unwrap().len(), 3);
    delete(&bench, "team").await.unwrap();
    let absent = delete(&bench, "team/books").await.unwrap_err();
    assert_eq!(absent.to_string(), "there is no plugin team/books@1.0.0");
}

#[tokio::test]
async fn a_push_brings_back_bytes_that_were_lost_or_damaged() {
    let bench = Bench::new().await;
    let plugin = push(&bench, "one", "a@1.0.0").await;
    std::fs::remove_file(bytes_of(&bench, &plugin)).unwrap();
    assert_eq!(push(&bench, "one", "a@1.0.0").await, plugin);
    assert_eq!(
        std::fs::read(bytes_of(&bench, &plugin)).unwrap(),
        b"a@1.0.0"
    );
    std::fs::write(bytes_of(&bench, &plugin), "other").unwrap();
    push(&bench, "one", "a@1.0.0").await;
    assert_eq!(
        std::fs::read(bytes_of(&bench, &plugin)).unwrap(),
        b"a@1.0.0"
    );
}

#[tokio::test]
async fn another_build_of_the_same_sources_is_the_same_plugin() {
    let bench = Bench::new().await;
    let plugin = push(&bench, "one", "a@1.0.0 build-1 from a.py").await;
    assert_eq!(
        push(&bench, "one", "a@1.0.0 build-2 from a.py").await,
        plugin
    );
    let push_refused = async |bytes: &'static str| {
        let push = Push {
            name: Some(("one".parse().unwrap(), version())),
            ..Push::default()
        };
        let refused = bench.control.push_plugin(push, bytes.into()).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, ControlError::OtherBytes { .. }),
            "{refused}"
        );
    };
    push_refused("a@1.0.0 build-3 from b.py").await;
    push_refused("a@1.0.0 build-3").await;
    // It says that it is of the same sources, and has other params.
    push_refused("a@1.0.0 needs x from a.py").await;
    // The bytes that resources run are lost: those of another build cannot replace them.
    std::fs::remove_file(bytes_of(&bench, &plugin)).unwrap();
    push_refused("a@1.0.0 build-2 from a.py").await;
    push(&bench, "one", "a@1.0.0 build-1 from a.py").await;
    // Builds that do not tell their sources are told apart by their bytes.
    push(&bench, "two", "a@1.0.0 build-1").await;
    let two = Push {
        name: Some(("two".parse().unwrap(), version())),
        ..Push::default()
    };
    let refused = bench
        .control
        .push_plugin(two, "a@1.0.0 build-2".into())
        .await;
    assert!(matches!(refused, Err(ControlError::OtherBytes { .. })));
}

#[tokio::test]
async fn bytes_without_a_record_are_removed_and_those_with_one_stay() {
    let bench = Bench::new().await;
    let kept = push(&bench, "kept", "a@1.0.0").await;
    // A push and a deletion that were interrupted leave this state.
    let orphan = PluginRecord {
        digest: Digest::of(b"orphan"),
        ..kept.clone()
    };
    std::fs::write(bytes_of(&bench, &orphan), "orphan").unwrap();
    assert_eq!(bench.control.drop_orphan_plugins().await.unwrap(), 0);
    // The push began more than an hour ago.
    for plugin in [&kept, &orphan] {
        let file = std::fs::File::open(bytes_of(&bench, plugin)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    assert_eq!(bench.control.drop_orphan_plugins().await.unwrap(), 1);
    assert!(bytes_of(&bench, &kept).exists() && !bytes_of(&bench, &orphan).exists());
}

#[tokio::test]
async fn nothing_is_removed_where_a_record_cannot_be_read() {
    let bench = Bench::new().await;
    let plugin = push(&bench, "one", "a@1.0.0").await;
    let catalog = &bench.control.parts.catalog;
    let key = catalog.keys().plugin(&plugin.name, &plugin.version);
    let broken = Txn::new().put(key, "{");
    catalog.store().commit(broken).await.unwrap();
    assert_eq!(bench.control.drop_orphan_plugins().await.unwrap(), 0);
    assert!(bytes_of(&bench, &plugin).exists());
}

#[tokio::test]
async fn a_plugin_that_a_resource_waits_for_is_not_deleted() {
    let bench = Bench::new().await;
    let waits = bench.control.seed_resource(spec("waits", "one"));
    assert!(waits.await.unwrap());
    let plugin = push(&bench, "one", "a@1.0.0").await;
    let refused = delete(&bench, "one").await.unwrap_err();
    assert!(
        matches!(refused, ControlError::PluginInUse { .. }),
        "{refused}"
    );
    assert!(bytes_of(&bench, &plugin).exists());
}
