//! Tests of connections, with servers that are written for them.

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::super::target::NatsSecret;
use super::*;

fn answer(json: &str) -> Answer {
    Answer {
        subject: "_INBOX.1".into(),
        reply: None,
        payload: json.to_owned().into(),
        headers: None,
        status: None,
        description: None,
        length: json.len(),
    }
}

fn told(json: &str) -> String {
    match parse::<Stored>(&answer(json)) {
        Ok(Ok(_)) => "stored".to_owned(),
        Ok(Err(error)) => error.into_trouble().to_string(),
        Err(trouble) => trouble.to_string(),
    }
}

#[test]
fn only_a_stream_acknowledges_a_message() {
    let refused = "the stream refuses items";
    let full = "the stream has no room left; items wait until there is some";
    let nobody = format!("{refused} (a program that is no stream has answered)");
    for (json, expected) in [
        (r#"{"stream":"A","seq":1}"#, "stored".to_owned()),
        (
            r#"{"stream":"A","seq":1,"duplicate":true}"#,
            "stored".to_owned(),
        ),
        ("", nobody.clone()),
        ("ok", nobody.clone()),
        (r#"{"seq":1}"#, nobody),
        (
            r#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"A","seq":0}"#,
            format!("{full} (maximum bytes exceeded)"),
        ),
        (
            r#"{"error":{"code":400,"err_code":10060,"description":"expected\nother"}}"#,
            format!("{refused} (expected other)"),
        ),
    ] {
        assert_eq!(told(json), expected, "{json}");
    }
}

/// Reads lines until one begins with `start`, and returns it.
async fn line(stream: &mut BufReader<TcpStream>, start: &str) -> String {
    loop {
        let mut line = String::new();
        let n_bytes = stream.read_line(&mut line).await.unwrap();
        assert!(n_bytes > 0, "the end comes before {start}");
        if line.starts_with(start) {
            return line;
        }
    }
}

#[tokio::test]
async fn a_secret_goes_to_no_server_that_another_tells_of() {
    let known = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let told_of = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", known.local_addr().unwrap());
    let secret = Some(NatsSecret::Token("T0KEN".to_owned()));
    let target = NatsTarget::parse(&url, secret, None).unwrap();
    let address = told_of.local_addr().unwrap();
    let greeting = format!(
        r#"INFO {{"server_id":"A","version":"2.10.0","max_payload":1048576,"headers":true,"connect_urls":["{address}"]}}"#
    );
    // The client would choose one of two servers at random.
    for _ in 0..10 {
        let server = async {
            let (stream, _) = known.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let greeting = format!("{greeting}\r\n");
            stream.write_all(greeting.as_bytes()).await.unwrap();
            let hello = line(&mut stream, "CONNECT ").await;
            assert!(hello.contains("T0KEN"), "{hello}");
            line(&mut stream, "PING").await;
            stream.write_all(b"PONG\r\n").await.unwrap();
            // It hangs up, and the client looks for a server at once.
            drop(stream);
            tokio::select! {
                call = known.accept() => drop(call),
                call = told_of.accept() => panic!("the other server is called: {call:?}"),
            }
        };
        let timeout = Duration::from_secs(20);
        let (connection, ()) = tokio::join!(Connection::open(&target, timeout), server);
        let mut connection = connection.unwrap();
        let trouble = lost(&mut connection.faults, 0, |_: &str| true).await;
        assert_eq!(trouble.cause, Cause::Away);
        assert!(!connection.is_usable());
    }
}

fn message(subject: &str) -> Message {
    let mut headers = HeaderMap::new();
    headers.insert(ID, "id-1");
    Message {
        subject: subject.to_owned(),
        headers,
        body: "{}".into(),
    }
}

/// Serves one client. It stores messages under all subjects but this one, and notes the subjects of all messages.
async fn store_all_but(denied: &str, listener: &TcpListener, seen: &Mutex<Vec<String>>) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufReader::new(stream);
    let greeting =
        r#"INFO {"server_id":"A","version":"2.10.0","max_payload":1048576,"headers":true}"#;
    let greeting = format!("{greeting}\r\n");
    stream.write_all(greeting.as_bytes()).await.unwrap();
    let mut subscription = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap() == 0 {
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words.as_slice() {
            ["PING"] => "PONG\r\n".to_owned(),
            ["SUB", _inbox, id] => {
                subscription = (*id).to_owned();
                continue;
            }
            ["HPUB", subject, reply, _n_head, n_bytes] => {
                let n_bytes: usize = n_bytes.parse().unwrap();
                let mut body = vec![0; n_bytes + "\r\n".len()];
                stream.read_exact(&mut body).await.unwrap();
                seen.lock().unwrap().push((*subject).to_owned());
                let stored = r#"{"stream":"A","seq":1}"#;
                match *subject == denied {
                    true => {
                        format!("-ERR 'Permissions Violation for Publish to \"{subject}\"'\r\n")
                    }
                    false => {
                        let n_bytes = stored.len();
                        format!("MSG {reply} {subscription} {n_bytes}\r\n{stored}\r\n")
                    }
                }
            }
            _ => continue,
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_denied_subject_fails_alone_and_is_tried_once_a_batch() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let target = NatsTarget::parse(&url, None, None).unwrap();
    let timeout = Duration::from_secs(20);
    let seen = Mutex::default();
    let batches = async {
        let connection = Connection::open(&target, timeout).await.unwrap();
        let messages = ["a", "denied", "a", "denied", "b", "denied"].map(message);
        let messages: Vec<&Message> = messages.iter().collect();
        for _ in 0..2 {
            let end = Instant::now() + timeout;
            let published = connection.publish(&messages, end).await;
            let stored = Some(Outcome::Stored);
            let both = [stored, None];
            let expected = [both.clone(), both.clone(), both].concat();
            assert_eq!(published.outcomes, expected);
            let trouble = published.trouble.unwrap();
            assert_eq!(trouble.cause, Cause::Denied, "{trouble}");
            assert!(connection.is_usable());
        }
    };
    tokio::select! {
        () = store_all_but("denied", &listener, &seen) => panic!("the client hangs up"),
        () = batches => {}
    }
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen, ["a", "denied", "a", "b", "a", "denied", "a", "b"]);
}
