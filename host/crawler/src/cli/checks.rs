//! Checks of start commands that go beyond each single argument.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::Failure;
use crate::config::TlsConfig;
use crawler_model::resource::CrawlSettings;
use crawler_model::settings::ArchiveForm;

/// Checks that a process of a cluster that speaks TLS can verify the other nodes, which do so too.
pub(super) fn check_ca(tls: &TlsConfig) -> Result<(), Failure> {
    if tls.certificate.is_none() || tls.ca.is_some() {
        return Ok(());
    }
    Err(Failure::new(
        "[tls] has certificate, and no ca by which this process could verify the other nodes",
        "name a file with the certificate of their CA: ca = FILE",
    ))
}

/// Checks that a node does not ask for a certificate while the config file names one.
pub(super) fn check_join(join: Option<&Path>, tls: &TlsConfig) -> Result<(), Failure> {
    let Some(join) = join.filter(|_| tls.keys().next().is_some()) else {
        return Ok(());
    };
    Err(Failure::new(
        format!(
            "--join {} asks for a certificate, and [tls] of the config file names files with another",
            join.display()
        ),
        "take [tls] out of the config file, or leave --join out",
    ))
}

/// Checks that a crawl in a terminal knows where its archive goes, and that all of it comes from sites now.
pub(super) fn check_archive(
    crawl: &CrawlSettings,
    has_folder: bool,
    has_cache: bool,
) -> Result<(), Failure> {
    let form = crawl.archive();
    match (form, has_folder) {
        (ArchiveForm::Off, false) => Ok(()),
        (ArchiveForm::Off, true) => Err(Failure::new(
            "--archives names a folder, and nothing is archived",
            "say in which form: --archive warc",
        )),
        (_, false) => Err(Failure::new(
            format!("--archive {form} needs a folder for its files"),
            "name one: --archives DIR",
        )),
        (_, true) if has_cache => Err(Failure::new(
            "--cache gives answers of earlier runs, and --archive records what sites answer now",
            "leave one of them out",
        )),
        (_, true) => Ok(()),
    }
}

/// Checks that profiles are served on this machine only: they show the program's internals, and taking one
/// costs time.
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

/// Checks that a lease is long enough to be renewed several times before it ends.
pub(super) fn check_lease_ttl(ttl: Duration) -> Result<(), Failure> {
    if ttl >= Duration::from_secs(1) {
        return Ok(());
    }
    Err(Failure::new(
        format!("--lease-ttl {ttl:?} is too short to be renewed in time"),
        "use at least 1s",
    ))
}

/// Checks that files stay as long as somebody may still need them: one call of the object store may take half
/// a minute, and a file that a compaction has replaced is noticed a second later.
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

/// Returns the address at which others reach gRPC, if it differs from the listener's.
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

/// Parses `HOST:PORT`; without a port, the one that gRPC listens on is added.
fn host_and_port(text: &str, grpc_port: u16) -> Result<String, Failure> {
    let wrong = |hint: &str| Failure::new(format!("--advertise {text} is no address"), hint);
    let expected = "write HOST or HOST:PORT, like 10.0.0.5:9091";
    let url = format!("http://{text}").parse::<url::Url>();
    let url = url.map_err(|_| wrong(expected))?;
    let bare = url.username().is_empty() && url.path() == "/" && url.query().is_none();
    let host = url.host_str().filter(|_| bare && !text.ends_with('/'));
    let host = host.ok_or_else(|| wrong(expected))?;
    // The parser drops a port that is the default of the scheme.
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
