//! The calls that look into a frontier.

use axum::extract::Request;

use super::body;
use super::params;
use super::request::{Params, PathPart, json_body, known, number, origin, part};
use super::response::{Answer, answer};
use crate::Api;
use crawler_master::control::frontier::UrlQuery;

pub(super) async fn stats(api: Api, name: PathPart, params: Params) -> Answer {
    known(params, &[])?;
    answer(api.frontier_stats(&part(name)?).await)
}

pub(super) async fn statistics(api: Api, name: PathPart, params: Params) -> Answer {
    known(params, &[])?;
    answer(api.statistics(&part(name)?).await)
}

pub(super) async fn list(api: Api, name: PathPart, params: Params) -> Answer {
    let mut params = known(params, &params::URLS)?;
    let page_size = number(&params, "page_size")?;
    let mut text = |name| params.remove(name).unwrap_or_default();
    let (state, page_token) = (text("state"), text("page_token"));
    answer(api.urls(&part(name)?, &state, page_size, &page_token).await)
}

pub(super) async fn hosts(api: Api, name: PathPart, params: Params) -> Answer {
    let mut params = known(params, &params::HOSTS)?;
    let page_size = number(&params, "page_size")?;
    let mut text = |name| params.remove(name).unwrap_or_default();
    let (state, page_token) = (text("state"), text("page_token"));
    answer(
        api.hosts(&part(name)?, &state, page_size, &page_token)
            .await,
    )
}

pub(super) async fn why(api: Api, name: PathPart, params: Params) -> Answer {
    let mut params = known(params, &params::WHY)?;
    let mut text = |name| params.remove(name).unwrap_or_default();
    let query = UrlQuery {
        url: text("url"),
        method: text("method"),
        body: text("body").into(),
    };
    answer(api.explain_url(&part(name)?, query).await)
}

pub(super) async fn redrive(api: Api, name: PathPart, request: Request) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    let reason = body::redrive(&json_body(request, body::REDRIVE_EXAMPLE).await?)?;
    answer(api.redrive_frontier(&origin, &name, reason).await)
}
