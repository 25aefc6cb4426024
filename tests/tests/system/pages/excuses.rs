//! Blocks of the console that no test types, and why; and the check that every other one is typed.

use std::collections::BTreeSet;
use std::fs;

use crawler_tests::repository;

use super::blocks::{self, blocks};
use super::{INSTALL, MANY_MACHINES, RUN, read};

const RELEASE: &str = "a build of a release takes minutes; the build of the tests stands in for it";
const DEMO: &str =
    "a build of a release; tests/ctrl_c and tests/system/statistics.rs run `crawler demo`";
const CONTAINERS: &str = "it needs containers; tests/deploy checks the files without starting them";
const KUBERNETES: &str =
    "it needs a cluster of Kubernetes; tests/deploy renders the chart and checks what comes out";
const NODES: &str = "machines of the reader's own; tests/tests/cluster/joining.rs starts such ones";
const ITSELF: &str = "it runs this test";

/// Page, first line of the block, and the reason why it is not run.
const EXCUSES: [(&str, &str, &str); 51] = [
    (
        "host/docs/src/operate/logs.md",
        "$ crawler worker --log-file /var/log/crawler/worker.log --log-format json",
        "a worker and a folder of the reader's own; tests/tests/system/load.rs writes such files",
    ),
    (
        "host/docs/src/operate/logs.md",
        "$ CRAWLER_LOG=info crawler master --log-format json 2>&1 | grep '\"target\":\"crawler_api::calls\"'",
        "a master that goes on; tests/tests/system/load.rs reads such lines",
    ),
    (
        "host/docs/src/reference/access.md",
        "crawler master --grpc 10.0.0.1:9091 --http 10.0.0.1:8081 --first-token admin-token",
        "a master of the reader's own; tests/tests/cluster/guarded.rs starts such ones",
    ),
    (
        "host/docs/src/operate/nodes.md",
        "$ export CRAWLER_MASTER=https://10.0.0.1:9091 CRAWLER_CA=/var/lib/crawler/node/ca.pem",
        NODES,
    ),
    (
        "host/docs/src/operate/nodes.md",
        "crawler worker --id 1 --etcd http://10.0.0.1:2379 --data /mnt/crawler --grpc 10.0.0.2:9090 --http 10.0.0.2:8080 --join join-token",
        NODES,
    ),
    (
        MANY_MACHINES,
        "$ openssl rand -out /etc/crawler/sealing.key 32",
        NODES,
    ),
    (
        MANY_MACHINES,
        "$ crawler master --id 2 --etcd $ETCD --data s3://team-crawls/production --state /var/lib/crawler \\",
        NODES,
    ),
    (
        MANY_MACHINES,
        "$ export CRAWLER_CA=/var/lib/crawler/node/ca.pem",
        NODES,
    ),
    (MANY_MACHINES, "$ N=1 IP=10.0.0.11", NODES),
    (
        "host/docs/src/guide/sinks.md",
        "$ crawler sink check books-only",
        "a sink and a crawl of the reader's own; tests/crash_soak.rs crawls to such a sink",
    ),
    (
        "host/docs/src/guide/sinks.md",
        "$ crawler resource update books --sink lines,books-only",
        "a sink and a crawl of the reader's own; tests/crash_soak.rs crawls to such a sink",
    ),
    (
        "host/docs/src/guide/file-sinks.md",
        "$ crawler sink check lake",
        "a bucket and a crawl of the reader's own; tests/tests/system/file_sinks.rs crawls to such files",
    ),
    (
        "host/docs/src/guide/file-sinks.md",
        "$ crawler sink compact lake --dry-run",
        "a bucket and a crawl of the reader's own; tests/tests/system/file_sinks.rs compacts such files",
    ),
    (
        "host/docs/src/guide/sql.md",
        "$ crawler sink check warehouse",
        "a server and a crawl of the reader's own; tests/tests/sql crawls to such a server",
    ),
    (
        "host/docs/src/guide/streams.md",
        "$ crawler sink check events",
        "a server and a crawl of the reader's own; tests/tests/streams crawls to such a server",
    ),
    (
        "host/docs/src/guide/streams.md",
        "$ nats stream add CRAWLER --subjects 'crawler.>' --dupe-window 1h --discard new",
        "a program of NATS, and a server of the reader's own; tests/tests/streams makes such a stream",
    ),
    ("README.md", "$ rustup target add wasm32-wasip2", RELEASE),
    ("README.md", "$ cargo run --release -- demo", DEMO),
    ("README.md", "$ tests/run", ITSELF),
    (INSTALL, "$ rustup target add wasm32-wasip2", RELEASE),
    (INSTALL, "$ cargo run --release -- demo", DEMO),
    (
        MANY_MACHINES,
        "$ mkdir -p /mnt/crawler && mount -t nfs4 -o noac,lookupcache=none 10.0.0.1:/srv/crawler /mnt/crawler",
        "it needs the NFS server of a machine; the test mounts a folder of this machine in its place",
    ),
    (
        MANY_MACHINES,
        "$ crawler profile worker-1 --seconds 10 -o cpu.svg",
        "it needs a process with --pprof; tests/system/profile.rs takes such profiles",
    ),
    (
        MANY_MACHINES,
        "$ crawler profile worker-1 --heap --seconds 300 -o heap.svg",
        "as the one above; tests/system/profile.rs takes such profiles",
    ),
    (
        "host/docs/src/guide/archives.md",
        "$ crawler resource add books --plugin books --param start=https://books.example/ --archive warc",
        "a site of the reader's own; tests/system/archive.rs archives such crawls",
    ),
    (
        "host/docs/src/guide/archives.md",
        "$ crawler run plugins/books --from-archive pages --param start=https://books.example/ -o items.jsonl",
        "an archive of the reader's own; tests/system/archive.rs crawls such ones",
    ),
    (
        "host/docs/src/guide/archives.md",
        "$ crawler archive check crawler-data/archives/7/1",
        "an archive of the reader's own; tests/system/archive.rs checks such ones",
    ),
    (
        "host/docs/src/guide/files.md",
        "$ crawler items album | head -1",
        "a crawl of the reader's own; tests/system/files.rs reads files in the same way",
    ),
    (
        "host/docs/src/operate/bucket.md",
        "$ export AWS_REGION=eu-west-1",
        "a bucket of the reader's own; tests/bucket starts masters and workers on one",
    ),
    (
        "host/docs/src/operate/etcd.md",
        "$ export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=https://10.0.0.1:2379,https://10.0.0.2:2379",
        "the files of a cluster of the reader's own",
    ),
    (
        "host/docs/src/operate/etcd.md",
        "$ etcdctl user add root --interactive=false < etcd/root.password",
        "an etcd of the reader's own; tests/tests/cluster/etcd_users.rs runs these commands",
    ),
    (
        "host/docs/src/operate/etcd.md",
        "$ ETCDCTL_API=3 etcdctl get --prefix /crawler/assignments/",
        "a record of a crawl that is under way; tests/golden compares the records",
    ),
    (
        "host/docs/src/operate/tls.md",
        "$ openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj '/CN=crawler CA' -keyout ca.key -out ca.pem",
        "certificates for machines of the reader's own; host/api/src/tls/testing.rs makes such ones",
    ),
    (
        "host/docs/src/operate/tls.md",
        "$ crawler cert dev tls --host node-1.example,10.0.0.1",
        "its output names folders of this machine; host/crawler/src/cli/cert/dev/tests.rs uses such files",
    ),
    (
        "host/docs/src/operate/tls.md",
        "$ export CRAWLER_MASTER=https://10.0.0.1:9091,https://10.0.0.2:9091 CRAWLER_CA=ca.pem",
        "masters of the reader's own; host/api/src/connections/tests.rs calls such ones",
    ),
    (
        "host/docs/src/operate/tls.md",
        "$ curl --cacert ca.pem --cert me.pem --key me.key https://10.0.0.1:8081/crawler/resource",
        "a master of the reader's own; host/api/src/connections/tests.rs makes such calls",
    ),
    (
        "host/docs/src/operate/backup.md",
        "$ crawler backup /backup/monday --etcd http://127.0.0.1:2379 --data s3://bucket/crawler",
        "a cluster of the reader's own; tests/tests/cluster/backup.rs does the same",
    ),
    (
        "host/docs/src/operate/backup.md",
        "$ crawler restore /backup/monday --etcd http://127.0.0.1:2379 --data s3://bucket/crawler-2",
        "a cluster of the reader's own; tests/tests/cluster/backup.rs does the same",
    ),
    (
        "host/docs/src/operate/doctor.md",
        "$ crawler doctor --etcd http://10.0.0.1:2379 --data /mnt/crawler --grpc 10.0.0.5:9090 --http 10.0.0.5:8080",
        "a machine of the reader's own; tests/tests/system/doctor.rs checks this one",
    ),
    (
        "host/docs/src/operate/slow.md",
        "$ crawler resource get books",
        "a crawl of the reader's own; tests/system/frontier.rs asks the same",
    ),
    (
        "host/docs/src/operate/fewer-items.md",
        "$ crawler resource runs books",
        "two runs of the reader's own; tests/system/schedules.rs asks the same",
    ),
    (
        "host/docs/src/guide/sql.md",
        "$ crawler resource update books --changes 30",
        "a database of the reader's own; tests/tests/sql has one with a history",
    ),
    (
        "host/docs/src/reference/access.md",
        "$ crawler access token add alice --role viewer --namespace team --valid-for 90days",
        "a cluster with TLS of the reader's own; tests/system/tokens.rs makes tokens and logs in",
    ),
    (
        "host/docs/src/reference/grpc.md",
        "$ pip install grpcio grpcio-tools",
        "it needs a network; tests/system/grpc.rs does the same where the tools are there",
    ),
    (
        "host/docs/src/operate/deploy.md",
        "$ docker build -f host/deploy/Containerfile -t crawler .",
        CONTAINERS,
    ),
    (
        "host/docs/src/operate/deploy.md",
        "$ host/deploy/compose/init",
        CONTAINERS,
    ),
    (
        "host/docs/src/operate/deploy.md",
        "$ helm install shop host/deploy/helm/crawler --namespace crawls --values shop.yaml",
        KUBERNETES,
    ),
    (
        "host/docs/src/operate/deploy.md",
        "$ for n in 0 1 2; do kubectl exec --namespace crawls shop-master-$n -- cat /var/lib/crawler/admin-token; done",
        KUBERNETES,
    ),
    (
        "host/docs/src/operate/deploy.md",
        "$ cargo install cargo-deb",
        RELEASE,
    ),
    (
        "host/docs/src/operate/supervise.md",
        "$ systemctl daemon-reload",
        "it needs a machine that systemd runs; tests/deploy checks the units",
    ),
    ("host/docs/src/contribute/tests.md", "$ tests/run", ITSELF),
];

/// Returns the README and all chapters of the book.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut folders = vec!["host/docs/src".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(repository().join(&folder)).expect("the book is there") {
            let path = entry.expect("the book can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{folder}/{name}");
            match path.is_dir() {
                true => folders.push(name),
                false if name.ends_with(".md") => pages.push(name),
                false => {}
            }
        }
    }
    pages
}

#[test]
fn every_command_of_the_book_is_run_or_excused() {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for page in pages() {
        for block in blocks(&read(&page)) {
            let begins = block.lines.first().map_or("", String::as_str);
            let excuse = EXCUSES
                .iter()
                .position(|row| (row.0, row.1) == (page.as_str(), begins));
            match block.info.as_str() {
                blocks::RUN if !RUN.contains(&page.as_str()) => faults.push(format!(
                    "{page}: no test types {begins:?}; run the page in tests/tests/system/pages.rs, or mark the block {} and give a reason in pages/excuses.rs",
                    blocks::EXCUSED
                )),
                blocks::EXCUSED if excuse.is_none() => faults.push(format!(
                    "{page}: {begins:?} is marked {} without a reason in tests/tests/system/pages/excuses.rs",
                    blocks::EXCUSED
                )),
                blocks::EXCUSED => used.extend(excuse),
                "sh" | "bash" | "shell" | "shell-session" => faults.push(format!(
                    "{page}: {begins:?} is a block of {:?}; write commands as {}, with `$ ` before each",
                    block.info,
                    blocks::RUN
                )),
                _ => {}
            }
        }
    }
    for (n, (page, begins, reason)) in EXCUSES.iter().enumerate() {
        assert!(!reason.is_empty(), "{page}: {begins} has no reason");
        if !used.contains(&n) {
            faults.push(format!(
                "{page}: has no block of {} that begins with {begins:?}; take its row out of tests/tests/system/pages/excuses.rs",
                blocks::EXCUSED
            ));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}
