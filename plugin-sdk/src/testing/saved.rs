//! Saved calls of a folder, made again natively.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use url::Url;

use super::octets::Octets;
use super::{Answer, BINARY, Outcome, Trial, statuses};
use crate::{Page, Plugin, Request, Result, RuleError, kept};

/// End of the names of files that hold a call.
const ENDING: &str = ".call.json";
/// Largest number of differences that are shown for one call.
const MAX_SHOWN: usize = 10;
/// Length of a reason that the crawler keeps, in bytes.
const REASON_MAX: usize = 4 << 10;

/// A call, as `crawler plugin fetch` saves it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedCall {
    rule: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, String>,
    /// Limits of the call in the sandbox, in base units.
    #[serde(default, rename = "limits")]
    _limits: BTreeMap<String, u64>,
    page: Option<SavedPage>,
    outcome: Option<KeptOutcome>,
    /// Time that a call of `root` sees in the sandbox.
    #[serde(default, rename = "now")]
    _now: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SavedPage {
    url: Url,
    body: String,
    requested_url: Option<Url>,
    #[serde(default)]
    redirects: Vec<Url>,
    status: Option<u16>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    fetched_at: u64,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    depth: u32,
    attempt: Option<u32>,
    state: Option<Octets>,
    referrer: Option<String>,
    /// Charset that the crawler decodes the text from.
    charset: Option<String>,
    /// Digest of the body, if that is kept as a file.
    kept: Option<String>,
}

/// Outcome of a call, as `crawler plugin test --update` keeps it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct KeptOutcome {
    #[serde(deserialize_with = "error_of")]
    error: Option<String>,
    items: Vec<Value>,
    requests: Vec<KeptRequest>,
    bad_urls: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct KeptRequest {
    rule: String,
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<Octets>,
    #[serde(default)]
    priority: i32,
    state: Option<Octets>,
    #[serde(default)]
    reload: bool,
    #[serde(default)]
    accept_status: String,
    #[serde(default)]
    keep_body: bool,
}

/// Makes every saved call of a folder again, and compares its outcome with the one that was kept.
///
/// `crawler plugin fetch URL --rule RULE` saves a page, `crawler plugin test` makes the calls in the sandbox, and
/// with `--update` keeps their outcomes. This function does the same natively, in `cargo test`:
///
/// ```no_run
/// # use crawler_plugin_sdk::prelude::*;
/// # pub struct Shop;
/// # #[plugin(name = "shop")]
/// # impl Shop {
/// #     fn root(_: &mut Crawl) -> Result { Ok(()) }
/// #     #[rule]
/// #     fn list(_: &Page, _: &mut Crawl) -> Result { Ok(()) }
/// # }
/// use crawler_plugin_sdk::testing::check_saved;
///
/// check_saved::<Shop>("pages");
/// ```
///
/// It differs in these points. A page that the crawler has to decode (it is not UTF-8, or says that it is not, or
/// begins with a byte order mark) is tried in the sandbox only, and named on stderr, which `cargo test --
/// --nocapture` shows. `root` sees the clock of this machine. [`Page::metadata`] tells of a kept body only. Limits do
/// not count, and requests that the crawler refuses for other reasons than their addresses (too long, a header that a
/// rule may not send) are not refused here.
///
/// # Panics
///
/// Panics if the outcome of a call differs from the kept one, if none was kept, or if no call could be tried.
pub fn check_saved<P: Plugin>(folder: impl AsRef<Path>) {
    let folder = folder.as_ref();
    let entries = fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|e| panic!("cannot read {}: {e}", folder.display()));
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names: Vec<_> = names
        .collect::<Result<_, _>>()
        .unwrap_or_else(|e| panic!("cannot read {}: {e}", folder.display()));
    names.retain(|name| name.to_string_lossy().ends_with(ENDING));
    names.sort();
    assert!(
        !names.is_empty(),
        "{} has no saved calls; `crawler plugin fetch URL --rule RULE` saves one",
        folder.display()
    );
    let (mut n_tried, mut failures) = (0, Vec::new());
    for name in names {
        let path = folder.join(&name);
        match check::<P>(&path) {
            Ok(Checked::Same) => n_tried += 1,
            Ok(Checked::LeftOut) => {}
            Err(why) => failures.push(format!("{}:\n{why}", path.display())),
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(
        n_tried > 0,
        "no call of {} can be tried natively; `crawler plugin test` tries them",
        folder.display()
    );
}

/// Result of a call that did not fail.
enum Checked {
    Same,
    LeftOut,
}

#[expect(clippy::print_stderr, reason = "a test says what it leaves out")]
fn check<P: Plugin>(path: &Path) -> Result<Checked, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("it cannot be read: {e}"))?;
    let call: SavedCall =
        serde_json::from_str(&text).map_err(|e| format!("it is no saved call: {e}"))?;
    let kept = call
        .outcome
        .ok_or("nothing was kept; `crawler plugin test --update` does")?;
    let mut trial = Trial::of::<P>();
    trial.params.extend(call.params);
    let found = match (call.rule, call.page) {
        (None, None) => caught(|| trial.root(P::call_root))?,
        (Some(rule), Some(page)) => {
            let mut rules = P::DESCRIPTION.rules.iter();
            let number = rules.position(|name| *name == rule);
            let number = number.ok_or_else(|| format!("the plugin has no rule {rule:?}"))?;
            let number = u32::try_from(number).expect("a plugin has few rules");
            let body = path.with_file_name(&page.body);
            if body.parent() != path.parent() {
                return Err(format!("body {:?} is no file beside the call's", page.body));
            }
            let body = fs::read(&body).map_err(|e| format!("cannot read {}: {e}", page.body))?;
            let is_binary = page.charset.as_deref() == Some(BINARY);
            if !is_binary && (page.charset.is_some() || str::from_utf8(&body).is_err()) {
                eprintln!(
                    "{} is decoded by the crawler, and tried by `crawler plugin test` only",
                    page.body
                );
                return Ok(Checked::LeftOut);
            }
            let url = page.url.clone();
            let page = page.with(body);
            caught(|| trial.call(Some(url), |crawl| P::call_rule(number, &page, crawl)))?
        }
        _ => return Err("a rule is called with a page, and root without one".to_owned()),
    };
    let mut differences = Vec::new();
    let [kept, found] = [kept, KeptOutcome::of(found)]
        .map(|outcome| serde_json::to_value(outcome).expect("an outcome is plain data"));
    compare("", &kept, &found, &mut differences);
    let n_more = differences.len().saturating_sub(MAX_SHOWN);
    differences.truncate(MAX_SHOWN);
    if n_more > 0 {
        differences.push(format!("  and {n_more} more"));
    }
    match differences.is_empty() {
        true => Ok(Checked::Same),
        false => Err(differences.join("\n")),
    }
}

/// Turns a panic into a difference like others, so that the remaining calls are tried too.
fn caught(call: impl FnOnce() -> Result<Outcome>) -> Result<Result<Outcome>, String> {
    let called = catch_unwind(AssertUnwindSafe(call));
    called.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("  the rule panicked: {}", text.unwrap_or("without a text"))
    })
}

/// Adds the differences between two values: a pointer into them, and both values.
fn compare(at: &str, kept: &Value, found: &Value, differences: &mut Vec<String>) {
    let mut within = |name: &dyn std::fmt::Display, kept: Option<&Value>, found: Option<&Value>| {
        let at = format!("{at}/{name}");
        match (kept, found) {
            (Some(kept), Some(found)) => compare(&at, kept, found, differences),
            (Some(kept), None) => differences.push(format!("  {at}: kept {kept}, found nothing")),
            (None, found) => {
                let found = found.unwrap_or(&Value::Null);
                differences.push(format!("  {at}: kept nothing, found {found}"));
            }
        }
    };
    match (kept, found) {
        (Value::Array(kept), Value::Array(found)) => {
            for n in 0..kept.len().max(found.len()) {
                within(&n, kept.get(n), found.get(n));
            }
        }
        (Value::Object(kept), Value::Object(found)) => {
            for name in kept.keys() {
                within(name, kept.get(name), found.get(name));
            }
            for name in found.keys().filter(|name| !kept.contains_key(*name)) {
                within(name, None, found.get(name));
            }
        }
        _ if kept == found => {}
        _ => differences.push(format!("  {at}: kept {kept}, found {found}")),
    }
}

impl SavedPage {
    fn with(self, body: Vec<u8>) -> Page {
        let headers = self.headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value));
        let page = Page::new(Answer {
            requested_url: self
                .requested_url
                .unwrap_or_else(|| self.url.clone())
                .into(),
            redirects: self.redirects.into_iter().map(String::from).collect(),
            fetched_at: self.fetched_at,
            truncated: self.truncated,
            url: self.url.into(),
            status: self.status.unwrap_or(200),
            headers: headers.collect(),
            metadata: Vec::new(),
            depth: self.depth,
            attempt: self.attempt.unwrap_or(1),
            state: self.state.map(Octets::into_bytes).unwrap_or_default(),
            referrer: self.referrer,
            body,
            is_binary: self.charset.as_deref() == Some(BINARY),
            captures_limit: None,
        });
        match self.kept {
            Some(digest) => page.with_kept(digest),
            None => page,
        }
    }
}

impl KeptOutcome {
    fn of(result: Result<Outcome>) -> Self {
        match result {
            Ok(outcome) => {
                let items = outcome.items.into_iter();
                let items = items.map(
                    |emitted| serde_json::json!({"kind": emitted.item, "item": emitted.value}),
                );
                Self {
                    error: None,
                    items: items.collect(),
                    requests: outcome.requests.into_iter().map(KeptRequest::of).collect(),
                    bad_urls: outcome.bad_urls.len(),
                }
            }
            Err(error) => Self {
                error: Some(shown(&error)),
                ..Self::default()
            },
        }
    }
}

impl KeptRequest {
    fn of(request: Request) -> Self {
        Self {
            rule: request.rule.name().to_owned(),
            accept_status: statuses::shown(&request.hints),
            keep_body: request.hints.iter().any(|(key, _)| key == kept::KEY),
            url: request.url,
            method: request.method,
            headers: request.headers,
            body: request.body.map(Octets::of),
            priority: request.priority,
            state: (!request.state.is_empty()).then(|| Octets::of(request.state)),
            reload: request.reload,
        }
    }
}

/// Reads an error; earlier versions wrote code 0 with those that have no kind of their own.
fn error_of<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<String>, D::Error> {
    let error = Option::<String>::deserialize(from)?;
    let is_old = |error: &String| usize::from(error.starts_with("error 0: "));
    Ok(error.map(|error| error.replacen("error 0: ", "error: ", is_old(&error))))
}

/// Writes an error as the crawler shows it: characters that move a cursor or reverse text are escaped, and a
/// reason is cut at 4 KiB.
fn shown(error: &RuleError) -> String {
    let text = error.to_string();
    // The reason follows the kind, which is short and plain.
    let begin = text.find(": ").map_or(0, |at| at + 2);
    let (kind, mut reason) = text.split_at(begin);
    reason = &reason[..reason.floor_char_boundary(REASON_MAX)];
    let mut shown = kind.to_owned();
    for c in reason.chars() {
        let is_mark = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        let before = shown.len();
        match c.is_control() || is_mark {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
        if shown.len() - kind.len() > REASON_MAX {
            shown.truncate(before);
            break;
        }
    }
    shown
}

fn get() -> String {
    "GET".to_owned()
}
