//! A crawl of the documentation, and a worker that does it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crawler_tests::guests;
use crawler_tests::process::Home;
use url::Url;

/// Limits of a call that are wide enough for the longest pages: 8 MB, with 26 000 links.
pub(crate) const LIMITS: [(&str, &str); 6] = [
    ("body", "16MiB"),
    ("capture-bytes", "64MiB"),
    ("cpu", "5s"),
    ("memory", "256MiB"),
    ("requests", "50000"),
    ("timeout", "60s"),
];

/// Crawl that all crawlers are given.
pub(crate) struct Task<'a> {
    /// Folder of everything that is written.
    pub(crate) home: &'a Home,
    /// Page on which the crawl starts.
    pub(crate) start: Url,
    /// Beginning of the paths that belong to it.
    pub(crate) below: &'a str,
    /// Largest number of pages in flight.
    pub(crate) concurrency: u64,
}

/// Returns a worker that crawls what its config file says and ends: a durable frontier and items in this data root,
/// which is empty. Compiled code is kept from one start to the next, as on any machine.
pub(crate) fn worker(task: &Task<'_>, folder: &Path, data: impl AsRef<OsStr>) -> Command {
    let (plugin, start) = (guests::guest("peers"), task.start.as_str());
    let limits = LIMITS.map(|(name, value)| format!("{name} = {value:?}"));
    let config = format!(
        "[[plugin]]
path = {plugin:?}

[[resource]]
name = \"peers\"
params = {{ start = {start:?}, below = {below:?} }}
limits = {{ {limits} }}
concurrency = {concurrency}
delay = \"0s\"
max-depth = 1000
",
        below = task.below,
        limits = limits.join(", "),
        concurrency = task.concurrency,
    );
    let path = folder.join("crawler.toml");
    fs::write(&path, config).expect("a config can be written");
    let mut command =
        task.home
            .command(["worker", "--cluster=false", "--allow-networks=127.0.0.0/8"]);
    command.arg("--config").arg(path);
    command.arg("--data").arg(data);
    // A limit beyond ten times its default is for the operator to allow.
    command.args(LIMITS.map(|(name, value)| format!("--limit-ceiling={name}={value}")));
    command
}
