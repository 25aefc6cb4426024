//! Tests of development certificates: they admit each other, and nothing is overwritten.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tokio::net::TcpListener;

use super::*;
use crawler_api::access::Access;
use crawler_api::client::{Client, ClientError, TlsFault};
use crawler_api::grpc::{self, Services};
use crawler_api::requests::{RequestSettings, Requests};
use crawler_api::tls::{ClientTls, IdentityFiles, ServerTls};
use crawler_process::task::TaskScope;

fn args(folder: &Path) -> DevArgs {
    DevArgs {
        folder: folder.to_owned(),
        hosts: vec![
            "node-1.example".parse().expect("it is a host"),
            "10.0.0.1".parse().expect("it is a host"),
        ],
    }
}

fn identity(folder: &Path, name: &str) -> IdentityFiles {
    IdentityFiles {
        certificate: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
    }
}

#[tokio::test]
async fn a_listener_and_a_client_admit_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(&args(folder)).unwrap();
    let ca = folder.join("ca.pem");
    let tls = ServerTls::load(identity(folder, "node"), Some(ca.clone())).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let scope = TaskScope::new();
    let served = grpc::serve(
        listener,
        Services::default(),
        Access::default(),
        Requests::new(RequestSettings::default()),
        Some(tls),
        scope.stop_signal(),
    );
    scope.spawn("grpc", async move { served.await.unwrap() });
    let url = [format!("https://127.0.0.1:{port}")];
    for name in ["client", "node"] {
        let shown = identity(folder, name);
        let tls = ClientTls::of_command(Some(ca.clone()), Some(shown)).unwrap();
        Client::connect_any(&url, &tls).await.unwrap();
    }
    let nobody = ClientTls::of_command(Some(ca), None).unwrap();
    match Client::connect_any(&url, &nobody).await {
        Err(ClientError::Tls { fault, .. }) => assert_eq!(fault, TlsFault::CertificateRequired),
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_are_for_their_owner_and_files_that_are_there_stay() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("tls");
    run(&args(&folder)).unwrap();
    for key in ["ca.key", "node.key", "client.key"] {
        let metadata = fs::metadata(folder.join(key)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{key}");
    }
    let before = fs::read(folder.join("ca.key")).unwrap();
    let why = run(&args(&folder)).unwrap_err().to_string();
    assert!(why.ends_with("/tls/ca.pem is there already"), "{why}");
    // One file is enough, and then none is written.
    fs::remove_file(folder.join("ca.pem")).unwrap();
    let why = run(&args(&folder)).unwrap_err().to_string();
    assert!(why.ends_with("/tls/ca.key is there already"), "{why}");
    assert!(!folder.join("ca.pem").exists());
    assert_eq!(fs::read(folder.join("ca.key")).unwrap(), before);

    let file = folder.join("node.pem");
    let why = run(&args(&file)).unwrap_err().to_string();
    let expected = format!("cannot make the folder {}", file.display());
    assert_eq!(why, expected);
}

#[test]
fn the_table_that_is_shown_names_the_files() {
    let shown = usage("/tmp/my \"tls\"");
    let (_, table) = shown.split_once("\n\n[tls]\n").unwrap();
    let (table, variables) = table.split_once("\n\n").unwrap();
    let table: toml::Table = toml::from_str(table).unwrap();
    let mut keys: Vec<&str> = table.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["ca", "certificate", "client-ca", "key"]);
    assert_eq!(table["key"].as_str(), Some("/tmp/my \"tls\"/node.key"));
    let key = "export CRAWLER_KEY='/tmp/my \"tls\"/client.key'\n";
    assert!(variables.ends_with(key), "{variables}");
    assert_eq!(shell_word("/a/b-c_d.e"), "/a/b-c_d.e");
    assert_eq!(shell_word("/it's"), r"'/it'\''s'");
}
