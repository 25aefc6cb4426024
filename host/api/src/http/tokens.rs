//! The calls about access tokens and join tokens.

use axum::extract::Request;
use serde_json::json;

use super::body::tokens::{ISSUE_EXAMPLE, JOIN_EXAMPLE, REVOKE_EXAMPLE, issue, issue_join, revoke};
use super::params;
use super::request::{Params, PathPart, json_body, known, number, part, positive, text};
use super::response::{Answer, answer};
use crate::Api;
use crawler_proto::{ListTokensRequest, ReadAuditRequest, RevokeTokensRequest};

pub(super) async fn issue_token(api: Api, request: Request) -> Answer {
    let new = issue(&json_body(request, ISSUE_EXAMPLE).await?)?;
    answer(api.issue_token(new).await)
}

pub(super) async fn list_tokens(api: Api, params: Params) -> Answer {
    let params = known(params, &params::TOKENS)?;
    let request = ListTokensRequest {
        page_size: number(&params, "page_size")?,
        page_token: text(&params, "page_token"),
        subject: text(&params, "subject"),
    };
    answer(api.tokens(request).await)
}

pub(super) async fn revoke_token(api: Api, id: PathPart, params: Params) -> Answer {
    known(params, &[])?;
    let request = RevokeTokensRequest {
        id: part(id)?,
        ..RevokeTokensRequest::default()
    };
    api.revoke_tokens(request).await?;
    answer(Ok(json!({})))
}

pub(super) async fn revoke_tokens(api: Api, request: Request) -> Answer {
    let tokens = revoke(&json_body(request, REVOKE_EXAMPLE).await?)?;
    api.revoke_tokens(tokens).await?;
    answer(Ok(json!({})))
}

pub(super) async fn issue_join_token(api: Api, request: Request) -> Answer {
    let new = issue_join(&json_body(request, JOIN_EXAMPLE).await?)?;
    answer(api.issue_join_token(new).await)
}

pub(super) async fn list_join_tokens(api: Api, params: Params) -> Answer {
    known(params, &[])?;
    answer(api.join_tokens().await)
}

pub(super) async fn revoke_join_token(api: Api, id: PathPart, params: Params) -> Answer {
    known(params, &[])?;
    api.revoke_join_token(&part(id)?).await?;
    answer(Ok(json!({})))
}

pub(super) async fn audit(api: Api, params: Params) -> Answer {
    let params = known(params, &params::AUDIT)?;
    let text = |name: &str| text(&params, name);
    let request = ReadAuditRequest {
        subject: text("subject"),
        name: text("name"),
        since: positive(&params, "since")?,
        limit: number(&params, "limit")?,
    };
    answer(api.audit(request).await)
}

pub(super) async fn caller(api: Api, params: Params) -> Answer {
    known(params, &[])?;
    answer(Ok(api.whoami()))
}
