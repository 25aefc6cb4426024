//! Stages after the call of a rule: seen, commit and sink.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_frontier::known_links::KnownLinks;
use crawler_frontier::{Frontier as _, NewRequest};
use crawler_model::crawl::{ItemKey, ItemRecord, Request};
use crawler_model::id::Run;
use crawler_model::scope::{Bounds, RootHosts};
use crawler_model::settings::CrawlSettings;
use crawler_sink::Sink as _;
use crawler_sink::lines::{LineFiles, LineSettings};
use object_store::memory::InMemory;
use serde_json::value::RawValue;
use tokio::runtime::Builder;

use crate::Repeated;
use crate::sample::{runtime, sample};
use crate::work;

/// Number of URLs that are known before the first page.
const N_KNOWN: u64 = 2_000;
/// Number of links of a committed page.
const N_LINKS: u64 = 36;
/// Number of those links that are new.
const N_NEW: u64 = 3;
/// Number of pages after which their items are taken out of the outbox.
const DRAIN: u64 = 256;
/// Number of items that are delivered at once.
const BATCH: u32 = 20;
/// Bytes of the cache of links.
const CACHE: usize = 64 << 20;

/// Judges the links of the page: their addresses, their scope, whether they are known, and the fingerprints of those
/// that are new.
pub(crate) fn seen(_folder: &Path) -> Repeated {
    let page = sample();
    let rule: Arc<str> = "page".into();
    let links = page.links();
    let root_hosts = RootHosts::of(&links);
    let settings = CrawlSettings::default();
    let others = (0..N_KNOWN).map(|n| work::request(0, n).request);
    let own = links[N_NEW as usize..].iter();
    let own = own.map(|link| Request::get(link.clone(), rule.clone()));
    let known: Vec<Request> = own.chain(others).collect();
    let known = KnownLinks::new(CACHE, &known);
    Box::new(move || {
        let bounds = Bounds {
            root_hosts: &root_hosts,
            settings: &settings,
        };
        let links = page.hrefs.iter().map(|href| page.url.join(href));
        let requests = links
            .map(|link| Request::get(link.expect("it is an address"), rule.clone()))
            .filter(|request| bounds.refusal(request, 1).is_none());
        let requests: Vec<Request> = requests.collect();
        black_box(known.n_unknown(&requests));
        for request in requests.iter().take(N_NEW as usize) {
            black_box(request.fingerprint());
        }
    })
}

/// Ends a page in a frontier on disk, whose disk is memory: with an item, and with links of which few are new. The
/// clock is paused, so that the database works in the background after the same number of pages every time.
pub(crate) fn commit(_folder: &Path) -> Repeated {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime starts");
    let frontier = runtime.block_on(async {
        let objects = Arc::new(InMemory::new());
        let frontiers = Arc::new(Frontiers::new(objects, DurableSettings::default()));
        let frontier = work::open(&frontiers).await;
        let roots = (0..N_KNOWN).map(|n| work::request(0, n)).collect();
        frontier.seed(roots).await.expect("it is open");
        frontier.settle().await.expect("it is open");
        frontier
    });
    let known = (0..N_LINKS - N_NEW).map(|n| work::request(0, n));
    let known: Vec<NewRequest> = known.collect();
    let (mut n_pages, mut n_known) = (0_u64, N_KNOWN);
    Box::new(move || {
        let new = (n_known..n_known + N_NEW).map(|n| work::request(0, n));
        let links = known.iter().cloned().chain(new).collect();
        n_known += N_NEW;
        n_pages += 1;
        runtime.block_on(async {
            let claim = work::take(&frontier, 1).await;
            let committed = frontier.commit(work::commit(claim, links)).await;
            committed.expect("it is open");
            if n_pages.is_multiple_of(DRAIN) {
                work::drain(&frontier).await;
            }
        });
    })
}

/// Writes a batch of items to a line file, and syncs it.
pub(crate) fn sink(folder: &Path) -> Repeated {
    let folder = tempfile::tempdir_in(folder).expect("a folder can be made");
    let mut sink = LineFiles::open(folder.path().join("0"), 1, LineSettings::default());
    let items: Vec<ItemRecord> = (0..BATCH).map(item).collect();
    let runtime = runtime();
    Box::new(move || {
        let written = runtime.block_on(sink.write(0, &items));
        black_box(written.expect("it can be written"));
        // It is removed with the last repetition.
        let _folder = &folder;
    })
}

fn item(n: u32) -> ItemRecord {
    let request = work::request(0, n.into()).request;
    let headings = "\"A heading of a page\",".repeat(6);
    let item = format!(
        r#"{{"url":"{}","title":"Page {n}","headings":[{headings}"The last"],"n_links":36}}"#,
        request.url
    );
    ItemRecord {
        key: ItemKey::of(
            work::SHARD.resource,
            Run(1),
            request.fingerprint(),
            1,
            "page",
            0,
        ),
        url: request.url.to_string(),
        rule: "page".to_owned(),
        schema: "outline".to_owned(),
        run: Run(1),
        fetched_at: 1_700_000_000_000,
        item: RawValue::from_string(item).expect("it is JSON"),
        change: None,
    }
}
