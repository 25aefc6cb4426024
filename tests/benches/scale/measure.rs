//! Measurements, one after the other on one cluster.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crawler_store::catalog::encode;
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, pass, until};
use serde_json::json;

use crate::cluster::{Cluster, database_bytes, wait};
use crate::seed::node;
use crate::table::Table;
use crate::{cpu, proc, profile};

const MIB: f64 = 1_048_576.0;
const N_PASSES: u32 = 5;
const PROFILE: Duration = Duration::from_secs(20);
/// Time after which the loops look again by themselves: a minute and a little more.
const RESYNC: Duration = Duration::from_secs(65);
/// Time between two looks at the size of the database.
const LOOK: Duration = Duration::from_secs(10);
/// Value of a bare put: as long as a resource's record.
const BARE: [u8; 600] = [b'x'; 600];

pub(crate) fn memory(cluster: &mut Cluster, table: &mut Table, when: &str) {
    let pid = cluster.leader().process.id();
    proc::quiet(pid);
    let (now, most) = proc::memory(pid);
    let most = most as f64 / MIB;
    table.tell(
        format!("leader's memory {when}"),
        format!("{:.0} MiB", now as f64 / MIB),
    );
    table.judge(
        format!("leader's memory at the most, {when}"),
        (most, "MiB"),
        1_024.0,
    );
}

/// Measures the leader's processor time for one change that changes no plan, and for idle minutes.
pub(crate) fn passes(cluster: &mut Cluster, table: &mut Table) {
    let pid = cluster.leader().process.id();
    let before = proc::quiet(pid);
    let begun = Instant::now();
    pass(RESYNC);
    let idle = cpu::used(pid).saturating_sub(before);
    let share = 100.0 * idle.as_secs_f64() / begun.elapsed().as_secs_f64();
    table.tell(
        format!("leader's CPU in {RESYNC:?} with nothing to do, looks after a minute among it"),
        format!("{:.2} s, {share:.1} %", idle.as_secs_f64()),
    );
    let mut used = Duration::ZERO;
    let mut took = Duration::ZERO;
    for n in 0..N_PASSES {
        let before = proc::quiet(pid);
        let begun = Instant::now();
        touch(cluster, n);
        used += proc::quiet(pid).saturating_sub(before);
        took += begun.elapsed();
    }
    table.judge(
        "leader's CPU for a full pass, after one change of a worker's record",
        (used.as_secs_f64() / f64::from(N_PASSES), "s"),
        1.0,
    );
    table.tell(
        "time until it is quiet again, two seconds of looking among it",
        format!("{:.1} s", took.as_secs_f64() / f64::from(N_PASSES)),
    );
}

/// Makes a change that changes no plan.
fn touch(cluster: &Cluster, n: u32) {
    let record = node(u64::from(n) % cluster.size.n_workers.max(1));
    let key = cluster.seeds.keys.node(record.role, &record.id);
    wait(cluster, async {
        // The put keeps the lease of the record.
        let mut client = cluster.etcd.clone();
        let options = etcd_client::PutOptions::new().with_ignore_lease();
        let put = client.put(key, encode(&record), Some(options)).await;
        put.expect("etcd takes a registration");
    });
}

/// Shows the shares of the leader's processor time while one pass follows the other.
pub(crate) fn profile(cluster: &mut Cluster) {
    let cluster = &*cluster;
    let process = &cluster.leader().process;
    let pid = process.id();
    let shares = std::thread::scope(|scope| {
        let taking = scope.spawn(|| profile::shares(process, PROFILE.as_secs()));
        let mut n = 0;
        while !taking.is_finished() {
            touch(cluster, n);
            n += 1;
            pass(Duration::from_millis(100));
        }
        taking.join().expect("a profile is taken")
    });
    println!("shares of the leader's time while it looks at everything again and again:");
    for (name, share) in shares {
        println!("{share:>6.1} %  {name}");
    }
    proc::quiet(pid);
}

/// Measures the bytes that the watches of all workers together receive for one change.
pub(crate) fn changes(cluster: &mut Cluster, table: &mut Table) {
    let n_calls = cluster.size.n_calls;
    let (heard, bytes) = (
        cluster.workers.n_heard.load(Ordering::Relaxed),
        cluster.workers.watches.n_bytes(),
    );
    let calls = Calls::of(cluster);
    let mut times = Vec::new();
    for n in 0..n_calls {
        let name = format!("seed-{n:06}");
        let body = json!({"name": name, "crawl": {"delay_ms": 2_000 + n}});
        times.extend(calls.call(Method::PATCH, &body));
    }
    let n_done = times.len() as u64;
    let heard_by_now = || cluster.workers.n_heard.load(Ordering::Relaxed) - heard;
    until("the changes at the workers", PATIENCE, || {
        (heard_by_now() >= n_done).then_some(())
    });
    let (_, sent) = cluster.workers.watches.n_bytes();
    let n_heard = heard_by_now();
    table.tell(
        format!("changes of a resource: {n_done} of {n_calls} calls done, heard by workers"),
        n_heard.to_string(),
    );
    table.tell(
        "bytes that all watches of workers are sent for one change",
        format!("{:.0}", (sent - bytes.1) as f64 / n_heard.max(1) as f64),
    );
    table.tell("a change of a resource, p50 and p99", shown(&mut times));
}

/// Measures additions through the leader beside bare puts to etcd, one after the other.
pub(crate) fn additions(cluster: &mut Cluster, table: &mut Table) {
    let n_calls = cluster.size.n_calls;
    let calls = Calls::of(cluster);
    let (mut bare, mut adds) = (Vec::new(), Vec::new());
    for n in 0..n_calls {
        let begun = Instant::now();
        wait(cluster, async {
            let mut client = cluster.etcd.clone();
            let put = client.put(format!("/bare/{n}"), BARE, None).await;
            put.expect("etcd takes a put");
        });
        bare.push(begun.elapsed());
        let body = json!({
            "name": format!("added-{n}"),
            "plugin": "puppet",
            "params": {"start": format!("http://added-{n}.example/start?page=1")},
            "crawl": {"delay_ms": 1_000},
        });
        adds.extend(calls.call(Method::POST, &body));
    }
    let n_done = adds.len();
    table.tell(
        format!("additions: done of {n_calls}; p50 and p99"),
        format!("{n_done}; {}", shown(&mut adds)),
    );
    table.tell("a bare put of 600 bytes, p50 and p99", shown(&mut bare));
    if n_done > 0 {
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            let times = at(&adds, part).as_secs_f64() / at(&bare, part).as_secs_f64();
            let what = format!("an addition as a multiple of a bare put, {name}");
            table.judge(what, (times, "times"), 3.0);
        }
    }
}

/// Measures the time from the end of a leader until the next has carried out its first pass.
pub(crate) fn take_over(cluster: &mut Cluster, table: &mut Table) {
    if cluster.masters.len() < 2 {
        cluster.start_master();
        cluster.base.registered("master", 2);
    }
    let leader = cluster.leader().id.clone();
    proc::quiet(cluster.leader().process.id());
    let place = cluster.masters.iter().position(|m| m.id == leader);
    let mut dead = cluster.masters.remove(place.expect("it is one of them"));
    let begun = Instant::now();
    dead.process.kill();
    // Nobody leads now: the next leader finds this in its first pass.
    let id = cluster.add_unplaced("unplaced");
    let next = cluster.base.leader_beside(&[&leader]);
    let led = begun.elapsed();
    cluster.placed(id);
    let placed = begun.elapsed();
    let lease = cluster.size.lease;
    table.tell(
        format!("kill -9 of the leader until {next} leads, with leases of {lease:?}"),
        format!("{:.2} s", led.as_secs_f64()),
    );
    table.judge(
        "from there until the end of its first pass",
        ((placed - led).as_secs_f64(), "s"),
        5.0,
    );
    cluster.start_master();
}

/// Measures the size of etcd's database while resources are added, changed and deleted without a pause.
pub(crate) fn churn(cluster: &mut Cluster, table: &mut Table) {
    let endpoint = cluster.base.etcd.endpoints().remove(0);
    let before = database_bytes(&endpoint) as f64 / MIB;
    let calls = Calls::of(cluster);
    let (first, begun) = (cluster.base.etcd.revision(), Instant::now());
    let (mut n, mut n_done, mut most) = (0_u64, 0_u64, before);
    let (n_kept, mut told) = (50, begun);
    while begun.elapsed() < cluster.size.churn {
        let add = json!({"name": format!("churn-{n}"), "plugin": "puppet",
            "params": {"start": "http://churn.example/"}});
        let seed = n % cluster.size.n_resources.max(1);
        let change = json!({"name": format!("seed-{seed:06}"), "crawl": {"delay_ms": 3_000 + n}});
        let mut made = vec![(Method::POST, add), (Method::PATCH, change)];
        if let Some(old) = n.checked_sub(n_kept) {
            made.push((Method::DELETE, json!({"name": format!("churn-{old}")})));
        }
        for (method, body) in made {
            n_done += u64::from(calls.call(method, &body).is_some());
        }
        n += 1;
        if told.elapsed() >= LOOK {
            told = Instant::now();
            let now = database_bytes(&endpoint) as f64 / MIB;
            most = most.max(now);
            println!("{:.0?}: {n_done} calls, {now:.0} MiB", begun.elapsed());
        }
    }
    most = most.max(database_bytes(&endpoint) as f64 / MIB);
    let n_revisions = cluster.base.etcd.revision() - first;
    table.tell(
        format!("calls and revisions in {:.0?} of churn", begun.elapsed()),
        format!("{n_done} and {n_revisions}"),
    );
    table.tell("etcd's database before it", format!("{before:.0} MiB"));
    table.judge("etcd's database at the most", (most, "MiB"), 512.0);
}

/// Calls of the master that leads at the beginning.
struct Calls<'a> {
    cluster: &'a Cluster,
    url: String,
}

impl<'a> Calls<'a> {
    fn of(cluster: &'a Cluster) -> Self {
        let url = format!("http://{}/crawler/resource", cluster.leader().http);
        Self { cluster, url }
    }

    /// Makes a call. Returns its duration, if it succeeded.
    fn call(&self, method: Method, body: &serde_json::Value) -> Option<Duration> {
        let request = self.cluster.http.request(method, &self.url);
        let request = request.header("content-type", "application/json");
        let request = request.timeout(PATIENCE).body(body.to_string());
        let begun = Instant::now();
        let answer = wait(self.cluster, async {
            let answer = request.send().await?;
            Ok::<_, reqwest::Error>((answer.status().as_u16(), answer.text().await?))
        });
        let took = begun.elapsed();
        match answer {
            Ok((200, _)) => Some(took),
            Ok((status, text)) => {
                println!("{status} after {took:.1?}: {text}");
                None
            }
            Err(why) => {
                println!("no answer after {took:.1?}: {why}");
                None
            }
        }
    }
}

/// Returns the value below which this part of the sorted values lies.
fn at(sorted: &[Duration], part: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let place = (sorted.len() as f64 * part) as usize;
    sorted[place.min(sorted.len() - 1)]
}

fn shown(times: &mut [Duration]) -> String {
    times.sort_unstable();
    match times.is_empty() {
        true => "none".to_owned(),
        false => format!("{:.1?} and {:.1?}", at(times, 0.5), at(times, 0.99)),
    }
}
