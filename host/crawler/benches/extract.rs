//! The cost of reading a page in the sandbox, compared with the same work done natively and by popular tools
//! elsewhere. There are 600 pages of the documentation of Rust. The headings of each become an item, as JSON,
//! and the addresses of its links are made absolute.
//!
//! ```text
//! cargo bench -p crawler --bench extract
//! cargo bench -p crawler --bench extract -- "as declared"    # those whose name has this
//! ```
//!
//! The cost in the sandbox includes the whole call: a fresh instance, the page read as declared, the item
//! and the links handed over. All readers take turns, one page after the other, so that a busy machine slows
//! all of them equally; ratios are medians over the rounds. The two from Python are processes of their own,
//! as in real use, and time themselves without their start. They are left out if pip cannot install them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawler_model::crawl::Page;
use crawler_model::plugin::Limits;
use crawler_plugin::engine::Plugin;
use crawler_plugin::{CallConfig, CallReport, Rules as _};
use serde_json::Value;

#[path = "../tests/engine/guests.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the engine, which need more"
)]
mod guests;
#[path = "extract/native.rs"]
mod native;
#[path = "extract/peers.rs"]
mod peers;
#[path = "extract/site.rs"]
mod site;

use guests::{component, config, context, page, plugin_of};

const N_PAGES: usize = 600;
const N_ROUNDS: usize = 9;
/// Reader that all others are compared with.
const SANDBOX: &str = "sandbox, as declared";

/// Headings and links of all pages: readers that do the same work find the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Found {
    n_headings: usize,
    n_links: usize,
    /// Hashes of all texts and addresses, page by page.
    hashes: Vec<u64>,
}

impl Found {
    fn add<'a>(
        &mut self,
        headings: impl Iterator<Item = &'a str>,
        links: impl Iterator<Item = &'a str>,
    ) {
        let mut hasher = DefaultHasher::new();
        for heading in headings {
            self.n_headings += 1;
            heading.hash(&mut hasher);
        }
        for link in links {
            self.n_links += 1;
            link.hash(&mut hasher);
        }
        self.hashes.push(hasher.finish());
    }

    /// Returns the first page in which another reader found something else.
    fn first_difference(&self, other: &Self) -> Option<usize> {
        let mut both = self.hashes.iter().zip(&other.hashes);
        both.position(|(one, other)| one != other)
    }
}

/// A reader of all pages, and its time in each round.
struct Reader<'a> {
    name: &'static str,
    read: Box<dyn FnMut() -> Found + 'a>,
    found: Found,
    took: Vec<Duration>,
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn main() {
    // `cargo test --all-targets` runs this program as well.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Some(files) = site::files(N_PAGES) else {
        println!("left out: the documentation is not installed (rustup component add rust-docs)");
        return;
    };
    let pages: Vec<(String, String)> = files.iter().map(|file| site::read(file)).collect();
    let n_bytes: usize = pages.iter().map(|(_, html)| html.len()).sum();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime starts");
    let plugin = runtime.block_on(plugin_of(component("outline", "tests/guests/outline")));
    let fetched: Vec<Arc<Page>> = pages
        .iter()
        .map(|(url, html)| page(url, html.clone()))
        .collect();
    // The limits are wide enough for the longest of the pages, which has 16 000 links.
    let wide = |limits: &mut Limits| {
        (limits.captures, limits.requests) = (1_000_000, 1_000_000);
        (limits.fuel, limits.memory) = (100_000_000_000, 1 << 30);
        limits.item_bytes = 64 << 20;
    };
    let settings = config(wide, &[]);
    let sandbox = |rule| {
        let (runtime, plugin, settings, fetched) = (&runtime, &plugin, &settings, &fetched);
        let found = runtime.block_on(checked(plugin, settings, rule, fetched));
        move || {
            runtime.block_on(sandboxed(plugin, settings, rule, fetched));
            found.clone()
        }
    };
    let mut readers = vec![
        reader(SANDBOX, sandbox("declared")),
        reader("native scraper", native::reader(&pages, native::scraper)),
        reader(
            "native lol_html by hand",
            native::reader(&pages, native::lol_html),
        ),
        reader("sandbox, scraper in it", sandbox("tree")),
    ];
    // Running one reader only serves a profile of it.
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if let Some(only) = only {
        readers.retain(|reader| reader.name.contains(&only));
        assert!(!readers.is_empty(), "nobody is called {only}");
    }
    for _ in 0..=N_ROUNDS {
        for reader in &mut readers {
            let began = Instant::now();
            reader.found = (reader.read)();
            reader.took.push(began.elapsed());
        }
    }
    let first = &readers[0];
    println!(
        "{} pages, {:.1} MB, {} headings, {} links; {N_ROUNDS} rounds; micros for a page, medians",
        pages.len(),
        n_bytes as f64 / 1e6,
        first.found.n_headings,
        first.found.n_links
    );
    for reader in &readers {
        println!(
            "  {:<26} {:>7.1}   {:>5.2} times the first",
            reader.name,
            micros(median(&reader.took[1..])) / pages.len() as f64,
            ratio(&reader.took, &first.took)
        );
        if let Some(at) = reader.found.first_difference(&first.found) {
            panic!("{} finds something else in {}", reader.name, pages[at].0);
        }
    }
    if first.name != SANDBOX {
        return;
    }
    let sandbox_micros = micros(median(&first.took[1..])) / pages.len() as f64;
    for peer in peers::all(&files, N_ROUNDS) {
        println!(
            "  {:<26} {:>7.1}   {:>5.2} times the sandbox, {} headings, {} links",
            peer.name,
            peer.micros,
            peer.micros / sandbox_micros,
            peer.n_headings,
            peer.n_links
        );
    }
    println!(
        "  goals: native scraper at least 2.5 times the sandbox, lol_html at least 1/1.3 (0.77)"
    );
}

fn reader<'a>(name: &'static str, read: impl FnMut() -> Found + 'a) -> Reader<'a> {
    Reader {
        name,
        read: Box::new(read),
        found: Found::default(),
        took: Vec::new(),
    }
}

async fn call(plugin: &Plugin, settings: &CallConfig, rule: &str, page: &Arc<Page>) -> CallReport {
    plugin
        .parse(settings.clone(), rule, page.clone(), context())
        .await
}

async fn sandboxed(plugin: &Plugin, settings: &CallConfig, rule: &str, pages: &[Arc<Page>]) {
    for page in pages {
        let report = call(plugin, settings, rule, page).await;
        assert!(report.result.is_ok(), "{:?}", report.result);
        black_box(report);
    }
}

/// Returns what a rule finds, and checks that the same page costs the same fuel each time.
async fn checked(plugin: &Plugin, settings: &CallConfig, rule: &str, pages: &[Arc<Page>]) -> Found {
    let mut found = Found::default();
    for page in pages {
        let [one, other] = [
            call(plugin, settings, rule, page).await,
            call(plugin, settings, rule, page).await,
        ];
        assert_eq!(one.usage.fuel, other.usage.fuel, "{}", page.url);
        let output = one.result.unwrap_or_else(|e| panic!("{}: {e:?}", page.url));
        let item: Value = serde_json::from_str(&output.items[0].json).expect("it is JSON");
        let headings = item["headings"].as_array().into_iter().flatten();
        let links = output.requests.iter().map(|request| request.url.as_str());
        found.add(headings.filter_map(Value::as_str), links);
    }
    found
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns the median ratio of the rounds after the first, which warms up.
fn ratio(times: &[Duration], beside: &[Duration]) -> f64 {
    let mut ratios: Vec<f64> = times
        .iter()
        .zip(beside)
        .skip(1)
        .map(|(one, other)| one.as_secs_f64() / other.as_secs_f64())
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
