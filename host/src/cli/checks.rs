//! What start commands refuse though each of their arguments parses.

use std::net::SocketAddr;
use std::time::Duration;

use super::Failure;

/// Listeners that others reach are opened on purpose only: nobody is asked who they are.
pub(super) fn check_open(flag: &str, address: SocketAddr, insecure: bool) -> Result<(), Failure> {
    if insecure || address.ip().is_loopback() {
        return Ok(());
    }
    Err(Failure::new(
        format!("{flag} {address} would let everybody who reaches it control the crawler"),
        format!(
            "listen on this machine only, {flag} :{}, or add --insecure",
            address.port()
        ),
    ))
}

/// Profiles show the program's insides, and taking one costs time.
pub(super) fn check_pprof(address: Option<SocketAddr>) -> Result<(), Failure> {
    match address.filter(|address| !address.ip().is_loopback()) {
        None => Ok(()),
        Some(address) => Err(Failure::new(
            format!(
                "--pprof {address} would show the program's insides to everybody who reaches it"
            ),
            format!("listen on this machine only: --pprof :{}", address.port()),
        )),
    }
}

/// A lease has to be renewed several times before it ends.
pub(super) fn check_lease_ttl(ttl: Duration) -> Result<(), Failure> {
    if ttl >= Duration::from_secs(1) {
        return Ok(());
    }
    Err(Failure::new(
        format!("--lease-ttl {ttl:?} is too short to be renewed in time"),
        "use at least 1s",
    ))
}

/// Files that somebody may still need stay: one call of the object store has half a minute, and what a
/// compaction has replaced is noticed a second later.
pub(super) fn check_frontier_min_age(age: Duration) -> Result<(), Failure> {
    if age >= Duration::from_secs(60) {
        return Ok(());
    }
    Err(Failure::new(
        format!(
            "--frontier-min-age {age:?} is shorter than reads and writes may take that are under way"
        ),
        "use at least 1m; hours are safe where processes may be suspended",
    ))
}

/// Where others reach gRPC, if that is not where it listens.
pub(super) fn advertised(
    advertise: Option<&str>,
    grpc: SocketAddr,
) -> Result<Option<String>, Failure> {
    match advertise {
        Some(text) => host_and_port(text, grpc.port()).map(Some),
        None if grpc.ip().is_unspecified() => Err(Failure::new(
            format!("--grpc {grpc} is no address that others can reach"),
            "say how they do: --advertise HOST[:PORT]",
        )),
        None => Ok(None),
    }
}

/// `HOST:PORT`, with the port that gRPC listens on where none was given.
fn host_and_port(text: &str, grpc_port: u16) -> Result<String, Failure> {
    let wrong = |hint: &str| Failure::new(format!("--advertise {text} is no address"), hint);
    let expected = "write HOST or HOST:PORT, like 10.0.0.5:9091";
    let url = format!("http://{text}").parse::<url::Url>();
    let url = url.map_err(|_| wrong(expected))?;
    let bare = url.username().is_empty() && url.path() == "/" && url.query().is_none();
    let host = url.host_str().filter(|_| bare && !text.ends_with('/'));
    let host = host.ok_or_else(|| wrong(expected))?;
    // A port that is the scheme's own one is not kept by the parser.
    let port = match text.rsplit_once(':') {
        Some((_, port)) => port.parse().unwrap_or(grpc_port),
        None => grpc_port,
    };
    match port {
        0 => Err(wrong(
            "write HOST:PORT; the port of --grpc is not known before it listens",
        )),
        port => Ok(format!("{host}:{port}")),
    }
}
