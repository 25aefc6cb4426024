//! Tests of the table of metrics, of the files that use it, and of the size of a scrape.

use std::collections::BTreeSet;
use std::fs;

use super::families::{ALL, Family, Kind, Teller};
use super::*;
use crawler_testing::book;
use crawler_worker::{CrawlMetrics, Load, ResourceRow, Tally};

/// Files below `host/deploy` that name metrics.
const USERS: [&str; 3] = [
    "prometheus/alerts.yml",
    "grafana/cluster.json",
    "grafana/crawl.json",
];

#[test]
fn the_book_has_every_metric() {
    let row = |family: &&Family| {
        let labels = family.labels.iter().map(|label| book::code(label));
        let cells = [
            book::code(&family.shown()),
            labels.collect::<Vec<_>>().join(", "),
            match family.teller {
                Teller::All => "both",
                Teller::Worker => "worker",
                Teller::Master => "master",
            }
            .to_owned(),
            match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            }
            .to_owned(),
            book::cell(family.help),
        ];
        format!("| {} |\n", cells.join(" | "))
    };
    let head = "| metric | labels | told by | kind | meaning |\n|---|---|---|---|---|\n";
    let table = head.to_owned() + &ALL.iter().map(row).collect::<String>();
    book::check("operate/metrics.md", "metrics", &table);
}

#[test]
fn names_keep_the_conventions_of_prometheus() {
    let mut names = BTreeSet::new();
    for family in ALL {
        let name = family.name;
        assert!(names.insert(family.shown()), "{name} stands twice");
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.chars().all(is_plain), "{name}");
        assert!(!name.ends_with("_total"), "{name}: its kind adds that");
        let is_seconds = name.ends_with("_seconds");
        assert!(is_seconds || family.kind != Kind::Histogram, "{name}");
        assert!(!family.labels.contains(&"host"), "{name} is not bounded");
        assert!(!family.help.ends_with('.'), "{name}");
    }
}

/// Returns the words of a text that look like the names of metrics.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_metric = |word: &&str| word.starts_with("crawler_") || word.starts_with("process_");
    words.filter(is_metric).collect()
}

#[test]
fn every_metric_of_alerts_and_dashboards_exists() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    let parts = |family: &&Family| match family.kind {
        Kind::Counter | Kind::Gauge => vec![family.shown()],
        Kind::Histogram => {
            let parts = ["bucket", "sum", "count"];
            parts.map(|part| format!("{}_{part}", family.name)).into()
        }
    };
    let known: BTreeSet<String> = ALL.iter().flat_map(parts).collect();
    for user in USERS {
        let text = fs::read_to_string(deploy.join(user)).unwrap();
        let named = named(&text);
        assert!(named.len() > 5, "{user} names {named:?}");
        let unknown: Vec<_> = named.iter().filter(|n| !known.contains(**n)).collect();
        assert!(unknown.is_empty(), "{user} names {unknown:?}");
    }
    assert_eq!(named("rate(crawler_x[1m]) / y"), ["crawler_x"].into());
}

/// Text with the rows of resources.
#[derive(Debug)]
struct Rows(CrawlMetrics);

impl Collector for Rows {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        worker::write_crawls(&self.0, &mut Writer::new(encoder))
    }
}

fn row(n: usize) -> ResourceRow {
    let words = |words: &[&str]| {
        let words = words.iter().map(|word| ((*word).to_owned(), 1_234_567));
        words.collect()
    };
    let tally = Tally {
        pages: words(&["parsed", "dead", "not-modified"]),
        statuses: words(&["200", "301", "404"]),
        refused: words(&["out-of-scope", "max-depth"]),
        dead: words(&["timeout", "status-404"]),
        retries: 12_345,
        items: 1_234_567,
        bytes: 123_456_789_012,
        kept_bytes: 0,
    };
    let mut load = Load::default();
    (load.crawls, load.due) = (1, 1_234_567);
    ResourceRow {
        name: Some(
            format!("team-{}/books-of-shop-{n}", n % 10)
                .parse()
                .unwrap(),
        ),
        tally,
        load,
    }
}

#[test]
fn a_scrape_of_as_many_rows_as_usual_has_two_megabytes_at_most() {
    let metrics = CrawlMetrics {
        resources: (0..=crawler_worker::DEFAULT_RESOURCES).map(row).collect(),
        ..CrawlMetrics::default()
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Rows(metrics)));
    let text = OpenMetrics { registry }.scrape().unwrap();
    assert!(text.len() <= 2_000_000, "{} bytes", text.len());
    let rows = text
        .lines()
        .filter(|line| line.starts_with("crawler_items_total{"));
    assert_eq!(rows.count(), crawler_worker::DEFAULT_RESOURCES + 1);
}

#[test]
fn a_worker_takes_the_token_of_its_metrics_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let options = MetricsOptions {
        token_file: Some(file.clone()),
        ..MetricsOptions::default()
    };
    let missing = access_of_worker(&options, true).unwrap_err().to_string();
    assert!(missing.contains("cannot read the token"), "{missing}");
    for wrong in ["", "short", "with a blank in its middle"] {
        fs::write(&file, wrong).unwrap();
        let error = access_of_worker(&options, true).unwrap_err().to_string();
        assert!(error.contains("--metrics-token"), "{wrong:?}: {error}");
    }
    fs::write(&file, "0123456789abcdef\n").unwrap();
    let expected = MetricsAccess::Token(Digest::of(b"0123456789abcdef"));
    for is_reached in [true, false] {
        let access = access_of_worker(&options, is_reached).unwrap();
        assert_eq!(access, expected, "a token that is given is asked for");
    }
    let without = |is_reached| access_of_worker(&MetricsOptions::default(), is_reached).unwrap();
    assert_eq!(without(true), MetricsAccess::Closed);
    assert_eq!(
        without(false),
        MetricsAccess::Open,
        "nobody else reaches it"
    );
}
