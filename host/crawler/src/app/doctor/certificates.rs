//! Checks of certificates: those of the table `[tls]`, and the one that a node got from the CA of its cluster.
//!
//! The certificate of the cluster is not used where `[tls]` names another one. The finding is the worst that was found of any file.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use crate::app::node_certificate::{NodeFiles, shown_time};
use crate::app::node_tls::NodeTls;
use crate::cli::doctor::{DoctorOptions, Finding, Verdict};
use crawler_access::ca::CertificateFacts;
use crawler_api::tls::{IdentityFiles, TlsError, certificate_facts};
use crawler_model::crawl::UnixMillis;
use crawler_process::clock::{Clock as _, SystemClock};
use crawler_process::telemetry;

const CHECK: &str = "certificates";

/// Time within which a certificate should not expire.
const SOON: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Part of its life after which the certificate of a node should have been renewed.
const LATE: f64 = 0.75;

pub(super) async fn check(options: &DoctorOptions) -> Finding {
    worst(all(options, SystemClock.unix_millis()))
}

/// Returns what was found of each file.
fn all(options: &DoctorOptions, now: UnixMillis) -> Vec<Finding> {
    let tls = &options.place.config.tls;
    if let Err(error) = NodeTls::load(tls, None) {
        return vec![Finding::of_error(CHECK, &error)];
    }
    let authorities = [&tls.client_ca, &tls.ca].into_iter().flatten();
    let mut findings: Vec<Finding> = authorities.map(|file| of_authorities(file, now)).collect();
    match tls.identity() {
        Some(identity) => findings.push(of_identity(&identity, options)),
        None => {
            let folders = options.node_folders.iter().cloned();
            for files in folders.map(NodeFiles::in_folder) {
                match files.folder_exists() {
                    Ok(true) => findings.push(of_node(&files, options, now)),
                    Ok(false) => {}
                    Err(error) => findings.push(unreadable(&error)),
                }
            }
        }
    }
    if findings.is_empty() {
        let found =
            "[tls] names none, and no node has joined the cluster here: listeners do not speak TLS";
        findings.push(Finding::ok(CHECK, found));
    }
    findings
}

/// Returns the worst finding, or one that tells all if nothing is wrong.
fn worst(findings: Vec<Finding>) -> Finding {
    for verdict in [Verdict::Failed, Verdict::Warning] {
        if let Some(found) = findings.iter().find(|found| found.result == verdict) {
            return found.clone();
        }
    }
    let found: Vec<String> = findings.into_iter().map(|found| found.found).collect();
    Finding::ok(CHECK, found.join("; "))
}

/// Checks a certificate of `[tls]`.
fn of_identity(identity: &IdentityFiles, options: &DoctorOptions) -> Finding {
    let file = identity.certificate.display();
    match identity.check(SOON) {
        Ok(()) => of_host(identity, options),
        Err(TlsError::Expired { at, .. }) => {
            let found = format!("{file} expires soon, at {at}");
            Finding::warning(CHECK, found, "renew the certificate")
        }
        Err(error) => Finding::failed(CHECK, error.to_string(), error.hint()),
    }
}

/// Checks that a certificate is one of the host that other nodes call.
fn of_host(identity: &IdentityFiles, options: &DoctorOptions) -> Finding {
    let file = identity.certificate.display();
    let listener = options.grpc.ip();
    let host = match &options.advertise {
        Some(host) => host.clone(),
        None if listener.is_unspecified() => {
            let found = format!("{file} can be used; nobody says for which host");
            return Finding::warning(CHECK, found, "name the host with --advertise");
        }
        None => listener.to_string(),
    };
    match identity.is_of(&host) {
        Ok(true) => Finding::ok(CHECK, format!("{file} can be used, and is one of {host}")),
        Ok(false) => Finding::warning(
            CHECK,
            format!("{file} is no certificate of {host}, where other nodes call this one"),
            "name that host in the certificate, or another one with --advertise",
        ),
        Err(error) => Finding::failed(CHECK, error.to_string(), error.hint()),
    }
}

/// Checks the CA certificates of a file. TLS of this program looks at the times of what a CA has issued, and not at its
/// own.
fn of_authorities(file: &Path, now: UnixMillis) -> Finding {
    let facts = match certificate_facts(file) {
        Ok(facts) => facts,
        Err(error) => return Finding::failed(CHECK, error.to_string(), error.hint()),
    };
    let first_end = facts.iter().map(|facts| facts.not_after).min();
    let (end, file) = (first_end.unwrap_or_default(), file.display());
    let at = shown_time(end);
    if end < now {
        let found = format!("{file} has a CA certificate that expired at {at}");
        let advice =
            "replace it by the next one of the CA: other programs refuse what it vouches for";
        return Finding::warning(CHECK, found, advice);
    }
    if end < now.saturating_add(millis(SOON)) {
        let found = format!("{file} has a CA certificate that expires soon, at {at}");
        return Finding::warning(CHECK, found, "add the next one of the CA");
    }
    Finding::ok(CHECK, format!("{file} vouches until {at}"))
}

/// Checks the certificate that a node got from the CA of its cluster.
fn of_node(files: &NodeFiles, options: &DoctorOptions, now: UnixMillis) -> Finding {
    const JOIN: &str =
        "make a join token with `crawler node join-token add`, and start the node with --join FILE";
    let facts = match files.facts() {
        Ok(Some(facts)) => facts,
        Ok(None) => {
            let folder = files.certificate();
            let found = format!("there is no {}, or not all with it", folder.display());
            return Finding::warning(CHECK, found, JOIN);
        }
        Err(error) => return unreadable(&error),
    };
    let (certificate, ca) = (files.certificate(), files.ca());
    let (file, end) = (certificate.display(), shown_time(facts.not_after));
    if facts.not_after < now {
        let found = format!("the certificate of this node in {file} expired at {end}");
        let advice = format!("{JOIN}; a master with [cluster] issues its own when it starts");
        return Finding::failed(CHECK, found, advice);
    }
    if facts.not_before > now {
        let from = shown_time(facts.not_before);
        let found = format!("the certificate of this node in {file} is not valid before {from}");
        return Finding::failed(CHECK, found, "set the clock of this machine");
    }
    let identity = files.identity();
    if let Err(error) = identity.check(Duration::ZERO) {
        return Finding::failed(CHECK, error.to_string(), error.hint());
    }
    if late(&facts) < now {
        let found = format!("{file} expires at {end}, and was not renewed in time");
        let advice = "start the node if it does not run, or read in its log why it cannot renew it";
        return Finding::warning(CHECK, found, advice);
    }
    match of_authorities(&ca, now) {
        found if found.result != Verdict::Ok => Finding {
            advice: "let the cluster have a new CA: Certificates of nodes, in the book".to_owned(),
            ..found
        },
        _ => of_host(&identity, options),
    }
}

/// Returns the finding for files of a node that cannot be read. Only the user of the node may read them.
fn unreadable(error: &anyhow::Error) -> Finding {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    match causes.any(|cause| cause.kind() == ErrorKind::PermissionDenied) {
        true => {
            let found = telemetry::chain(error.as_ref());
            Finding::failed(CHECK, found, "run doctor as the user of the node")
        }
        false => Finding::of_error(CHECK, error),
    }
}

/// Returns the time by which the certificate of a node should have been renewed.
fn late(facts: &CertificateFacts) -> UnixMillis {
    let life = Duration::from_millis(facts.not_after.saturating_sub(facts.not_before));
    facts.not_before.saturating_add(millis(life.mul_f64(LATE)))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use rcgen::{
        BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType, date_time_ymd,
    };
    use tempfile::TempDir;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::config::Environment;

    const DAY: u64 = 24 * 60 * 60 * 1_000;

    /// A node that has joined, with a certificate of 2001 to 2101 of a CA of 2000 to 2100.
    struct Joined {
        home: TempDir,
        options: Box<DoctorOptions>,
    }

    impl Joined {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let key = KeyPair::generate().unwrap();
            let mut ca = CertificateParams::default();
            ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            ca.not_before = date_time_ymd(2000, 1, 1);
            ca.not_after = date_time_ymd(2100, 1, 1);
            let ca_pem = ca.self_signed(&key).unwrap().pem();
            let issuer = Issuer::from_params(&ca, key);
            let own = KeyPair::generate().unwrap();
            let mut node = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
            let uri = "crawler://c1/worker/worker-1".try_into().unwrap();
            node.subject_alt_names.push(SanType::URI(uri));
            node.not_before = date_time_ymd(2001, 1, 1);
            node.not_after = date_time_ymd(2101, 1, 1);
            let certificate = node.signed_by(&own, &issuer).unwrap().pem();
            let folder = home.path().join("node");
            std::fs::create_dir(&folder).unwrap();
            for (name, text) in [
                ("ca.pem", ca_pem),
                ("certificate.pem", certificate),
                ("key.pem", own.serialize_pem()),
            ] {
                std::fs::write(folder.join(name), text).unwrap();
            }
            let state = format!("--state={}", home.path().display());
            let line = ["crawler", "doctor", &state].map(OsString::from);
            let command = Cli::parse(line, &Environment::default()).unwrap().command;
            let Command::Doctor(options) = command else {
                panic!("{command:?}");
            };
            Self { home, options }
        }

        fn ca(&self) -> PathBuf {
            self.home.path().join("node/ca.pem")
        }

        #[track_caller]
        fn check(&self, year: i32, verdict: Verdict, said: &str) {
            let found = worst(all(&self.options, start_of(year)));
            assert_eq!(found.result, verdict, "{found:?}");
            assert!(found.found.contains(said), "{found:?}");
        }
    }

    fn start_of(year: i32) -> UnixMillis {
        let seconds = date_time_ymd(year, 1, 1).unix_timestamp();
        u64::try_from(seconds).unwrap() * 1_000
    }

    #[test]
    fn the_certificate_of_a_node_is_told_when_it_was_not_renewed() {
        let joined = Joined::new();
        joined.check(2060, Verdict::Ok, "is one of 127.0.0.1");
        joined.check(2000, Verdict::Failed, "not valid before 2001-01-01");
        joined.check(2080, Verdict::Warning, "was not renewed in time");
        joined.check(2102, Verdict::Failed, "expired at 2101-01-01");
        std::fs::remove_file(joined.home.path().join("node/key.pem")).unwrap();
        joined.check(2060, Verdict::Warning, "there is no ");
    }

    #[test]
    fn a_node_whose_files_cannot_be_read_is_not_told_to_join() {
        let denied = io::Error::from(ErrorKind::PermissionDenied);
        let found = unreadable(&anyhow::Error::from(denied).context("cannot look for node"));
        assert_eq!(found.result, Verdict::Failed);
        assert_eq!(found.advice, "run doctor as the user of the node");
        // Nobody can tell what is below a file.
        let mut joined = Joined::new();
        joined.options.node_folders = vec![joined.ca().join("node")];
        joined.check(2060, Verdict::Failed, "cannot look for");
    }

    #[test]
    fn a_client_ca_is_told_before_and_after_its_end() {
        let mut joined = Joined::new();
        joined.options.node_folders.clear();
        joined.check(2060, Verdict::Ok, "names none");
        joined.options.place.config.tls.client_ca = Some(joined.ca());
        joined.check(2060, Verdict::Ok, "vouches until 2100-01-01");
        joined.check(2101, Verdict::Warning, "expired at 2100-01-01");
        let soon = start_of(2100) - 6 * DAY;
        let found = worst(all(&joined.options, soon));
        assert_eq!(found.result, Verdict::Warning);
        assert!(found.found.contains("expires soon"), "{found:?}");
    }
}
