//! The calls that look into a frontier.

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::{get, post};

use super::{Answer, Params, PathPart, answer, body, json_body, known, number, origin, part};
use crate::api::Api;
use crate::master::control::frontier::Asked;

/// Returns the routes below `/crawler/resource/NAME`.
pub(super) fn routes() -> Router<Api> {
    let at = |path: &str| format!("/crawler/resource/{{name}}/frontier{path}");
    Router::new()
        .route(&at(""), get(stats))
        .route(&at("/urls"), get(list))
        .route(&at("/why"), get(why))
        .route(&at("/redrive"), post(redrive))
        .route("/crawler/resource/{name}/hosts", get(hosts))
}

async fn stats(State(api): State<Api>, name: PathPart, params: Params) -> Answer {
    known(params, &[])?;
    answer(api.frontier_stats(&part(name)?).await)
}

async fn list(State(api): State<Api>, name: PathPart, params: Params) -> Answer {
    let mut params = known(params, &["state", "page_size", "page_token"])?;
    let page_size = number(&params, "page_size")?;
    let mut text = |name| params.remove(name).unwrap_or_default();
    let (state, page_token) = (text("state"), text("page_token"));
    answer(api.urls(&part(name)?, &state, page_size, &page_token).await)
}

async fn hosts(State(api): State<Api>, name: PathPart, params: Params) -> Answer {
    let mut params = known(params, &["state", "page_size", "page_token"])?;
    let page_size = number(&params, "page_size")?;
    let mut text = |name| params.remove(name).unwrap_or_default();
    let (state, page_token) = (text("state"), text("page_token"));
    answer(
        api.hosts(&part(name)?, &state, page_size, &page_token)
            .await,
    )
}

async fn why(State(api): State<Api>, name: PathPart, params: Params) -> Answer {
    let mut params = known(params, &["url", "method", "body"])?;
    let mut text = |name| params.remove(name).unwrap_or_default();
    let asked = Asked {
        url: text("url"),
        method: text("method"),
        body: text("body").into(),
    };
    answer(api.explain_url(&part(name)?, asked).await)
}

async fn redrive(State(api): State<Api>, name: PathPart, request: Request) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    let reason = body::redrive(&json_body(request, body::REDRIVE_EXAMPLE).await?)?;
    answer(api.redrive_frontier(&origin, &name, reason).await)
}
