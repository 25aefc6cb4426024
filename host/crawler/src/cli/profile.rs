//! `crawler profile`: where the processor time of a process goes, or what takes its memory, as a picture or for
//! `go tool pprof`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;

use super::{Failure, table, whole_file};

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
    after_help = "Only processes of this machine are asked, and only those that were started with --pprof. A profile changes nothing of what they do.\n\nA profile of the heap does not have memory from before: let it take minutes while the memory grows.\n\nExamples:\n  crawler up --pprof :9981\n  crawler profile 127.0.0.1:9981\n  crawler profile 127.0.0.1:9981 --seconds 10 -o cpu.pb\n  crawler profile 127.0.0.1:9981 --heap --seconds 300"
)]
pub(super) struct ProfileArgs {
    /// Address at which the process serves profiles: HOST:PORT, from its --pprof
    address: SocketAddr,
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

pub(super) async fn run(args: ProfileArgs) -> anyhow::Result<()> {
    let ProfileArgs {
        address,
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
    let url = format!("http://{address}/debug/pprof/{path}?seconds={seconds}");
    tracing::info!(%address, seconds, "a profile is being taken");
    let answer = http.get(url).send().await;
    let answer = answer.map_err(|error| {
        let error = error.without_url();
        let why = crawler_process::telemetry::chain(&error);
        Failure::new(
            format!("no profile comes from {address}: {why}"),
            "start the process with --pprof, and name the address that it prints as pprof",
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
