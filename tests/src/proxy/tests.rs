//! Proxy between a test and an echo server.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use super::*;
use crate::PATIENCE;

/// Starts a server that sends back what it receives.
fn echo() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut from = stream.try_clone().unwrap();
                let _ended = std::io::copy(&mut from, &mut stream);
            });
        }
    });
    port
}

fn call(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn says(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(text.as_bytes())?;
    let mut heard = vec![0; text.len()];
    stream.read_exact(&mut heard)?;
    assert_eq!(heard, text.as_bytes());
    Ok(())
}

fn hears_nothing(stream: &mut TcpStream) {
    let short = Duration::from_millis(200);
    stream.set_read_timeout(Some(short)).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{error}"
    );
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
}

#[test]
fn everything_passes_and_is_counted() {
    let proxy = Proxy::to(echo());
    let mut stream = call(&proxy);
    says(&mut stream, "hello").unwrap();
    crate::until("both counts", PATIENCE, || {
        (proxy.n_bytes() == (5, 5)).then_some(())
    });
}

#[test]
fn a_cut_ends_what_is_open_and_lets_nothing_new_come_up() {
    let proxy = Proxy::to(echo());
    let mut stream = call(&proxy);
    says(&mut stream, "hello").unwrap();
    proxy.change(|network_faults| network_faults.is_cut = true);
    crate::until("the end of the connection", PATIENCE, || {
        says(&mut stream, "still there").is_err().then_some(())
    });
    says(&mut call(&proxy), "anybody").unwrap_err();
    proxy.clear();
    says(&mut call(&proxy), "hello again").unwrap();
}

#[test]
fn what_is_held_back_in_one_direction_comes_when_the_hold_ends() {
    for holds_calls in [true, false] {
        let proxy = Proxy::to(echo());
        let mut stream = call(&proxy);
        says(&mut stream, "hello").unwrap();
        proxy.change(|network_faults| {
            (network_faults.holds_calls, network_faults.holds_answers) =
                (holds_calls, !holds_calls);
        });
        stream.write_all(b"late").unwrap();
        let n_calls = if holds_calls { 5 } else { 9 };
        crate::until("what may pass", PATIENCE, || {
            (proxy.n_bytes() == (n_calls, 5)).then_some(())
        });
        hears_nothing(&mut stream);
        assert_eq!(proxy.n_bytes(), (n_calls, 5));
        proxy.clear();
        let mut heard = [0; 4];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"late");
    }
}

#[test]
fn a_slow_stretch_delays_both_ways() {
    let proxy = Proxy::to(echo());
    let delay = Duration::from_millis(150);
    proxy.change(|network_faults| network_faults.delay = delay);
    let mut stream = call(&proxy);
    let begun = Instant::now();
    says(&mut stream, "hello").unwrap();
    assert!(begun.elapsed() >= delay * 2, "{:?}", begun.elapsed());
}

#[test]
fn a_caller_that_says_who_it_is_is_cut_off_alone() {
    let proxy = Proxy::with_mark(echo(), "I am ");
    let (mut one, mut other) = (call(&proxy), call(&proxy));
    says(&mut one, "I am one\r\n").unwrap();
    says(&mut other, "I am other\r\n").unwrap();
    proxy.change(|network_faults| {
        network_faults.banned.insert("one".to_owned());
    });
    crate::until("the end of the connection", PATIENCE, || {
        says(&mut one, "still there").is_err().then_some(())
    });
    says(&mut other, "still there").unwrap();
    says(&mut call(&proxy), "I am one\r\n").unwrap_err();
}
