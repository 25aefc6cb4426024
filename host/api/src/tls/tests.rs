//! Tests of certificates in files that are not what they should be, or change.

use std::time::Duration;

use super::testing::{Authority, Files};
use super::*;

#[track_caller]
fn check_refused(identity: IdentityFiles, expected: &str) {
    let error = ServerTls::load(identity, None).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(!error.hint().is_empty(), "{expected}");
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_fault() {
    let files = Files::new();
    let authority = Authority::new("ca");
    let good = files.identity("good", &authority.issue());
    let [certificate, key] = [&good.certificate, &good.key].map(|path| path.display().to_string());
    check_refused(
        IdentityFiles {
            certificate: "/nowhere/cert.pem".into(),
            ..good.clone()
        },
        "cannot read /nowhere/cert.pem: No such file or directory (os error 2)",
    );
    check_refused(
        IdentityFiles {
            certificate: good.key.clone(),
            ..good.clone()
        },
        &format!("{key} has no certificate in PEM"),
    );
    check_refused(
        IdentityFiles {
            key: good.certificate.clone(),
            ..good.clone()
        },
        &format!("{certificate} has no private key in PEM"),
    );
    let other = files.identity("other", &authority.issue()).key;
    check_refused(
        IdentityFiles {
            key: other.clone(),
            ..good.clone()
        },
        &format!(
            "the key in {} is not that of the certificate in {certificate}",
            other.display()
        ),
    );
    let old = files.identity("old", &authority.issue_for("a.test", 2000, 2001));
    let path = old.certificate.display().to_string();
    check_refused(
        old,
        &format!("the certificate in {path} expired at 2001-01-01T00:00:00Z"),
    );
    let new = files.identity("new", &authority.issue_for("a.test", 3000, 3001));
    let path = new.certificate.display().to_string();
    check_refused(
        new,
        &format!("the certificate in {path} is not valid before 3000-01-01T00:00:00Z"),
    );
    ServerTls::load(good, None).unwrap();
}

#[test]
fn changed_files_are_used_and_broken_ones_are_reported_once() {
    let files = Files::new();
    let authority = Authority::new("ca");
    let tls = files.server(&authority);
    let config = || tls.config(Protocol::Grpc);
    let first = config();
    assert_eq!(tls.reload(), Reload::Unchanged);
    assert!(Arc::ptr_eq(&first, &config()));
    // The key is not renewed yet.
    let renewed = authority.issue();
    files.write("server.pem", &renewed.certificate);
    let broken = tls.reload();
    assert!(
        matches!(broken, Reload::Broken(TlsError::OtherKey { .. })),
        "{broken:?}"
    );
    assert_eq!(tls.reload(), Reload::Unchanged);
    assert!(Arc::ptr_eq(&first, &config()));
    files.write("server.key", &renewed.key);
    assert_eq!(tls.reload(), Reload::Changed);
    assert!(!Arc::ptr_eq(&first, &config()));
}

#[test]
fn a_client_without_a_ca_trusts_nobody() {
    let error = ClientTls::default().config().unwrap_err();
    assert_eq!(error, TlsError::NobodyVouches);
}

#[test]
fn a_client_goes_on_with_its_files_of_today_or_those_before() {
    let files = Files::new();
    let tls = files.client(&Authority::new("one"), None);
    let first = tls.config().unwrap();
    files.authority("ca", &Authority::new("two"));
    let second = tls.config().unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
    files.write("ca.pem", "nothing");
    assert!(Arc::ptr_eq(&second, &tls.config().unwrap()));
}

#[test]
fn a_certificate_is_checked_for_a_later_time_and_for_a_host() {
    let files = Files::new();
    let authority = Authority::new("ca");
    let identity = files.identity("x", &authority.issue_for("a.test", 2000, 2100));
    assert_eq!(identity.check(Duration::ZERO), Ok(()));
    let century = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    let expired = identity.check(century);
    assert!(
        matches!(&expired, Err(TlsError::Expired { at, .. }) if at == "2100-01-01T00:00:00Z"),
        "{expired:?}"
    );
    assert_eq!(identity.is_of("a.test"), Ok(true));
    assert_eq!(identity.is_of("127.0.0.1"), Ok(false));
    assert_eq!(identity.is_of("not a host"), Ok(false));
}
