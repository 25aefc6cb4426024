//! Network between two processes, as a port of loopback: bytes go on to the target, unless the proxy is told to
//! cut, to hold back, or to be slow.
//!
//! Bytes that are held back are not lost: they go on when the hold ends, as after a loss on a real network, where
//! they would be sent again. A cut ends open connections and lets no new ones through.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crawler_process::task::TaskScope;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const BUFFER: usize = 16 << 10;
/// Number of the first bytes of a caller that are searched for its name.
const HEAD_MAX: usize = 4 << 10;

/// Condition of the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkFaults {
    /// True if nothing passes, and connections are closed.
    pub is_cut: bool,
    /// True if bytes of callers are held back.
    pub holds_calls: bool,
    /// True if bytes of the target are held back.
    pub holds_answers: bool,
    /// Delay of each piece, in both directions.
    pub delay: Duration,
    /// Callers that are cut off, by the names that they send.
    pub banned: BTreeSet<String>,
}

/// An open proxy. Dropping it closes it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network_faults: watch::Sender<NetworkFaults>,
    bytes: Arc<Bytes>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// Number of bytes that have passed.
#[derive(Debug, Default)]
struct Bytes {
    calls: AtomicU64,
    answers: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Calls,
    Answers,
}

/// State that connections share.
#[derive(Clone)]
struct Shared {
    target: SocketAddr,
    network_faults: watch::Receiver<NetworkFaults>,
    bytes: Arc<Bytes>,
    /// Characters after which callers send their names.
    mark: Option<&'static str>,
}

impl Proxy {
    /// Opens a proxy to this port of loopback. Nobody needs to listen there yet.
    pub fn to(port: u16) -> Self {
        Self::open(port, None)
    }

    /// Opens a proxy that can tell callers apart by the text after these characters in the first bytes they send,
    /// up to the end of the line.
    pub fn with_mark(port: u16, mark: &'static str) -> Self {
        Self::open(port, Some(mark))
    }

    fn open(port: u16, mark: Option<&'static str>) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.unwrap_or_else(|e| panic!("no port for a proxy: {e}"));
        listener
            .set_nonblocking(true)
            .expect("a new socket can be made non-blocking");
        let address = listener.local_addr();
        let address = address.expect("a bound socket has an address");
        let (network_faults, seen) = watch::channel(NetworkFaults::default());
        let (bytes, stop) = (Arc::<Bytes>::default(), CancellationToken::new());
        let shared = Shared {
            target: (Ipv4Addr::LOCALHOST, port).into(),
            network_faults: seen,
            bytes: bytes.clone(),
            mark,
        };
        let serving = serve(listener, shared, stop.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime of one thread needs nothing that could be missing");
        let thread = std::thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || runtime.block_on(serving))
            .unwrap_or_else(|e| panic!("no thread for a proxy: {e}"));
        Self {
            address,
            network_faults,
            bytes,
            stop,
            thread: Some(thread),
        }
    }

    /// Port that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Changes the faults of the network.
    pub fn change(&self, change: impl FnOnce(&mut NetworkFaults)) {
        self.network_faults.send_modify(change);
    }

    /// Lets everything pass again.
    pub fn clear(&self) {
        self.network_faults.send_replace(NetworkFaults::default());
    }

    /// Number of bytes that callers have sent, and that the target has answered.
    pub fn n_bytes(&self) -> (u64, u64) {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (read(&self.bytes.calls), read(&self.bytes.answers))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            panic!("a proxy panicked");
        }
    }
}

async fn serve(listener: std::net::TcpListener, shared: Shared, stop: CancellationToken) {
    let listener = TcpListener::from_std(listener);
    let listener = listener.expect("the socket is non-blocking and inside a runtime");
    // The scope is dropped at the end, with all connections.
    let connections = TaskScope::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((caller, _)) = accepted else { continue };
        if !shared.network_faults.borrow().is_cut {
            connections.spawn("connection", carry(caller, shared.clone()));
        }
    }
}

/// Carries one connection, until either end closes it or it is cut.
async fn carry(caller: TcpStream, shared: Shared) {
    let Ok(target) = TcpStream::connect(shared.target).await else {
        return;
    };
    for stream in [&caller, &target] {
        // Without this, small calls would wait for each other; if it fails, the connection is only slow.
        let _slow = stream.set_nodelay(true);
    }
    let (from_caller, to_caller) = caller.into_split();
    let (from_target, to_target) = target.into_split();
    let (name, named) = watch::channel(None);
    let mut network_faults = shared.network_faults.clone();
    let mut named_too = named.clone();
    let cut = async {
        loop {
            let is_cut = {
                let network_faults = network_faults.borrow_and_update();
                let name: Option<String> = named_too.borrow_and_update().clone();
                network_faults.is_cut
                    || name.is_some_and(|name| network_faults.banned.contains(&name))
            };
            if is_cut {
                return;
            }
            tokio::select! {
                changed = network_faults.changed() => if changed.is_err() { return },
                Ok(()) = named_too.changed() => {}
            }
        }
    };
    let both = async {
        let calls = pump(
            Direction::Calls,
            from_caller,
            to_target,
            &shared,
            Some(name),
        );
        let answers = pump(Direction::Answers, from_target, to_caller, &shared, None);
        // An error on one side ends both; an end of one side is passed on.
        let _error = tokio::try_join!(calls, answers);
    };
    tokio::select! {
        biased;
        () = cut => {}
        () = both => {}
    }
    drop(named);
}

async fn pump(
    direction: Direction,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    name: Option<watch::Sender<Option<String>>>,
) -> std::io::Result<()> {
    let mut network_faults = shared.network_faults.clone();
    let mut buffer = vec![0; BUFFER];
    let mut head = Vec::new();
    loop {
        let n = from.read(&mut buffer).await?;
        if n == 0 {
            return to.shutdown().await;
        }
        if let (Some(mark), Some(name)) = (shared.mark, &name)
            && name.borrow().is_none()
            && head.len() < HEAD_MAX
        {
            head.extend_from_slice(&buffer[..n]);
            if let Some(found) = after_mark(&head, mark) {
                name.send_replace(Some(found));
                // The caller may be cut off: that is noticed before anything goes on.
                tokio::task::yield_now().await;
            }
        }
        let passes = |network_faults: &NetworkFaults| match direction {
            Direction::Calls => !network_faults.holds_calls,
            Direction::Answers => !network_faults.holds_answers,
        };
        let delay = match network_faults.wait_for(passes).await {
            Ok(network_faults) => network_faults.delay,
            Err(_closed) => return Ok(()),
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        to.write_all(&buffer[..n]).await?;
        let passed = match direction {
            Direction::Calls => &shared.bytes.calls,
            Direction::Answers => &shared.bytes.answers,
        };
        passed.fetch_add(n as u64, Ordering::Relaxed);
    }
}

/// Returns the rest of the line after these characters, once all of it is there.
fn after_mark(head: &[u8], mark: &str) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let (_, rest) = head.split_once(mark)?;
    let (found, _) = rest.split_once("\r\n")?;
    Some(found.to_owned())
}

#[cfg(test)]
mod tests;
