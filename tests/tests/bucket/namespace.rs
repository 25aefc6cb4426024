//! A machine of its own: a network namespace, whose only way to the others is a cable.

use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use crawler_tests::process::Process;
use crawler_tests::skipped;

use super::*;

/// Network namespace with a cable to the one of this process. It ends with the value.
struct Namespace {
    name: String,
    /// Address at this end of the cable.
    here: Ipv4Addr,
    /// Address at the end in the namespace.
    there: Ipv4Addr,
}

/// Runs `ip` with these words; the error is what it says.
fn ip(words: &str) -> Result<(), String> {
    let ended = Command::new("ip").args(words.split(' ')).output();
    let ended = ended.map_err(|e| e.to_string())?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {words}: {}",
            String::from_utf8_lossy(&ended.stderr).trim()
        )),
    }
}

impl Namespace {
    /// Makes a namespace. If this machine does not allow that, it says so and returns `None`.
    fn new() -> Option<Self> {
        let [high, low] = u16::try_from(std::process::id() % 0xffff)
            .expect("it is below")
            .to_be_bytes();
        let namespace = Self {
            name: format!("crawler-{}", std::process::id()),
            here: Ipv4Addr::new(10, high, low, 1),
            there: Ipv4Addr::new(10, high, low, 2),
        };
        match namespace.connect() {
            Ok(()) => Some(namespace),
            Err(why) => {
                skipped("namespace", &format!("no network namespace: {why}"));
                None
            }
        }
    }

    fn connect(&self) -> Result<(), String> {
        let Self { name, here, there } = self;
        let id = std::process::id();
        let inside = format!("-n {name}");
        ip(&format!("netns add {name}"))?;
        ip(&format!(
            "link add cable{id} type veth peer name cable netns {name}"
        ))?;
        ip(&format!("addr add {here}/24 dev cable{id}"))?;
        ip(&format!("link set cable{id} up"))?;
        ip(&format!("{inside} addr add {there}/24 dev cable"))?;
        ip(&format!("{inside} link set cable up"))
    }

    /// Wraps a command: its process runs in the namespace.
    fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("ip");
        wrapped
            .args(["netns", "exec", &self.name])
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            wrapped.current_dir(folder);
        }
        wrapped
    }

    /// Hands connections to this end of the cable on to the same port of loopback.
    fn relay(&self, port: u16) {
        let listener = TcpListener::bind((self.here, port)).expect("the port is free");
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    join(near, far);
                }
            }
        });
    }
}

/// Copies between two connections until both have ended.
fn join(near: TcpStream, far: TcpStream) {
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            let _ended = std::io::copy(&mut from, &mut to);
            let _ended = to.shutdown(Shutdown::Write);
        });
    };
    let twin = |one: &TcpStream| one.try_clone().expect("there are file descriptors");
    copy(twin(&near), twin(&far));
    copy(far, near);
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The cable goes with its end in the namespace.
        let _stays_at_worst = ip(&format!("netns del {}", self.name));
    }
}

/// Returns the port of a URL.
fn port_of(url: &str) -> u16 {
    let url: reqwest::Url = url.parse().expect("it is a URL");
    url.port().expect("it has a port")
}

#[test]
fn s30_a_crawl_of_a_machine_without_loopback_goes_on_elsewhere() {
    let _turn = one_at_a_time();
    let Some(apart) = Namespace::new() else {
        return;
    };
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let cluster = cluster.in_bucket(FaultPlan::default());
    let bucket = cluster.bucket().endpoint();
    let mut services = cluster.etcd.endpoints();
    services.push(bucket.clone());
    for service in &services {
        apart.relay(port_of(service));
    }
    let over_cable = |url: &str| url.replace("127.0.0.1", &apart.here.to_string());
    let web = site_at((apart.here, 0).into());

    let here = [
        format!("--grpc={}:0", apart.here),
        format!("--http={}:0", apart.here),
        "--insecure".to_owned(),
    ];
    let here: Vec<&str> = here.iter().map(String::as_str).collect();
    let allow = "--allow-networks=10.0.0.0/8";
    let (master_home, here_home, there_home) = (Home::new(), Home::new(), Home::new());
    let master = cluster.start_at(&master_home, "master", "1", &here);
    cluster.leader_beside(&[]);

    let etcd: Vec<String> = cluster
        .etcd
        .endpoints()
        .iter()
        .map(|url| over_cable(url))
        .collect();
    let there = [
        format!("--grpc={}:0", apart.there),
        format!("--http={}:0", apart.there),
        format!("--etcd={}", etcd.join(",")),
        "--insecure".to_owned(),
        allow.to_owned(),
    ];
    let there: Vec<&str> = there.iter().map(String::as_str).collect();
    let mut command = cluster.node_command(&there_home, "worker", "1", &there);
    command.env("AWS_ENDPOINT_URL", over_cable(&bucket));
    let mut lost = Process::start(&mut apart.wrap(&command));
    cluster.registered("worker", 1);

    master.push(&cluster, "puppet");
    let start = web.url("/0");
    let body = format!(
        r#"{{"name":"site","plugin":"puppet","params":{{"start":"{start}"}},"crawl":{{"delay_ms":5,"max_depth":1000}}}}"#
    );
    let added = master.http(Method::POST, "/crawler/resource", Some(&body));
    assert_eq!(added.status, 200, "{added:?}");
    web.wait_for("a third of the pages", PATIENCE, |log| {
        log.len() > N_PAGES / 3
    });
    lost.kill();
    drop(there_home);
    let worker = cluster.start_at(&here_home, "worker", "2", &[&here[..], &[allow]].concat());
    assert_eq!(pages(&cluster, &master, "site"), all_pages(&web));
    assert!(web.log().len() < 2 * N_PAGES, "{}", web.log().len());
    worker.stop();
    master.stop();
}
