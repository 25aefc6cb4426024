//! A frontier of a million hosts with one URL each: filled, opened and crawled, each by a process of its own.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawler_frontier::durable::DurableFrontier;
use crawler_frontier::{Commit, Ended, Frontier, NewRequest, PageResult, Take};
use crawler_model::crawl::Request;
use crawler_model::scope::GrowthBounds;
use tokio::runtime::Runtime;

use super::{Wide, frontier};

const N_HOSTS: u32 = 1_000_000;
/// Number of hosts that one page links to.
const N_LINKS: u32 = 1_000;
/// Number of pages that are crawled.
const N_PAGES: u32 = 50_000;

/// Work of one process, named by its first argument.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Fill,
    Crawl,
}

impl Step {
    pub(crate) fn of(argument: &str) -> Option<Self> {
        let all = [Step::Fill, Step::Crawl];
        all.into_iter().find(|step| step.argument() == argument)
    }

    fn argument(self) -> &'static str {
        match self {
            Step::Fill => "fill-a-million",
            Step::Crawl => "crawl-a-million",
        }
    }

    pub(crate) fn run(self, mut arguments: impl Iterator<Item = String>) {
        let folder = arguments.next().expect("the folder is named");
        let port = arguments.next().expect("the port is named");
        let port = port.parse().expect("the port is a number");
        let runtime = Runtime::new().expect("a runtime starts");
        runtime.block_on(async {
            match self {
                Step::Fill => fill(Path::new(&folder), port).await,
                Step::Crawl => crawl(Path::new(&folder), port).await,
            }
        });
    }
}

/// Runs all steps. `many` is the rate of the crawl of fewer hosts.
#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
pub(crate) fn run(port: u16, many: f64) {
    println!("{N_HOSTS} hosts of one URL, delay 1 s, concurrency 512, durable");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let program = std::env::current_exe().expect("this program is a file");
    for step in [Step::Fill, Step::Crawl] {
        let output = Command::new(&program)
            .arg(step.argument())
            .arg(folder.path())
            .arg(port.to_string())
            .output()
            .expect("this program can be started");
        let said = String::from_utf8_lossy(&output.stdout);
        print!("{said}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        if let Some(rate) = said
            .lines()
            .find_map(|line| line.strip_prefix("  pages/s "))
        {
            let rate: f64 = rate.parse().expect("it is a number");
            println!("  {:.2} of the rate of 10 000 hosts", rate / many);
        }
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
async fn fill(folder: &Path, port: u16) {
    let began = Instant::now();
    let frontier = frontier::durable(frontier::in_folder(folder)).await;
    let request = |n: u32| {
        let url = format!("http://site{n}.test:{port}/");
        NewRequest {
            request: Request::get(url.parse().expect("it is a URL"), "page"),
            depth: 1,
        }
    };
    frontier.seed(vec![request(0)]).await.expect("it is open");
    for n in 0..N_HOSTS / N_LINKS {
        let links = n * N_LINKS..(n + 1) * N_LINKS;
        let links = links.map(request).collect();
        let claim = take(&frontier).await;
        // The next URL, whichever it is, stores the links and waits again.
        let reason = "again".to_owned();
        let commit = Commit {
            claim,
            result: PageResult {
                requests: links,
                ..PageResult::new(Ended::Retry { at: 1, reason }, 0)
            },
            growth: GrowthBounds::NONE,
            answered_at: 0,
            cookies: None,
        };
        frontier.commit(commit).await.expect("it is open");
    }
    assert_eq!(frontier.counts().hosts, u64::from(N_HOSTS));
    frontier.close().await.expect("it closes");
    println!(
        "  filled in {:.1} s, {} MiB at most",
        began.elapsed().as_secs_f64(),
        memory("VmHWM:")
    );
}

async fn take(frontier: &DurableFrontier) -> Box<crawler_frontier::Claim> {
    loop {
        match frontier.take(1, u32::MAX).expect("it is open") {
            Take::Ready(claim) => return claim,
            Take::WaitUntil(_) | Take::Blocked => frontier.take_changed().await,
            Take::Empty => panic!("nothing is left"),
        }
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
async fn crawl(folder: &Path, port: u16) {
    let wide = Wide {
        // All names are known, because hosts are asked in no order that is known before.
        n_hosts: N_HOSTS,
        n_pages: 1,
        n_dead: 0,
        delay: Duration::from_secs(1),
        concurrency: 512,
        is_durable: true,
        max_pages: Some(u64::from(N_PAGES)),
    };
    let before = memory("VmRSS:");
    let fetcher = wide.fetcher();
    let with_names = memory("VmRSS:");
    let began = Instant::now();
    let frontier = Arc::new(frontier::durable(frontier::in_folder(folder)).await);
    println!(
        "  opened in {:.2} s, {} MiB",
        began.elapsed().as_secs_f64(),
        memory("VmRSS:") - with_names
    );
    let frontier: Arc<dyn Frontier> = frontier;
    let took = wide.crawl_on(&frontier, fetcher, port).await;
    assert_eq!(frontier.counts().parsed, u64::from(N_PAGES));
    frontier.close().await.expect("it closes");
    // The names are there for the benchmark alone.
    let names = with_names - before;
    println!(
        "  {} MiB at most, without the names",
        memory("VmHWM:") - names
    );
    println!("  pages/s {:.0}", f64::from(N_PAGES) / took.as_secs_f64());
}

/// MiB, as this process's status tells them.
pub(crate) fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() >> 10
}
