//! Tests of `crawler apply` and `crawler export` against the calls of a master in this process. There is no worker,
//! so that resources stay as they are.

use std::path::PathBuf;

use super::*;
use crate::app::process::Process;
use crate::cli::apply::{ApplyOptions, Told, apply};
use crate::cli::args::SelectArgs;
use crate::cli::export::specs;
use crate::config::{Declared, document};
use crawler_api::client::{Client, ClientError};
use crawler_master::control::Precondition;
use crawler_model::id::Digest;
use crawler_model::plugin::{Description, PluginRecord};
use crawler_process::telemetry::chain;
use crawler_store::Txn;
use crawler_store::catalog::encode;

/// A master that leads and knows the plugin `books`.
struct Bench {
    folder: tempfile::TempDir,
    process: Process,
    client: Client,
}

impl Bench {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let store: Arc<dyn Store> =
            Arc::new(EmbeddedStore::open(&store, Settings::default()).unwrap());
        let catalog = Catalog::new(store.clone(), Keys::default());
        let plugin = plugin();
        let key = catalog.keys().plugin(&plugin.name, &plugin.version);
        let put = Txn::new().put(key, encode(&plugin));
        catalog.store().commit(put).await.unwrap();
        let master = MasterOptions {
            node: options(folder.path(), "master-1"),
            calls: CallOptions::default(),
            compaction: None,
            placement: PlacementSettings::default(),
        };
        let process = start_master(&master, store, Arc::new(SystemClock)).await;
        let process = process.unwrap();
        let client = Client::connect(&format!("http://{}", process.grpc)).await;
        let client = client.unwrap();
        let leads = async {
            let nobody = "nobody".parse().unwrap();
            while client
                .delete_resource(&nobody, false, Precondition::default())
                .await
                .is_err_and(|error| error.is_transient())
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, leads)
            .await
            .expect("in time");
        Self {
            folder,
            process,
            client,
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Applies a file, and returns what is told, with the error at the end if there is one.
    async fn apply(&self, text: &str, options: &ApplyOptions) -> Vec<String> {
        let file = self.write("crawls.toml", text);
        let mut lines = Vec::new();
        let tell = |told: Told| -> anyhow::Result<()> {
            match told {
                Told::Done(done) => lines.extend(done),
                Told::Failed(error) => lines.push(format!("error: {}", chain(error.as_ref()))),
            }
            Ok(())
        };
        let applied = apply(&self.client, Declared::read(&[file]), options, tell).await;
        if let Err(error) = applied {
            lines.push(error.to_string());
        }
        let folder = format!("{}/", self.folder.path().display());
        lines
            .into_iter()
            .map(|line| line.replace(&folder, ""))
            .collect()
    }

    /// Returns all resources in the form of a file.
    async fn export(&self) -> String {
        let specs = specs(&self.client, &[], &SelectArgs::default()).await;
        document(specs.unwrap().values())
    }
}

fn plugin() -> PluginRecord {
    PluginRecord {
        name: "books".parse().unwrap(),
        version: "1.0.0".parse().unwrap(),
        digest: Digest::of(b"books"),
        sources: None,
        size: 5,
        interface: "0.1.0".to_owned(),
        description: Description {
            name: "books".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
            rules: Vec::new(),
            schemas: Vec::new(),
            plans: Vec::new(),
            hosts: Vec::new(),
            params: None,
            limits: BTreeMap::new(),
        },
        pushed_at: 0,
    }
}

fn dry_run() -> ApplyOptions {
    ApplyOptions {
        is_dry_run: true,
        ..ApplyOptions::default()
    }
}

const TWO: &str = "\
[[resource]]
name = \"books\"
labels = { team = \"shop\" }
max-pages = 3

[[resource]]
name = \"shop\"
plugin = \"books\"
params = { start = \"http://a.test/\" }
limits = { memory = \"8MiB\" }
delay = \"250ms\"
weight = 2
";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_applied_is_unchanged_and_exported_as_it_was_written() {
    let bench = Bench::new().await;
    let usual = ApplyOptions::default();
    assert_eq!(
        bench.apply(TWO, &dry_run()).await,
        [
            "resource books created (dry run)",
            "  labels.team: none → \"shop\"",
            "  max-pages: default (1000000) → 3",
            "resource shop created (dry run)",
            "  plugin: \"shop\" → \"books\"",
            "  params.start: none → \"http://a.test/\"",
            "  limits.memory: default (\"64MiB\") → \"8MiB\"",
            "  delay: default (1s, and 0 in allowed networks) → \"250ms\"",
            "  weight: default (1) → 2",
        ]
    );
    assert_eq!(bench.export().await, "");
    let created = ["resource books created", "resource shop created"];
    assert_eq!(bench.apply(TWO, &usual).await, created);
    for _ in 0..2 {
        let unchanged = ["resource books unchanged", "resource shop unchanged"];
        assert_eq!(bench.apply(TWO, &usual).await, unchanged);
    }
    let exported = bench.export().await;
    assert_eq!(exported, TWO);
    assert_eq!(
        bench.apply(&exported, &dry_run()).await,
        [
            "resource books unchanged (dry run)",
            "resource shop unchanged (dry run)"
        ]
    );
    bench.process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_replaces_the_whole_and_what_needs_a_run_is_asked_for() {
    let bench = Bench::new().await;
    let usual = ApplyOptions::default();
    bench.apply(TWO, &usual).await;
    let changed = TWO.replace("max-pages = 3", "max-depth = 2");
    assert_eq!(
        bench.apply(&changed, &dry_run()).await[..3],
        [
            "resource books updated (dry run)",
            "  max-depth: default (50) → 2",
            "  max-pages: 3 → default (1000000)",
        ]
    );
    assert_eq!(
        bench.apply(&changed, &usual).await,
        ["resource books updated", "resource shop unchanged"]
    );
    assert_eq!(bench.export().await, changed);
    let other = changed.replace("a.test", "b.test");
    assert_eq!(
        bench.apply(&other, &usual).await,
        [
            "resource books unchanged",
            "error: crawls.toml:6: resource shop: params can only change with a new run",
            "1 fault; 1 applied",
        ]
    );
    let restarts = ApplyOptions {
        restarts: true,
        ..ApplyOptions::default()
    };
    assert_eq!(
        bench.apply(&other, &restarts).await,
        [
            "resource books unchanged",
            "resource shop updated; run 2 begins"
        ]
    );
    assert_eq!(bench.export().await, other);
    bench.process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_one_resource_leaves_the_others_and_prunes_nothing() {
    let bench = Bench::new().await;
    let prune = ApplyOptions {
        prune: Some(SelectArgs {
            labels: vec![("team".to_owned(), "shop".to_owned())],
        }),
        ..ApplyOptions::default()
    };
    bench.apply(TWO, &prune).await;
    let faulty = "[[resource]]\nname = 'new'\nplugin = 'books'\n\
        [[resource]]\nname = 'lost'\nplugin = 'nobody'\n\
        [[resource]]\nname = 'bad'\ndelay = 'soon'\n";
    assert_eq!(
        bench.apply(faulty, &prune).await,
        [
            "error: crawls.toml:9: delay takes a time like 250ms or 1s, not \"soon\"",
            "resource new created",
            "error: crawls.toml:4: resource lost: there is no plugin nobody",
            "error: nothing is pruned, because not all that the files declare is applied",
            "3 faults; 1 applied",
        ]
    );
    let sound = "[[resource]]\nname = 'new'\nplugin = 'books'\n";
    let dry = ApplyOptions {
        is_dry_run: true,
        prune: Some(SelectArgs {
            labels: vec![("team".to_owned(), "shop".to_owned())],
        }),
        ..ApplyOptions::default()
    };
    assert_eq!(
        bench.apply(sound, &dry).await,
        [
            "resource new unchanged (dry run)",
            "resource books pruned (dry run)"
        ]
    );
    assert_eq!(
        bench.apply(sound, &prune).await,
        ["resource new unchanged", "resource books pruned"]
    );
    // The resource without the label stays, although no file declares it.
    let left = specs(&bench.client, &[], &SelectArgs::default()).await;
    let left: Vec<String> = left.unwrap().keys().map(ToString::to_string).collect();
    assert_eq!(left, ["new", "shop"]);
    bench.process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_apply_at_the_same_time_do_not_mix_their_specs() {
    let bench = Bench::new().await;
    let texts = ["max-pages = 3\n", "max-depth = 2\nweight = 2\n"];
    let texts = texts.map(|keys| format!("[[resource]]\nname = \"books\"\n{keys}"));
    for round in 0..20 {
        let files = [0, 1].map(|n| bench.write(&format!("{n}.toml"), &texts[n]));
        let both = files.map(|file| {
            let (declared, client) = (Declared::read(&[file]), &bench.client);
            async move {
                let usual = ApplyOptions::default();
                apply(client, declared, &usual, |_told| Ok(())).await
            }
        });
        for applied in futures::future::join_all(both).await {
            applied.unwrap();
        }
        let left = bench.export().await;
        assert!(texts.contains(&left), "round {round}: {left}");
    }
    bench.process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_an_earlier_generation_is_refused() {
    use crawler_api::spec::SpecRequest;
    use crawler_master::Code;
    use crawler_model::id::{Generation, ResourceId};

    let bench = Bench::new().await;
    bench.apply(TWO, &ApplyOptions::default()).await;
    let change = SpecRequest {
        precondition: Precondition {
            generation: Some(Generation(1)),
            ..Precondition::default()
        },
        ..SpecRequest::named("books".parse().unwrap())
    };
    let update = || bench.client.update_resource(change.clone());
    assert_eq!(update().await.unwrap().generation, 2);
    let refused = update().await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "resource books has generation 2, not 1: it was changed meanwhile"
    );
    assert!(
        matches!(refused, ClientError::Refused(problem) if problem.code == Code::Aborted),
        "told as a lost race"
    );

    // A deletion has the same conditions.
    let name = "books".parse().unwrap();
    let id = bench.client.resource(&name).await.unwrap().spec().id;
    let id = ResourceId(id.parse().unwrap());
    let delete = async |id: u64, generation: u64| {
        let precondition = Precondition::unchanged(ResourceId(id), Generation(generation));
        let deleted = bench.client.delete_resource(&name, false, precondition);
        deleted.await.map_err(|error| error.to_string())
    };
    let other = id.0 + 1;
    assert_eq!(
        delete(other, 2).await.unwrap_err(),
        format!("resource books has id {id}, not {other}: it was deleted, and added again")
    );
    assert_eq!(
        delete(id.0, 1).await.unwrap_err(),
        "resource books has generation 2, not 1: it was changed meanwhile"
    );
    delete(id.0, 2).await.unwrap();
    bench.process.stop().await;
}
