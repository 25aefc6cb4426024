//! The supervisor that has started this process, such as systemd, is told how the process stands.
//!
//! The protocol is that of `sd_notify`: one datagram for each message, sent to the socket that `NOTIFY_SOCKET` names. A
//! process is ready once its nodes belong to the cluster and its listeners answer. From then on, it tells three times
//! within the time of `WATCHDOG_USEC` that it goes on. A runtime that hangs tells nothing, so the supervisor starts the
//! process again.
//!
//! The socket is connected before the process is confined: a confined process cannot connect to abstract addresses.

use std::convert::Infallible;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::cli::Command;
use crate::config::Environment;

/// Number of messages within the time of the watchdog.
const PINGS: u32 = 3;

/// Pause after which a process that is ready tells it again to a supervisor without room for the message.
const AGAIN: Duration = Duration::from_millis(200);

/// Connection to the supervisor. The default has none, and all messages go nowhere.
#[derive(Debug, Clone, Default)]
pub struct Supervisor {
    socket: Option<Arc<UnixDatagram>>,
    /// Time after which the supervisor takes a silent process for a hung one. If `None`, it does not watch.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Connects to the supervisor that the environment names, if the command starts a server. It works without one, so
    /// a socket that cannot be reached is logged and left alone.
    pub fn connect(command: &Command, environment: &Environment) -> Self {
        let Some(address) = environment.notify_socket.as_deref() else {
            return Self::default();
        };
        if !command.is_server() {
            return Self::default();
        }
        match connected(address) {
            Ok(socket) => Self {
                socket: Some(Arc::new(socket)),
                watchdog: environment.watchdog,
            },
            Err(error) => {
                tracing::warn!(
                    address,
                    %error,
                    "the supervisor cannot be told how this process stands (NOTIFY_SOCKET)"
                );
                Self::default()
            }
        }
    }

    /// Tells what the process waits for before it is ready.
    pub(super) fn waits(&self, what: &str) {
        self.tell(&format!("STATUS=waiting for {what}"));
    }

    /// Tells that the process has begun to end.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping");
    }

    /// Tells that the process is ready as soon as it has `joined` the cluster, with a line about it, and then that it
    /// goes on. Dropping the future ends that.
    pub(super) async fn keep_told(&self, joined: CancellationToken, status: &str) -> Infallible {
        joined.cancelled().await;
        let ready = format!("READY=1\nSTATUS={status}");
        // The supervisor hears this once or never; all else comes again or is for people.
        while !self.tell(&ready) {
            tokio::time::sleep(AGAIN).await;
        }
        let Some(watchdog) = self.watchdog else {
            return std::future::pending().await;
        };
        let mut pings = interval((watchdog / PINGS).max(Duration::from_millis(1)));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pings.tick().await;
            self.tell("WATCHDOG=1");
        }
    }

    /// Sends a message. Returns false if the supervisor has no room for it at present.
    fn tell(&self, message: &str) -> bool {
        let Some(socket) = &self.socket else {
            return true;
        };
        match socket.send(message.as_bytes()) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => {
                tracing::warn!(%error, "the supervisor was not told how this process stands");
                true
            }
        }
    }
}

/// Connects a socket that no send waits for: a supervisor that reads nothing must not hold the process up.
fn connected(address: &str) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&socket_address(address)?)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Parses an address of the protocol: a path, or `@` with an abstract name.
fn socket_address(address: &str) -> io::Result<SocketAddr> {
    match address.strip_prefix('@') {
        Some(name) => abstract_address(name),
        None if address.starts_with('/') => SocketAddr::from_pathname(address),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is neither a path nor an abstract address",
        )),
    }
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_name: &str) -> io::Result<SocketAddr> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system has no abstract addresses",
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn supervisor(address: &str, watchdog: Option<Duration>) -> Supervisor {
        Supervisor {
            socket: Some(Arc::new(connected(address).unwrap())),
            watchdog,
        }
    }

    /// Binds a socket as a supervisor does. Reads do not wait: what was sent is there.
    fn listening(path: &Path) -> UnixDatagram {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    fn messages(socket: &UnixDatagram) -> Vec<String> {
        let mut messages = Vec::new();
        let mut message = [0; 512];
        while let Ok(n_bytes) = socket.recv(&mut message) {
            messages.push(String::from_utf8(message[..n_bytes].to_vec()).unwrap());
        }
        messages
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_is_ready_when_it_has_joined_and_then_pings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = listening(&path);
        let supervisor = supervisor(path.to_str().unwrap(), Some(Duration::from_secs(30)));
        supervisor.waits("etcd");
        assert_eq!(messages(&socket), ["STATUS=waiting for etcd"]);
        let joined = CancellationToken::new();
        let told = supervisor.keep_told(joined.clone(), "worker-1");
        let mut told = std::pin::pin!(told);
        let minute = tokio::time::timeout(Duration::from_secs(60), &mut told);
        assert!(minute.await.is_err());
        assert_eq!(messages(&socket), [""; 0], "it has not joined");
        joined.cancel();
        let half_a_minute = tokio::time::timeout(Duration::from_secs(25), &mut told);
        assert!(half_a_minute.await.is_err());
        let ping = "WATCHDOG=1";
        assert_eq!(
            messages(&socket),
            ["READY=1\nSTATUS=worker-1", ping, ping, ping]
        );
        supervisor.stopping();
        assert_eq!(messages(&socket), ["STOPPING=1\nSTATUS=stopping"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_supervisor_that_reads_nothing_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let _full = listening(&path);
        let supervisor = supervisor(path.to_str().unwrap(), Some(Duration::from_secs(3)));
        let joined = CancellationToken::new();
        joined.cancel();
        let told = supervisor.keep_told(joined, "worker-1");
        let hour = tokio::time::timeout(Duration::from_secs(3_600), told);
        assert!(hour.await.is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_abstract_address_is_told_too() {
        use std::os::linux::net::SocketAddrExt as _;
        let name = format!("crawler-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_nonblocking(true).unwrap();
        supervisor(&format!("@{name}"), None).stopping();
        assert_eq!(messages(&socket), ["STOPPING=1\nSTATUS=stopping"]);
    }

    #[test]
    fn an_address_of_another_kind_is_refused() {
        for address in ["vsock:2:1", "notify", "/there/is/none"] {
            assert!(connected(address).is_err(), "{address}");
        }
    }
}
