//! The endpoints of `--pprof`: profiles of this process over HTTP, for `go tool pprof` and as pictures.
//!
//! ```text
//! GET /debug/pprof/                           what there is
//! GET /debug/pprof/profile?seconds=N          where processor time goes in the next N seconds
//! GET /debug/pprof/flamegraph?seconds=N       the same, as a flame graph
//! GET /debug/pprof/heap?seconds=N             what is allocated in the next N seconds and in use at their end
//! GET /debug/pprof/heap/flamegraph?seconds=N  the same, as a flame graph
//! ```
//!
//! Callers are not authenticated: only this machine reaches the listener. A profile ends when its caller does
//! not wait for it any more.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::{MethodRouter, get};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::params;
use super::request::{Params, known};
use super::{local, misses, server};
use crate::connections::Connections;
use crate::problem::Problem;
use crate::requests::Requests;
use crawler_master::Code;
use crawler_model::id::NodeId;
use crawler_process::telemetry::chain;
use crawler_process::telemetry::profile::{Profile, ProfileError, ProfileForm, ProfileSubject};

/// Length of a profile in seconds, unless the caller says otherwise.
const DEFAULT_SECONDS: u64 = 30;
/// Longest profile, in seconds.
const MAX_SECONDS: u64 = 300;
/// Type of a profile that is a message.
const MESSAGE: &str = "application/octet-stream";
/// Name of the file of a profile of processor time.
const CPU_FILE: &str = "attachment; filename=\"cpu.pb\"";
/// Name of the file of a profile of the heap.
const HEAP_FILE: &str = "attachment; filename=\"heap.pb\"";

/// State that the handlers share.
#[derive(Clone)]
struct ProfileService {
    address: SocketAddr,
    /// Ids of the nodes that the process is.
    nodes: Arc<[NodeId]>,
    stop: CancellationToken,
}

/// Serves the profiles of a process, which is these nodes, until `stop` is cancelled. A profile that is under way then is answered with the samples it has.
pub async fn serve(
    listener: TcpListener,
    nodes: Vec<NodeId>,
    requests: Requests,
    stop: CancellationToken,
) -> io::Result<()> {
    use ProfileForm::{FlameGraph, Pprof};
    use ProfileSubject::{Heap, Processors};

    let service = ProfileService {
        address: listener.local_addr()?,
        nodes: nodes.into(),
        stop: stop.clone(),
    };
    let router = Router::new()
        .route("/debug/pprof/", get(index))
        .route("/debug/pprof/profile", profiles(Processors, Pprof))
        .route("/debug/pprof/flamegraph", profiles(Processors, FlameGraph))
        .route("/debug/pprof/heap", profiles(Heap, Pprof))
        .route("/debug/pprof/heap/flamegraph", profiles(Heap, FlameGraph))
        .fallback(nothing_here)
        .with_state(service)
        .layer(axum::middleware::from_fn(local::only));
    let router = misses::naming_methods(router);
    let connections = Connections::of_http(listener, &requests.settings, None);
    server::serve(connections, router, requests.settings.stall_timeout, stop).await
}

async fn index(State(service): State<ProfileService>) -> String {
    format!(
        "/debug/pprof/profile?seconds=N           where processor time goes, for N seconds: {DEFAULT_SECONDS} if left \
         out, {MAX_SECONDS} at most\n\
         /debug/pprof/flamegraph?seconds=N        the same, as a picture\n\
         /debug/pprof/heap?seconds=N              what is allocated in N seconds, and in use at their end\n\
         /debug/pprof/heap/flamegraph?seconds=N   the same, as a picture\n\n  \
         curl -o cpu.pb http://{0}/debug/pprof/profile\n  \
         go tool pprof cpu.pb\n\n  \
         crawler profile {0} -o cpu.svg\n  \
         crawler profile {0} --heap -o heap.svg\n",
        service.address
    )
}

/// Returns the handler that answers with profiles of one subject in one form.
fn profiles(subject: ProfileSubject, form: ProfileForm) -> MethodRouter<ProfileService> {
    get(
        move |State(service): State<ProfileService>, params: Params| async move {
            let bytes = profile(&service, params, subject, form).await?;
            Ok::<_, Problem>((head(subject, form), bytes).into_response())
        },
    )
}

/// Returns the headers of an answer: a message is a file, and a picture is shown.
fn head(subject: ProfileSubject, form: ProfileForm) -> HeaderMap {
    let (kind, file) = match (form, subject) {
        (ProfileForm::FlameGraph, _) => ("image/svg+xml", None),
        (ProfileForm::Pprof, ProfileSubject::Processors) => (MESSAGE, Some(CPU_FILE)),
        (ProfileForm::Pprof, ProfileSubject::Heap) => (MESSAGE, Some(HEAP_FILE)),
    };
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let file = file.map(HeaderValue::from_static);
    let file = file.map(|file| (header::CONTENT_DISPOSITION, file));
    [kind].into_iter().chain(file).collect()
}

/// Takes a profile of as many seconds as the parameters say.
async fn profile(
    service: &ProfileService,
    params: Params,
    subject: ProfileSubject,
    form: ProfileForm,
) -> Result<Vec<u8>, Problem> {
    let params = known(params, &params::PROFILE)?;
    if let Some(node) = params.get("node") {
        check_node(node, &service.nodes)?;
    }
    let time = seconds(params.get("seconds").map(String::as_str))?;
    let profile = blocking(move || Profile::begin(subject)).await?;
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = service.stop.cancelled() => {}
    }
    blocking(move || profile.end(form)).await
}

/// Refuses a caller who wants the profile of another node: nodes of other machines may have told the same address.
fn check_node(node: &str, own: &[NodeId]) -> Result<(), Problem> {
    if own.iter().any(|id| id.as_str() == node) {
        return Ok(());
    }
    let own: Vec<_> = own.iter().map(NodeId::as_str).collect();
    let own = match own.is_empty() {
        true => "no node of a cluster".to_owned(),
        false => own.join(" and "),
    };
    Err(Problem::new(
        Code::FailedPrecondition,
        format!("the process at this address is {own}, and not {node}"),
        format!("a node serves profiles to its own machine only: ask on the machine of {node}"),
    ))
}

fn seconds(text: Option<&str>) -> Result<Duration, Problem> {
    let Some(text) = text else {
        return Ok(Duration::from_secs(DEFAULT_SECONDS));
    };
    match text.parse() {
        Ok(seconds @ 1..=MAX_SECONDS) => Ok(Duration::from_secs(seconds)),
        _ => Err(Problem::invalid(
            format!("seconds takes a whole number from 1 to {MAX_SECONDS}, not {text:?}"),
            format!("leave it out for {DEFAULT_SECONDS} seconds"),
        )),
    }
}

/// Runs a part of a profile on a thread for blocking work: the first profile reads the names of the whole
/// program.
async fn blocking<T: Send + 'static>(
    part: impl FnOnce() -> Result<T, ProfileError> + Send + 'static,
) -> Result<T, Problem> {
    match crawler_process::task::spawn_blocking(part).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error @ ProfileError::Busy)) => {
            let hint = "ask again when that one has ended";
            let problem = Problem::new(Code::ResourceExhausted, error.to_string(), hint);
            Err(problem.with_status(StatusCode::TOO_MANY_REQUESTS))
        }
        Ok(Err(error @ ProfileError::NoHeap)) => {
            let hint = "ask a crawler on Linux that is started without a _RJEM_MALLOC_CONF that turns them off";
            let problem = Problem::new(Code::FailedPrecondition, error.to_string(), hint);
            Err(problem.with_status(StatusCode::NOT_IMPLEMENTED))
        }
        Ok(Err(error)) => Err(Problem::new(Code::Internal, chain(&error), "")),
        Err(panic) => Err(Problem::new(Code::Internal, panic.to_string(), "")),
    }
}

async fn nothing_here(request: Request) -> Problem {
    let detail = format!("there is nothing at {}", request.uri().path());
    Problem::new(
        Code::NotFound,
        detail,
        "GET /debug/pprof/ lists what there is",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_node_is_told_from_this_one() {
        let own = ["master-1", "worker-1"].map(|id| id.parse().unwrap());
        assert!(check_node("worker-1", &own).is_ok());
        let refused = |own: &[NodeId]| check_node("worker-2", own).unwrap_err().to_string();
        let of_two = "the process at this address is master-1 and worker-1, and not worker-2";
        assert!(refused(&own).contains(of_two), "{}", refused(&own));
        let of_none = "the process at this address is no node of a cluster, and not worker-2";
        assert!(refused(&[]).contains(of_none));
    }
}
