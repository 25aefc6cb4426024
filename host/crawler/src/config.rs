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
//! The file `config/example.toml` shows all keys. Paths are relative to the file. `crawler apply` reads files of the
//! same form, in TOML or in JSON.

use std::path::Path;

mod access;
mod cluster;
mod credentials;
mod data;
mod declared;
mod environment;
mod etcd;
mod fetch;
mod file;
mod hosts;
mod initial;
mod json;
mod profile;
mod resource;
mod secret;
mod sink;
mod source;
mod tls;
mod traces;
mod webhook;
mod written;

pub use access::{CredentialConfig, ProxyConfig};
pub use cluster::ClusterConfig;
pub use credentials::{Credentials, CredentialsError};
pub use data::DataConfig;
pub use declared::{Declared, Placed};
pub use environment::{
    Environment, build_folder, cache_folder, certificates, program, search_path,
    virtual_environment,
};
pub use etcd::{EtcdConfig, EtcdConfigError};
pub(crate) use fetch::FetcherSettings;
pub use fetch::{FETCH_KEYS, FetchConfig, FetchKey, FetchValues};
pub use file::{ConfigError, FileConfig, PluginSource};
pub use hosts::FixedHosts;
pub use initial::initial_file;
pub use secret::SecretRef;
pub use sink::{DatabaseConfig, FilesConfig, PostConfig, SinkConfig, SinkPlace, StreamConfig};
pub use tls::TlsConfig;
pub use traces::TracesConfig;
pub use webhook::WebhookConfig;
pub use written::{Change, changes, document, json_document, settings};

/// Config file that is read without being named, if it exists.
pub const DEFAULT_FILE: &str = "crawler.toml";
/// Master that client commands call unless the user names another.
pub const DEFAULT_MASTER: &str = "http://127.0.0.1:9091";

/// Reads the named config file, or the default one if it exists.
pub fn load(path: Option<&Path>) -> Result<FileConfig, ConfigError> {
    match path {
        Some(path) => FileConfig::read(path),
        None if Path::new(DEFAULT_FILE).exists() => FileConfig::read(Path::new(DEFAULT_FILE)),
        None => Ok(FileConfig::default()),
    }
}
