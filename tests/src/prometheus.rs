//! Prometheus: its check of rules, and a process of its own on a free port, which ends with its handle.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use reqwest::Method;
use serde_json::Value;
use url::Url;

use crate::process::{Home, Process};
use crate::{PATIENCE, http, setting, skipped, until};

/// Number of attempts to start: a port is free when it is chosen, but another process may use it first.
const N_STARTS: usize = 5;

/// A running Prometheus.
#[derive(Debug)]
pub struct Prometheus {
    base: Url,
    _process: Process,
    _home: Home,
}

/// Returns a program of the package, or `None` if it is not there. `tests/run` unpacks the package where it is not
/// installed: installing it would start a service.
pub fn program(name: &str) -> Option<PathBuf> {
    let unpacked = setting("CRAWLER_PROMETHEUS").map(|folder| Path::new(&folder).join(name));
    let named = [unpacked, Some(name.into())].into_iter().flatten();
    let mut there = named.filter(|program| {
        let told = Command::new(program).arg("--version").output();
        told.is_ok_and(|told| told.status.success())
    });
    let found = there.next();
    if found.is_none() {
        skipped(
            "prometheus",
            "Prometheus is not installed (Debian: the package prometheus)",
        );
    }
    found
}

impl Prometheus {
    /// Starts it with these targets and rules, which it looks at every second. If it is not installed, it says so and
    /// returns `None`.
    pub fn start(targets: &[(&str, &str)], rules: &Path) -> Option<Self> {
        let program = program("prometheus")?;
        let jobs = targets.iter().map(|(job, address)| {
            format!("  - job_name: {job}\n    static_configs:\n      - targets: ['{address}']\n")
        });
        let config = format!(
            "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  evaluation_interval: 1s\nrule_files:\n  - '{}'\nscrape_configs:\n{}",
            rules.display(),
            jobs.collect::<String>()
        );
        let started = (0..N_STARTS).find_map(|_| start(&program, &config));
        let (base, process, home) = started.expect("Prometheus starts on one of the free ports");
        Some(Self {
            base,
            _process: process,
            _home: home,
        })
    }

    /// Evaluates an expression now. Returns the samples of the answer.
    #[track_caller]
    pub fn query(&self, expr: &str) -> Vec<Value> {
        let mut url = self.base.join("api/v1/query").expect("it is a path");
        url.query_pairs_mut().append_pair("query", expr);
        let answer = http::ask(Method::GET, url.as_str(), None).json();
        assert_eq!(answer["status"], "success", "{expr}: {answer}");
        let result = answer["data"]["result"].as_array();
        result.unwrap_or_else(|| panic!("{expr}: {answer}")).clone()
    }

    /// Returns the groups of rules with the results of their last evaluation.
    #[track_caller]
    pub fn rules(&self) -> Vec<Value> {
        let url = self.base.join("api/v1/rules").expect("it is a path");
        let answer = http::ask(Method::GET, url.as_str(), None).json();
        let groups = answer["data"]["groups"].as_array();
        groups.unwrap_or_else(|| panic!("{answer}")).clone()
    }
}

/// Starts the program. Returns `None` if it ends before it is ready.
fn start(program: &Path, config: &str) -> Option<(Url, Process, Home)> {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    drop(listener);
    let config = home.write("prometheus.yml", config);
    let mut command = Command::new(program);
    command
        .current_dir(home.path())
        .arg(format!("--config.file={}", config.display()))
        .arg("--storage.tsdb.path=tsdb")
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg("--log.level=warn");
    let mut process = Process::start(&mut command);
    let base: Url = format!("http://127.0.0.1:{port}/")
        .parse()
        .expect("it is an address");
    let ready = base.join("-/ready").expect("it is a path");
    let is_ready = until("readiness or end of Prometheus", PATIENCE, || {
        let answer = http::try_ask(Method::GET, ready.as_str(), &[], None);
        match answer.is_ok_and(|answer| answer.status == 200) {
            true => Some(process.is_running()),
            false => (!process.is_running()).then_some(false),
        }
    });
    is_ready.then_some((base, process, home))
}
