//! Renews the certificate of a node, for as long as its process runs.
//!
//! A certificate is renewed at two thirds of its life, a little earlier or later, so that nodes that joined together do
//! not come together. A renewal that fails is tried again until the certificate is over, and longer: a master that was
//! started with the CA can still issue its own. The listeners and clients of the process find the new file by
//! themselves.

use std::sync::Arc;
use std::time::Duration;

use super::files::NodeFiles;
use super::join::{NoCertificate, ask_masters};
use super::{check_answer, issue, shown_time};
use crawler_access::audit::{AuditEntry, AuditLog};
use crawler_access::ca::{Authority, CertificateFacts};
use crawler_access::node::Host;
use crawler_access::revoked_nodes;
use crawler_api::client::{Client, NodeCertificate};
use crawler_api::tls::ClientTls;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::NodeId;
use crawler_model::node::Role;
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_store::catalog::Catalog;

/// Longest time between two looks at the clock, which may be set meanwhile.
const LOOK: Duration = Duration::from_secs(10 * 60);
/// Pauses between two tries, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(5 * 60));
/// Part of a certificate's life by which its renewal may be earlier or later.
const JITTER: f64 = 0.05;

/// Keeps the certificate of a node valid.
pub(in crate::app) struct Renewal {
    /// Role and id of the node.
    pub(super) name: (Role, NodeId),
    /// Host under which others reach the node.
    pub(super) host: Host,
    pub(super) files: NodeFiles,
    pub(super) catalog: Catalog,
    /// CA that this process can use; `None` if masters are asked.
    pub(super) authority: Option<Arc<Authority>>,
    pub(super) clock: Arc<dyn Clock>,
    /// True if the present certificate was got at this start.
    pub(super) is_new: bool,
}

impl Renewal {
    /// Renews the certificate whenever it is due. `tls` shows the present one to masters. What this process issues to
    /// itself is recorded in `audit`. The task never ends.
    pub(in crate::app) async fn run(self, tls: ClientTls, audit: Option<AuditLog>) {
        if self.is_new && self.authority.is_some() {
            self.record(audit.as_ref());
        }
        let part = rand::random_range(-JITTER..=JITTER);
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        loop {
            let facts = match self.files.facts() {
                Ok(facts) => facts,
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(error, "cannot read the certificate of this node");
                    None
                }
            };
            let now = self.clock.unix_millis();
            let rest = facts
                .as_ref()
                .map(|facts| due(facts, part).saturating_sub(now));
            if let Some(rest) = rest.filter(|rest| *rest > 0) {
                tokio::time::sleep(Duration::from_millis(rest).min(LOOK)).await;
                continue;
            }
            let Err(error) = self.renew(&tls).await else {
                tracing::info!(node = %self.name.1, "renewed the certificate of this node");
                if self.authority.is_some() {
                    self.record(audit.as_ref());
                }
                backoff.reset();
                // Even a clock that is far ahead does not make this node come again at once.
                tokio::time::sleep(LOOK).await;
                continue;
            };
            self.report(facts.as_ref(), now, &error);
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn renew(&self, tls: &ClientTls) -> Result<(), String> {
        let shown = |error: anyhow::Error| format!("{error:#}");
        let (role, id) = &self.name;
        if let Some(authority) = &self.authority {
            let void_before = revoked_nodes::void_before(&self.catalog, id).await;
            let void_before = void_before.map_err(|e| e.to_string())?;
            let present = self.files.facts().map_err(shown)?;
            if present.is_some_and(|facts| facts.issued_at() < void_before) {
                // Others may have its key.
                return Err("it was revoked; start this node again".to_owned());
            }
            let now = self.clock.unix_millis();
            let issued = issue(authority, (*role, id), &self.host, &self.files, now).await;
            let (issued, ca) = issued.map_err(shown)?;
            return self.files.write(&issued.chain, &ca).map_err(shown);
        }
        // Another key would not be the node's any more.
        let key = self.files.present_key().map_err(shown)?;
        let key = key.ok_or("the private key of this node is gone")?;
        let ca = self.files.ca_digest().map_err(shown)?;
        let ca = ca.ok_or("the certificate of the CA is gone")?;
        let request = key.request(id, &self.host).map_err(|e| e.to_string())?;
        let ask = |url: String| {
            let request = request.clone();
            async move {
                let client = Client::lazy(&url, tls)?;
                client.renew_certificate(request).await
            }
        };
        let check = |got: &NodeCertificate| {
            let now = self.clock.unix_millis();
            check_answer(got, (*role, id), &self.host, ca, now)
        };
        match ask_masters(&self.catalog, ask, check).await {
            Ok(got) => self.files.write(&got.chain, &got.ca).map_err(shown),
            Err(NoCertificate::Refused(error)) => Err(error.to_string()),
            Err(NoCertificate::NotNow(why)) => Err(why),
        }
    }

    fn report(&self, facts: Option<&CertificateFacts>, now: UnixMillis, error: &str) {
        let (role, id) = &self.name;
        match facts {
            Some(facts) if facts.not_after >= now => {
                let until = shown_time(facts.not_after);
                tracing::warn!(node = %id, until, error, "cannot renew the certificate of this node yet");
            }
            Some(_) | None => tracing::error!(
                node = %id, %role, error,
                "the certificate of this node has expired; make a join token with `crawler node join-token add`, and start the node again with --join FILE"
            ),
        }
    }

    /// Records that this master issued a certificate to itself.
    fn record(&self, audit: Option<&AuditLog>) {
        let Some(audit) = audit else {
            return;
        };
        let (role, id) = &self.name;
        audit.record(AuditEntry {
            subject: "this master itself".to_owned(),
            method: "RenewCertificate".to_owned(),
            name: id.to_string(),
            result: "OK".to_owned(),
            detail: format!("certificate of a {role} for {}", self.host),
            ..AuditEntry::default()
        });
    }
}

/// Returns the time at which a certificate is to be renewed: two thirds of its life, and this part of it later.
fn due(facts: &CertificateFacts, part: f64) -> UnixMillis {
    let life = facts.not_after.saturating_sub(facts.not_before);
    let life = Duration::from_millis(life);
    let until_then = life.mul_f64(2.0 / 3.0 + part);
    facts.not_before + u64::try_from(until_then.as_millis()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::Digest;

    #[test]
    fn a_certificate_is_renewed_at_two_thirds_of_its_life() {
        let facts = CertificateFacts {
            not_before: 1_000_000,
            not_after: 1_900_000,
            hosts: Vec::new(),
            uris: Vec::new(),
            key: Digest::of(b"key"),
        };
        assert_eq!(due(&facts, 0.0), 1_600_000);
        assert_eq!(due(&facts, JITTER), 1_645_000);
        assert_eq!(due(&facts, -JITTER), 1_555_000);
    }
}
