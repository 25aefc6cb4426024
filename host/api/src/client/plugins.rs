//! The bytes of plugins from the masters, whichever of them answers.
//!
//! Masters are tried in random order, each within a deadline. If one breaks off, the bytes that it sent are
//! kept and the next one continues from there. Only the digest of the whole is trusted. If pieces of several
//! masters do not match it, the last of them is asked for the whole, and one that sends wrong bytes by itself
//! is passed over.

use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use crawler_proto as proto;
use proto::crawler_master_client::CrawlerMasterClient;
use rand::seq::SliceRandom as _;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, Status};

use super::connector::Callee;
use super::transport::{ANSWER_MAX, ConnectionFailure, Server, transport_failure};
use crate::access;
use crate::tls::ClientTls;
use crawler_access::NodeSecret;
use crawler_model::id::Digest;
use crawler_model::node::{Node, Role};
use crawler_plugin::{FetchBytes, PluginError};
use crawler_process::telemetry::chain;
use crawler_store::catalog::Catalog;

/// Number of times that all masters are tried if some of the bytes have come.
const ROUNDS: usize = 3;

/// Deadlines of a worker that waits for masters.
#[derive(Debug, Clone)]
pub struct FetchDeadlines {
    /// Deadline of the next piece.
    pub piece: Duration,
    /// Deadline of everything that one master sends in one go.
    pub master: Duration,
}

impl Default for FetchDeadlines {
    fn default() -> Self {
        Self {
            piece: Duration::from_secs(10),
            master: Duration::from_secs(60),
        }
    }
}

/// Fetches plugins from the masters that are registered.
#[derive(Debug)]
pub struct MasterPlugins {
    catalog: Catalog,
    max_bytes: u64,
    deadlines: FetchDeadlines,
    tls: ClientTls,
}

impl MasterPlugins {
    /// Creates a client of the masters in this catalog. It accepts no plugin of more than `max_bytes`,
    /// setting `--plugin-size`. Masters that speak TLS are called with the certificates in `tls`.
    pub fn new(
        catalog: Catalog,
        max_bytes: u64,
        deadlines: FetchDeadlines,
        tls: ClientTls,
    ) -> Self {
        Self {
            catalog,
            max_bytes,
            deadlines,
            tls,
        }
    }

    async fn masters(&self) -> Result<Vec<Node>, String> {
        let prefix = self.catalog.keys().nodes(Role::Master);
        let scan = self.catalog.scan::<Node>(&prefix).await;
        let scan = scan.map_err(|e| chain(&e))?;
        let nodes = scan.records.into_iter();
        Ok(nodes.map(|(_, record)| record.value).collect())
    }

    /// Returns what a node shows to masters; `None` before any of them has asked for tokens.
    async fn secret(&self) -> Result<Option<NodeSecret>, String> {
        let secret = self.catalog.read(&self.catalog.keys().node_secret()).await;
        let secret = secret.map_err(|e| chain(&e))?;
        Ok(secret.map(|record| record.value))
    }

    /// Returns all bytes, including those that were gathered before.
    async fn fetch_from(
        &self,
        master: &Node,
        digest: Digest,
        secret: Option<&NodeSecret>,
        gathered: &mut BytesMut,
    ) -> Result<Bytes, String> {
        loop {
            let is_all_its_own = gathered.is_empty();
            let read = self.read_on(master, digest, secret, gathered);
            match tokio::time::timeout(self.deadlines.master, read).await {
                Ok(read) => read?,
                Err(_elapsed) => return Err(late(self.deadlines.master)),
            }
            let found = Digest::of(gathered);
            if found == digest {
                return Ok(std::mem::take(gathered).freeze());
            }
            gathered.clear();
            if is_all_its_own {
                return Err(format!("it sends other bytes, with the digest {found}"));
            }
        }
    }

    async fn read_on(
        &self,
        master: &Node,
        digest: Digest,
        secret: Option<&NodeSecret>,
        gathered: &mut BytesMut,
    ) -> Result<(), String> {
        let server = Server::at(master.url(), &self.tls, Callee::Master).map_err(|e| chain(&e))?;
        let connected = server.connect().await;
        let channel = connected.map_err(|e| ConnectionFailure::of(&e).for_nodes())?;
        let mut calls = CrawlerMasterClient::new(channel).max_decoding_message_size(ANSWER_MAX);
        let mut request = Request::new(proto::FetchPluginRequest {
            digest: digest.to_string(),
            offset: gathered.len() as u64,
        });
        if let Some(secret) = secret {
            let shown = access::node(secret).parse::<AsciiMetadataValue>();
            let mut shown = shown.map_err(|_| "the secret of the nodes is not ASCII".to_owned())?;
            shown.set_sensitive(true);
            request.metadata_mut().insert("authorization", shown);
        }
        let pieces = self.in_time(calls.fetch_plugin(request)).await?;
        let mut pieces = pieces.into_inner();
        while let Some(piece) = self.in_time(pieces.message()).await? {
            if (gathered.len() + piece.chunk.len()) as u64 > self.max_bytes {
                gathered.clear();
                return Err(format!(
                    "it sends more than {} bytes, the limit set by --plugin-size",
                    self.max_bytes
                ));
            }
            gathered.extend_from_slice(&piece.chunk);
        }
        Ok(())
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, String> {
        match tokio::time::timeout(self.deadlines.piece, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => Err(match transport_failure(&status) {
                Some(failure) => failure.for_nodes(),
                None => status.message().to_owned(),
            }),
            Err(_elapsed) => Err(late(self.deadlines.piece)),
        }
    }
}

fn late(deadline: Duration) -> String {
    format!("no answer within {}", humantime::format_duration(deadline))
}

#[async_trait]
impl FetchBytes for MasterPlugins {
    async fn fetch(&self, digest: Digest) -> Result<Bytes, PluginError> {
        let nobody = |why| PluginError::Host {
            doing: "fetch the plugin from a master",
            why,
        };
        let mut masters = self.masters().await.map_err(nobody)?;
        masters.shuffle(&mut rand::rng());
        let secret = self.secret().await.map_err(nobody)?;
        let mut gathered = BytesMut::new();
        let mut faults = Vec::new();
        for _ in 0..ROUNDS {
            faults.clear();
            for master in &masters {
                let fetched = self.fetch_from(master, digest, secret.as_ref(), &mut gathered);
                match fetched.await {
                    Ok(bytes) => return Ok(bytes),
                    Err(why) => {
                        let address = &master.address;
                        tracing::warn!(%digest, master = address, why, "a master does not give a plugin");
                        faults.push(format!("{address}: {why}"));
                    }
                }
            }
            if gathered.is_empty() {
                break;
            }
        }
        if faults.is_empty() {
            faults.push("none is registered".to_owned());
        }
        Err(nobody(faults.join("; ")))
    }
}
