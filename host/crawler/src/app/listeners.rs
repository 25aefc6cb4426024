//! The listeners of a process: gRPC, HTTP and profiles.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use super::open_files;
use crawler_api::access::Access;
use crawler_api::grpc::WorkerService;
use crawler_api::http::Metrics;
use crawler_api::requests::{RequestSettings, Requests};
use crawler_api::tls::ServerTls;
use crawler_api::{Api, grpc, http};
use crawler_model::id::NodeId;
use crawler_process::task::TaskScope;
use crawler_process::telemetry;

/// Time that calls in hand may take to be answered after a stop. A client that sends no whole request, or
/// does not close an idle connection, is not waited for.
const CALLS_GRACE: Duration = Duration::from_secs(2);

/// Number of connections that wait to be accepted; if there are more, a client tries again after a second.
const BACKLOG: u32 = 4_096;

/// Listeners whose ports are taken and not served yet.
pub(super) struct Listeners {
    grpc: TcpListener,
    http: TcpListener,
    pprof: Option<TcpListener>,
    requests: Requests,
    /// Certificates of gRPC and HTTP; `None` if they are plain.
    tls: Option<ServerTls>,
    /// Address of gRPC.
    pub(super) grpc_at: SocketAddr,
    /// Address of HTTP.
    pub(super) http_at: SocketAddr,
    /// Address of profiles; empty if none are served.
    pub(super) pprof_at: String,
    /// Ids of the nodes that the process is; callers may ask for the profile of one of them alone.
    pub(super) nodes: Vec<NodeId>,
}

impl Listeners {
    /// Takes the ports; an error names the setting that chooses another one. gRPC and HTTP are encrypted if there
    /// are certificates; profiles, which only this machine reaches, are not.
    pub(super) async fn take(
        (grpc, http, pprof): (SocketAddr, SocketAddr, Option<SocketAddr>),
        requests: &RequestSettings,
        tls: Option<ServerTls>,
    ) -> anyhow::Result<Self> {
        let grpc = listen(grpc, "--grpc").await?;
        let http = listen(http, "--http").await?;
        let pprof = match pprof {
            Some(pprof) => Some(listen(pprof, "--pprof").await?),
            None => None,
        };
        let (grpc_at, http_at) = (grpc.local_addr()?, http.local_addr()?);
        let pprof_at = match &pprof {
            Some(pprof) => pprof.local_addr()?.to_string(),
            None => String::new(),
        };
        Ok(Self {
            grpc,
            http,
            pprof,
            requests: Requests::new(RequestSettings {
                connections: open_files::connections(requests.connections),
                ..requests.clone()
            }),
            tls,
            grpc_at,
            http_at,
            pprof_at,
            nodes: Vec::new(),
        })
    }

    /// Returns the addresses of this process, for messages.
    pub(super) fn addresses(&self) -> Vec<String> {
        let all = [
            self.grpc_at.to_string(),
            self.http_at.to_string(),
            self.pprof_at.clone(),
        ];
        all.into_iter()
            .filter(|address| !address.is_empty())
            .collect()
    }

    /// Serves until `scope` is stopped. `access` tells who may call the listener at an address, `metrics` are told over HTTP,
    /// and `joined` is cancelled when the process belongs to the cluster.
    pub(super) fn open(
        self,
        master: Option<Api>,
        worker: Option<WorkerService>,
        access: impl Fn(SocketAddr) -> Access,
        metrics: Option<Metrics>,
        joined: CancellationToken,
        scope: &TaskScope,
    ) {
        let stop = scope.stop_signal();
        let (http, grpc) = (self.http, self.grpc);
        let (requests, tls) = (&self.requests, &self.tls);
        if let Some(tls) = tls.clone() {
            scope.spawn("certificates", tls.keep_current(stop.clone()));
        }
        let http = http::serve(
            http,
            master.clone(),
            access(self.http_at),
            metrics,
            requests.clone(),
            tls.clone(),
            stop.clone(),
        );
        let services = grpc::Services {
            master,
            worker,
            joined,
        };
        let grpc = grpc::serve(
            grpc,
            services,
            access(self.grpc_at),
            requests.clone(),
            tls.clone(),
            stop.clone(),
        );
        scope.spawn("grpc", served("gRPC", grpc, stop.clone()));
        scope.spawn("http", served("HTTP", http, stop));
        if let Some(pprof) = self.pprof {
            serve_profiles(pprof, self.nodes, self.requests, scope);
        }
    }
}

/// Serves profiles of a process, which is these nodes, until `scope` is stopped, and logs the address.
pub(super) fn serve_profiles(
    listener: TcpListener,
    nodes: Vec<NodeId>,
    requests: Requests,
    scope: &TaskScope,
) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!("serving profiles pprof={address}");
    }
    let stop = scope.stop_signal();
    let profiles = http::profile::serve(listener, nodes, requests, stop.clone());
    scope.spawn("profiles", served("HTTP of profiles", profiles, stop));
}

/// Takes a port; an error names the setting that chooses another one.
pub(super) async fn listen(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    let listening = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // A process that restarts takes its port back at once.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listening().with_context(|| cannot_listen(address, flag))
}

/// Checks that a port can be taken; an error names the setting that chooses another one. The port is free
/// again when this returns. Callers use it to fail before anything is made.
pub(super) fn check_port(address: SocketAddr, flag: &str) -> anyhow::Result<()> {
    let taken = std::net::TcpListener::bind(address).map(drop);
    taken.with_context(|| cannot_listen(address, flag))
}

fn cannot_listen(address: SocketAddr, flag: &str) -> String {
    format!(
        "cannot listen on {address}; choose another address with {flag}, or port 0 for a free one"
    )
}

async fn served<E: std::error::Error>(
    what: &'static str,
    server: impl Future<Output = Result<(), E>>,
    stop: CancellationToken,
) {
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(CALLS_GRACE).await;
    };
    tokio::select! {
        result = server => if let Err(error) = result {
            tracing::error!(error = telemetry::chain(&error), what, "the server ended");
        },
        () = too_late => tracing::warn!(what, "broke off the connections that are still open"),
    }
}
