//! The calls that decide whether a resource is crawled, and by whom.

use axum::extract::Request;
use crawler_proto::{DiffRunsRequest, ListSchedulesRequest, SetScheduleRequest};
use serde_json::json;

use super::body;
use super::params;
use super::request::{
    Params, PathPart, flag, json_body, known, number, optional_body, origin, part, positive, text,
};
use super::response::{Answer, answer};
use crate::Api;

pub(super) async fn restart(api: Api, name: PathPart, request: Request) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    let changes = json_body(request, body::RESTART_EXAMPLE).await?;
    let changes = body::restart(&name, &changes)?;
    answer(api.restart_resource(&origin, changes).await)
}

pub(super) async fn pause(api: Api, name: PathPart, request: Request) -> Answer {
    pause_or_resume(&api, true, name, request).await
}

pub(super) async fn resume(api: Api, name: PathPart, request: Request) -> Answer {
    pause_or_resume(&api, false, name, request).await
}

async fn pause_or_resume(api: &Api, pause: bool, name: PathPart, request: Request) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    body::nothing(&optional_body(request).await?)?;
    answer(api.pause_resource(&origin, &name, pause).await)
}

pub(super) async fn list_runs(api: Api, name: PathPart) -> Answer {
    answer(api.runs(&part(name)?).await)
}

pub(super) async fn diff_runs(api: Api, name: PathPart, params: Params) -> Answer {
    let params = known(params, &params::DIFF)?;
    let request = DiffRunsRequest {
        name: part(name)?,
        before: positive(&params, "before")?,
        after: positive(&params, "after")?,
    };
    answer(api.diff_runs(request).await)
}

pub(super) async fn set_schedule(api: Api, name: PathPart, request: Request) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    let spec = json_body(request, body::schedule::EXAMPLE).await?;
    let spec = Some(body::schedule::schedule(&spec)?);
    let request = SetScheduleRequest { name, spec };
    answer(api.set_schedule(&origin, request).await)
}

pub(super) async fn get_schedule(api: Api, name: PathPart) -> Answer {
    answer(api.schedule(&part(name)?).await)
}

pub(super) async fn list_schedules(api: Api, params: Params) -> Answer {
    let params = known(params, &params::SCHEDULES)?;
    let request = ListSchedulesRequest {
        page_size: number(&params, "page_size")?,
        page_token: text(&params, "page_token"),
        name_prefix: text(&params, "prefix"),
    };
    answer(api.schedules(request).await)
}

pub(super) async fn delete_schedule(api: Api, name: PathPart, request: Request) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    body::nothing(&optional_body(request).await?)?;
    api.delete_schedule(&origin, &name).await?;
    answer(Ok(json!({})))
}

pub(super) async fn drain(api: Api, id: PathPart, params: Params, request: Request) -> Answer {
    let (id, origin) = (part(id)?, origin(&request)?);
    let undo = flag(&known(params, &params::DRAIN)?, "undo")?;
    body::nothing(&optional_body(request).await?)?;
    answer(api.drain_node(&origin, &id, undo).await)
}

pub(super) async fn revoke(api: Api, id: PathPart, params: Params, request: Request) -> Answer {
    known(params, &[])?;
    body::nothing(&optional_body(request).await?)?;
    api.revoke_node(&part(id)?).await?;
    answer(Ok(json!({})))
}
