//! TLS of a process: of its listeners, and of its calls to other nodes.

use anyhow::Context as _;

use super::node_certificate::NodeFiles;
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
    /// Reads the certificates that the table `[tls]` names. If it names none, those are used that the node got from
    /// the CA of its cluster.
    pub(super) fn load(config: &TlsConfig, own: Option<&NodeFiles>) -> anyhow::Result<Self> {
        let identity = config.identity();
        if let (None, Some(files)) = (&identity, own) {
            let doing = "cannot use the certificate of this node";
            let server = ServerTls::of_node(files.identity(), files.ca()).context(doing)?;
            let client = ClientTls::of_node(files.ca(), Some(files.identity()));
            return Ok(Self {
                server: Some(server),
                client: client.context(doing)?,
            });
        }
        let doing = "cannot use [tls] of the config file";
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
