//! Cases that are more than one call or one push. Each returns how it ended.

use std::sync::Arc;

use crawler_plugin::{CallFailure, CallReport, Rules as _};

use crate::bytes;
use crate::case::{Guest, Own};
use crate::guests::{config, context, page};
use crate::stage::{Stage, URL, resident_kib};

/// Growth of memory over 10 000 pages that would be a leak: less than a KiB for each.
const LEAK_KIB: i64 = 8 << 10;

pub(crate) async fn run(stage: &Stage, case: Own) -> Result<String, String> {
    match case {
        Own::Leak => leak(stage).await,
        Own::Crowd => crowd(stage).await,
        Own::Marks => marks(stage).await,
        Own::Cut => cut(stage).await,
        Own::Twins => twins(stage).await,
        Own::Params => params(stage).await,
        Own::Replay => replay(stage).await,
        Own::Root => root(stage).await,
    }
}

fn items(report: CallReport) -> Result<Vec<String>, String> {
    match report.result {
        Ok(output) => Ok(output.items.into_iter().map(|item| item.json).collect()),
        Err(failure) => Err(format!("it failed: {failure:?}")),
    }
}

async fn leak(stage: &Stage) -> Result<String, String> {
    let leak = async || {
        stage
            .call(Guest::Sharp, "leak", "", |_| ())
            .await
            .and_then(items)
    };
    for _ in 0..100 {
        leak().await?;
    }
    let before = resident_kib();
    for _ in 0..10_000 {
        leak().await?;
    }
    let growth = resident_kib() - before;
    if growth < LEAK_KIB {
        return Ok(format!("flat: {growth:+} KiB"));
    }
    Err(format!("memory grew by {growth} KiB"))
}

async fn crowd(stage: &Stage) -> Result<String, String> {
    let calls = (0..1_000).map(|_| stage.call(Guest::Sharp, "ok", "", |_| ()));
    for report in futures::future::join_all(calls).await {
        items(report?)?;
    }
    Ok("1000 in turn".to_owned())
}

async fn marks(stage: &Stage) -> Result<String, String> {
    for _ in 0..3 {
        let marked = stage.call(Guest::Sharp, "mark", "", |_| ()).await?;
        if !matches!(marked.result, Err(CallFailure::Killed(_))) {
            return Err("the rule that marks did not trap".to_owned());
        }
        items(stage.call(Guest::Sharp, "look", "", |_| ()).await?)?;
    }
    Ok("nothing found".to_owned())
}

async fn cut(stage: &Stage) -> Result<String, String> {
    let cut = bytes::cut_everywhere();
    let n = cut.len();
    for bytes in cut {
        let n_bytes = bytes.len();
        let refusal = stage.push(bytes, false).await?;
        if refusal.is_empty() {
            return Err(format!("admitted with {n_bytes} bytes"));
        }
    }
    Ok(format!("{n} refused"))
}

async fn twins(stage: &Stage) -> Result<String, String> {
    let (plain, noted) = bytes::same_but_for_a_note();
    let (one, other) = (stage.load(plain).await, stage.load(noted).await);
    if Arc::ptr_eq(&one, &other) {
        return Err("they are one plugin".to_owned());
    }
    for plugin in [one, other] {
        let report = plugin.parse(config(|_| (), &[]), "ok", page(URL, ""), context());
        items(report.await)?;
    }
    Ok("two plugins".to_owned())
}

async fn params(stage: &Stage) -> Result<String, String> {
    let plugin = stage.plugin(Guest::Hostile).await;
    let shown = async |params: &[(&str, &str)]| {
        let page = page(URL, "");
        let report = plugin.parse(config(|_| (), params), "show-page", page, context());
        items(report.await).map(|items| items.concat())
    };
    let (mine, none) = (shown(&[("greeting", "mine")]).await?, shown(&[]).await?);
    if mine.contains("\"greeting\":\"mine\"") && none.contains("\"greeting\":\"\"") {
        return Ok("each its own".to_owned());
    }
    Err(format!("{mine} and {none}"))
}

async fn replay(stage: &Stage) -> Result<String, String> {
    let one = stage.call(Guest::Hostile, "probe", "", |_| ()).await?;
    let other = stage.call(Guest::Hostile, "probe", "", |_| ()).await?;
    let fuel = (one.usage.fuel, other.usage.fuel);
    let (one, other) = (items(one)?, items(other)?);
    if fuel.0 == fuel.1 && one == other {
        return Ok("the same".to_owned());
    }
    Err(format!("{one:?} for {}, {other:?} for {}", fuel.0, fuel.1))
}

async fn root(stage: &Stage) -> Result<String, String> {
    let plugin = stage.plugin(Guest::Hostile).await;
    // The last one asks for a rule that is not there, and panics.
    for (root, rules) in [
        ("loop", ""),
        ("page", ""),
        ("http://a.test/", "no-such-rule"),
    ] {
        let mut params = vec![("root", root)];
        if !rules.is_empty() {
            params.push(("rules", rules));
        }
        let config = config(|limits| limits.fuel = 10_000_000, &params);
        let report = plugin.root(config, 1).await;
        if !matches!(report.result, Err(CallFailure::Killed(_))) {
            return Err(format!("root {root} was not ended: {:?}", report.result));
        }
        stage.good_page().await?;
    }
    Ok("ended, nothing kept".to_owned())
}
