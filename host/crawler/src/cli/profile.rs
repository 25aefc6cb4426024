//! `crawler profile`: where the processor time of a process goes, or what takes its memory, as a picture or for
//! `go tool pprof`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use crawler_proto as proto;
use serde::Deserialize;

use super::{Failure, table, whole_file};
use crawler_api::client::Client;
use crawler_model::id::NodeId;

/// Time within which a process is connected to.
const CONNECT: Duration = Duration::from_secs(5);
/// Time beyond its length in which a profile comes: names are looked up at its end.
const SPARE: Duration = Duration::from_secs(60);
/// Largest profile that is taken, in bytes.
const MAX_BYTES: usize = 256 << 20;
/// Longest explanation of a refusal that is read, in bytes.
const MAX_PROBLEM: usize = 16 << 10;

#[derive(Debug, Args)]
#[command(
    after_help = "Only processes of this machine are asked, and only those that were started with --pprof. A profile changes nothing of what they do.\nThe address of a node comes from a master.\n\nA profile of the heap does not have memory from before: let it take minutes while the memory grows.\n\nExamples:\n  crawler up --pprof :9981\n  crawler profile worker-1\n  crawler profile 127.0.0.1:9981\n  crawler profile 127.0.0.1:9981 --seconds 10 -o cpu.pb\n  crawler profile 127.0.0.1:9981 --heap --seconds 300"
)]
pub(super) struct ProfileArgs {
    /// The process: id of a node, or the address from its --pprof, as HOST:PORT
    #[arg(value_name = "NODE_OR_ADDRESS")]
    process: Profiled,
    /// Length of the profile in seconds
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=300))]
    seconds: u64,
    /// Tell what is allocated in this time and in use at its end, instead of where processor time goes
    #[arg(long)]
    heap: bool,
    /// File to write, and replace if it is there: a picture if it ends in .svg, and for `go tool pprof` if it ends in .pb;
    /// without it cpu.svg, or heap.svg with --heap
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = ProfileFile::parse)]
    output: Option<ProfileFile>,
}

/// Process whose profile is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Profiled {
    /// The one that serves profiles at this address.
    At(SocketAddr),
    /// Node of the cluster.
    Node(NodeId),
}

impl FromStr for Profiled {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse() {
            return Ok(Self::At(address));
        }
        let node = text.parse().map(Self::Node);
        node.map_err(|_| {
            "name a node such as worker-1, or an address such as 127.0.0.1:9981".to_owned()
        })
    }
}

/// File that a profile is written to: its ending tells the form.
#[derive(Debug, Clone)]
struct ProfileFile {
    path: PathBuf,
    form: Form,
}

/// Form of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Picture in SVG.
    FlameGraph,
    /// Message of pprof.
    Pprof,
}

impl ProfileFile {
    fn parse(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let ending = path.extension().map(|ending| ending.to_string_lossy());
        let form = match ending.as_deref() {
            Some("svg") => Form::FlameGraph,
            Some("pb") => Form::Pprof,
            _ => return Err("end it in .svg for a picture, or .pb for go tool pprof".to_owned()),
        };
        Ok(Self { path, form })
    }
}

/// Explanation of a refusal.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    #[serde(default)]
    hint: String,
}

/// Returns the address at which a node serves profiles, which a master tells.
async fn address_of(id: &NodeId, client: &Client) -> anyhow::Result<SocketAddr> {
    let nodes = client.nodes(proto::ListNodesRequest::default()).await?;
    let Some(node) = nodes.into_iter().find(|node| node.id == id.as_str()) else {
        let hint = "`crawler node list` shows those there are";
        return Err(Failure::new(format!("there is no node {id}"), hint).into());
    };
    node.pprof.parse().map_err(|_| {
        Failure::new(
            format!("node {id} serves no profiles"),
            "start it with --pprof, such as --pprof :9981",
        )
        .into()
    })
}

/// Returns the way out if no connection comes about.
fn hint(process: &Profiled) -> String {
    match process {
        Profiled::At(_) => {
            "start the process with --pprof, and name the address that it prints as pprof"
                .to_owned()
        }
        Profiled::Node(id) => {
            format!(
                "a node serves profiles to its own machine only: run this command on the machine of {id}"
            )
        }
    }
}

/// Takes a profile. A master is connected to only if it has to tell an address.
pub(super) async fn run(
    args: ProfileArgs,
    connect: impl Future<Output = anyhow::Result<Client>>,
) -> anyhow::Result<()> {
    let ProfileArgs {
        process,
        seconds,
        heap,
        output,
    } = args;
    let output = output.unwrap_or_else(|| ProfileFile {
        path: if heap { "heap.svg" } else { "cpu.svg" }.into(),
        form: Form::FlameGraph,
    });
    let cannot_write = || format!("cannot write {}", output.path.display());
    // A profile of minutes is not taken in vain.
    drop(whole_file::create(&output.path).with_context(cannot_write)?);
    let address = match &process {
        Profiled::At(address) => *address,
        Profiled::Node(id) => address_of(id, &connect.await?).await?,
    };
    // A client is not made without a provider of TLS. An error means that there is one already.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .tls_certs_only([])
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .timeout(Duration::from_secs(seconds) + SPARE)
        .build()
        .context("no client of HTTP can be made")?;
    let path = path(heap, output.form);
    let node = match &process {
        Profiled::At(_) => String::new(),
        // Another machine may have a node at the same address of its own.
        Profiled::Node(id) => format!("&node={id}"),
    };
    let url = format!("http://{address}/debug/pprof/{path}?seconds={seconds}{node}");
    tracing::info!(%address, seconds, "a profile is being taken");
    let answer = http.get(url).send().await;
    let answer = answer.map_err(|error| {
        let error = error.without_url();
        let why = crawler_process::telemetry::chain(&error);
        Failure::new(
            format!("no profile comes from {address}: {why}"),
            hint(&process),
        )
    })?;
    if !answer.status().is_success() {
        let status = answer.status();
        let text = whole(answer, MAX_PROBLEM).await.unwrap_or_default();
        let problem: Problem = serde_json::from_slice(&text).unwrap_or_else(|_| Problem {
            detail: format!("it answers {status}"),
            hint: "name the address that a process prints as pprof".to_owned(),
        });
        let what = format!("no profile comes from {address}: {}", problem.detail);
        return Err(Failure::new(what, problem.hint).into());
    }
    let profile = whole(answer, MAX_BYTES).await?;
    let mut file = whole_file::create(&output.path).with_context(cannot_write)?;
    file.write_all(&profile).with_context(cannot_write)?;
    file.persist(&output.path).with_context(cannot_write)?;
    let done = format!("wrote {}\n", output.path.display());
    table::print_text(done.as_bytes())?;
    Ok(())
}

/// Returns the end of the path of a request.
fn path(heap: bool, form: Form) -> &'static str {
    match (heap, form) {
        (false, Form::FlameGraph) => "flamegraph",
        (false, Form::Pprof) => "profile",
        (true, Form::FlameGraph) => "heap/flamegraph",
        (true, Form::Pprof) => "heap",
    }
}

/// Reads a body that has at most this many bytes.
async fn whole(mut answer: reqwest::Response, max_bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.context("the profile breaks off")? {
        anyhow::ensure!(
            body.len() + chunk.len() <= max_bytes,
            "the answer has more than {max_bytes} bytes"
        );
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_no_node() {
        let address = "127.0.0.1:9981".parse().unwrap();
        assert_eq!("127.0.0.1:9981".parse(), Ok(Profiled::At(address)));
        let node = "worker-1".parse().unwrap();
        assert_eq!("worker-1".parse(), Ok(Profiled::Node(node)));
        for neither in ["localhost:9981", ":9981", "", "a b"] {
            let why = "name a node such as worker-1, or an address such as 127.0.0.1:9981";
            assert_eq!(
                neither.parse::<Profiled>(),
                Err(why.to_owned()),
                "{neither}"
            );
        }
    }

    #[test]
    fn the_way_out_is_that_of_what_was_named() {
        let way_out = |process: &str| hint(&process.parse().unwrap());
        assert!(way_out("127.0.0.1:9981").contains("start the process with --pprof"));
        assert!(way_out("worker-1").ends_with("on the machine of worker-1"));
    }

    #[test]
    fn the_ending_of_the_file_tells_the_form() {
        let form = |text| ProfileFile::parse(text).map(|file| file.form);
        assert_eq!(form("a/cpu.svg"), Ok(Form::FlameGraph));
        assert_eq!(form("cpu.pb"), Ok(Form::Pprof));
        for other in ["cpu", "cpu.png", ".svg", ""] {
            let why = "end it in .svg for a picture, or .pb for go tool pprof";
            assert_eq!(form(other), Err(why.to_owned()), "{other}");
        }
    }
}
