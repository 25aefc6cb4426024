//! Servers that ask for credentials, are full, old or mute: each error names the fault and the way out.

use crawler_store::etcd::TlsSettings;
use crawler_tests::etcd::certificates::Certificates;
use tokio::net::TcpListener;

use super::*;
use crate::old::old_server;

#[track_caller]
fn check(error: &StoreError, is_transient: bool, words: &[&str]) {
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "no {word} in: {message}");
    }
    assert_eq!(error.is_transient(), is_transient, "{message}");
}

#[tokio::test]
async fn f29_a_server_is_reached_with_certificates_only() {
    let (Some(ours), Some(others)) = (Certificates::new(), Certificates::new()) else {
        return;
    };
    let Some(etcd) = Etcd::with_certificates(ours.clone()) else {
        return;
    };
    let with = |ca: &Certificates, client: Option<&Certificates>| EtcdSettings {
        tls: Some(TlsSettings {
            ca: ca.ca(),
            client: client.map(Certificates::client),
        }),
        ..settings(&etcd)
    };
    let store = EtcdStore::connect(with(&ours, Some(&ours))).await.unwrap();
    let from = done(&store, Txn::new().put("/t/a", "1")).await;
    let mut watch = store.watch("/t/", Revision(from.0 - 1)).await.unwrap();
    assert!(matches!(
        next(&mut watch).await.unwrap(),
        WatchEvent::Put(_)
    ));

    let endpoint = &etcd.endpoints()[0];
    let no_pem = TlsSettings {
        ca: b"no certificate".to_vec(),
        client: Some((b"none".to_vec(), b"none".to_vec())),
    };
    let plain = EtcdSettings {
        endpoints: vec![endpoint.replace("https", "http")],
        ..with(&ours, None)
    };
    for (case, settings) in [
        ("of others", with(&others, Some(&ours))),
        ("no client", with(&ours, None)),
        ("other client", with(&ours, Some(&others))),
        ("nothing", settings(&etcd)),
        (
            "no PEM",
            EtcdSettings {
                tls: Some(no_pem),
                ..settings(&etcd)
            },
        ),
    ] {
        let error = EtcdStore::connect(settings).await.expect_err(case);
        assert!(
            matches!(error, StoreError::Certificate { .. }),
            "{case}: {error:?}"
        );
        check(
            &error,
            false,
            &[endpoint, "check ca, certificate and key in [etcd]"],
        );
    }
    let error = EtcdStore::connect(plain).await.unwrap_err();
    check(&error, false, &["http://", "https"]);
}

#[tokio::test]
async fn f29_a_server_is_reached_with_name_and_password_only() {
    let Some(mut etcd) = Etcd::with(&["--auth-token-ttl=1"]) else {
        return;
    };
    let root = "--user=root:secret";
    for arguments in [
        &["user", "add", "root:secret"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "crawler:swordfish"],
        &["role", "add", "crawler"],
        &[
            "role",
            "grant-permission",
            "crawler",
            "readwrite",
            "/crawler/",
            "/crawler0",
        ],
        &["user", "grant-role", "crawler", "crawler"],
        &["auth", "enable"],
    ] {
        etcd.ctl(arguments);
    }
    let with = |name: &str, password: &str| EtcdSettings {
        user: Some((name.to_owned(), password.to_owned())),
        ..settings(&etcd)
    };
    let settings_of_crawler = with("crawler", "swordfish");
    let endpoint = etcd.endpoints().remove(0);
    for settings in [
        with("crawler", "wrong"),
        with("nobody", "swordfish"),
        settings(&etcd),
    ] {
        let error = EtcdStore::connect(settings).await.unwrap_err();
        assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
        check(
            &error,
            false,
            &[&endpoint, "check user and password-file in [etcd]"],
        );
    }
    let store = EtcdStore::connect(settings_of_crawler).await.unwrap();
    let from = done(&store, Txn::new().put("/crawler/a", "1")).await;
    let mut watch = store.watch("/crawler/", from).await.unwrap();
    // Access outside of the role is an error; a token that ran out is renewed silently.
    for _ in 0..2 {
        let error = store.get("/other").await.unwrap_err();
        check(&error, false, &["permission denied", "check user"]);
        let error = store
            .watch("/other/", from)
            .await
            .err()
            .expect("it is refused");
        check(&error, false, &["permission denied", "check user"]);
        tokio::time::sleep(Duration::from_secs(3)).await;
        let revision = done(&store, Txn::new().put("/crawler/a", "2")).await;
        match next(&mut watch).await.unwrap() {
            WatchEvent::Put(entry) => assert_eq!(entry.revision, revision),
            other => panic!("{other:?}"),
        }
        store.watch("/crawler/", from).await.unwrap();
    }
    // Tokens end with the server that issued them.
    etcd.kill(0);
    etcd.launch(0);
    let written = eventually(&store, &Txn::new().put("/crawler/b", "1")).await;
    loop {
        match next(&mut watch).await {
            Ok(WatchEvent::Put(entry)) if entry.revision == written => break,
            Ok(WatchEvent::Put(_)) => {}
            Err(error) if error.is_transient() => {}
            other => panic!("{other:?}"),
        }
    }
    etcd.ctl(&[root, "auth", "disable"]);
}

#[tokio::test]
async fn a_full_database_is_told_and_can_be_read() {
    let Some(etcd) = Etcd::with(&["--quota-backend-bytes=4000000"]) else {
        return;
    };
    let store = connect(&etcd).await;
    done(&*store, Txn::new().put("/t/a", "1")).await;
    let error = loop {
        match store
            .commit(Txn::new().put("/t/b", vec![b'x'; 200_000]))
            .await
        {
            Ok(outcome) => assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::NoSpace { .. }), "{error:?}");
    check(
        &error,
        true,
        &[
            &etcd.endpoints()[0],
            "--quota-backend-bytes",
            "alarm disarm",
        ],
    );
    assert_eq!(store.get("/t/a").await.unwrap().unwrap().value, "1");
    let lease = store.grant_lease(Duration::from_secs(60)).await;
    assert!(
        matches!(lease, Err(StoreError::NoSpace { .. })),
        "{lease:?}"
    );
    store.compact(0).await.unwrap();
    etcd.ctl(&["defrag"]);
    etcd.ctl(&["alarm", "disarm"]);
    done(&*store, Txn::new().put("/t/a", "2")).await;
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_with_what_is_needed() {
    let (address, _server) = old_server("3.3.27").await;
    let settings = EtcdSettings {
        endpoints: vec![format!("http://{address}")],
        ..EtcdSettings::default()
    };
    let error = EtcdStore::connect(settings).await.unwrap_err();
    assert!(
        matches!(error, StoreError::VersionTooOld { .. }),
        "{error:?}"
    );
    check(&error, false, &[&address.to_string(), "3.3.27", "3.4"]);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    // The kernel accepts connections, and nobody reads them.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = mute.local_addr().unwrap();
    let settings = EtcdSettings {
        endpoints: vec![format!("http://{address}")],
        call_timeout: Duration::from_millis(500),
        ..EtcdSettings::default()
    };
    let asked = Instant::now();
    let error = EtcdStore::connect(settings).await.unwrap_err();
    check(&error, true, &[&address.to_string(), "cannot reach"]);
    assert!(asked.elapsed() < Duration::from_secs(10));
}
