//! Settings from outside: the environment and the config file. No other module reads either.
//!
//! ```toml
//! [[plugin]]
//! path = "plugins/books"          # a folder of source, or a .wasm file
//!
//! [[resource]]
//! name = "books"
//! params = { start = "https://books.example/" }
//! max-pages = 1000
//! ```
//!
//! The file `config/example.toml` shows all keys. Paths are relative to the file.

use std::path::{Path, PathBuf};

mod access;
mod etcd;
mod fetch;
mod file;
mod hosts;
mod resource;
mod secret;

pub use access::{CredentialConfig, ProxyConfig};
pub use etcd::{EtcdConfig, EtcdConfigError};
pub use fetch::FetchConfig;
pub use file::{ConfigError, FileConfig, PluginSource};
pub use hosts::FixedHosts;
pub use secret::SecretRef;

/// Config file that is read without being named, if it exists.
pub const DEFAULT_FILE: &str = "crawler.toml";
/// Master that client commands call unless the user names another.
pub const DEFAULT_MASTER: &str = "http://127.0.0.1:9091";

/// Variables that the program knows.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `CRAWLER_MASTER`: URL that client commands call, or several, separated by commas.
    pub master: Option<String>,
    /// `CRAWLER_BIN`: program to start for compiling plugins, instead of this one.
    pub bin: Option<PathBuf>,
    /// `CRAWLER_LOG` and `CRAWLER_LOG_FORMAT`.
    pub log: crawler_process::telemetry::Settings,
    /// `XDG_STATE_HOME`, or `.local/state` in the home folder.
    pub state_home: Option<PathBuf>,
}

impl Environment {
    /// Reads the environment of this process. Empty variables count as absent.
    pub fn read() -> Self {
        Self::from_lookup(variable)
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let home = set("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        Self {
            master: set("CRAWLER_MASTER"),
            bin: set("CRAWLER_BIN").map(PathBuf::from),
            log: crawler_process::telemetry::Settings {
                filter: set("CRAWLER_LOG"),
                json: set("CRAWLER_LOG_FORMAT").is_some_and(|format| format == "json"),
            },
            // The specification of XDG folders says that relative paths are ignored.
            state_home: set("XDG_STATE_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .or(home),
        }
    }

    /// Returns the folder in which a process of this role keeps compiled code and other state that is local
    /// to the machine. Without a home folder, it is in the current folder.
    pub fn state_folder(&self, role: &str, grpc_port: u16) -> PathBuf {
        let home = match &self.state_home {
            Some(home) => home.join("crawler"),
            None => PathBuf::from(".crawler-state"),
        };
        home.join(format!("{role}-{grpc_port}"))
    }
}

/// Returns a variable of the environment; `None` if it is not valid text.
fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    std::env::var(name).ok()
}

/// Returns the program to start for compiling plugins, if it is not this one: `CRAWLER_BIN`.
pub fn program() -> Option<PathBuf> {
    Environment::read().bin
}

/// Returns the files and folders of CA certificates that the environment names: `SSL_CERT_FILE` and
/// `SSL_CERT_DIR`.
pub fn certificates() -> impl Iterator<Item = PathBuf> {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    named.into_iter().filter_map(variable).map(PathBuf::from)
}

/// Reads the named config file, or the default one if it exists.
pub fn load(path: Option<&Path>) -> Result<FileConfig, ConfigError> {
    match path {
        Some(path) => FileConfig::read(path),
        None if Path::new(DEFAULT_FILE).exists() => FileConfig::read(Path::new(DEFAULT_FILE)),
        None => Ok(FileConfig::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::from_lookup(|name| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_variable_is_an_absent_one() {
        assert_eq!(environment(&[("CRAWLER_MASTER", "")]).master, None);
        let set = environment(&[
            ("CRAWLER_MASTER", "http://a:1"),
            ("CRAWLER_LOG_FORMAT", "json"),
        ]);
        assert_eq!(set.master.as_deref(), Some("http://a:1"));
        assert!(set.log.json);
    }

    #[test]
    fn state_lies_in_the_xdg_folder_or_below_home() {
        let folder = |variables: &[_]| environment(variables).state_folder("up", 9091);
        let home = ("HOME", "/home/a");
        assert_eq!(folder(&[]), Path::new(".crawler-state/up-9091"));
        assert_eq!(
            folder(&[home]),
            Path::new("/home/a/.local/state/crawler/up-9091")
        );
        assert_eq!(
            folder(&[home, ("XDG_STATE_HOME", "/x")]),
            Path::new("/x/crawler/up-9091")
        );
        assert_eq!(folder(&[home, ("XDG_STATE_HOME", "x")]), folder(&[home]));
    }
}
