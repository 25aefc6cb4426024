//! Members of etcd as processes of their own, on free ports and in a temporary folder. A test can kill, pause and
//! restart them; they end with their handle.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Ended, Process};
use crate::proxy::Proxy;
use crate::{PATIENCE, skipped, until};

pub mod certificates;

use self::certificates::Certificates;

/// Number of attempts to start: a port is free when it is chosen, but another process may use it first.
const N_STARTS: usize = 5;
/// Characters after which a member writes its id when it calls another.
const MEMBER_MARK: &str = "X-Server-From: ";

/// A running etcd of one member, or of several.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Member>,
    certificates: Option<Certificates>,
    /// Proxies between members, one before each. Empty if they call each other directly.
    peers: Vec<Proxy>,
    /// User of [`Etcd::ctl`], as `NAME:PASSWORD`.
    user: Option<String>,
    folder: TempDir,
}

/// Part of a member's network that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Every call to and from the other members is lost.
    Whole,
    /// Calls of the others to it are lost.
    Inward,
    /// Its calls to the others are lost.
    Outward,
}

/// Properties of the etcd to start.
struct EtcdOptions<'a> {
    n_members: usize,
    certificates: Option<Certificates>,
    is_apart: bool,
    further: &'a [&'a str],
}

#[derive(Debug)]
struct Member {
    url: String,
    arguments: Vec<String>,
    process: Option<Process>,
}

impl Etcd {
    /// Starts one member. If etcd is not installed, it says so and returns `None`.
    pub fn one() -> Option<Self> {
        Self::start(&EtcdOptions::plain(1))
    }

    /// Starts three members.
    pub fn three() -> Option<Self> {
        Self::start(&EtcdOptions::plain(3))
    }

    /// Starts three members, each of which can be cut off from the others.
    pub fn three_apart() -> Option<Self> {
        Self::start(&EtcdOptions {
            is_apart: true,
            ..EtcdOptions::plain(3)
        })
    }

    /// Starts one member that shows a certificate and asks for one.
    pub fn with_certificates(certificates: Certificates) -> Option<Self> {
        Self::start(&EtcdOptions {
            certificates: Some(certificates),
            ..EtcdOptions::plain(1)
        })
    }

    /// Starts one member with further arguments.
    pub fn with(arguments: &[&str]) -> Option<Self> {
        Self::start(&EtcdOptions {
            further: arguments,
            ..EtcdOptions::plain(1)
        })
    }

    fn start(options: &EtcdOptions<'_>) -> Option<Self> {
        if !is_installed("etcd") || !is_installed("etcdctl") {
            skipped("etcd", "etcd and etcdctl are not installed here");
            return None;
        }
        for _ in 1..N_STARTS {
            if let Some(etcd) = Self::try_start(options) {
                return Some(etcd);
            }
        }
        panic!("etcd did not start {N_STARTS} times in a row");
    }

    /// Tries to start the members. `None` if one of them ended at once.
    fn try_start(options: &EtcdOptions<'_>) -> Option<Self> {
        let n_members = options.n_members;
        let folder = tempfile::Builder::new().prefix("crawler-etcd-").tempdir();
        let folder = folder.unwrap_or_else(|e| panic!("no temporary folder: {e}"));
        let scheme = if options.certificates.is_some() {
            "https"
        } else {
            "http"
        };
        let ports = free_ports(2 * n_members);
        let peers: Vec<Proxy> = match options.is_apart {
            true => ports[n_members..]
                .iter()
                .map(|port| Proxy::with_mark(*port, MEMBER_MARK))
                .collect(),
            false => Vec::new(),
        };
        let listens = |n: usize| format!("http://127.0.0.1:{}", ports[n_members + n]);
        let peer = |n: usize| match peers.get(n) {
            Some(proxy) => format!("http://127.0.0.1:{}", proxy.port()),
            None => listens(n),
        };
        let cluster: Vec<String> = (0..n_members)
            .map(|n| format!("m{n}={}", peer(n)))
            .collect();
        let members = (0..n_members).map(|n| {
            let url = format!("{scheme}://127.0.0.1:{}", ports[n]);
            let mut arguments = vec![
                format!("--name=m{n}"),
                "--log-level=warn".to_owned(),
                format!(
                    "--data-dir={}",
                    folder.path().join(format!("m{n}")).display()
                ),
                format!("--listen-client-urls={url}"),
                format!("--advertise-client-urls={url}"),
                format!("--listen-peer-urls={}", listens(n)),
                format!("--initial-advertise-peer-urls={}", peer(n)),
                format!("--initial-cluster={}", cluster.join(",")),
            ];
            arguments.extend(
                options
                    .certificates
                    .iter()
                    .flat_map(Certificates::of_server),
            );
            arguments.extend(options.further.iter().map(ToString::to_string));
            Member {
                url,
                arguments,
                process: None,
            }
        });
        let mut etcd = Self {
            members: members.collect(),
            certificates: options.certificates.clone(),
            peers,
            user: None,
            folder,
        };
        for n in 0..n_members {
            etcd.launch(n);
        }
        let is_up = until("etcd that answers", PATIENCE, || {
            let mut members = etcd.members.iter_mut();
            let ended = members.any(|m| m.process.as_mut().is_none_or(|p| !p.is_running()));
            (ended || etcd.is_healthy()).then_some(!ended)
        });
        is_up.then_some(etcd)
    }

    /// Returns the numbers that members send as their ids, in the order of [`Etcd::endpoints`]. All members must
    /// be there.
    #[track_caller]
    pub fn marks(&self) -> Vec<String> {
        let list = self.ctl(&["member", "list"]);
        let mark = |n: usize| {
            let name = format!(", m{n}, ");
            let line = list.lines().find(|line| line.contains(&name));
            let id = line.and_then(|line| line.split(',').next());
            id.unwrap_or_else(|| panic!("no m{n} in {list}")).to_owned()
        };
        (0..self.members.len()).map(mark).collect()
    }

    /// Cuts a member of [`Etcd::three_apart`] off from the others, in the given directions.
    pub fn isolate(&self, n: usize, mark: &str, isolation: Isolation) {
        for (other, peer) in self.peers.iter().enumerate() {
            peer.change(|network_faults| match (other == n, isolation) {
                (true, Isolation::Whole | Isolation::Inward) => network_faults.is_cut = true,
                (false, Isolation::Whole | Isolation::Outward) => {
                    network_faults.banned.insert(mark.to_owned());
                }
                _ => {}
            });
        }
    }

    /// Lets a member reach the others, and the others reach it.
    pub fn rejoin(&self, n: usize, mark: &str) {
        for (other, peer) in self.peers.iter().enumerate() {
            peer.change(|network_faults| match other == n {
                true => network_faults.is_cut = false,
                false => _ = network_faults.banned.remove(mark),
            });
        }
    }

    /// URLs for clients, one for each member.
    pub fn endpoints(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|member| member.url.clone())
            .collect()
    }

    /// Runs etcdctl as this user from now on, written as `NAME:PASSWORD`.
    pub fn log_in(&mut self, user: &str) {
        self.user = Some(user.to_owned());
    }

    /// Folder that lives as long as this value.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills a member, at any point of its work.
    pub fn kill(&mut self, n: usize) {
        if let Some(mut process) = self.members[n].process.take() {
            process.kill();
        }
    }

    /// Starts a member again, at its port and with its data, without waiting for it.
    pub fn launch(&mut self, n: usize) {
        let member = &mut self.members[n];
        let mut command = Command::new("etcd");
        member.process = Some(Process::start(command.args(&member.arguments)));
    }

    /// Waits until all running members answer.
    #[track_caller]
    pub fn wait(&self) {
        until("etcd that answers", PATIENCE, || {
            self.is_healthy().then_some(())
        });
    }

    /// Pauses a member.
    pub fn freeze(&self, n: usize) {
        self.process(n).freeze();
    }

    /// Lets a paused member go on.
    pub fn thaw(&self, n: usize) {
        self.process(n).thaw();
    }

    /// Returns the member that leads.
    #[track_caller]
    pub fn leader(&self) -> usize {
        until("a member that leads", PATIENCE, || {
            (0..self.members.len()).find(|n| {
                let arguments = ["endpoint", "status", "--write-out=simple"];
                let status = self.ctl_at(&[self.members[*n].url.clone()], &arguments);
                // Endpoint, id, version, size, whether it leads, …
                status.stdout.split(", ").nth(4) == Some("true")
            })
        })
    }

    /// Runs etcdctl, which must succeed, and returns its stdout.
    #[track_caller]
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let ended = self.ctl_at(&self.endpoints(), arguments);
        assert_eq!(
            ended.code,
            Some(0),
            "etcdctl {arguments:?}: {}",
            ended.stderr
        );
        ended.stdout
    }

    /// Runs etcdctl, which must fail, and returns its stderr.
    #[track_caller]
    pub fn ctl_fails(&self, arguments: &[&str]) -> String {
        let ended = self.ctl_at(&self.endpoints(), arguments);
        assert_ne!(
            ended.code,
            Some(0),
            "etcdctl {arguments:?}: {}",
            ended.stdout
        );
        ended.stderr
    }

    /// Runs etcdctl, and returns how it ended.
    #[track_caller]
    pub fn try_ctl(&self, arguments: &[&str]) -> Ended {
        self.ctl_at(&self.endpoints(), arguments)
    }

    /// Returns the revision of the last write.
    #[track_caller]
    pub fn revision(&self) -> u64 {
        let status = self.ctl(&["get", "/", "--write-out=fields"]);
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("\"Revision\" : "));
        let line = line.unwrap_or_else(|| panic!("no revision in {status}"));
        line.parse().unwrap_or_else(|e| panic!("{line}: {e}"))
    }

    fn is_healthy(&self) -> bool {
        let running = self
            .members
            .iter()
            .filter(|member| member.process.is_some());
        let urls: Vec<String> = running.map(|member| member.url.clone()).collect();
        self.ctl_at(&urls, &["endpoint", "health"]).code == Some(0)
    }

    fn ctl_at(&self, urls: &[String], arguments: &[&str]) -> Ended {
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", urls.join(",")))
            .args(self.certificates.iter().flat_map(Certificates::of_client))
            .args(self.user.iter().map(|user| format!("--user={user}")))
            .args(arguments);
        Process::start(&mut command).wait(PATIENCE)
    }

    fn process(&self, n: usize) -> &Process {
        let process = self.members[n].process.as_ref();
        process.unwrap_or_else(|| panic!("member {n} of etcd was killed"))
    }
}

impl EtcdOptions<'_> {
    fn plain(n_members: usize) -> Self {
        Self {
            n_members,
            certificates: None,
            is_apart: false,
            further: &[],
        }
    }
}

/// Returns ports of this machine that nobody listens on now.
fn free_ports(n: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> = (0..n)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("no free port: {e}")))
        .collect();
    let ports = listeners.iter().map(|listener| {
        let address = listener.local_addr();
        address.unwrap_or_else(|e| panic!("no address: {e}")).port()
    });
    ports.collect()
}

pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(program)
        .arg(if program == "openssl" || program == "etcdctl" {
            "version"
        } else {
            "--version"
        })
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Returns the bytes of a file.
pub(crate) fn read(path: PathBuf) -> Vec<u8> {
    std::fs::read(&path).unwrap_or_else(|e| panic!("{} cannot be read: {e}", path.display()))
}
