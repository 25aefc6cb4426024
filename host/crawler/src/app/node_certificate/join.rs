//! Joins a cluster: gets the first certificate of a node from any master, with a join token.

use std::path::Path;

use anyhow::Context as _;
use rand::seq::SliceRandom as _;

use super::{Applicant, PAUSES, check_answer};
use crawler_access::joins::JoinToken;
use crawler_api::client::{Client, ClientError, JoinRequest, NodeCertificate};
use crawler_master::Code;
use crawler_model::node::{Node, Role};
use crawler_process::retry::Backoff;
use crawler_process::telemetry::chain;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;

/// Largest file that is read as a join token.
const TOKEN_MAX: u64 = 4_096;

/// Reason why no master gave a certificate.
pub(super) enum NoCertificate {
    /// A master has decided against this node.
    Refused(ClientError),
    /// No master could decide. Others may, later.
    NotNow(String),
}

impl Applicant<'_> {
    /// Gets the first certificate with the token in this file, however long it takes until a master answers.
    pub(super) async fn join(&self, file: &Path) -> anyhow::Result<()> {
        let token = read_token(file)?;
        let request = JoinRequest {
            role: self.role,
            id: self.id.clone(),
            labels: self.labels.clone(),
            host: self.host.clone(),
            request: self.files.key()?.request(self.id, &self.host)?,
        };
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        let got = loop {
            let ask = |url: String| {
                let (token, request) = (token.clone(), request.clone());
                async move {
                    let client = Client::joining(&url, &token)?;
                    client.join_cluster(&token, request).await
                }
            };
            let check = |got: &NodeCertificate| {
                let now = self.clock.unix_millis();
                check_answer(got, (self.role, self.id), &self.host, token.ca(), now)
            };
            match ask_masters(self.catalog, ask, check).await {
                Ok(certificate) => break certificate,
                Err(NoCertificate::Refused(error)) => {
                    let id = self.id;
                    return Err(error).with_context(|| format!("{id} cannot join the cluster"));
                }
                Err(NoCertificate::NotNow(why)) => {
                    tracing::warn!(node = %self.id, why, "waiting for a master, to join the cluster");
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        };
        self.files.write(&got.chain, &got.ca)?;
        tracing::info!(node = %self.id, host = %self.host, "joined the cluster and got a certificate");
        Ok(())
    }
}

/// Asks one registered master with TLS after the other, in random order, until one gives a certificate that passes a
/// check. A refusal counts if all masters that answer agree: the clock of one may be wrong.
pub(super) async fn ask_masters<Asked>(
    catalog: &Catalog,
    ask: impl Fn(String) -> Asked,
    check: impl Fn(&NodeCertificate) -> Result<(), String>,
) -> Result<NodeCertificate, NoCertificate>
where
    Asked: Future<Output = Result<NodeCertificate, ClientError>>,
{
    let urls = masters(catalog).await;
    let mut urls = urls.map_err(|error| NoCertificate::NotNow(chain(&error)))?;
    urls.shuffle(&mut rand::rng());
    let mut faults = Vec::new();
    let mut refused = None;
    for url in urls {
        match ask(url.clone()).await {
            Ok(certificate) => match check(&certificate) {
                Ok(()) => return Ok(certificate),
                Err(why) => faults.push(format!("{url}: {why}")),
            },
            Err(error) if is_final(&error) => refused = refused.or(Some(error)),
            Err(error) => faults.push(match &error {
                ClientError::Refused(problem) if !problem.hint.is_empty() => {
                    format!("{error}; {}", problem.hint)
                }
                _ => error.to_string(),
            }),
        }
    }
    match refused {
        Some(error) if faults.is_empty() => return Err(NoCertificate::Refused(error)),
        Some(error) => faults.push(error.to_string()),
        None => {}
    }
    Err(NoCertificate::NotNow(match faults.is_empty() {
        true => "no master that speaks TLS is registered".to_owned(),
        false => faults.join("; "),
    }))
}

/// Returns the URLs of the masters that speak TLS. A token is not shown to others.
async fn masters(catalog: &Catalog) -> Result<Vec<String>, StoreError> {
    let prefix = catalog.keys().nodes(Role::Master);
    let scan = catalog.scan::<Node>(&prefix).await?;
    let nodes = scan.records.into_iter().map(|(_, record)| record.value);
    Ok(nodes
        .filter(|node| node.tls)
        .map(|node| node.url())
        .collect())
}

/// True if a master has decided against the node.
fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(problem) => matches!(
            problem.code,
            Code::PermissionDenied | Code::InvalidArgument | Code::Unauthenticated
        ),
        ClientError::Url { .. } | ClientError::Unreachable { .. } | ClientError::Tls { .. } => {
            false
        }
    }
}

pub(super) fn read_token(file: &Path) -> anyhow::Result<JoinToken> {
    use std::io::Read as _;
    let cannot_read = || format!("cannot read {}", file.display());
    let opened = std::fs::File::open(file).with_context(cannot_read)?;
    let mut text = String::new();
    let read = opened.take(TOKEN_MAX).read_to_string(&mut text);
    read.with_context(cannot_read)?;
    let token = text.trim().parse();
    token.with_context(|| format!("cannot join with {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_access::ca::CaDigest;

    #[test]
    fn a_file_with_a_token_is_read_and_another_one_not_quoted() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("token");
        let token = JoinToken::random(CaDigest::of(b"ca"));
        std::fs::write(&file, format!("{}\n", token.expose())).unwrap();
        assert_eq!(read_token(&file).unwrap(), token);
        std::fs::write(&file, format!("{}x", token.expose())).unwrap();
        let error = format!("{:#}", read_token(&file).unwrap_err());
        assert!(error.contains("no join token"), "{error}");
        assert!(!error.contains(&token.expose()), "{error}");
        let absent = read_token(&home.path().join("absent")).unwrap_err();
        assert!(format!("{absent:#}").contains("absent"), "{absent:#}");
    }
}
