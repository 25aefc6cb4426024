//! Metrics: the numbers are those of the API, bounds and rights hold, and Prometheus answers every query of the alerts and
//! dashboards.

use std::collections::BTreeMap;
use std::fs;

use crawler_tests::process::Home;
use crawler_tests::prometheus::Prometheus;
use crawler_tests::web::{Method, Site, StatusCode, Web};
use crawler_tests::{PATIENCE, repository, until};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::server::Server;
use crate::tokens::Guarded;

/// Metrics without a sample in a crawl in which nothing is wrong. A panel about them is empty.
const RARE: [&str; 1] = ["crawler_crawls_waiting"];

/// Opens a site of two pages, one that is forbidden, and a link to another host.
fn web() -> Web {
    let links = ["/leaf", "/forbidden", "http://other.test/"];
    let links = links.map(|url| json!({"url": url, "rule": "leaf"}));
    Site::new()
        .page("/", json!(links).to_string())
        .page("/leaf", "[]")
        .handle("/forbidden", |_| async { StatusCode::FORBIDDEN })
        .open()
}

/// Returns the sum of the samples of a metric that have all of these labels.
fn sum(text: &str, name: &str, labels: &[&str]) -> u64 {
    let samples = text.lines().filter_map(|line| {
        let (sample, value) = line.rsplit_once(' ')?;
        let (found, shown) = sample.split_once('{').unwrap_or((sample, ""));
        let is_it = found == name && labels.iter().all(|label| shown.contains(label));
        is_it.then(|| value.parse::<u64>().expect("it is a whole number"))
    });
    samples.sum()
}

fn metrics(server: &Server) -> String {
    let answer = server.get("/metrics");
    assert!(answer.kind.starts_with("application/openmetrics-text"));
    assert!(answer.text.ends_with("# EOF\n"), "{}", answer.text);
    answer.text
}

#[test]
fn metrics_of_a_crawl_are_the_numbers_of_the_api() {
    let (web, server) = (web(), Server::with_puppet());
    server.add("books", &web.url("/"), &["--max-attempts=1"]);
    server.finished("books");
    let got = server.ok(&["resource", "get", "books", "-o", "json"]);
    let got: Value = serde_json::from_str(&got).expect("it is JSON");
    let counts = &got["statistics"]["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap_or_default();
    let pages = count("parsed") + count("other_done") + count("dead");
    assert_eq!(pages, 3, "{got}");
    let text = until("all pages in the metrics", PATIENCE, || {
        let text = metrics(&server);
        let told = sum(&text, "crawler_pages_total", &["resource=\"books\""]);
        assert!(told <= pages, "{text}");
        (told == pages).then_some(text)
    });
    let of_books = |name: &str, label: &str| sum(&text, name, &["resource=\"books\"", label]);
    assert_eq!(of_books("crawler_items_total", ""), count("items"));
    assert_eq!(of_books("crawler_body_bytes_total", ""), count("bytes"));
    let dead = of_books("crawler_pages_total", "outcome=\"dead\"");
    assert_eq!(dead, count("dead"));
    let forbidden = of_books("crawler_pages_dead_total", "reason=\"status-403\"");
    assert_eq!(forbidden, 1, "{text}");
    let status = of_books("crawler_page_statuses_total", "status=\"403\"");
    assert_eq!(status, 1, "{text}");
    let refused = of_books("crawler_links_refused_total", "reason=\"out-of-scope\"");
    assert_eq!(refused, 1, "{text}");
    assert_eq!(sum(&text, "crawler_leader", &[]), 1);
    let finished = sum(&text, "crawler_cluster_resources", &["phase=\"Finished\""]);
    assert_eq!(finished, 1);
    assert!(sum(&text, "crawler_api_calls_total", &["call=\"AddResource\""]) >= 1);
    assert_eq!(sum(&text, "crawler_lease_held", &[]), 2, "{text}");
    // A new run goes on with the counters.
    server.ok(&["resource", "restart", "books"]);
    until("a second run in the metrics", PATIENCE, || {
        let text = metrics(&server);
        let told = sum(&text, "crawler_pages_total", &["resource=\"books\""]);
        (told == 2 * pages).then_some(())
    });
}

#[test]
fn resources_beyond_the_bound_share_a_row() {
    let web = web();
    let server = Server::start_in(Home::new(), &["--metrics-resources=0"]);
    server.push("puppet", &[]);
    for name in ["first", "second"] {
        server.add(name, &web.url("/"), &["--max-attempts=1"]);
        server.finished(name);
    }
    let text = until("the pages of both in the metrics", PATIENCE, || {
        let text = metrics(&server);
        (sum(&text, "crawler_pages_total", &[]) == 6).then_some(text)
    });
    let mut rows = text
        .lines()
        .filter(|line| line.starts_with("crawler_items_total{"));
    let row = rows.next().unwrap_or_default();
    assert!(row.contains("resource=\"(others)\""), "{text}");
    assert_eq!(rows.next(), None);
}

#[test]
fn metrics_can_be_switched_off() {
    let server = Server::start_in(Home::new(), &["--no-metrics"]);
    let answer = server.http(Method::GET, "/metrics", None);
    assert_eq!(answer.status, 404, "{answer:?}");
}

#[test]
fn metrics_are_for_readers_of_the_whole_cluster() {
    let guarded = Guarded::start_with(&[]);
    let status = |token: &str| guarded.ask(token, Method::GET, "/metrics", None).status;
    assert_eq!(status("none"), 401);
    let viewer = json!({"subject": "prometheus", "roles": ["viewer"]});
    assert_eq!(status(&guarded.token(&viewer)), 200);
    let limited = json!({"subject": "team", "roles": ["viewer"], "namespaces": ["team"]});
    assert_eq!(status(&guarded.token(&limited)), 403);
}

/// Returns the expressions of a dashboard, with its variables filled in.
fn expressions(dashboard: &str) -> Vec<String> {
    let file = repository().join("host/deploy/grafana").join(dashboard);
    let text = fs::read_to_string(file).expect("there is one");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let targets = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array();
        targets.expect("each panel asks something").iter()
    });
    let filled = targets.map(|target| {
        let expr = target["expr"].as_str().expect("it is a text");
        let filled = expr
            .replace("$__rate_interval", "30s")
            .replace("$instance", ".*")
            .replace("$resource", ".*");
        assert!(!filled.contains('$'), "a variable is left: {filled}");
        filled
    });
    filled.collect()
}

/// Returns the expressions of the alerts by their names.
fn alerts() -> BTreeMap<String, String> {
    let file = repository().join("host/deploy/prometheus/alerts.yml");
    let text = fs::read_to_string(file).expect("there is one");
    let rules = serde_yaml::Deserializer::from_str(&text);
    let rules = Value::deserialize(rules).expect("it is YAML");
    let groups = rules["groups"].as_array().expect("it has groups");
    let rules = groups.iter().flat_map(|group| {
        let rules = group["rules"].as_array();
        rules.expect("each group has rules").iter()
    });
    let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
    let alert = |rule: &Value| (text(&rule["alert"]), text(&rule["expr"]));
    rules.map(alert).collect()
}

/// Returns the metrics of the crawler in an expression.
fn metrics_of(expr: &str) -> impl Iterator<Item = &str> {
    let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("crawler_"))
}

#[test]
fn prometheus_answers_every_query_of_alerts_and_dashboards() {
    let (web, server) = (web(), Server::with_puppet());
    let rules = repository().join("host/deploy/prometheus/alerts.yml");
    let targets = [("crawler-masters", server.http_address())];
    let Some(prometheus) = Prometheus::start(&targets, &rules) else {
        return;
    };
    server.add("books", &web.url("/"), &["--max-attempts=1"]);
    server.finished("books");
    until("a scrape of the process", PATIENCE, || {
        let samples = prometheus.query("up{job='crawler-masters'}");
        samples.iter().any(|s| s["value"][1] == "1").then_some(())
    });
    let mut n_asked = 0;
    for dashboard in ["cluster.json", "crawl.json"] {
        for expr in expressions(dashboard) {
            n_asked += 1;
            let samples = prometheus.query(&expr);
            if samples.is_empty() && !RARE.iter().any(|metric| expr.contains(metric)) {
                let what = format!("sample of {expr} ({dashboard})");
                until(&what, PATIENCE, || {
                    (!prometheus.query(&expr).is_empty()).then_some(())
                });
            }
        }
    }
    assert!(n_asked > 50, "{n_asked} queries");
    let alerts = alerts();
    assert!(alerts.len() > 10, "{alerts:?}");
    for (name, expr) in &alerts {
        prometheus.query(expr);
        for metric in metrics_of(expr).filter(|metric| !RARE.contains(metric)) {
            let what = format!("sample of {metric} ({name})");
            until(&what, PATIENCE, || {
                (!prometheus.query(metric).is_empty()).then_some(())
            });
        }
    }
    // A cluster of one process that does its work alerts nobody.
    let evaluated = until("an evaluation of all rules", PATIENCE, || {
        let groups = prometheus.rules();
        let rules = groups.iter().filter_map(|group| group["rules"].as_array());
        let rules: Vec<Value> = rules.flatten().cloned().collect();
        for rule in &rules {
            assert_ne!(rule["health"], "err", "{rule}");
            assert_ne!(rule["state"], "firing", "{rule}");
        }
        let is_at_rest = |rule: &Value| rule["health"] == "ok" && rule["state"] == "inactive";
        rules.iter().all(is_at_rest).then_some(rules)
    });
    assert_eq!(evaluated.len(), alerts.len());
}
