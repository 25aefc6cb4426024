//! The page of a master: what a browser shows at `/`.
//!
//! Its files are part of the program, and are served as they stand in the folder `page`: no step of a build makes them. One
//! more is made of the tables of settings. They have no data, so everybody may load them. The page asks for data by the calls
//! of the API, as its reader. It loads nothing from elsewhere, and [`POLICY`] has the browser see to it.

use std::borrow::Cow;
use std::sync::LazyLock;

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use ring::digest::{SHA256, digest};

mod settings;

/// Bounds that a browser keeps for the page. Scripts and styles come from files of this master alone. No script makes
/// markup out of text: with `require-trusted-types-for`, a browser refuses even what would be a fault of the page.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// One file of the page.
struct Asset {
    /// Path at which it is served.
    path: &'static str,
    /// Content type.
    kind: &'static str,
    text: Cow<'static, str>,
}

/// Names a file of the folder `page`, which is served below `/page/`.
macro_rules! asset {
    ($kind:ident, $name:literal) => {
        Asset {
            path: concat!("/page/", $name),
            kind: $kind,
            text: Cow::Borrowed(include_str!(concat!("page/", $name))),
        }
    };
}

/// Files of the folder.
static ASSETS: [Asset; 53] = [
    Asset {
        path: "/",
        kind: HTML,
        text: Cow::Borrowed(include_str!("page/index.html")),
    },
    asset!(CSS, "style.css"),
    asset!(SVG, "icon.svg"),
    asset!(SCRIPT, "actions.js"),
    asset!(SCRIPT, "api.js"),
    asset!(SCRIPT, "counts.js"),
    asset!(SCRIPT, "dialog.js"),
    asset!(SCRIPT, "events.js"),
    asset!(SCRIPT, "format.js"),
    asset!(SCRIPT, "html.js"),
    asset!(SCRIPT, "latest.mjs"),
    asset!(SCRIPT, "main.js"),
    asset!(SCRIPT, "parts.js"),
    asset!(SCRIPT, "poll.js"),
    asset!(SCRIPT, "rates.mjs"),
    asset!(SCRIPT, "raw.mjs"),
    asset!(SCRIPT, "route.js"),
    asset!(SCRIPT, "settings.mjs"),
    asset!(SCRIPT, "shell.mjs"),
    asset!(SCRIPT, "times.mjs"),
    asset!(SCRIPT, "views/add.js"),
    asset!(SCRIPT, "views/changes.js"),
    asset!(SCRIPT, "views/chart.js"),
    asset!(SCRIPT, "views/compared.js"),
    asset!(SCRIPT, "views/dead.js"),
    asset!(SCRIPT, "views/errors.js"),
    asset!(SCRIPT, "views/fields.js"),
    asset!(SCRIPT, "views/frontier.js"),
    asset!(SCRIPT, "views/held.js"),
    asset!(SCRIPT, "views/history.js"),
    asset!(SCRIPT, "views/hosts.js"),
    asset!(SCRIPT, "views/items.js"),
    asset!(SCRIPT, "views/limits.js"),
    asset!(SCRIPT, "views/lists.js"),
    asset!(SCRIPT, "views/login.js"),
    asset!(SCRIPT, "views/logs.js"),
    asset!(SCRIPT, "views/nodes.js"),
    asset!(SCRIPT, "views/overview.js"),
    asset!(SCRIPT, "views/plugins.js"),
    asset!(SCRIPT, "views/resource.js"),
    asset!(SCRIPT, "views/resources.js"),
    asset!(SCRIPT, "views/runs.js"),
    asset!(SCRIPT, "views/schedule.js"),
    asset!(SCRIPT, "views/schedules.js"),
    asset!(SCRIPT, "views/settings.js"),
    asset!(CSS, "vendor/uplot.css"),
    asset!(SCRIPT, "vendor/hooks.mjs"),
    asset!(SCRIPT, "vendor/htm.mjs"),
    asset!(SCRIPT, "vendor/preact.mjs"),
    asset!(SCRIPT, "vendor/uplot.mjs"),
    asset!(TEXT, "vendor/htm.LICENSE"),
    asset!(TEXT, "vendor/preact.LICENSE"),
    asset!(TEXT, "vendor/uplot.LICENSE"),
];

/// Table of what can be set of a resource, for the form that changes it.
static SETTINGS: LazyLock<Asset> = LazyLock::new(|| Asset {
    path: "/page/settings.json",
    kind: JSON,
    text: Cow::Owned(settings::table()),
});

/// Returns all files of the page.
fn assets() -> impl Iterator<Item = &'static Asset> {
    ASSETS.iter().chain([&*SETTINGS])
}

/// Adds the page to the routes of a master.
pub(super) fn add_to<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    assets().fold(router, |router, asset| {
        let tag = tag(&asset.text);
        let serve = move |headers: HeaderMap| async move { answer(asset, &tag, &headers) };
        router.route(asset.path, get(serve))
    })
}

/// Returns the tag of a text, which another text does not have.
fn tag(text: &str) -> HeaderValue {
    let digest = hex::encode(digest(&SHA256, text.as_bytes()));
    HeaderValue::try_from(format!("\"{digest}\"")).expect("hexadecimal digits are visible ASCII")
}

/// Header by which a page that another website opens in a window of its own keeps that website from steering it.
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Answers with a file, or without it if the browser has it already. A browser asks each time, so that it never mixes files of
/// one master before and after an upgrade. Masters of two versions behind one address may mix theirs until all have been
/// upgraded, because the paths name no version: one master could not serve the files of another.
fn answer(asset: &'static Asset, tag: &HeaderValue, headers: &HeaderMap) -> Response {
    let has_it = headers.get_all(IF_NONE_MATCH).iter().any(|known| {
        let known = known.to_str().unwrap_or_default().split(',');
        let mut known = known.map(|one| one.trim().trim_start_matches("W/"));
        known.any(|one| one == "*" || one.as_bytes() == tag.as_bytes())
    });
    let fixed = HeaderValue::from_static;
    let head = [
        (ETAG, tag.clone()),
        (CACHE_CONTROL, fixed("no-cache")),
        (CONTENT_SECURITY_POLICY, fixed(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        (REFERRER_POLICY, fixed("no-referrer")),
        (OPENER_POLICY, fixed("same-origin")),
    ];
    match has_it {
        true => (StatusCode::NOT_MODIFIED, head).into_response(),
        false => (head, [(CONTENT_TYPE, fixed(asset.kind))], &*asset.text).into_response(),
    }
}

#[cfg(test)]
mod tests;
