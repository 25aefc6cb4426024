//! The config file: TOML with known keys only. An error names the file, the line and a likely key.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::EtcdConfig;
use super::access::{self, CredentialTable, ProxyEntry};
use super::fetch::{self, FetchConfig, FetchTable};
use super::hosts::{self, Addresses, FixedHosts};
use super::resource::{self, ResourceTable};
use crawler_model::resource::ResourceSpec;
use crawler_model::suggest;
use crawler_process::confine::Confinement;

const TOP: [&str; 9] = [
    "allow-ports",
    "confinement",
    "credentials",
    "etcd",
    "fetch",
    "hosts",
    "plugin",
    "proxies",
    "resource",
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
            ConfigError::Wrong { hint, .. } => hint,
        }
    }
}

impl FileConfig {
    pub(super) fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.display().to_string(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// Parses the text of the file at `path`; relative paths in it start at its folder.
    fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let source = Source { text, path };
        let table = DeTable::parse(text).map_err(|e| source.toml_error(&e))?;
        source.check_keys("the file", table.get_ref(), &TOP)?;
        if let Some(etcd) = table.get_ref().get("etcd")
            && let DeValue::Table(etcd) = etcd.get_ref()
        {
            source.check_keys("[etcd]", etcd, &ETCD)?;
        }
        if let Some(fetch) = table.get_ref().get("fetch")
            && let DeValue::Table(fetch) = fetch.get_ref()
        {
            source.check_keys("[fetch]", fetch, &fetch::keys())?;
        }
        source.check_tables(table.get_ref(), "plugin", &PLUGIN)?;
        source.check_tables(table.get_ref(), "resource", &resource::keys())?;
        let file: File = toml::from_str(text).map_err(|e| source.toml_error(&e))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let plugins = file.plugin.into_iter().map(|plugin| PluginSource {
            path: folder.join(plugin.path),
        });
        let resources = file.resource.into_iter().map(|resource| {
            let span = resource.span();
            let spec = resource.into_inner().into_spec();
            spec.map_err(|why| source.wrong(span, why, String::new()))
        });
        let etcd = file.etcd.map(|etcd| {
            let span = etcd.span();
            let etcd = etcd.into_inner();
            let checked = etcd.check();
            checked.map_err(|e| source.wrong(span, e.to_string(), String::new()))?;
            Ok(etcd.below(folder))
        });
        let hosts = file.hosts.map(|table| {
            let span = table.span();
            let hosts = hosts::fixed(table.into_inner());
            hosts.map_err(|why| source.wrong(span, why, String::new()))
        });
        let fetch = file.fetch.map(|table| {
            let span = table.span();
            let fetch = table.into_inner().into_config(folder);
            fetch.map_err(|why| source.wrong(span, why, String::new()))
        });
        let proxies = file.proxies.into_iter().map(|(name, entries)| {
            let span = entries.span();
            let proxies = access::proxies(&name, entries.into_inner(), folder);
            proxies.map_err(|why| source.wrong(span, why, String::new()))
        });
        let credentials = file.credentials.into_iter().map(|(name, table)| {
            let span = table.span();
            let credential = table.into_inner().into_config(&name, folder);
            credential.map_err(|why| source.wrong(span, why, String::new()))
        });
        Ok(Self {
            allow_ports: file.allow_ports,
            confinement: file.confinement,
            fetch: FetchConfig {
                proxies: proxies.collect::<Result<_, _>>()?,
                credentials: credentials.collect::<Result<_, _>>()?,
                ..fetch.transpose()?.unwrap_or_default()
            },
            hosts: hosts.transpose()?.unwrap_or_default(),
            etcd: etcd.transpose()?.unwrap_or_default(),
            plugins: plugins.collect(),
            resources: resources.collect::<Result<_, _>>()?,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    allow_ports: Vec<u16>,
    confinement: Option<Confinement>,
    etcd: Option<Spanned<EtcdConfig>>,
    fetch: Option<Spanned<FetchTable>>,
    hosts: Option<Spanned<BTreeMap<String, Addresses>>>,
    #[serde(default)]
    proxies: BTreeMap<String, Spanned<Vec<ProxyEntry>>>,
    #[serde(default)]
    credentials: BTreeMap<String, Spanned<CredentialTable>>,
    #[serde(default)]
    plugin: Vec<PluginTable>,
    #[serde(default)]
    resource: Vec<Spanned<ResourceTable>>,
}

#[derive(Deserialize)]
struct PluginTable {
    path: PathBuf,
}

struct Source<'a> {
    text: &'a str,
    path: &'a Path,
}

impl Source<'_> {
    fn check_tables(
        &self,
        file: &DeTable<'_>,
        key: &str,
        known: &[&str],
    ) -> Result<(), ConfigError> {
        let Some(tables) = file.get(key) else {
            return Ok(());
        };
        let what = format!("[[{key}]]");
        let DeValue::Array(tables) = tables.get_ref() else {
            let why = format!("{key} is not a list of tables");
            return Err(self.wrong(tables.span(), why, format!("write {what} above its keys")));
        };
        for table in tables.iter() {
            if let DeValue::Table(table) = table.get_ref() {
                self.check_keys(&what, table, known)?;
            }
        }
        Ok(())
    }

    fn check_keys(
        &self,
        what: &str,
        table: &DeTable<'_>,
        known: &[&str],
    ) -> Result<(), ConfigError> {
        match table.keys().find(|key| !known.contains(&&**key.get_ref())) {
            Some(key) => {
                let why = format!("{what} has an unknown key {:?}", key.get_ref());
                Err(self.wrong(key.span(), why, suggest::hint(key.get_ref(), known)))
            }
            None => Ok(()),
        }
    }

    fn toml_error(&self, error: &toml::de::Error) -> ConfigError {
        let why = error.message().to_owned();
        self.wrong(error.span().unwrap_or_default(), why, String::new())
    }

    fn wrong(&self, at: Range<usize>, why: String, hint: String) -> ConfigError {
        let before = self.text.get(..at.start).unwrap_or_default();
        ConfigError::Wrong {
            path: self.path.display().to_string(),
            line: before.matches('\n').count() + 1,
            why,
            hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::plugin::LimitOverrides;
    use crawler_model::resource::{CrawlSettings, PlacementSpec, Unchanged};
    use crawler_model::settings::examples;

    const EXAMPLE: &str = include_str!("example.toml");

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
            plugins.map(|path| PluginSource { path: path.into() })
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
        let at = |texts: &[&str]| texts.iter().map(|ip| ip.parse().unwrap()).collect();
        let hosts = [
            ("shop.example".to_owned(), at(&["10.0.0.7"])),
            ("forum.example".to_owned(), at(&["10.0.0.8", "fd00::8"])),
        ];
        assert_eq!(config.hosts, hosts.into());
        assert_eq!(config.allow_ports, [81, 8_000]);
        assert_eq!(config.confinement, Some(Confinement::On));
        for key in resource::keys().iter().chain(&PLUGIN).chain(&ETCD) {
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
            "c.toml:2: limit memory takes a size like 64MiB or 4096, not \"much\"",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\ndelay = 'soon'\n",
            "c.toml:1: delay takes a time like 250ms or 1s, not \"soon\"",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\ndelay = 1\n",
            "c.toml:1: delay takes a time with its unit, like \"1ms\" or \"1s\", not 1",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\ndelay = -1\n",
            "c.toml:1: delay takes a time like 250ms or 1s, not -1",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\nmax-retry-wait = 'long'\n",
            "c.toml:1: max-retry-wait takes a time like 250ms or 1s, not \"long\"",
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
                &format!("c.toml:1: {why}"),
                "",
            );
        }
        for given in ["'much'", "-1", "1.5"] {
            check_refused(
                &format!("[[resource]]\nname = 'a'\nmax-bytes = {given}\n"),
                &format!(
                    "c.toml:1: max-bytes takes a size like 64MiB or 4096, not {}",
                    given.replace('\'', "\"")
                ),
                "",
            );
        }
        check_refused(
            "[[resource]]\nname = 'a'\nunchanged = 'ignore'\n",
            "c.toml:1: setting unchanged takes parse or skip, not \"ignore\"",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\nrobots = 'bend'\n",
            "c.toml:1: setting robots takes obey or ignore, not \"bend\"",
            "",
        );
        check_refused(
            "[[resource]]\nname = 'a'\nconcurrency = 0\n",
            "c.toml:1: setting concurrency must be above zero",
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
