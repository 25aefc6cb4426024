//! The config file: known keys only, in TOML or in JSON. An error names the file, the line and a likely key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::EtcdConfig;
use super::access::{self, CredentialTable, ProxyEntry};
use super::cluster::{self, ClusterConfig};
use super::data::{self, DataConfig, DataTable};
use super::declared::Placed;
use super::fetch::{self, FetchConfig, FetchTable};
use super::hosts::{self, Addresses, FixedHosts};
use super::resource;
use super::sink::{self, SinkConfig, SinkTable};
use super::source::{self, Source};
use super::tls::{self, TlsConfig};
use super::traces::{self, TracesConfig, TracesTable};
use super::webhook::{self, WebhookConfig, WebhookTable};
use crawler_model::resource::ResourceSpec;
use crawler_process::confine::Confinement;

const TOP: [&str; 15] = [
    "allow-ports",
    "cluster",
    "confinement",
    "credentials",
    "data",
    "etcd",
    "fetch",
    "hosts",
    "plugin",
    "proxies",
    "resource",
    "sink",
    "tls",
    "traces",
    "webhook",
];
const ETCD: [&str; 6] = [
    "endpoints",
    "user",
    "password-file",
    "ca",
    "certificate",
    "key",
];
const PLUGIN: [&str; 1] = ["path"];

/// Content of a config file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileConfig {
    /// Plugins to push, in this order.
    pub plugins: Vec<PluginSource>,
    /// Resources to add if they are not there.
    pub resources: Vec<ResourceSpec>,
    /// Settings of the connection to a cluster's store.
    pub etcd: EtcdConfig,
    /// Settings of a data root in a bucket.
    pub data: DataConfig,
    /// Certificates of this process, and those by which it verifies other nodes.
    pub tls: TlsConfig,
    /// CA of the cluster, for masters.
    pub cluster: ClusterConfig,
    /// Receiver of traces.
    pub traces: TracesConfig,
    /// Receivers of events, for masters.
    pub webhooks: Vec<WebhookConfig>,
    /// Sinks that resources can name, beside the one in the data root.
    pub sinks: Vec<SinkConfig>,
    /// Settings of this process for fetching, whatever resources ask for.
    pub fetch: FetchConfig,
    /// Addresses of hosts that replace those of the system's resolver.
    pub hosts: FixedHosts,
    /// Ports that may be fetched from in addition to the usual ones.
    pub allow_ports: Vec<u16>,
    /// Confinement of processes that see plugins. If `None`, the default holds.
    pub confinement: Option<Confinement>,
}

/// Source of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSource {
    /// A folder of source, or a .wasm file.
    pub path: PathBuf,
    /// Paths at or below which its rules are written.
    pub sources: Vec<PathBuf>,
}

impl PluginSource {
    fn at(path: PathBuf) -> Self {
        let sources = vec![path.clone()];
        Self { path, sources }
    }
}

/// Reason why a config file is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the config file {path}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// A file or folder that a command names cannot be read.
    #[error("cannot read {path}")]
    Path {
        /// Path of the file or folder.
        path: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// A resource is declared twice.
    #[error("{why}")]
    Twice {
        /// Both places and the name.
        why: String,
    },
    /// A folder that stands for its files has none.
    #[error("{path} has no file that ends with .toml or .json")]
    NoFile {
        /// Path of the folder.
        path: String,
    },
    /// The content is invalid.
    #[error("{path}:{line}: {why}")]
    Wrong {
        /// Path of the file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// Description of the fault.
        why: String,
        /// Likely intention; empty if the message says it all.
        hint: String,
    },
}

impl ConfigError {
    /// Returns the way out; empty if the message says it all.
    pub fn hint(&self) -> &str {
        match self {
            ConfigError::Read { .. } => "name another file with --config",
            ConfigError::Path { .. } | ConfigError::NoFile { .. } => "name other files",
            ConfigError::Twice { .. } => "take one of them out",
            ConfigError::Wrong { hint, .. } => hint,
        }
    }

    /// Returns the number of the line; 0 if the error is about the file as a whole.
    pub(super) fn line(&self) -> usize {
        match self {
            ConfigError::Wrong { line, .. } => *line,
            _ => 0,
        }
    }
}

/// Content of a file, and all of its faults. What has a fault is not part of the content.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) config: FileConfig,
    pub(super) plugins: Vec<Placed<PluginSource>>,
    pub(super) resources: Vec<Placed<ResourceSpec>>,
    pub(super) faults: Vec<ConfigError>,
}

impl FileConfig {
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.display().to_string(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// Returns the places of the object store, of declared sinks, and of the receiver of traces as `HOST:PORT`. No page is
    /// fetched there.
    pub fn endpoints(&self) -> impl Iterator<Item = String> {
        let sinks = self.sinks.iter();
        let sinks = sinks.filter_map(|sink| sink.place.server());
        let (data, traces) = (self.data.endpoint(), self.traces.address());
        data.into_iter().chain(sinks).chain(traces)
    }

    /// Parses the text of the file at `path`; relative paths in it start at its folder. The error is the first
    /// fault.
    fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let mut reading = Reading::of(text, path);
        match reading.faults.is_empty() {
            true => Ok(reading.config),
            false => Err(reading.faults.swap_remove(0)),
        }
    }
}

impl Reading {
    /// Reads the text of the file at `path`; relative paths in it start at its folder.
    pub(super) fn of(text: &str, path: &Path) -> Self {
        let shown = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut reading = Reading::default();
        let mut source = Source::new(text, &shown);
        for (key, value) in source.parse() {
            reading.take(&mut source, &key, value, folder);
        }
        reading.config.plugins = values(&reading.plugins);
        reading.config.resources = values(&reading.resources);
        reading.faults = source.into_faults();
        reading
    }

    fn take(
        &mut self,
        source: &mut Source<'_>,
        key: &Spanned<DeString<'_>>,
        value: Spanned<DeValue<'_>>,
        folder: &Path,
    ) {
        let at = value.span().start;
        let config = &mut self.config;
        match &**key.get_ref() {
            "allow-ports" => config.allow_ports = source.take(value).unwrap_or_default(),
            "confinement" => config.confinement = source.take(value),
            "etcd" => {
                let table = source.table("[etcd]", value, &ETCD);
                let etcd = table.and_then(|table| source.take_keys(table, Ok::<EtcdConfig, _>));
                let checked = etcd.map(|etcd| match etcd.check() {
                    Ok(()) => Ok(etcd.below(folder)),
                    Err(error) => Err(error.to_string()),
                });
                config.etcd = source.noted(at, checked).unwrap_or_default();
            }
            "data" => {
                let table = source.table("[data]", value, &data::KEYS);
                let parse = |table: DataTable| table.into_config(folder);
                let data = table.and_then(|table| source.take_keys(table, parse));
                let checked = data.map(|data| data.check().map(|()| data));
                config.data = source.noted(at, checked).unwrap_or_default();
            }
            "tls" => {
                let table = source.table("[tls]", value, &tls::KEYS);
                let tls = table.and_then(|table| source.take_keys(table, Ok::<TlsConfig, _>));
                let checked = tls.map(|tls| tls.check().map(|()| tls.below(folder)));
                config.tls = source.noted(at, checked).unwrap_or_default();
            }
            "cluster" => {
                let table = source.table("[cluster]", value, &cluster::KEYS);
                let parse = Ok::<ClusterConfig, _>;
                let cluster = table.and_then(|table| source.take_keys(table, parse));
                let checked = cluster.map(|cluster| {
                    let checked = cluster.check();
                    checked.map(|()| cluster.below(folder))
                });
                config.cluster = source.noted(at, checked).unwrap_or_default();
            }
            "traces" => {
                let table = source.table("[traces]", value, &traces::KEYS);
                let parse = |table: TracesTable| table.into_config(folder);
                let traces = table.and_then(|table| source.take_keys(table, parse));
                config.traces = traces.unwrap_or_default();
            }
            "fetch" => {
                let table = source.table("[fetch]", value, &fetch::keys());
                let parse = |table: FetchTable| table.into_config(folder);
                let fetch = table.and_then(|table| source.take_keys(table, parse));
                config.fetch.values = fetch.unwrap_or_default().values;
            }
            "hosts" => {
                let table: Option<BTreeMap<String, Addresses>> = source.take(value);
                let hosts = source.noted(at, table.map(hosts::fixed));
                config.hosts = hosts.unwrap_or_default();
            }
            "proxies" => {
                let tables: BTreeMap<String, Spanned<Vec<ProxyEntry>>> =
                    source.take(value).unwrap_or_default();
                for (name, entries) in tables {
                    let at = entries.span().start;
                    let proxies = access::proxies(&name, entries.into_inner(), folder);
                    config.fetch.proxies.extend(source.noted(at, Some(proxies)));
                }
            }
            "credentials" => {
                let tables: BTreeMap<String, Spanned<CredentialTable>> =
                    source.take(value).unwrap_or_default();
                for (name, table) in tables {
                    let at = table.span().start;
                    let credential = table.into_inner().into_config(&name, folder);
                    let credential = source.noted(at, Some(credential));
                    config.fetch.credentials.extend(credential);
                }
            }
            "webhook" => {
                let tables: BTreeMap<String, Spanned<WebhookTable>> =
                    source.take(value).unwrap_or_default();
                let _checked = source.noted(at, Some(webhook::check_number(&tables)));
                for (name, table) in tables {
                    let at = table.span().start;
                    let webhook = table.into_inner().into_config(&name, folder);
                    let webhook = source.noted(at, Some(webhook));
                    config.webhooks.extend(webhook);
                }
            }
            "sink" => {
                let tables: BTreeMap<String, Spanned<SinkTable>> =
                    source.take(value).unwrap_or_default();
                let _checked = source.noted(at, Some(sink::check_number(&tables)));
                for (name, table) in tables {
                    let at = table.span().start;
                    let sink = table.into_inner().into_config(&name, folder);
                    let sink = sink.and_then(|sink| sink::check_place(&config.sinks, sink));
                    config.sinks.extend(source.noted(at, Some(sink)));
                }
            }
            "plugin" => {
                for table in tables(source, "plugin", value) {
                    let table = source.table("[[plugin]]", table, &PLUGIN);
                    let Some(table) = table else { continue };
                    let place = source.place(table.span().start);
                    let plugin: Option<PluginTable> = source.take(source::as_value(table));
                    self.plugins.extend(plugin.map(|plugin| Placed {
                        place,
                        value: PluginSource::at(folder.join(plugin.path)),
                    }));
                }
            }
            "resource" => {
                for table in tables(source, "resource", value) {
                    let place = source.place(table.span().start);
                    let spec = resource::read(source, table);
                    self.resources
                        .extend(spec.map(|value| Placed { place, value }));
                }
            }
            _ => source.unknown("the file", key, &TOP),
        }
    }
}

#[derive(Deserialize)]
struct PluginTable {
    path: PathBuf,
}

/// Returns the tables of a list such as `[[resource]]`.
fn tables<'v>(
    source: &mut Source<'_>,
    key: &str,
    value: Spanned<DeValue<'v>>,
) -> Vec<Spanned<DeValue<'v>>> {
    let at = value.span().start;
    match value.into_inner() {
        DeValue::Array(tables) => tables.into_iter().collect(),
        _ => {
            let why = format!("{key} is not a list of tables");
            source.fault_with_hint(at, why, format!("write [[{key}]] above its keys"));
            Vec::new()
        }
    }
}

fn values<T: Clone>(placed: &[Placed<T>]) -> Vec<T> {
    placed.iter().map(|placed| placed.value.clone()).collect()
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::super::initial::EXAMPLE;
    use super::*;
    use crawler_model::plugin::LimitOverrides;
    use crawler_model::resource::{CrawlSettings, PlacementSpec, Unchanged};
    use crawler_model::settings::examples;

    #[test]
    fn the_example_has_every_key_and_parses() {
        let config = FileConfig::parse(EXAMPLE, Path::new("/etc/crawler/crawler.toml")).unwrap();
        let mut limits = LimitOverrides::default();
        for (name, value) in [("memory", "128MiB"), ("cpu", "500ms"), ("timeout", "3s")] {
            limits.set(name, value).unwrap();
        }
        let forum = ResourceSpec {
            name: "forum".parse().unwrap(),
            plugin: "forum".parse().unwrap(),
            params: [].into(),
            limits: LimitOverrides::default(),
            crawl: CrawlSettings::default(),
            placement: PlacementSpec::default(),
            labels: BTreeMap::new(),
        };
        let books = ResourceSpec {
            name: "books".parse().unwrap(),
            plugin: "books@0.1.0".parse().unwrap(),
            params: [("start".into(), "https://books.example/".into())].into(),
            limits,
            crawl: examples(),
            placement: PlacementSpec {
                weight: 5,
                selector: [("id".into(), "worker-1".into())].into(),
                near: Some("shop".parse().unwrap()),
                apart: Some("archive".parse().unwrap()),
                shards: 2,
            },
            labels: [("team".into(), "shop".into())].into(),
        };
        let crawl = &books.crawl;
        assert_eq!(
            (crawl.delay_ms, crawl.max_retry_wait_ms, crawl.max_bytes),
            (Some(250), Some(60_000), Some(20 << 30))
        );
        assert_eq!(crawl.unchanged, Some(Unchanged::Skip));
        assert_eq!(crawl.user_agents.len(), 2);
        let plugins = ["/etc/crawler/plugins/books", "/opt/rules/forum.wasm"];
        assert_eq!(config.resources, [books, forum]);
        assert_eq!(
            config.plugins,
            plugins.map(|path| PluginSource::at(path.into()))
        );
        let file = |name: &str| Some(Path::new("/etc/crawler/etcd").join(name));
        let etcd = EtcdConfig {
            endpoints: ["https://10.0.0.1:2379", "https://10.0.0.2:2379"]
                .map(String::from)
                .into(),
            user: Some("crawler".to_owned()),
            password_file: file("password"),
            ca: file("ca.pem"),
            certificate: file("crawler.pem"),
            key: file("crawler.key"),
        };
        assert_eq!(config.etcd, etcd);
        let file = |name: &str| Some(Path::new("/etc/crawler/tls").join(name));
        let tls = TlsConfig {
            certificate: file("node.pem"),
            key: file("node.key"),
            client_ca: file("ca.pem"),
            ca: file("ca.pem"),
        };
        assert_eq!(config.tls, tls);
        let cluster = ClusterConfig {
            sealing_key: Some("/etc/crawler/cluster/sealing.key".into()),
            ..ClusterConfig::default()
        };
        assert_eq!(config.cluster, cluster);
        let traces = &config.traces;
        let endpoint = traces.endpoint.as_ref().map(Url::as_str);
        assert_eq!(endpoint, Some("http://127.0.0.1:4317/"));
        assert_eq!(traces.headers[0].0, "authorization");
        let chat = &config.webhooks[0];
        assert_eq!((chat.name.as_str(), config.webhooks.len()), ("chat", 1));
        let files: Vec<&Path> = chat.secret_files().collect();
        assert_eq!(files, [Path::new("/etc/crawler/webhook/chat")]);
        let [folder, events, lake, shop, database] = &config.sinks[..] else {
            panic!("{:?}", config.sinks);
        };
        assert_eq!(folder.name.as_str(), "books-only");
        assert_eq!(folder.place.folder(), Some(Path::new("/srv/items")));
        assert_eq!(lake.place.shown(), "s3://lake/items");
        assert_eq!(database.name.as_str(), "warehouse");
        let secret = Path::new("/etc/crawler/sink/warehouse");
        assert_eq!(database.place.files(), [secret]);
        let files = ["events", "nats-ca.pem", "shop"];
        let files = files.map(|name| Path::new("/etc/crawler/sink").join(name));
        assert_eq!(events.place.files(), files[..2]);
        assert_eq!(events.place.shown(), "tls://nats.example");
        assert_eq!(shop.place.files(), files[2..]);
        assert_eq!(shop.place.shown(), "https://shop.example");
        let at = |texts: &[&str]| texts.iter().map(|ip| ip.parse().unwrap()).collect();
        let hosts = [
            ("shop.example".to_owned(), at(&["10.0.0.7"])),
            ("forum.example".to_owned(), at(&["10.0.0.8", "fd00::8"])),
        ];
        assert_eq!(config.hosts, hosts.into());
        assert_eq!(config.allow_ports, [81, 8_000]);
        assert_eq!(config.confinement, Some(Confinement::On));
        let keys = resource::keys();
        let keys = keys.iter().chain(&PLUGIN).chain(&ETCD).chain(&tls::KEYS);
        for key in keys.chain(&traces::KEYS) {
            let written = EXAMPLE
                .lines()
                .any(|line| line.starts_with(&format!("{key} =")));
            assert!(written, "{key}");
        }
    }

    #[track_caller]
    fn check_refused(text: &str, message: &str, hint: &str) {
        let error = FileConfig::parse(text, Path::new("c.toml")).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint()), (message, hint));
    }

    #[test]
    fn an_error_names_file_and_line_and_what_was_meant() {
        check_refused(
            "allow-port = [81]",
            "c.toml:1: the file has an unknown key \"allow-port\"",
            "did you mean \"allow-ports\"?",
        );
        check_refused(
            "confinement = 'no'",
            "c.toml:1: unknown variant `no`, expected `on` or `off`",
            "",
        );
        check_refused(
            "[[plugin]]\npath = 'a'\n[[resource]]\nname = 'a'\nmax_pages = 3\n",
            "c.toml:5: [[resource]] has an unknown key \"max_pages\"",
            "did you mean \"max-pages\"?",
        );
        check_refused(
            "\n[[resorce]]\nname = 'a'\n",
            "c.toml:2: the file has an unknown key \"resorce\"",
            "did you mean \"resource\"?",
        );
        check_refused(
            "[resource]\nname = 'a'\n",
            "c.toml:1: resource is not a list of tables",
            "write [[resource]] above its keys",
        );
        check_refused(
            "[[resource]]\nname = 7\n",
            "c.toml:2: invalid type: integer `7`, expected a string",
            "",
        );
        for (given, why) in [
            (
                "'http://a.test' = '10.0.0.1'",
                "\"http://a.test\" is no host name; write it without scheme and port, like shop.example",
            ),
            (
                "'a.test:80' = '10.0.0.1'",
                "\"a.test:80\" is no host name; write it without scheme and port, like shop.example",
            ),
            (
                "'10.0.0.1' = '10.0.0.2'",
                "\"10.0.0.1\" is no host name; write it without scheme and port, like shop.example",
            ),
            (
                "'a.test' = 'b.test'",
                "a.test is at an IP address like 10.0.0.7, not \"b.test\"",
            ),
            ("'a.test' = []", "a.test has no address"),
        ] {
            check_refused(
                &format!("[hosts]\n{given}\n"),
                &format!("c.toml:1: {why}"),
                "",
            );
        }
        check_refused("[[plugin]]\n", "c.toml:1: missing field `path`", "");
        check_refused(
            "\n[[resource]]\nname = 'a'\nlimits = { memory = 'much' }\n",
            "c.toml:4: limit memory takes a size like 64MiB or 4096, not \"much\"",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\ndelay = 'soon'\n",
            "c.toml:3: delay takes a time like 250ms or 1s, not \"soon\"",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\ndelay = 1\n",
            "c.toml:3: delay takes a time with its unit, like \"1ms\" or \"1s\", not 1",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\ndelay = -1\n",
            "c.toml:3: delay takes a time like 250ms or 1s, not -1",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\nmax-retry-wait = 'long'\n",
            "c.toml:3: max-retry-wait takes a time like 250ms or 1s, not \"long\"",
            "",
        );
        for (given, why) in [
            ("weight = 0", "setting weight is 0; it goes from 1 to 1000"),
            (
                "selector = { gpu = 'a b' }",
                "setting selector is no list of labels: the value of label gpu has ' '; \
                 use letters, digits, '-', '_', '.' and ':'",
            ),
            (
                "apart = 'a'",
                "setting apart names a itself; name another resource",
            ),
        ] {
            check_refused(
                &format!("[[resource]]\nname = 'a'\n{given}\n"),
                &format!("c.toml:3: {why}"),
                "",
            );
        }
        for given in ["'much'", "-1", "1.5"] {
            check_refused(
                &format!("[[resource]]\nname = 'a'\nmax-bytes = {given}\n"),
                &format!(
                    "c.toml:3: max-bytes takes a size like 64MiB or 4096, not {}",
                    given.replace('\'', "\"")
                ),
                "",
            );
        }
        check_refused(
            "[[resource]]\nname = 'a'\nunchanged = 'ignore'\n",
            "c.toml:3: setting unchanged takes parse or skip, not \"ignore\"",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\nrobots = 'bend'\n",
            "c.toml:3: setting robots takes obey or ignore, not \"bend\"",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\nconcurrency = 0\n",
            "c.toml:3: setting concurrency must be above zero",
            "",
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = FileConfig::read(Path::new("/nowhere/c.toml")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read the config file /nowhere/c.toml"
        );
    }
}
