//! Handlers of the calls that have no file of their own.

use std::pin::Pin;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use axum::http::{HeaderValue, header};
use futures::stream::StreamExt as _;
use serde_json::json;

use super::body;
use super::params;
use super::request::{
    Params, PathPart, bytes_of, check_type, flag, json_body, known, labels, number, optional_body,
    origin, part, positive, text,
};
use super::response::{Answer, answer, file, lines};
use crate::Api;
use crate::problem::Problem;
use crate::push::{PushRequest, Upload};
use crawler_master::ControlError;
use crawler_proto::{
    ListChangesRequest, ListNodesRequest, ListPluginsRequest, ListResourcesRequest,
    ReadItemsRequest,
};

/// Name of a resource, and digest of a file.
type FilePath = Result<Path<(String, String)>, PathRejection>;

pub(super) async fn add_resource(api: Api, request: Request) -> Answer {
    let origin = origin(&request)?;
    let spec = body::spec(&json_body(request, body::EXAMPLE).await?)?;
    answer(api.add_resource(&origin, spec).await)
}

pub(super) async fn update_resource(api: Api, request: Request) -> Answer {
    let origin = origin(&request)?;
    let spec = body::spec(&json_body(request, body::EXAMPLE).await?)?;
    answer(api.update_resource(&origin, spec).await)
}

pub(super) async fn delete_resource(api: Api, params: Params, request: Request) -> Answer {
    let origin = origin(&request)?;
    let params = known(params, &params::PURGE)?;
    let deletion = body::deletion(&json_body(request, body::EXAMPLE).await?, body::EXAMPLE)?;
    let purge = deletion.purge || flag(&params, "purge")?;
    api.delete_resource(&origin, &deletion.name, purge, deletion.precondition)
        .await?;
    answer(Ok(json!({})))
}

pub(super) async fn update_named_resource(api: Api, name: PathPart, request: Request) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    let spec = body::update(&name, &json_body(request, body::UPDATE_EXAMPLE).await?)?;
    answer(api.update_resource(&origin, spec).await)
}

pub(super) async fn delete_named_resource(
    api: Api,
    name: PathPart,
    params: Params,
    request: Request,
) -> Answer {
    let (name, origin) = (part(name)?, origin(&request)?);
    let params = known(params, &params::PURGE)?;
    let deletion = body::named_deletion(&name, &optional_body(request).await?)?;
    let purge = deletion.purge || flag(&params, "purge")?;
    api.delete_resource(&origin, &deletion.name, purge, deletion.precondition)
        .await?;
    answer(Ok(json!({})))
}

pub(super) async fn list_resources(api: Api, params: Params) -> Answer {
    let params = known(params, &params::RESOURCES)?;
    let request = ListResourcesRequest {
        page_size: number(&params, "page_size")?,
        page_token: text(&params, "page_token"),
        phase: text(&params, "phase"),
        labels: labels(&params)?,
        name_prefix: text(&params, "prefix"),
        plugin: text(&params, "plugin"),
    };
    answer(api.resources(request).await)
}

pub(super) async fn get_resource(api: Api, name: PathPart) -> Answer {
    answer(api.resource(&part(name)?).await)
}

pub(super) async fn read_items(api: Api, name: PathPart, params: Params) -> Answer {
    let params = known(params, &params::ITEMS)?;
    let envelope = flag(&params, "envelope")?;
    let text = |name: &str| text(&params, name);
    let request = ReadItemsRequest {
        name: part(name)?,
        follow: flag(&params, "follow")?,
        after: text("after"),
        run: positive(&params, "run")?,
        kind: text("kind"),
        since: positive(&params, "since")?,
        limit: positive(&params, "limit")?,
    };
    let items = api.items(request).await?;
    lines(items, move |item| match envelope {
        true => serde_json::to_string(&item),
        false => Ok(item.json),
    })
}

pub(super) async fn list_changes(api: Api, name: PathPart, params: Params) -> Answer {
    let params = known(params, &params::CHANGES)?;
    let request = ListChangesRequest {
        name: part(name)?,
        run: positive(&params, "run")?,
        page_size: number(&params, "page_size")?,
        page_token: text(&params, "page_token"),
    };
    answer(api.changes(request).await)
}

pub(super) async fn read_file(api: Api, parts: FilePath) -> Answer {
    let Path((name, digest)) = parts.map_err(|e| Problem::invalid(e.body_text(), ""))?;
    file(api.file(&name, &digest).await?)
}

pub(super) async fn read_logs(api: Api, name: PathPart, params: Params) -> Answer {
    let params = known(params, &params::LOGS)?;
    let logs = api.logs(&part(name)?, flag(&params, "follow")?).await?;
    lines(logs, |line| serde_json::to_string(&line))
}

pub(super) async fn list_nodes(api: Api, params: Params) -> Answer {
    let params = known(params, &params::NODES)?;
    if flag(&params, "follow")? {
        let events = api.node_events().await?;
        return lines(events, |event| serde_json::to_string(&event));
    }
    let request = ListNodesRequest {
        page_size: number(&params, "page_size")?,
        page_token: text(&params, "page_token"),
        role: text(&params, "role"),
        labels: labels(&params)?,
    };
    answer(api.nodes(request).await)
}

pub(super) async fn list_plugins(api: Api, params: Params) -> Answer {
    let params = known(params, &params::PLUGINS)?;
    let request = ListPluginsRequest {
        page_size: number(&params, "page_size")?,
        page_token: text(&params, "page_token"),
        name_prefix: text(&params, "prefix"),
    };
    answer(api.plugins(request).await)
}

pub(super) async fn get_plugin(api: Api, plugin: PathPart) -> Answer {
    answer(api.plugin(&part(plugin)?).await)
}

pub(super) async fn plugin_bytes(api: Api, plugin: PathPart, params: Params) -> Answer {
    known(params, &[])?;
    let plugin = api.plugin(&part(plugin)?).await?;
    let mut pieces = api.plugin_bytes(&plugin.digest, 0).await?.peekable();
    // Bytes that are not there are told before the answer begins.
    if let Some(Err(_)) = Pin::new(&mut pieces).peek().await
        && let Some(Err(problem)) = pieces.next().await
    {
        return Err(problem);
    }
    let mut answer = file(pieces.boxed())?;
    let head = answer.headers_mut();
    head.insert(header::CONTENT_LENGTH, plugin.size.into());
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", plugin.digest)) {
        head.insert(header::ETAG, tag);
    }
    Ok(answer)
}

pub(super) async fn delete_plugin(api: Api, plugin: PathPart, request: Request) -> Answer {
    let origin = origin(&request)?;
    api.delete_plugin(&origin, &part(plugin)?).await?;
    answer(Ok(json!({})))
}

pub(super) async fn push_plugin(api: Api, params: Params, request: Request) -> Answer {
    let params = known(params, &params::PUSH)?;
    let push = PushRequest {
        push_as: params.get("as").cloned().unwrap_or_default(),
        allow_breaking: flag(&params, "allow_breaking")?,
    };
    let origin = origin(&request)?;
    let max = api.max_plugin_size();
    let upload = async {
        check_type(
            request.headers(),
            "application/wasm",
            "--data-binary @FILE.wasm",
        )?;
        let too_large = || Problem::from(ControlError::PluginTooLarge { max });
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        let bytes = bytes_of(request, limit, too_large).await?;
        Ok(Upload {
            request: push,
            bytes,
        })
    };
    answer(Box::pin(api.push_plugin(&origin, upload)).await)
}
