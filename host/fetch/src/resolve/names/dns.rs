//! Lookup at name servers: no lookup takes a thread, and records say how long they are valid.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use hickory_resolver::net::NetError;

use super::file_backed::FileBacked;
use super::lookup::{Found, LookUp, Resolved};
use super::settings::NameSettings;
use crate::error::is_out_of_files;
use crate::resolve::error::ResolveError;

/// Maximum number of answers that the resolver itself remembers; useful here is that a name does not exist.
const MAX_ANSWERS: u64 = 10_000;
/// The longest time for which it is remembered that a name does not exist.
const MAX_ABSENT: Duration = Duration::from_secs(5 * 60);
/// Maximum number of questions in flight on one connection to a name server.
const MAX_QUESTIONS: usize = 1_024;

/// Files that name the servers, and the hosts that need no lookup.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];

/// Creates a lookup at the name servers of this machine. The error tells why they are not known.
pub(super) fn look_up(settings: &NameSettings) -> Result<LookUp, String> {
    let max_ttl = settings.max_ttl;
    let make = move || {
        let builder = TokioResolver::builder_tokio().map_err(|error| error.to_string())?;
        resolver(builder, max_ttl)
    };
    let resolver = Arc::new(FileBacked::new(&FILES, Box::new(make))?);
    Ok(Arc::new(move |name| found(resolver.get(), name).boxed()))
}

fn resolver(mut builder: Builder, max_ttl: Duration) -> Result<TokioResolver, String> {
    let options = builder.options_mut();
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.cache_size = MAX_ANSWERS;
    options.positive_max_ttl = Some(max_ttl);
    options.negative_max_ttl = Some(MAX_ABSENT);
    options.max_active_requests = MAX_QUESTIONS;
    builder.build().map_err(|error| error.to_string())
}

type Builder =
    hickory_resolver::ResolverBuilder<hickory_resolver::net::runtime::TokioRuntimeProvider>;

async fn found(resolver: TokioResolver, name: String) -> Found {
    // A name with a dot is complete: the search domains of the machine are for its own short names.
    let whole = match name.contains('.') && !name.ends_with('.') {
        true => format!("{name}."),
        false => name.clone(),
    };
    let found = resolver.lookup_ip(whole).await;
    let found = found.map_err(|error| match &error {
        NetError::Io(io) if is_out_of_files(io) => ResolveError::OpenFiles { name },
        _ => ResolveError::Unknown {
            name,
            why: error.to_string(),
        },
    })?;
    Ok(Resolved {
        addresses: found.iter().collect(),
        ttl: found
            .valid_until()
            .saturating_duration_since(Instant::now()),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
    use hickory_resolver::net::runtime::TokioRuntimeProvider;

    use super::super::Names;
    use super::*;
    use crawler_process::task::TaskScope;

    /// A name server on loopback, which ends with its process when it is dropped. It knows `a.test` for two
    /// minutes, says that `gone.test` does not exist, that `late.test` does not exist for two seconds, and does not answer for
    /// `silent.test`.
    struct NameServer {
        address: SocketAddr,
        n_asked: Arc<AtomicUsize>,
    }

    impl NameServer {
        fn start() -> Self {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = socket.local_addr().unwrap();
            let n_asked = Arc::new(AtomicUsize::new(0));
            let noted = Arc::clone(&n_asked);
            std::thread::spawn(move || {
                let mut query = [0; 1_500];
                while let Ok((n, from)) = socket.recv_from(&mut query) {
                    noted.fetch_add(1, Ordering::Relaxed);
                    if let Some(answer) = answer(&query[..n]) {
                        let _gone = socket.send_to(&answer, from);
                    }
                }
            });
            Self { address, n_asked }
        }

        fn n_asked(&self) -> usize {
            self.n_asked.load(Ordering::Relaxed)
        }

        fn look_up(&self) -> LookUp {
            let mut connection = ConnectionConfig::udp();
            connection.port = self.address.port();
            let server = NameServerConfig::new(self.address.ip(), true, vec![connection]);
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
            let provider = TokioRuntimeProvider::default();
            let builder = TokioResolver::builder_with_config(config, provider);
            let resolver = resolver(builder, Duration::from_secs(3_600)).unwrap();
            Arc::new(move |name| found(resolver.clone(), name).boxed())
        }
    }

    /// Returns the answer to a query (RFC 1035, 4.1).
    fn answer(query: &[u8]) -> Option<Vec<u8>> {
        let end_of_name = 12 + query[12..].iter().position(|&byte| byte == 0)?;
        let question = query.get(12..end_of_name + 5)?;
        let is_ipv4 = query[end_of_name + 1..][..2] == [0, 1];
        let name = String::from_utf8_lossy(question).to_lowercase();
        let is_late = name.contains("late");
        let (code, n_answers, n_authorities, record) = if is_late || name.contains("gone") {
            // The start of authority tells how long the absence is valid.
            let seconds: u32 = if is_late { 2 } else { 300 };
            let mut record = b"\0\0\x06\0\x01".to_vec();
            record.extend(seconds.to_be_bytes());
            record.extend(b"\0\x16\0\0");
            record.extend([1, 300, 300, 300, seconds].map(u32::to_be_bytes).concat());
            (3, 0, 1, record)
        } else if name.contains("silent") {
            return None;
        } else if is_ipv4 {
            (
                0,
                1,
                0,
                b"\xc0\x0c\0\x01\0\x01\0\0\0\x78\0\x04\x08\x08\x08\x08".to_vec(),
            )
        } else {
            (0, 0, 0, Vec::new())
        };
        let mut answer = query[..2].to_vec();
        answer.extend([
            0x81,
            0x80 | code,
            0,
            1,
            0,
            n_answers,
            0,
            n_authorities,
            0,
            0,
        ]);
        answer.extend(question);
        answer.extend(record);
        Some(answer)
    }

    #[tokio::test]
    async fn addresses_count_for_as_long_as_their_records_say() {
        let server = NameServer::start();
        let known = server.look_up()("a.test".to_owned()).await.unwrap();
        assert_eq!(known.addresses, [Ipv4Addr::new(8, 8, 8, 8)]);
        let two_minutes = Duration::from_secs(100)..=Duration::from_secs(120);
        assert!(two_minutes.contains(&known.ttl), "{:?}", known.ttl);
    }

    #[tokio::test]
    async fn a_name_that_does_not_exist_is_not_asked_for_again_at_once() {
        let server = NameServer::start();
        let names = Names::remembering(server.look_up(), &NameSettings::default(), 10);
        for _ in 0..3 {
            let error = names.addresses("gone.test").await.unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with("gone.test cannot be resolved"),
                "{error}"
            );
            // Both kinds of address are asked for.
            assert!(server.n_asked() <= 2, "{}", server.n_asked());
        }
        assert!(!names.is_known("gone.test"));
    }

    #[tokio::test]
    async fn the_absence_of_a_name_ends_with_its_time() {
        let server = NameServer::start();
        let names = Names::remembering(server.look_up(), &NameSettings::default(), 10);
        names.addresses("late.test").await.unwrap_err();
        let n_asked = server.n_asked();
        names.addresses("late.test").await.unwrap_err();
        assert_eq!(server.n_asked(), n_asked, "its absence is remembered");
        let until_asked_again = async {
            while server.n_asked() == n_asked {
                names.addresses("late.test").await.unwrap_err();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let deadline = Duration::from_secs(20);
        let asked_again = tokio::time::timeout(deadline, until_asked_again).await;
        asked_again.expect("its absence is forgotten");
    }

    #[test]
    fn r04_name_servers_that_do_not_answer_hold_up_no_files() {
        let server = NameServer::start();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let look_up = server.look_up();
            let lookups = TaskScope::new();
            for n in 0..64 {
                let lookup = look_up(format!("silent{n}.test"));
                lookups.spawn("lookup", lookup.map(drop));
            }
            while server.n_asked() < 64 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let read = tokio::fs::read("Cargo.toml");
            let read = tokio::time::timeout(Duration::from_secs(2), read).await;
            assert!(read.expect("files are read meanwhile").is_ok());
            lookups.stop(Duration::ZERO).await;
        });
    }
}
