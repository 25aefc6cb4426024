//! `crawler demo`: all steps of a crawl, from the source of a rule to items that are compared with the truth,
//! in a temporary folder and on free ports.

#![expect(clippy::print_stdout, reason = "a command that shows its work")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use crawler_proto as proto;
use futures::TryStreamExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::listeners;
use super::parts;
use super::stats_file;
use super::stop::unless_stopped;
use super::up;
use crate::cli::block::Block;
use crate::cli::pace::RecentPages;
use crate::cli::plugin::build_plugin;
use crate::cli::{DemoOptions, UpOptions, progress};
use crate::demo::report::{DemoReport, compare};
use crate::demo::{self, START, Shop};
use crawler_api::client::Client;
use crawler_api::spec::SpecRequest;
use crawler_api::totals;
use crawler_model::id::ResourceName;
use crawler_process::task::TaskScope;

/// Interval at which the crawl's progress is asked for.
const PROGRESS: Duration = Duration::from_millis(100);
/// Deadline of the crawl, which takes a second or two.
const DEADLINE: Duration = Duration::from_secs(60);
/// Time that open connections to the shop may take to close.
const SHOP_GRACE: Duration = Duration::from_secs(2);
/// Number of items that are shown.
const N_SHOWN: usize = 3;
/// Number of characters of each item that are shown.
const LINE_CHARS: usize = 110;

/// Runs the shop alone, or the whole demo.
pub(super) async fn run(options: DemoOptions, stop: CancellationToken) -> anyhow::Result<()> {
    let port = if options.site_only { options.port } else { 0 };
    let listener =
        listeners::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), "--port").await?;
    let base: Url = format!("http://{}/", listener.local_addr()?).parse()?;
    let shop = Arc::new(Shop::new());
    let scope = TaskScope::new();
    let serving = demo::serve(listener, shop.clone(), scope.stop_signal());
    scope.spawn("shop", async move {
        if let Err(error) = serving.await {
            tracing::error!(%error, "the shop closed");
        }
    });
    let result = if options.site_only {
        println!("the book shop is open at {base} until you press Ctrl-C");
        println!("a crawl starts at {base}{START}");
        stop.cancelled().await;
        Ok(())
    } else {
        in_folder(&options, &shop, &base, &stop).await
    };
    scope.stop(SHOP_GRACE).await;
    result
}

async fn in_folder(
    options: &DemoOptions,
    shop: &Shop,
    base: &Url,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("crawler-demo-").tempdir();
    let folder = folder.context("cannot make a temporary folder")?;
    let path = folder.path().to_owned();
    println!("building the rules, plugins/books; the first time takes about a minute");
    let wasm = unless_stopped(stop, build_plugin(&source()?)).await?;
    let up_options = UpOptions {
        allow_networks: vec!["127.0.0.0/8".parse()?],
        ..UpOptions::in_folder(&path)
    };
    let (up, _) = up::start(&up_options).await?;
    let stats = options.stats.as_deref();
    let crawl = crawl(up.grpc, shop, base, &wasm, &path, stats);
    let result = unless_stopped(stop, Box::pin(crawl)).await;
    // A part that still writes would keep the folder from being removed.
    up.stop().await;
    if options.keep {
        let path = folder.keep();
        println!("\nThe folder {} is kept; look around with:", path.display());
        println!("  {} up --data {}", program(), path.join("data").display());
    } else {
        println!("\nThe folder is removed now; --keep leaves it.");
    }
    result
}

/// Returns the source of the `books` plugin, in the repository that this program was built from.
fn source() -> anyhow::Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/books");
    ensure!(
        path.is_dir(),
        "the demo builds plugins/books of the repository, which is not at {}; run it there with `cargo run --release -- demo`",
        path.display()
    );
    Ok(path.canonicalize()?)
}

async fn crawl(
    grpc: SocketAddr,
    shop: &Shop,
    base: &Url,
    wasm: &Path,
    folder: &Path,
    stats: Option<&Path>,
) -> anyhow::Result<()> {
    let client = Client::connect(&format!("http://{grpc}")).await?;
    let bytes = parts::read(wasm).await?;
    let plugin_bytes = bytes.len();
    let plugin = client.push_plugin(None, false, bytes).await?;
    let name: ResourceName = "books".parse()?;
    let placed = client
        .add_resource(SpecRequest {
            params: [("start".to_owned(), base.join(START)?.to_string())].into(),
            ..SpecRequest::named(name.clone())
        })
        .await?;
    let end = follow(&client, &name, shop.n_pages() as u64).await?;
    ensure!(
        end.phase == "Finished",
        "the crawl is {}: {}",
        end.phase,
        end.reason
    );
    let all = proto::ReadItemsRequest {
        name: name.to_string(),
        ..Default::default()
    };
    let lines: Vec<String> = client
        .items(all)
        .await?
        .map_ok(|item| item.json)
        .try_collect()
        .await?;
    let items = lines.iter().map(|line| serde_json::from_str(line));
    let items: Vec<Value> = items.collect::<Result<_, _>>()?;
    let truth = shop.truth(base);
    let differences = compare(&items, &truth);

    println!("\nItems, as JSON lines:");
    for line in lines.iter().take(N_SHOWN) {
        println!("  {}", shortened(line));
    }
    println!("  … and {} more\n", items.len().saturating_sub(N_SHOWN));
    let report = DemoReport {
        shop: base.clone(),
        n_books: shop.n_books(),
        plugin: format!("{}@{}", plugin.name, plugin.version).parse()?,
        plugin_bytes,
        resource: name.clone(),
        worker: placed.id.parse()?,
        n_pages: totals(end.counts()).pages(),
        n_items: items.len(),
        data: folder.join("data/items"),
    };
    for (n, line) in report.lines(&differences).iter().enumerate() {
        println!("{}. {line}", n + 1);
    }
    let shown = show_statistics(&client, &name, stats).await;
    if !differences.is_empty() {
        // Wrong items say more than a file that cannot be written.
        if let Err(error) = shown {
            tracing::warn!("{error:#}");
        }
        bail!(
            "the items are not what the shop sells:\n  {}",
            differences.lines().join("\n  ")
        );
    }
    shown?;
    let crawler = program();
    println!("\nThe same by hand, in three terminals:");
    println!("  {crawler} demo --site-only --port 8000");
    println!("  {crawler} up --allow-networks 127.0.0.0/8");
    println!("  {crawler} plugin push plugins/books");
    println!("  {crawler} resource add books --param start=http://127.0.0.1:8000/{START}");
    println!("  {crawler} resource wait books && {crawler} items books");
    println!("http://127.0.0.1:8081/ shows them in a browser meanwhile.");
    Ok(())
}

/// Prints the statistics of the crawl as a block, and writes them into a file if one is named. Only then is it an error
/// that they cannot be read.
async fn show_statistics(
    client: &Client,
    name: &ResourceName,
    file: Option<&Path>,
) -> anyhow::Result<()> {
    let found = match (client.statistics(name).await, file) {
        (Ok(found), _) => crawler_api::statistics(found),
        (Err(error), Some(_)) => return Err(error).context("cannot read the statistics"),
        (Err(error), None) => {
            println!("\nstatistics cannot be read: {error}");
            return Ok(());
        }
    };
    println!();
    for line in Block::of(&found).lines() {
        println!("{line}");
    }
    match file {
        Some(file) => stats_file::write(file, found).await,
        None => Ok(()),
    }
}

/// Cuts a line to a length that fits most terminals.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Returns the command that runs this program from the current folder.
fn program() -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| "crawler".into());
    let here = std::env::current_dir().ok();
    let below = here
        .as_ref()
        .and_then(|here| program.strip_prefix(here).ok());
    below.unwrap_or(&program).display().to_string()
}

/// Shows progress until the crawl is over.
async fn follow(
    client: &Client,
    name: &ResourceName,
    n_pages: u64,
) -> anyhow::Result<proto::Resource> {
    let bar = progress::bar(n_pages);
    let mut recent = RecentPages::default();
    let started = Instant::now();
    loop {
        let resource = client.resource(name).await?;
        let counts = totals(resource.counts());
        let rate = recent.rate(Instant::now(), counts.pages());
        progress::move_bar(&bar, n_pages, &counts, rate);
        if resource.phase == "Finished" || resource.phase == "Failed" {
            bar.finish();
            return Ok(resource);
        }
        ensure!(
            started.elapsed() < DEADLINE,
            "the crawl is not over after {DEADLINE:?}: {}",
            resource.reason
        );
        tokio::time::sleep(PROGRESS).await;
    }
}
