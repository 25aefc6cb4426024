//! `crawler doctor` on what is well, and on what is not.

use crawler_tests::process::{Ended, Home};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::Value;

use crate::server::{Server, text};

/// Returns the result of a check and what it found.
#[track_caller]
fn finding(ended: &Ended, check: &str) -> (String, String) {
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", ended.stdout, ended.stderr));
    let checks = report["checks"].as_array().expect("checks are a list");
    let found = checks.iter().find(|found| found["check"] == check);
    let found = found.unwrap_or_else(|| panic!("{check} is not in {report}"));
    let word = |key: &str| text(&found[key]).to_owned();
    (word("result"), word("found"))
}

#[test]
fn a_server_that_runs_is_healthy() {
    let server = Server::start();
    let grpc = format!("--grpc={}", server.grpc());
    let ended = server.cli(&["doctor", "--json", "--http=:0", &grpc]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for check in ["store", "clock", "http port", "grpc port", "token"] {
        let (result, found) = finding(&ended, check);
        assert_eq!(result, "ok", "{check}: {found}");
    }
    let (_, found) = finding(&ended, "grpc port");
    assert!(found.contains("is held by crawler up, process "), "{found}");
    assert!(found.ends_with("(crawler)"), "{found}");
    let lines = server.ok(&["doctor", "--http=:0", &grpc]);
    assert!(lines.starts_with("store "), "{lines}");
    // The probe has removed its objects.
    let probes = server.home.path().join("crawler-data/probe");
    let left = std::fs::read_dir(&probes).into_iter().flatten().count();
    assert_eq!(left, 0);
}

#[test]
fn a_port_of_a_crawler_elsewhere_is_not_free() {
    let other = Server::start();
    let home = Home::new();
    let grpc = format!("--grpc={}", other.grpc());
    let ended = home.run(["doctor", "--json", "--http=:0", &grpc]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let (result, found) = finding(&ended, "grpc port");
    assert_eq!(result, "failed");
    assert!(
        found.ends_with("which is no node of this cluster"),
        "{found}"
    );
}

#[test]
fn a_wrong_etcd_and_a_root_that_cannot_be_written_are_told() {
    let home = Home::new();
    home.write("file", "");
    let usual = ["doctor", "--json", "--http=:0", "--grpc=:0"];
    let place = ["--etcd=http://127.0.0.1:1", "--data=file"];
    let ended = home.run(usual.iter().chain(&place));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let (result, found) = finding(&ended, "store");
    assert_eq!(result, "failed");
    let said = "cannot reach etcd at http://127.0.0.1:1";
    assert!(found.starts_with(said), "{found}");
    let (result, found) = finding(&ended, "data root");
    assert_eq!(result, "failed");
    assert!(found.starts_with("cannot write to file"), "{found}");
    assert!(ended.stderr.contains("checks failed"), "{}", ended.stderr);
}

#[test]
fn a_certificate_that_has_expired_is_told() {
    let home = Home::new();
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2001, 1, 1);
    let certificate = params.self_signed(&key).expect("signed");
    home.write("a.pem", &certificate.pem());
    home.write("a.key", &key.serialize_pem());
    let table = "[tls]\ncertificate = \"a.pem\"\nkey = \"a.key\"\nca = \"a.pem\"\n";
    home.write("crawler.toml", table);
    let ended = home.run(["doctor", "--json", "--http=:0", "--grpc=:0"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let (result, found) = finding(&ended, "certificates");
    assert_eq!(result, "failed");
    assert!(found.contains("expired at 2001-01-01"), "{found}");
}
