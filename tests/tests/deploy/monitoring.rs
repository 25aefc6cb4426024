//! The alert rules for Prometheus and the dashboards for Grafana.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crawler_tests::{prometheus, repository};
use serde_json::Value;

use super::{read, yaml};

#[test]
fn promtool_finds_no_fault_in_the_rules() {
    let Some(promtool) = prometheus::program("promtool") else {
        return;
    };
    let rules = repository().join("host/deploy/prometheus/alerts.yml");
    let checked = Command::new(promtool)
        .args(["check", "rules"])
        .arg(rules)
        .output()
        .expect("it starts");
    let told = [&checked.stdout[..], &checked.stderr[..]].concat();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&told)
    );
}

#[test]
fn every_alert_links_to_a_section_of_the_book() {
    let chapter = repository().join("host/docs/src/operate/metrics.md");
    let chapter = fs::read_to_string(chapter).expect("there is one");
    let headings = chapter.lines().filter_map(|line| line.strip_prefix("### "));
    let headings: BTreeSet<&str> = headings.collect();
    let rules = yaml(&read("prometheus/alerts.yml"));
    let groups = rules[0]["groups"].as_array().expect("it has groups");
    let mut alerts = BTreeSet::new();
    for rule in groups.iter().flat_map(|g| g["rules"].as_array().unwrap()) {
        let alert = rule["alert"].as_str().expect("it has a name");
        let link = rule["annotations"]["runbook_url"].as_str();
        let link = link.unwrap_or_else(|| panic!("{alert} has no link"));
        let (page, anchor) = link.split_once('#').expect("it names a section");
        assert!(page.ends_with("/operate/metrics.html"), "{link}");
        assert_eq!(anchor, alert.to_lowercase(), "{link}");
        assert!(headings.contains(alert), "the book has no section {alert}");
        for field in ["summary", "description"] {
            let text = rule["annotations"][field].as_str();
            assert!(
                text.is_some_and(|text| !text.is_empty()),
                "{alert}: {field}"
            );
        }
        alerts.insert(alert);
    }
    assert_eq!(alerts, headings, "each section is one of an alert");
}

#[test]
fn dashboards_are_whole_and_have_no_two_panels_in_one_place() {
    for dashboard in ["grafana/cluster.json", "grafana/crawl.json"] {
        let parsed: Value = serde_json::from_str(&read(dashboard)).expect("it is JSON");
        let mut ids = BTreeSet::new();
        let mut places = BTreeSet::new();
        for panel in parsed["panels"].as_array().expect("it has panels") {
            assert!(ids.insert(panel["id"].as_u64()), "{panel}");
            let place = ["x", "y"].map(|axis| panel["gridPos"][axis].as_u64());
            assert!(places.insert(place), "{panel}");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
        }
        assert!(ids.len() > 10, "{dashboard}");
    }
}
