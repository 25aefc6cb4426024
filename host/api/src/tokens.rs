//! The calls about access tokens. Any master carries them out.

use std::time::Duration;

use crawler_proto as proto;

use super::forward::Origin;
use super::lists::{bad_token, page};
use super::problem::Problem;
use super::spec::invalid;
use super::{Api, CALL_DEADLINE};
use crawler_access::TokenRecord;
use crawler_access::audit::{AuditEntry, AuditQuery};
use crawler_access::registry::{self, NewToken, RegistryError};
use crawler_master::{Code, ControlError};
use crawler_model::access::{Grants, Subject, TokenId};
use crawler_model::number;
use crawler_process::telemetry::chain;
use crawler_store::StoreError;

/// Hint of an error about a token that is not there.
const SHOW_TOKENS: &str = "`crawler access token list` shows them";

impl Api {
    /// Makes an access token.
    pub(crate) async fn issue_token(
        &self,
        request: proto::IssueTokenRequest,
    ) -> Result<proto::IssueTokenResponse, Problem> {
        let subject = request.subject.clone();
        let call = async {
            let new = new_token(request, self.caller.name())?;
            let now = self.parts.clock.unix_millis();
            let issued = registry::issue(&self.parts.catalog, new, now).await;
            let (token, record) = issued.map_err(refused)?;
            Ok::<_, Problem>(proto::IssueTokenResponse {
                token: token.expose(),
                record: Some(message(token.id(), record)),
            })
        };
        let call = self.within(CALL_DEADLINE, call);
        let issued = self.recorded("IssueToken", &subject, call, |issued| {
            let record = issued.record.clone().unwrap_or_default();
            let of = match record.namespaces.is_empty() {
                true => String::new(),
                false => format!(" of {}", record.namespaces.join(", ")),
            };
            format!("token {}: {}{of}", record.id, record.roles.join(", "))
        });
        issued.await
    }

    /// Lists the access tokens.
    pub(crate) async fn tokens(
        &self,
        request: proto::ListTokensRequest,
    ) -> Result<proto::ListTokensResponse, Problem> {
        let proto::ListTokensRequest {
            page_size,
            page_token,
            subject,
        } = request;
        let after: Option<TokenId> = match page_token.as_str() {
            "" => None,
            token => Some(token.parse().map_err(|_not_an_id| bad_token())?),
        };
        let call = async {
            let listed = registry::list(&self.parts.catalog).await;
            listed.map_err(|error| refused(error.into()))
        };
        let mut tokens = self.within(CALL_DEADLINE, call).await?;
        tokens.retain(|(_, record)| subject.is_empty() || record.subject.as_str() == subject);
        let (tokens, last) = page(tokens, after.as_ref(), page_size, |(id, _)| id.clone());
        let tokens = tokens.into_iter();
        Ok(proto::ListTokensResponse {
            tokens: tokens.map(|(id, record)| message(&id, record)).collect(),
            next_page_token: last.map(|id| id.to_string()).unwrap_or_default(),
        })
    }

    /// Takes access tokens back.
    pub(crate) async fn revoke_tokens(
        &self,
        request: proto::RevokeTokensRequest,
    ) -> Result<(), Problem> {
        let proto::RevokeTokensRequest {
            id,
            subject,
            issued_before,
        } = request;
        let name = if subject.is_empty() { &id } else { &subject };
        let call = async {
            match (id.as_str(), subject.as_str()) {
                ("", "") => Err(Problem::invalid(
                    "neither a token id nor a subject is given",
                    "give the one of them whose tokens are to be revoked",
                )),
                (id, "") => {
                    let id: TokenId = id.parse().map_err(|e| invalid("id", e))?;
                    let revoked = registry::revoke(&self.parts.catalog, &id).await;
                    let record = revoked.map_err(refused)?;
                    Ok(format!("the token of {}", record.subject))
                }
                ("", subject) => self.revoke_of(subject, issued_before).await,
                _ => Err(Problem::invalid(
                    "a token id and a subject are given",
                    "give one of them",
                )),
            }
        };
        let call = self.within(CALL_DEADLINE, call);
        let revoked = self.recorded("RevokeTokens", name, call, Clone::clone);
        revoked.await.map(drop)
    }

    /// Carries out a call about access, and records its outcome with what `done` says of it.
    pub(crate) async fn recorded<T>(
        &self,
        method: &'static str,
        name: &str,
        call: impl Future<Output = Result<T, Problem>>,
        done: impl Fn(&T) -> String,
    ) -> Result<T, Problem> {
        let origin = Origin::client(None);
        let mut unfinished = self.forward.begin((&origin, &self.caller), method, name);
        let result = self.with_access(call).await;
        let done = result.as_ref().map(done).unwrap_or_default();
        unfinished.end(&result, &done);
        result
    }

    /// Takes the tokens of a subject back: all that it has now, or those from before a time. Returns what was done.
    async fn revoke_of(&self, subject: &str, issued_before: u64) -> Result<String, Problem> {
        let catalog = &self.parts.catalog;
        let subject: Subject = subject.parse().map_err(|e| invalid("subject", e))?;
        let unavailable = |error: StoreError| refused(error.into());
        if issued_before == 0 {
            let revoked = registry::revoke_all(catalog, &subject).await;
            let ids = revoked.map_err(unavailable)?;
            // A name that is written wrong must not pass for a revocation.
            return match ids.len() as u64 {
                0 => Err(Problem::new(
                    Code::NotFound,
                    format!("{subject} has no token"),
                    SHOW_TOKENS,
                )),
                n_tokens => Ok(number(n_tokens, "token")),
            };
        }
        if issued_before > self.parts.clock.unix_millis() {
            return Err(Problem::invalid(
                "issued_before lies in the future",
                "leave it out to revoke all tokens that the subject has now",
            ));
        }
        let at = registry::void_before(catalog, &subject, issued_before).await;
        let at = at.map_err(unavailable)?;
        Ok(format!("tokens from before {at}"))
    }

    /// Returns what was done and refused.
    pub(crate) async fn audit(
        &self,
        request: proto::ReadAuditRequest,
    ) -> Result<proto::ReadAuditResponse, Problem> {
        let proto::ReadAuditRequest {
            subject,
            name,
            since,
            limit,
        } = request;
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let query = AuditQuery {
            subject: some(subject),
            name: some(name),
            since,
            limit: match limit {
                0 => AUDIT_SHOWN,
                n => usize::try_from(n).unwrap_or(usize::MAX),
            },
        };
        let call = async {
            let read = self.parts.audit.read(&query).await;
            read.map_err(|error| Problem::new(Code::Unavailable, chain(&error), "try again"))
        };
        let entries = self.within(CALL_DEADLINE, call).await?.into_iter();
        Ok(proto::ReadAuditResponse {
            entries: entries.map(entry_message).collect(),
        })
    }

    /// Tells who calls.
    pub(crate) fn whoami(&self) -> proto::Caller {
        let admission = self.caller.admission();
        let (roles, namespaces) = words(self.caller.grants());
        proto::Caller {
            subject: admission
                .map(|caller| caller.subject.to_string())
                .unwrap_or_default(),
            token_id: admission
                .map(|caller| caller.token.to_string())
                .unwrap_or_default(),
            expires_at: admission.and_then(|caller| caller.expires_at).unwrap_or(0),
            roles,
            namespaces,
        }
    }
}

/// Entries of the record that are returned if the caller does not say how many.
const AUDIT_SHOWN: usize = 100;

fn new_token(request: proto::IssueTokenRequest, issued_by: &str) -> Result<NewToken, ControlError> {
    let proto::IssueTokenRequest {
        subject,
        roles,
        namespaces,
        valid_for_ms,
    } = request;
    let roles = roles.iter().map(|role| role.parse());
    let roles = roles
        .collect::<Result<_, _>>()
        .map_err(|e| invalid("roles", e))?;
    let namespaces = namespaces.iter().map(|space| space.parse());
    let namespaces = namespaces.collect::<Result<_, _>>();
    Ok(NewToken {
        subject: subject.parse().map_err(|e| invalid("subject", e))?,
        grants: Grants {
            roles,
            namespaces: namespaces.map_err(|e| invalid("namespaces", e))?,
        },
        valid_for: (valid_for_ms > 0).then(|| Duration::from_millis(valid_for_ms)),
        issued_by: issued_by.to_owned(),
    })
}

fn entry_message(entry: AuditEntry) -> proto::AuditEntry {
    let text = |value: Option<String>| value.unwrap_or_default();
    proto::AuditEntry {
        at: entry.at,
        subject: entry.subject,
        token_id: text(entry.token.map(|id| id.to_string())),
        address: text(entry.address.map(|address| address.to_string())),
        method: entry.method,
        name: entry.name,
        result: entry.result,
        detail: entry.detail,
        times: entry.times,
        through: text(entry.through.map(|node| node.to_string())),
    }
}

fn message(id: &TokenId, record: TokenRecord) -> proto::AccessToken {
    let (roles, namespaces) = words(&record.grants);
    proto::AccessToken {
        id: id.to_string(),
        subject: record.subject.to_string(),
        roles,
        namespaces,
        issued_at: record.issued_at,
        expires_at: record.expires_at.unwrap_or(0),
        issued_by: record.issued_by,
    }
}

fn words(grants: &Grants) -> (Vec<String>, Vec<String>) {
    (
        grants.roles.iter().map(ToString::to_string).collect(),
        grants.namespaces.iter().map(ToString::to_string).collect(),
    )
}

fn refused(error: RegistryError) -> Problem {
    let (code, hint) = match &error {
        RegistryError::Grants(_) | RegistryError::Validity => (Code::InvalidArgument, ""),
        RegistryError::Full => (Code::FailedPrecondition, ""),
        RegistryError::NoToken(_) => (Code::NotFound, SHOW_TOKENS),
        RegistryError::Store(_) => (Code::Unavailable, "try again"),
    };
    let problem = Problem::new(code, chain(&error), hint);
    match code {
        Code::Unavailable => problem.passes(),
        _ => problem,
    }
}
