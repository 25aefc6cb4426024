//! Sinks of this process: the one in the data root, those that its config file declares, and the items that can be read
//! back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use async_trait::async_trait;

use super::parts;
use crate::cli::Failure;
use crate::config::{
    DatabaseConfig, FileConfig, FilesConfig, PostConfig, SinkConfig, SinkPlace, StreamConfig,
};
use crawler_data::{Bucket, DataPlace, DataRoot};
use crawler_fetch::http::post::PostClient;
use crawler_fetch::webhook::WebhookClient;
use crawler_file_sink::FileSinks;
use crawler_message_sink::nats::NatsSinks;
use crawler_message_sink::webhook::WebhookSinks;
use crawler_model::plugin::Schema;
use crawler_model::resource::ResourceSpec;
use crawler_model::settings::SinkName;
use crawler_process::clock::SystemClock;
use crawler_sink::feed::Feed;
use crawler_sink::items::ItemStore;
use crawler_sink::lines::{ExportedLines, LineFolders, LineSettings};
use crawler_sink::parts::{PartFolders, PartSettings};
use crawler_sink::selection::Selection;
use crawler_sink::{CheckSink, Delivery, OpenSinks, Sink, SinkError};
use crawler_sql_sink::SqlSinks;

/// Returns the sinks that resources of this process can have. `place` is the end of a message about one that is not
/// declared, such as "on worker worker-1".
///
/// # Errors
///
/// The secret of a declared sink is missing, or a folder is in the data root or above it.
pub(super) fn sinks(
    data: &DataRoot,
    file: &FileConfig,
    place: String,
) -> anyhow::Result<Arc<dyn OpenSinks>> {
    check_folders(data, &file.sinks)?;
    let lines: Arc<dyn OpenSinks> = match data.items_root() {
        Some(folder) => Arc::new(files(folder)),
        None => Arc::new(objects(data, file.data.parts())),
    };
    let declared = file.sinks.iter().map(|config| {
        let sink = DeclaredSink {
            sink: declared_sink(config, file)?,
            feed: config.feed,
            selection: config.selection.clone(),
            keys: config.keys(),
        };
        anyhow::Ok((config.name.clone(), sink))
    });
    Ok(Arc::new(NamedSinks {
        lines,
        declared: declared.collect::<anyhow::Result<_>>()?,
        place,
    }))
}

/// Refuses a declared folder or prefix in the data root or above it: each would take files of the other for its own.
pub(super) fn check_folders(data: &DataRoot, declared: &[SinkConfig]) -> Result<(), Failure> {
    let root = match data.place() {
        DataPlace::Folder(root) => root,
        DataPlace::Bucket(root) => return check_prefixes(root, declared),
    };
    let (shown, root) = (root.display(), real(root));
    for sink in declared {
        let Some(folder) = sink.place.own_folder() else {
            continue;
        };
        let real = real(folder);
        if real.starts_with(&root) || root.starts_with(&real) {
            let (name, folder) = (&sink.name, folder.display());
            return Err(Failure::new(
                format!("folder {folder} of sink {name} is in the data root {shown}, or above it"),
                format!("name another folder in url of [sink.{name}]"),
            ));
        }
    }
    Ok(())
}

/// Refuses a declared prefix in the bucket of the data root that is in the data root or above it.
fn check_prefixes(root: &Bucket, declared: &[SinkConfig]) -> Result<(), Failure> {
    for sink in declared {
        let SinkPlace::Files(files) = &sink.place else {
            continue;
        };
        let DataPlace::Bucket(own) = &files.place else {
            continue;
        };
        let is_same = own.provider == root.provider && own.name == root.name;
        let (prefix, of_root) = (&own.prefix, &root.prefix);
        if is_same && (prefix.prefix_matches(of_root) || of_root.prefix_matches(prefix)) {
            let name = &sink.name;
            return Err(Failure::new(
                format!("{own} of sink {name} is in the data root {root}, or above it"),
                format!("name another prefix in url of [sink.{name}]"),
            ));
        }
    }
    Ok(())
}

/// Returns the path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let of_part = |part: &Path| {
        let rest = path.strip_prefix(part).ok()?;
        Some(part.canonicalize().ok()?.join(rest))
    };
    path.ancestors()
        .find_map(of_part)
        .unwrap_or_else(|| path.clone())
}

/// Checks the secrets of declared sinks.
pub(super) fn check_secrets(file: &FileConfig) -> anyhow::Result<()> {
    let mut declared = file.sinks.iter();
    declared.try_for_each(|config| declared_sink(config, file).map(drop))
}

/// Returns a sink that a config file declares: the one place where its kind is chosen. Calls over HTTP are made as other
/// tables of the file say. Nothing is connected before the first write.
///
/// # Errors
///
/// The secret of the sink is missing.
pub(super) fn declared_sink(
    config: &SinkConfig,
    file: &FileConfig,
) -> anyhow::Result<Arc<dyn CheckSink>> {
    let unusable = || format!("sink {} cannot be used", config.name);
    match &config.place {
        SinkPlace::Folder {
            folder,
            max_file_bytes,
        } => {
            let settings = LineSettings {
                max_file_bytes: *max_file_bytes,
            };
            Ok(Arc::new(ExportedLines::new(folder.clone(), settings)))
        }
        SinkPlace::Files(files) => Ok(Arc::new(partitioned(files).with_context(unusable)?)),
        SinkPlace::Database(database) => Ok(Arc::new(tables(database).with_context(unusable)?)),
        SinkPlace::Stream(stream) => Ok(Arc::new(messages(stream).with_context(unusable)?)),
        SinkPlace::Post(post) => Ok(Arc::new(posts(post, file).with_context(unusable)?)),
    }
}

/// Returns the files in partitions of a sink. Nothing is connected before the first use.
///
/// # Errors
///
/// The secret of the bucket is missing, or a setting is out of range.
pub(super) fn partitioned(config: &FilesConfig) -> anyhow::Result<FileSinks> {
    let settings = config.settings.clone();
    match &config.place {
        DataPlace::Folder(folder) => Ok(FileSinks::in_folder(folder.clone(), settings)?),
        DataPlace::Bucket(bucket) => {
            let remote = config.remote().map_err(|why| anyhow!(why))?;
            let objects = remote.objects(bucket)?;
            Ok(FileSinks::in_bucket(objects, bucket.to_string(), settings)?)
        }
    }
}

fn tables(config: &DatabaseConfig) -> anyhow::Result<SqlSinks> {
    let target = config.target().map_err(|why| anyhow!(why))?;
    Ok(SqlSinks::new(target, config.settings.clone())?)
}

fn messages(config: &StreamConfig) -> anyhow::Result<NatsSinks> {
    let target = config.target().map_err(|why| anyhow!(why))?;
    Ok(NatsSinks::new(target, config.settings.clone())?)
}

fn posts(config: &PostConfig, file: &FileConfig) -> anyhow::Result<WebhookSinks> {
    let (url, networks) = (config.url.clone(), config.allow_networks.clone());
    let client = WebhookClient {
        client: PostClient::new(url, networks, parts::call_settings(file)?)?,
        keys: parts::signing_keys(config.secrets())?,
        timeout: config.settings.timeout,
        table: "sink",
        clock: Arc::new(SystemClock),
    };
    Ok(WebhookSinks::new(
        client,
        config.shown(),
        config.settings.clone(),
    )?)
}

/// Refuses a resource of a process without masters that names a sink which the config file does not declare, or which needs
/// changes.
pub(super) fn check_names(spec: &ResourceSpec, declared: &[SinkConfig]) -> Result<(), Failure> {
    let names = spec.crawl.sink_names();
    let needs_changes =
        |sink: &&SinkConfig| sink.feed.needs_changes() && names.contains(&sink.name);
    if let Some(sink) = declared.iter().find(needs_changes) {
        let (resource, name) = (&spec.name, &sink.name);
        return Err(Failure::new(
            format!(
                "resource {resource} names sink {name}, which needs changes, and only clusters compare items"
            ),
            format!("leave out what and history of [sink.{name}], or use `crawler up`"),
        ));
    }
    let is_declared = |name: &&SinkName| declared.iter().any(|sink| sink.name == **name);
    let mut unknown = names
        .iter()
        .filter(|name| !name.is_lines() && !is_declared(name));
    match unknown.next() {
        None => Ok(()),
        Some(name) => Err(Failure::new(
            format!(
                "resource {} names sink {name}, which is not declared",
                spec.name
            ),
            format!("add [sink.{name}] to the config file"),
        )),
    }
}

/// Returns the items that masters read and remove.
pub(super) fn items(data: &DataRoot, parts: PartSettings) -> Arc<dyn ItemStore> {
    match data.items_root() {
        Some(folder) => Arc::new(files(folder)),
        None => Arc::new(objects(data, parts)),
    }
}

fn files(folder: PathBuf) -> LineFolders {
    LineFolders::new(folder, LineSettings::default())
}

fn objects(data: &DataRoot, parts: PartSettings) -> PartFolders {
    PartFolders::new(data.object_store(), data.items_path(), parts)
}

/// Sinks by name.
struct NamedSinks {
    /// Sink in the data root: files in a folder, part objects in a bucket.
    lines: Arc<dyn OpenSinks>,
    declared: BTreeMap<SinkName, DeclaredSink>,
    place: String,
}

/// A declared sink, and what it gets of the items.
struct DeclaredSink {
    sink: Arc<dyn CheckSink>,
    feed: Feed,
    selection: Selection,
    /// Fields by which rows of a kind are identified.
    keys: BTreeMap<String, Vec<String>>,
}

impl DeclaredSink {
    /// Returns the schemas of what the sink gets, by the kinds of items.
    fn schemas(&self, schemas: &[Schema]) -> Vec<Schema> {
        self.selection.schemas(&self.feed.schemas(schemas))
    }

    /// Returns the JSON schema of what the sink gets of kinds that the plugin does not declare, if there is one.
    fn other_kinds(&self) -> Option<String> {
        let schema = self.feed.schema("")?;
        Some(self.selection.projected(&schema).json_schema)
    }

    /// Returns the kinds with keys of which the sink gets no items, and the fields of keys that no item declares, each with
    /// its kind. Without schemas, and with one that declares no fields, nobody knows.
    fn unknown_keys(&self, schemas: &[Schema]) -> (Vec<&str>, Vec<String>) {
        let (mut kinds, mut fields) = (Vec::new(), Vec::new());
        if schemas.is_empty() {
            return (kinds, fields);
        }
        let schemas = self.schemas(schemas);
        for (kind, key) in &self.keys {
            let Some(schema) = schemas.iter().find(|schema| schema.name == *kind) else {
                kinds.push(kind.as_str());
                continue;
            };
            let Ok(Some(schema)) = schema.read() else {
                continue;
            };
            let declared: Vec<&str> = schema.properties().map(|(name, _, _)| name).collect();
            let unknown = key
                .iter()
                .filter(|field| !declared.is_empty() && !declared.contains(&field.as_str()));
            fields.extend(unknown.map(|field| format!("{kind}.{field}")));
        }
        (kinds, fields)
    }
}

#[async_trait]
impl OpenSinks for NamedSinks {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        let name = &delivery.sink;
        if name.is_lines() {
            let sink = self.lines.open(delivery).await?;
            return Ok(Feed::Items.apply(delivery.shard, sink));
        }
        let Some(declared) = self.declared.get(name) else {
            let place = &self.place;
            // The items wait: this worker may have the sink after a restart, and so may another one that gets the shard.
            return Err(SinkError::Retry {
                message: format!(
                    "sink {name} is not declared {place}; add [sink.{name}] to its config file"
                ),
                source: None,
            });
        };
        let delivery = Delivery {
            schemas: declared.schemas(&delivery.schemas),
            other_kinds: declared.other_kinds(),
            ..delivery.clone()
        };
        let sink = declared.sink.open(&delivery).await?;
        let sink = declared.selection.apply(sink);
        Ok(declared.feed.apply(delivery.shard, sink))
    }

    fn warnings(&self, delivery: &Delivery) -> Vec<String> {
        let name = &delivery.sink;
        let Some(declared) = self.declared.get(name) else {
            return Vec::new();
        };
        let schemas = declared.feed.schemas(&delivery.schemas);
        let kinds = declared.selection.unknown_kinds(&schemas);
        let fields = declared.selection.unknown_fields(&schemas);
        let lacks_changes = declared.feed.needs_changes() && delivery.spec.crawl.changes() == 0;
        let of_feed = lacks_changes.then(|| {
            format!("sink {name} is told nothing of changes: the resource compares no items; set changes, as with --changes 30")
        });
        let of_kinds = (!kinds.is_empty()).then(|| {
            let kinds = kinds.join(", ");
            format!("sink {name}: the plugin has no kind of items that `only` names: {kinds}")
        });
        let of_fields = (!fields.is_empty()).then(|| {
            let fields = fields.join(", ");
            format!("sink {name}: no item declares a field that `fields` names: {fields}")
        });
        let (kinds, fields) = declared.unknown_keys(&delivery.schemas);
        let keys_of_kinds = (!kinds.is_empty()).then(|| {
            let kinds = kinds.join(", ");
            format!("sink {name}: it gets no kind of items that `keys` names: {kinds}")
        });
        let keys_of_fields = (!fields.is_empty()).then(|| {
            let fields = fields.join(", ");
            format!("sink {name}: no item declares a field that `keys` names: {fields}")
        });
        let of_selection = of_kinds.into_iter().chain(of_fields);
        let of_keys = keys_of_kinds.into_iter().chain(keys_of_fields);
        let warnings = of_feed.into_iter().chain(of_selection);
        warnings.chain(of_keys).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::changes::{Change, ToldChange};
    use crawler_model::crawl::{ItemKey, ItemRecord};
    use crawler_model::id::{ResourceId, Run};
    use crawler_model::resource::ShardId;
    use sqlx::{ConnectOptions as _, Row as _};

    fn delivery(sink: &str) -> Delivery {
        Delivery {
            sink: sink.parse().unwrap(),
            shard: ShardId::only(ResourceId(7)),
            cluster: "c1".to_owned(),
            run: Run(1),
            storage_epoch: 1,
            spec: spec("lines"),
            schemas: Vec::new(),
            other_kinds: None,
            marks: Vec::new(),
        }
    }

    fn spec(sinks: &str) -> ResourceSpec {
        let mut spec: ResourceSpec =
            serde_json::from_str(r#"{"name":"books","plugin":"books"}"#).unwrap();
        spec.crawl.sinks = sinks.split(',').map(|name| name.parse().unwrap()).collect();
        spec
    }

    fn record(kind: &str) -> ItemRecord {
        ItemRecord {
            key: ItemKey(format!("key-of-{kind}")),
            url: "http://a.test/".into(),
            rule: "page".into(),
            schema: kind.into(),
            run: Run(1),
            fetched_at: 7,
            item: serde_json::value::RawValue::from_string(r#"{"a":1,"b":2}"#.into()).unwrap(),
            change: None,
        }
    }

    fn config(folder: &Path) -> SinkConfig {
        let only = vec!["kind=book".parse().unwrap()];
        let fields = vec!["b=c".parse().unwrap()];
        SinkConfig {
            name: "out".parse().unwrap(),
            place: SinkPlace::Folder {
                folder: folder.to_owned(),
                max_file_bytes: 1 << 20,
            },
            feed: Feed::Items,
            selection: Selection::new(only, fields).unwrap(),
        }
    }

    #[tokio::test]
    async fn a_sink_that_is_not_declared_is_named_with_the_worker() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataRoot::open(folder.path().to_str().unwrap()).unwrap();
        let place = "on worker w1".to_owned();
        let sinks = sinks(&data, &FileConfig::default(), place).unwrap();
        let error = sinks.open(&delivery("out")).await.err().unwrap();
        assert_eq!(
            error.to_string(),
            "sink out is not declared on worker w1; add [sink.out] to its config file"
        );
        assert!(sinks.open(&delivery("lines")).await.is_ok());
    }

    #[tokio::test]
    async fn a_declared_folder_gets_what_its_table_chooses() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let data = DataRoot::open(folder.path().join("data").to_str().unwrap()).unwrap();
        let out = folder.path().join("out");
        std::fs::create_dir(&out).unwrap();
        let sinks = sinks(&data, &file(config(&out)), String::new()).unwrap();
        let mut sink = sinks.open(&delivery("out")).await.unwrap();
        let items = [record("page"), record("book")];
        let reserved = sink.write(0, &items).await.unwrap();
        assert_eq!(reserved.n_items, 0);
        let written = sink.write(0, &items).await.unwrap();
        assert_eq!(written.n_items, 2);
        let text = std::fs::read_to_string(out.join("7/0/1-0.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(r#""item":{"c":2}"#), "{text}");
        assert!(text.contains("key-of-book"), "{text}");
    }

    /// Returns a config file with this sink.
    fn file(sink: SinkConfig) -> FileConfig {
        FileConfig {
            sinks: vec![sink],
            ..FileConfig::default()
        }
    }

    /// Returns a config file in this folder.
    fn declared(folder: &Path, text: &str) -> FileConfig {
        let path = folder.join("crawler.toml");
        std::fs::write(&path, text).unwrap();
        crate::config::load(Some(&path)).unwrap()
    }

    #[tokio::test]
    async fn a_declared_table_has_the_fields_that_are_chosen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let data = DataRoot::open(folder.path().join("data").to_str().unwrap()).unwrap();
        let text = "[sink.db]\nurl = 'sqlite:items.db'\nfields = ['b=c']\nmax-wait = '0s'\n";
        let sinks = sinks(&data, &declared(folder.path(), text), String::new()).unwrap();
        let json_schema = r#"{
            "required": ["a", "b"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}
        }"#;
        let mut sink = sinks
            .open(&Delivery {
                schemas: vec![Schema {
                    name: "book".to_owned(),
                    json_schema: json_schema.to_owned(),
                }],
                ..delivery("db")
            })
            .await
            .unwrap();
        let written = sink.write(0, &[record("book")]).await.unwrap();
        assert_eq!(written.n_items, 1);
        let path = folder.path().join("items.db");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let mut connection = options.connect().await.unwrap();
        let columns = "SELECT group_concat(name, ' ') FROM pragma_table_info('books_book') WHERE name NOT LIKE '\\_%' ESCAPE '\\'";
        for (query, expected) in [
            (columns, "c"),
            ("SELECT CAST(c AS TEXT) FROM books_book", "2"),
        ] {
            let row = sqlx::query::<sqlx::Sqlite>(query)
                .fetch_one(&mut connection)
                .await
                .unwrap();
            assert_eq!(row.get::<String, usize>(0), expected);
        }
    }

    #[tokio::test]
    async fn declared_files_have_the_fields_that_are_chosen() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["data", "out"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let data = DataRoot::open(folder.path().join("data").to_str().unwrap()).unwrap();
        let out = folder.path().join("out");
        let text = format!(
            "[sink.out]\nurl = 'file://{}'\nformat = 'csv'\npartition = '{{kind}}'\n\
             only = ['kind=book']\nfields = ['b=c']\n",
            out.display()
        );
        let declared = declared(folder.path(), &text);
        let sinks = sinks(&data, &declared, String::new()).unwrap();
        let json_schema = r#"{"properties": {"a": {}, "b": {"type": "integer"}}}"#;
        let delivery = Delivery {
            schemas: vec![Schema {
                name: "book".to_owned(),
                json_schema: json_schema.to_owned(),
            }],
            ..delivery("out")
        };
        let mut sink = sinks.open(&delivery).await.unwrap();
        let items = [record("page"), record("book"), record("page")];
        for n_items in [0, 0, 3] {
            assert_eq!(sink.write(0, &items).await.unwrap().n_items, n_items);
        }
        let mut files = std::fs::read_dir(out.join("book")).unwrap();
        let text = std::fs::read_to_string(files.next().unwrap().unwrap().path()).unwrap();
        assert_eq!(
            text,
            "_key,_resource,_kind,_url,_run,_at,c,_rest\r\n\
             key-of-book,books,book,http://a.test/,1,1970-01-01T00:00:00.007Z,2,\r\n"
        );
        assert!(files.next().is_none() && !out.join("page").exists());
    }

    #[test]
    fn a_prefix_in_the_data_root_or_above_it_is_refused() {
        let remote = crawler_data::RemoteSettings::default();
        let data = DataRoot::open_with("s3://bucket/a/root", &remote).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let check = |url: &str| {
            let text = format!("[sink.out]\nurl = '{url}'\n");
            check_folders(&data, &declared(folder.path(), &text).sinks)
        };
        for url in ["s3://bucket", "s3://bucket/a", "s3://bucket/a/root/items"] {
            let error = check(url).unwrap_err();
            let why =
                format!("{url} of sink out is in the data root s3://bucket/a/root, or above it");
            assert_eq!(error.what, why);
        }
        for url in [
            "s3://other",
            "gs://bucket",
            "s3://bucket/a/roots",
            "s3://bucket/b",
        ] {
            check(url).unwrap();
        }
    }

    #[test]
    fn a_secret_that_is_missing_is_told_with_the_sink() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[sink.db]\nurl = 'postgres://u@db.test/items'\npassword-file = 'secret'\n";
        let declared = declared(folder.path(), text);
        let error = format!("{:#}", check_secrets(&declared).unwrap_err());
        let path = folder.path().join("secret");
        let expected = format!("sink db cannot be used: cannot read {}", path.display());
        assert!(error.starts_with(&expected), "{error}");
        std::fs::write(&path, "hunter2").unwrap();
        check_secrets(&declared).unwrap();
    }

    #[test]
    fn a_folder_in_the_data_root_or_above_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("data");
        std::fs::create_dir_all(root.join("items")).unwrap();
        std::os::unix::fs::symlink(&root, folder.path().join("link")).unwrap();
        let data = DataRoot::open(root.to_str().unwrap()).unwrap();
        let check = |path: &str| check_folders(&data, &[config(&folder.path().join(path))]);
        for path in ["data", "data/items", "data/gone", "", "link", "link/items"] {
            let error = check(path).unwrap_err();
            assert!(
                error.what.contains(" of sink out is in the data root "),
                "{path}"
            );
        }
        for path in ["data-2", "gone"] {
            check(path).unwrap();
        }
    }

    #[test]
    fn unknown_kinds_and_fields_are_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataRoot::open(folder.path().to_str().unwrap()).unwrap();
        let file = file(config(Path::new("/srv/out")));
        let sinks = sinks(&data, &file, String::new()).unwrap();
        let warnings = |sink: &str, kind: &str| {
            let schema = Schema {
                name: kind.to_owned(),
                json_schema: r#"{"properties":{"title":{}}}"#.to_owned(),
            };
            sinks.warnings(&Delivery {
                schemas: vec![schema],
                ..delivery(sink)
            })
        };
        let of_kinds = "sink out: the plugin has no kind of items that `only` names: book";
        assert_eq!(warnings("out", "page"), [of_kinds]);
        let of_fields = "sink out: no item declares a field that `fields` names: b";
        assert_eq!(warnings("out", "book"), [of_fields]);
        assert!(warnings("lines", "page").is_empty());
        assert!(sinks.warnings(&delivery("out")).is_empty());
    }

    #[test]
    fn keys_that_no_item_has_are_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("data");
        std::fs::create_dir(&root).unwrap();
        let data = DataRoot::open(root.to_str().unwrap()).unwrap();
        let text = "[sink.db]\nurl = 'sqlite:items.db'\nonly = ['kind=book', 'kind=page']\n\
                    keys = { book = ['title', 'isbn'], page = ['text'], shop = ['name'] }\n";
        let declared = declared(folder.path(), text);
        let sinks = sinks(&data, &declared, String::new()).unwrap();
        let schema = |kind: &str, json: &str| Schema {
            name: kind.to_owned(),
            json_schema: json.to_owned(),
        };
        let schemas = vec![
            schema("book", r#"{"properties":{"title":{}}}"#),
            schema("page", ""),
            schema("shop", r#"{"properties":{"name":{}}}"#),
        ];
        let delivery = Delivery {
            schemas,
            ..delivery("db")
        };
        let of_kinds = "sink db: it gets no kind of items that `keys` names: shop";
        let of_fields = "sink db: no item declares a field that `keys` names: book.isbn";
        assert_eq!(sinks.warnings(&delivery), [of_kinds, of_fields]);
        let nothing_known = Delivery {
            schemas: Vec::new(),
            ..delivery
        };
        assert!(sinks.warnings(&nothing_known).is_empty());
    }

    #[tokio::test]
    async fn a_declared_folder_gets_changes_if_its_table_says_so() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["data", "out"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let data = DataRoot::open(folder.path().join("data").to_str().unwrap()).unwrap();
        let out = folder.path().join("out");
        let text = format!(
            "[sink.out]\nurl = 'file://{}'\nwhat = 'changes'\nonly = ['kind=book']\nfields = ['change', 'key=isbn']\n",
            out.display()
        );
        let declared = declared(folder.path(), &text);
        let sinks = sinks(&data, &declared, String::new()).unwrap();
        let removal = |kind: &str| ItemRecord {
            change: Some(Box::new(ToldChange {
                change: Change::Removed,
                number: 3,
                key: "978-1".to_owned(),
                fields: Vec::new(),
                old: String::new(),
            })),
            ..record(kind)
        };
        let items = [record("book"), removal("page"), removal("book")];
        for sink in ["out", "lines"] {
            let mut sink = sinks.open(&delivery(sink)).await.unwrap();
            // The files of the data root need no reservation.
            let mut written = sink.write(0, &items).await.unwrap();
            if written.n_items == 0 {
                written = sink.write(0, &items).await.unwrap();
            }
            assert_eq!(written.n_items, 3);
        }
        let text = std::fs::read_to_string(out.join("7/0/1-0.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let change = r#""item":{"change":"removed","isbn":"978-1"}"#;
        assert!(text.contains(change), "{text}");
        let root = folder.path().join("data/items/7/0/1-0.jsonl");
        let text = std::fs::read_to_string(root).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        // The resource does not compare its items.
        let warnings = sinks.warnings(&delivery("out"));
        assert_eq!(
            warnings,
            [
                "sink out is told nothing of changes: the resource compares no items; set changes, as with --changes 30"
            ]
        );
        let error = check_names(&spec("lines,out"), &declared.sinks).unwrap_err();
        assert_eq!(
            error.what,
            "resource books names sink out, which needs changes, and only clusters compare items"
        );
    }

    #[tokio::test]
    async fn records_of_changes_are_alike_for_all_kinds() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("data");
        std::fs::create_dir(&root).unwrap();
        let data = DataRoot::open(root.to_str().unwrap()).unwrap();
        let text = "[sink.db]\nurl = 'sqlite:items.db'\nwhat = 'changes'\n";
        let declared = declared(folder.path(), text);
        let sinks = sinks(&data, &declared, String::new()).unwrap();
        let removal = ItemRecord {
            change: Some(Box::new(ToldChange {
                change: Change::Removed,
                number: 3,
                key: "978-1".to_owned(),
                fields: Vec::new(),
                old: String::new(),
            })),
            ..record("book")
        };
        // The plugin does not declare the kind any more.
        let mut sink = sinks.open(&delivery("db")).await.unwrap();
        assert_eq!(sink.write(0, &[removal]).await.unwrap().n_items, 1);
        let options = sqlx::sqlite::SqliteConnectOptions::new();
        let options = options.filename(folder.path().join("items.db"));
        let mut connection = options.connect().await.unwrap();
        let row = sqlx::query::<sqlx::Sqlite>("SELECT change FROM books_book_changes")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(row.get::<String, usize>(0), "removed");
    }

    #[test]
    fn a_resource_names_declared_sinks_only() {
        let declared = [config(Path::new("/srv"))];
        for names in ["lines", "out", "lines,out"] {
            check_names(&spec(names), &declared).unwrap();
        }
        let error = check_names(&spec("lines,gone"), &declared).unwrap_err();
        assert_eq!(
            error.what,
            "resource books names sink gone, which is not declared"
        );
    }
}
