//! The certificate that a node gets from the CA of its cluster, where `[tls]` names none.
//!
//! A node that has a valid one in its state folder uses it. Otherwise a master that can use the CA issues its own, and
//! another node joins with the token of `--join`. Its private key is made on this machine and never leaves it.
//!
//! ```text
//! files    the folder with key, certificate and CA
//! join     the first certificate of a node, with a join token
//! renewal  the next certificates, for as long as the process runs
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::identity::Identity;
use super::parts;
use crate::cli::{Failure, NodeOptions};
use crate::config::ClusterConfig;
use crawler_access::ca::{
    Authority, CaDigest, CaError, CaSource, CertificateFacts, ClusterCa, Issued, NodeRequest,
    SEALING_KEY_MIN, SealingKey, ca_digest,
};
use crawler_access::node::{Host, NodeName};
use crawler_access::revoked_nodes;
use crawler_api::client::NodeCertificate;
use crawler_api::tls::certificate_facts;
use crawler_model::id::NodeId;
use crawler_model::node::Role;
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;

mod files;
mod join;
mod renewal;

pub(super) use files::NodeFiles;
pub(super) use renewal::Renewal;

/// Pauses between two tries, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// Time that a node which starts has to learn from the store that its certificate was revoked.
const STORE_PATIENCE: Duration = Duration::from_secs(5);
/// Largest file that is read as a sealing key.
const SEALING_KEY_MAX: usize = 4_096;

/// Parts that a process has before its ports are taken. The default has none.
#[derive(Default)]
pub(super) struct Prepared {
    /// Certificate from the CA of the cluster, and the id that it names.
    pub(super) certified: Option<Certified>,
    /// CA of the cluster, in a master.
    pub(super) authority: Option<Arc<Authority>>,
}

/// A node with a valid certificate.
pub(super) struct Certified {
    pub(super) identity: Identity,
    pub(super) files: NodeFiles,
    /// Keeps the certificate valid.
    pub(super) renewal: Renewal,
}

/// Node that is to get a certificate.
struct Applicant<'a> {
    role: Role,
    id: &'a NodeId,
    labels: &'a BTreeMap<String, String>,
    host: Host,
    files: &'a NodeFiles,
    catalog: &'a Catalog,
    clock: &'a Arc<dyn Clock>,
}

/// Returns how a master gets at the CA of its cluster, as `[cluster]` of the config file says.
pub(super) fn source(config: &ClusterConfig) -> anyhow::Result<Option<CaSource>> {
    let doing = "cannot use [cluster] of the config file";
    if let Some(file) = &config.sealing_key {
        let bytes = std::fs::read(file);
        let bytes = bytes.with_context(|| format!("{doing}: cannot read {}", file.display()))?;
        if bytes.len() > SEALING_KEY_MAX {
            let what = format!("{} has more than {SEALING_KEY_MAX} bytes", file.display());
            let hint =
                format!("make a sealing key with `openssl rand -out FILE {SEALING_KEY_MIN}`");
            return Err(Failure::new(what, hint).into());
        }
        let key = SealingKey::of_bytes(&bytes).map_err(explained);
        let key = key.with_context(|| format!("{doing}: {}", file.display()))?;
        return Ok(Some(CaSource::Sealed(Box::new(key))));
    }
    let (Some(certificate), Some(key)) = (&config.ca, &config.ca_key) else {
        return Ok(None);
    };
    let read = |file: &Path| {
        let text = std::fs::read_to_string(file);
        text.with_context(|| format!("{doing}: cannot read {}", file.display()))
    };
    Ok(Some(CaSource::Files {
        certificate: read(certificate)?,
        key: read(key)?,
    }))
}

/// Returns the certificate of this node, or `None` if the node needs none from the CA of its cluster. Waits for the
/// store and for a master, if it has to get one.
pub(super) async fn obtain(
    (role, options): (Role, &NodeOptions),
    labels: &BTreeMap<String, String>,
    catalog: &Catalog,
    authority: Option<&Arc<Authority>>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Option<Certified>> {
    let own_ca = authority.filter(|authority| authority.issues());
    let files = NodeFiles::in_folder(options.certificate_folder());
    let is_wanted = own_ca.is_some() || options.join.is_some() || files.folder_exists()?;
    if let Some(file) = &options.config.tls.certificate {
        if own_ca.is_some() && !names_master(file) {
            let file = file.display();
            tracing::warn!(
                %file,
                "the certificate in [tls] names no master, so nodes that have joined take no calls of this one; take it out, and this master issues its own"
            );
        }
        return Ok(None);
    }
    if !is_wanted {
        return Ok(None);
    }
    let identity = Identity::find(role, &options.id, &options.engine.state, catalog).await?;
    let applicant = Applicant {
        role,
        id: &identity.id,
        labels,
        host: host(options)?,
        files: &files,
        catalog,
        clock,
    };
    let token = options.join.as_deref();
    let fault = match applicant.fault_of_revocation().await? {
        None => applicant.fault_of_present()?,
        fault => fault,
    };
    let fault = match fault {
        None => applicant.fault_of_ca(own_ca, token).await?,
        fault => fault,
    };
    match (&fault, own_ca, &options.join) {
        (None, _, None) => {}
        (None, _, Some(_)) => {
            tracing::info!(node = %identity.id, "has a valid certificate already; --join is ignored");
        }
        (Some(_), Some(own_ca), _) => applicant.issue_own(own_ca).await?,
        (Some(_), None, Some(token)) => Box::pin(applicant.join(token)).await?,
        (Some(fault), None, None) => {
            let hint = format!(
                "make a join token with `crawler node join-token add --role {role} --nodes {}`, and start this node with --join FILE",
                identity.id
            );
            return Err(Failure::new(fault.clone(), hint).into());
        }
    }
    let renewal = Renewal {
        name: (role, identity.id.clone()),
        host: applicant.host.clone(),
        files: files.clone(),
        catalog: catalog.clone(),
        authority: own_ca.cloned(),
        clock: clock.clone(),
        is_new: fault.is_some(),
    };
    Ok(Some(Certified {
        identity,
        files,
        renewal,
    }))
}

/// True if a file has the certificate of a master. One that cannot be read ends the process elsewhere.
fn names_master(file: &Path) -> bool {
    let facts = certificate_facts(file).unwrap_or_default();
    let node = facts.first().and_then(CertificateFacts::node);
    facts.is_empty() || node.is_some_and(|node| node.role == Role::Master)
}

impl Applicant<'_> {
    /// Returns the reason why the certificate in the state folder is of no use, or `None` if it is good.
    fn fault_of_present(&self) -> anyhow::Result<Option<String>> {
        let (role, id, host) = (self.role, self.id, &self.host);
        let path = self.files.certificate();
        let Some(facts) = self.files.facts()? else {
            return Ok(Some(format!("{id} has no certificate yet")));
        };
        let CertificateFacts { not_after, .. } = facts;
        let fault = if !facts.is_of(role, id) {
            format!("is not that of {id}")
        } else if !facts.hosts.contains(host) {
            format!("is not for {host}, where others reach this node")
        } else if !facts.is_valid_at(self.clock.unix_millis()) {
            format!("expired at {}", shown_time(not_after))
        } else if self
            .files
            .present_key()?
            .is_none_or(|key| key.digest() != facts.key)
        {
            "is not for the key beside it".to_owned()
        } else {
            return Ok(None);
        };
        let path = path.display();
        Ok(Some(format!("the certificate in {path} {fault}")))
    }

    /// Returns the reason why a certificate is of no use that was revoked. Its private key is removed, because others may
    /// have it: the node makes another one.
    async fn fault_of_revocation(&self) -> anyhow::Result<Option<String>> {
        let Some(facts) = self.files.facts()? else {
            return Ok(None);
        };
        let read = async {
            loop {
                match revoked_nodes::void_before(self.catalog, self.id).await {
                    Err(error) if error.is_transient() => tokio::time::sleep(PAUSES.0).await,
                    read => return read,
                }
            }
        };
        let void_before = match tokio::time::timeout(STORE_PATIENCE, read).await {
            Ok(Ok(void_before)) => void_before,
            // It starts without the store, too, and without the right to read this.
            Ok(Err(StoreError::Denied { .. })) | Err(_) => return Ok(None),
            Ok(Err(error)) => return Err(error.into()),
        };
        if facts.issued_at() >= void_before {
            return Ok(None);
        }
        self.files.remove_key()?;
        let path = self.files.certificate();
        let path = path.display();
        Ok(Some(format!("the certificate in {path} was revoked")))
    }

    /// Returns the reason why a certificate that is good in itself is of no use any more: the cluster has another CA
    /// now, as the CA of this master or the join token tells. A master whose key does not open the CA must not start.
    async fn fault_of_ca(
        &self,
        own_ca: Option<&Arc<Authority>>,
        token: Option<&Path>,
    ) -> anyhow::Result<Option<String>> {
        let wanted = match (own_ca, token) {
            (Some(authority), _) => match self.ca_of(authority).await {
                Ok(ca) => Some(ca.digest()),
                // It starts without the store, too.
                Err(error) if is_transient(&error) => None,
                Err(error) => return Err(error),
            },
            // The file may be gone since the node has joined.
            (None, Some(file)) => join::read_token(file).ok().map(|token| token.ca()),
            (None, None) => None,
        };
        let present = self.files.ca_digest()?;
        Ok(wanted.filter(|wanted| present != Some(*wanted)).map(|_| {
            let path = self.files.certificate();
            format!("the certificate in {} is from another CA", path.display())
        }))
    }

    /// Issues the certificate of a master by the CA that it can use.
    async fn issue_own(&self, authority: &Authority) -> anyhow::Result<()> {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        while let Err(error) = self.try_issue_own(authority).await {
            if !is_transient(&error) {
                return Err(error);
            }
            let error = format!("{error:#}");
            tracing::warn!(node = %self.id, error, "waiting for the store, to issue a certificate");
            tokio::time::sleep(backoff.next_delay()).await;
        }
        tracing::info!(node = %self.id, host = %self.host, "issued the certificate of this master");
        Ok(())
    }

    /// Returns the CA that this master can use. It names the cluster, whose first process this may be.
    async fn ca_of<'a>(&self, authority: &'a Authority) -> anyhow::Result<&'a ClusterCa> {
        parts::cluster_id(self.catalog).await?;
        authority.ca().await.map_err(explained)
    }

    async fn try_issue_own(&self, authority: &Authority) -> anyhow::Result<()> {
        self.ca_of(authority).await?;
        // It must not be void at once.
        let void_before = revoked_nodes::void_before(self.catalog, self.id).await?;
        let now = self.clock.unix_millis().max(void_before);
        let name = (self.role, self.id);
        let (issued, ca) = issue(authority, name, &self.host, self.files, now).await?;
        self.files.write(&issued.chain, &ca)
    }
}

/// Issues a certificate by a CA that this process can use. Returns it with that of the CA.
async fn issue(
    authority: &Authority,
    (role, id): (Role, &NodeId),
    host: &Host,
    files: &NodeFiles,
    now: u64,
) -> anyhow::Result<(Issued, String)> {
    let ca = authority.ca().await.map_err(explained)?;
    let request = files.key()?.request(id, host)?;
    let request = NodeRequest::parse(&request)?;
    let node = NodeName {
        cluster: ca.cluster().to_owned(),
        role,
        id: id.clone(),
    };
    let issued = ca.issue(&node, std::slice::from_ref(host), &request, now)?;
    Ok((issued, ca.pem().to_owned()))
}

/// Checks what a master has answered: files that a node trusts are not replaced by anything.
fn check_answer(
    got: &NodeCertificate,
    (role, id): (Role, &NodeId),
    host: &Host,
    ca: CaDigest,
    now: u64,
) -> Result<(), String> {
    let facts = CertificateFacts::of_pem(&got.chain).map_err(|e| telemetry::chain(&e))?;
    let found = ca_digest(&got.ca).map_err(|e| telemetry::chain(&e))?;
    if found != ca {
        return Err("it answers with another CA".to_owned());
    }
    if !facts.is_of(role, id) || !facts.hosts.contains(host) {
        return Err("it answers with the certificate of another node".to_owned());
    }
    match facts.is_valid_at(now) {
        true => Ok(()),
        false => Err("its certificate is not valid now; compare the clocks".to_owned()),
    }
}

/// Returns the host under which others reach the node.
fn host(options: &NodeOptions) -> anyhow::Result<Host> {
    let Some(advertised) = &options.advertise else {
        return Ok(Host::Ip(options.grpc.ip()));
    };
    let host = match advertised.rsplit_once(':') {
        Some((host, _port)) => host,
        None => advertised,
    };
    Ok(host.parse()?)
}

/// Returns an error with the way out that it knows. A failure of the store stays what it is, so that others see that it
/// may pass.
fn explained(error: CaError) -> anyhow::Error {
    match (&error, error.hint()) {
        (CaError::Store(_), _) | (_, "") => error.into(),
        (_, hint) => Failure::new(telemetry::chain(&error), hint).into(),
    }
}

fn is_transient(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let store = cause.downcast_ref::<StoreError>();
        store.is_some_and(StoreError::is_transient)
    })
}

/// Formats a time of a certificate, such as 2031-01-01T00:00:00Z.
pub(super) fn shown_time(millis: u64) -> String {
    let at = std::time::SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
mod tests;
