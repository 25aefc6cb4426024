//! TLS of a process: of its listeners, and of its calls to other nodes.

use anyhow::Context as _;

use crate::config::TlsConfig;
use crawler_api::tls::{ClientTls, ServerTls};

/// Certificates of a process. The default has none.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeTls {
    /// Certificates of the listeners; `None` if they are plain.
    pub(super) server: Option<ServerTls>,
    /// Certificates for calls to other nodes.
    pub(super) client: ClientTls,
}

impl NodeTls {
    /// Reads the certificates that the table `[tls]` names.
    pub(super) fn load(config: &TlsConfig) -> anyhow::Result<Self> {
        let doing = "cannot use [tls] of the config file";
        let identity = config.identity();
        let server = identity.clone();
        let server = server.map(|identity| ServerTls::load(identity, config.client_ca.clone()));
        let client = match config.ca.clone() {
            Some(ca) => ClientTls::of_node(ca, identity).context(doing)?,
            None => ClientTls::default(),
        };
        Ok(Self {
            server: server.transpose().context(doing)?,
            client,
        })
    }
}
