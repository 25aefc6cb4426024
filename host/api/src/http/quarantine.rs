//! The calls about held items.

use axum::extract::Request;
use crawler_proto as proto;

use super::body::quarantine as body;
use super::params;
use super::request::{Params, PathPart, json_body, known, number, origin, part};
use super::response::{Answer, answer};
use crate::Api;

pub(super) async fn list(api: Api, name: PathPart, params: Params) -> Answer {
    known(params, &[])?;
    answer(api.quarantine(&part(name)?).await)
}

pub(super) async fn items(api: Api, name: PathPart, params: Params) -> Answer {
    let mut params = known(params, &params::HELD_ITEMS)?;
    let page_size = number(&params, "page_size")?;
    let mut text = |name| params.remove(name).unwrap_or_default();
    let request = proto::ReadQuarantineRequest {
        name: part(name)?,
        hold: text("hold"),
        page_size,
        page_token: text("page_token"),
    };
    answer(api.held_items(request).await)
}

pub(super) async fn decide(api: Api, name: PathPart, request: Request) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    let bytes = json_body(request, body::EXAMPLE).await?;
    let request = body::decide(name, &bytes)?;
    answer(api.decide_quarantine(&origin, request).await)
}
