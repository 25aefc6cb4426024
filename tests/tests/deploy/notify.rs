//! A server and its supervisor: what systemd would be told.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crawler_tests::PATIENCE;
use crawler_tests::process::{Home, Process};
use crawler_tests::up::Up;

/// Returns the next message.
#[track_caller]
fn next(socket: &UnixDatagram) -> String {
    let mut message = [0; 1_024];
    let n_bytes = socket.recv(&mut message).expect("a message comes in time");
    String::from_utf8_lossy(&message[..n_bytes]).into_owned()
}

/// Confinement is on, as it is by default: it takes abstract addresses from the process.
#[track_caller]
fn check(address: &SocketAddr, name: &str) {
    let home = Home::new();
    let socket = UnixDatagram::bind_addr(address).expect("the address is free");
    let patience = socket.set_read_timeout(Some(PATIENCE));
    patience.expect("it has a deadline");
    let mut up = Up::command(&home, &[]);
    up.env("NOTIFY_SOCKET", name).env("WATCHDOG_USEC", "900000");
    let mut up = Process::start(&mut up);
    let ready = next(&socket);
    assert!(
        ready.starts_with("READY=1\nSTATUS=master-1,worker-1 "),
        "{ready}"
    );
    // It answers already.
    let grpc = ready.split_once("grpc=").expect("it tells the address").1;
    let grpc = grpc.split(' ').next().unwrap_or_default();
    let master = format!("--master=http://{grpc}");
    home.ok(["node", "health", "--joined", &master]);
    for _ in 0..3 {
        assert_eq!(next(&socket), "WATCHDOG=1");
    }
    up.terminate();
    while next(&socket) != "STOPPING=1\nSTATUS=stopping" {}
    assert_eq!(up.wait(PATIENCE).code, Some(0));
}

#[test]
fn a_confined_server_tells_its_supervisor_how_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let address = SocketAddr::from_pathname(&path).unwrap();
    check(&address, path.to_str().unwrap());
    let name = format!("crawler-deploy-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    check(&address, &format!("@{name}"));
}

#[test]
fn a_server_whose_supervisor_is_gone_says_so_and_runs() {
    let home = Home::new();
    let mut up = Up::command(&home, &[]);
    up.env("NOTIFY_SOCKET", home.path().join("gone"));
    let mut up = Process::start(&mut up);
    up.line("a warning", PATIENCE, |line| {
        line.contains("NOTIFY_SOCKET") && line.contains("gone")
    });
    up.line("its addresses", PATIENCE, |line| {
        line.contains("listening grpc=")
    });
    up.terminate();
    assert_eq!(up.wait(PATIENCE).code, Some(0));
}
