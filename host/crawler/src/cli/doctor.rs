//! `crawler doctor`: its arguments, and what it has found as text and as JSON.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use crawler_proto as proto;
use serde::Serialize;

use super::args::listen_address;
use super::place::{ClusterPlace, PlaceArgs};
use super::process_options::node_folder;
use super::{CalledMasters, Failure, login, table};
use crate::config::Environment;
use crawler_model::number;

/// Options of `crawler doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorOptions {
    /// Place of the cluster.
    pub place: ClusterPlace,
    /// Address of the HTTP listener.
    pub http: SocketAddr,
    /// Address of the gRPC listener.
    pub grpc: SocketAddr,
    /// Host under which other nodes call this one. If `None`, it is that of the gRPC listener.
    pub advertise: Option<String>,
    /// Folders in which a node may have the certificate that it got from its cluster.
    pub node_folders: Vec<PathBuf>,
    /// Masters to call.
    pub masters: CalledMasters,
    /// True if findings are printed as JSON.
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "It changes nothing. In the data root it writes objects of its own below probe/ and removes them.\n\nExamples:\n  crawler doctor\n  crawler doctor --etcd http://10.0.0.1:2379 --data s3://bucket/crawler --master http://10.0.0.1:9091"
)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Address of the HTTP listener
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081", value_parser = listen_address)]
    http: SocketAddr,
    /// Address of the gRPC listener
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9091", value_parser = listen_address)]
    grpc: SocketAddr,
    /// Host at which others reach gRPC; the certificate has to be valid for it
    #[arg(long, value_name = "HOST[:PORT]")]
    advertise: Option<String>,
    /// State of the node, with the certificate that it got from its cluster [default: that of a master and that of a worker at --grpc]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DoctorArgs {
    pub(super) fn into_options(
        self,
        environment: &Environment,
        masters: CalledMasters,
    ) -> anyhow::Result<DoctorOptions> {
        let host = |address: String| match address.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
            _ => address,
        };
        Ok(DoctorOptions {
            place: self.place.into_place()?,
            http: self.http,
            grpc: self.grpc,
            advertise: self.advertise.map(host),
            node_folders: match self.state {
                Some(state) => vec![node_folder(&state)],
                None => ["master", "worker"]
                    .map(|role| node_folder(&environment.state_folder(role, self.grpc.port())))
                    .into(),
            },
            masters,
            json: self.json,
        })
    }
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All is well.
    Ok,
    /// It works, and somebody should look.
    Warning,
    /// It does not work.
    Failed,
}

/// Finding of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub check: &'static str,
    /// Result of the check.
    pub result: Verdict,
    /// State that was found.
    pub found: String,
    /// Way out; empty if there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

impl Finding {
    /// Creates the finding that all is well.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            result: Verdict::Ok,
            found: found.into(),
            advice: String::new(),
        }
    }

    /// Creates the finding that somebody should look.
    pub fn warning(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            result: Verdict::Warning,
            advice: advice.into(),
            ..Self::ok(check, found)
        }
    }

    /// Creates the finding that something does not work.
    pub fn failed(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            result: Verdict::Failed,
            ..Self::warning(check, found, advice)
        }
    }

    /// Creates the finding of an error. Its causes may know a way out.
    pub fn of_error(check: &'static str, error: &anyhow::Error) -> Self {
        let found = crawler_process::telemetry::chain(error.as_ref());
        Self::failed(check, found, super::report::hint(error))
    }
}

/// Prints findings in this order. The error says how many checks have failed.
pub fn print(findings: &[Finding], is_json: bool) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Report<'a> {
        checks: &'a [Finding],
    }
    match is_json {
        true => table::print_json(&Report { checks: findings })?,
        false => table::print_text(text(findings).as_bytes())?,
    }
    let failed = findings.iter().filter(|f| f.result == Verdict::Failed);
    match failed.count() as u64 {
        0 => Ok(()),
        n => Err(Failure::new(
            format!("{} failed", number(n, "check")),
            "do what is said below each of them",
        )
        .into()),
    }
}

/// Returns a line for each finding, and one below it with what to do.
fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.check.len()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for finding in findings {
        let result = match finding.result {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Failed => "failed",
        };
        let found = one_line(&finding.found);
        text.push_str(&format!("{:width$}  {result:<7}  {found}\n", finding.check));
        if !finding.advice.is_empty() {
            let advice = one_line(&finding.advice);
            text.push_str(&format!("{:width$}           -> {advice}\n", ""));
        }
    }
    text
}

/// Returns a text from elsewhere on one line, without characters that steer a terminal.
fn one_line(text: &str) -> String {
    table::plain(text).replace('\n', " ")
}

/// Returns the finding about the token that a master was shown.
pub fn of_caller(caller: &proto::Caller) -> Finding {
    const CHECK: &str = "token";
    let said = login::said(caller);
    match (caller.token_id.is_empty(), caller.roles.is_empty()) {
        (true, _) => Finding::ok(CHECK, "the master asks for no token"),
        (false, false) => Finding::ok(CHECK, said),
        (false, true) => Finding::failed(
            CHECK,
            format!("{said}: the token has no role"),
            "ask an admin for another one: crawler access token",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> [Finding; 3] {
        [
            Finding::ok("etcd", "version 3.5.1"),
            Finding::warning("open files", "1024", "raise the limit"),
            Finding::failed("data root", "cannot write\nto it", "name another one"),
        ]
    }

    #[test]
    fn findings_are_lines_with_what_to_do_below() {
        let expected = "\
etcd        ok       version 3.5.1
open files  warning  1024
                     -> raise the limit
data root   failed   cannot write to it
                     -> name another one
";
        assert_eq!(text(&findings()), expected);
    }

    #[test]
    fn findings_are_json() {
        let json = serde_json::to_value(&findings()[..2]).unwrap();
        let expected = serde_json::json!([
            {"check": "etcd", "result": "ok", "found": "version 3.5.1"},
            {"check": "open files", "result": "warning", "found": "1024", "advice": "raise the limit"},
        ]);
        assert_eq!(json, expected);
    }

    #[test]
    fn a_token_without_a_role_is_useless() {
        let mut caller = proto::Caller::default();
        assert_eq!(of_caller(&caller).found, "the master asks for no token");
        caller.token_id = "abc".to_owned();
        assert_eq!(of_caller(&caller).result, Verdict::Failed);
        caller.roles = vec!["viewer".to_owned()];
        assert_eq!(of_caller(&caller).result, Verdict::Ok);
    }
}
