//! Place of a cluster: its data root, and the store of its records. Commands that look at a cluster without being a node
//! name it as nodes do.

use std::path::PathBuf;

use clap::Args;

use crate::config::{self, EtcdConfig, FileConfig};

/// Place of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPlace {
    /// Data root.
    pub data: String,
    /// Settings of the connection to etcd. If `None`, the records are in the data root, as `crawler up` keeps them.
    pub etcd: Option<EtcdConfig>,
    /// Config file.
    pub config: FileConfig,
}

#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// The members of etcd [default: those of the config file; without any, the store of `crawler up` in --data]
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    etcd: Vec<String>,
    /// The data root: a folder, or s3://, gs:// or az://BUCKET/PREFIX
    #[arg(long, value_name = "DIR|URL", default_value = "crawler-data")]
    data: String,
    /// File that tells how etcd and the data root are reached [default: crawler.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl PlaceArgs {
    pub(super) fn into_place(self) -> anyhow::Result<ClusterPlace> {
        let config = config::load(self.config.as_deref())?;
        let is_named = !self.etcd.is_empty() || config.etcd != EtcdConfig::default();
        let etcd = config.etcd.clone();
        Ok(ClusterPlace {
            data: self.data,
            etcd: match is_named {
                true => Some(etcd.with_endpoints(self.etcd)?),
                false => None,
            },
            config,
        })
    }
}
