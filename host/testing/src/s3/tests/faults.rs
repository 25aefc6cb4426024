//! Each fault, as a client meets it.

use std::error::Error as StdError;
use std::io;
use std::time::Instant;

use object_store::ClientOptions;
use s3s::dto::{Timestamp, TimestampFormat};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::{FaultPlan, bucket};
use super::*;

/// A client that tries again, as often as any test needs.
fn patient(server: &S3Server) -> AmazonS3 {
    builder(server, 50).build().unwrap()
}

/// Kinds of all I/O errors in the chain of an error.
fn io_errors(error: &Error) -> Vec<io::ErrorKind> {
    let first: &(dyn StdError + 'static) = error;
    let chain = std::iter::successors(Some(first), |&e| e.source());
    let errors = chain.filter_map(|e| e.downcast_ref::<io::Error>());
    errors.map(io::Error::kind).collect()
}

#[tokio::test]
async fn an_unavailable_server_is_asked_again() {
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        unavailable: 0.5,
        ..Default::default()
    });
    let store = patient(&server);
    for i in 0..30 {
        create(&store, &i.to_string(), "1").await.unwrap();
    }
    let requests = server.requests();
    assert!(requests.faults > 5, "{requests:?}");
    assert_eq!(requests.put, 30 + requests.faults);

    server.set_faults(FaultPlan {
        unavailable: 1.0,
        ..Default::default()
    });
    let error = create(&client(&server), "a", "1").await.unwrap_err();
    assert!(format!("{error:?}").contains("SlowDown"), "{error:?}");
    let large = PutPayload::from(vec![0; 8 << 20]);
    let error = client(&server).put(&path("a"), large).await.unwrap_err();
    assert!(format!("{error:?}").contains("SlowDown"), "{error:?}");
}

#[tokio::test]
async fn a_reset_comes_before_the_operation() {
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        reset: 1.0,
        ..Default::default()
    });
    let error = create(&client(&server), "a", "1").await.unwrap_err();
    assert_eq!(
        io_errors(&error),
        [io::ErrorKind::ConnectionReset],
        "{error:?}"
    );

    server.set_faults(FaultPlan::default());
    assert!(keys(&client(&server), "").await.is_empty());
    create(&client(&server), "a", "1").await.unwrap();
}

#[tokio::test]
async fn requests_are_sent_again_after_a_reset() {
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        reset: 0.5,
        ..Default::default()
    });
    let store = patient(&server);
    for i in 0..30 {
        let key = i.to_string();
        write(&store, &key, &key).await;
        assert_eq!(read(&store, &key).await, key);
    }
    let requests = server.requests();
    assert!(requests.faults > 10, "{requests:?}");
    assert_eq!(requests.put + requests.get, 60 + requests.faults);
}

#[tokio::test]
async fn a_lost_answer_comes_after_the_operation() {
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        lost_answer: 1.0,
        ..Default::default()
    });
    let error = create(&client(&server), "a", "1").await.unwrap_err();
    assert!(matches!(error, Error::Generic { .. }), "{error:?}");

    server.set_faults(FaultPlan::default());
    let store = client(&server);
    assert_eq!(read(&store, "a").await, "1");
    let again = create(&store, "a", "1").await;
    assert!(
        matches!(again, Err(Error::AlreadyExists { .. })),
        "{again:?}"
    );
}

#[tokio::test]
async fn a_create_sent_again_meets_itself() {
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        lost_answer: 0.5,
        ..Default::default()
    });
    let store = patient(&server);
    let mut n_met_itself = 0;
    for i in 0..30 {
        match create(&store, &i.to_string(), "1").await {
            Ok(_) => {}
            Err(Error::AlreadyExists { .. }) => n_met_itself += 1,
            Err(e) => panic!("{e:?}"),
        }
    }
    assert!(n_met_itself > 5, "{n_met_itself}");
    server.set_faults(FaultPlan::default());
    assert_eq!(keys(&store, "").await.len(), 30);
}

#[tokio::test]
async fn latency_comes_before_every_operation() {
    let server = S3Server::start();
    let store = client(&server);
    let latency = Duration::from_millis(50);
    server.set_faults(FaultPlan {
        latency,
        ..Default::default()
    });
    let begin = Instant::now();
    write(&store, "a", "1").await;
    read(&store, "a").await;
    assert!(begin.elapsed() >= 2 * latency, "{:?}", begin.elapsed());
    assert_eq!(server.requests().faults, 0);
}

#[tokio::test]
async fn a_slow_answer_comes_after_the_operation() {
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        slow: 1.0,
        slow_for: Duration::from_secs(3600),
        ..Default::default()
    });
    let options = ClientOptions::new()
        .with_allow_http(true)
        .with_timeout(Duration::from_millis(500));
    let hasty = builder(&server, 0).with_client_options(options);
    let hasty = hasty.build().unwrap();
    create(&hasty, "a", "1").await.unwrap_err();
    assert_eq!(server.requests().faults, 1);
    server.set_faults(FaultPlan::default());
    assert_eq!(read(&client(&server), "a").await, "1");
}

#[tokio::test]
async fn a_read_only_server_is_read() {
    let server = S3Server::start();
    let store = client(&server);
    write(&store, "a", "1").await;
    server.set_faults(FaultPlan {
        read_only: true,
        ..Default::default()
    });
    let refused = [
        store.put(&path("a"), "2".into()).await.unwrap_err(),
        store.copy(&path("a"), &path("b")).await.unwrap_err(),
        store.put_multipart(&path("a")).await.unwrap_err(),
    ];
    for error in &refused {
        assert!(matches!(error, Error::PermissionDenied { .. }), "{error:?}");
    }
    store.delete(&path("a")).await.unwrap_err();
    assert_eq!(keys(&store, "").await, ["a"]);
    assert_eq!(read(&store, "a").await, "1");
    assert_eq!(server.requests().faults, 4);
}

#[tokio::test]
async fn a_server_may_ignore_conditions() {
    let server = S3Server::start();
    let store = client(&server);
    server.set_faults(FaultPlan {
        without_conditions: true,
        ..Default::default()
    });
    let first = create(&store, "a", "1").await.unwrap();
    create(&store, "a", "2").await.unwrap();
    update(&store, "a", "3", first.e_tag.clone()).await.unwrap();
    update(&store, "b", "4", first.e_tag).await.unwrap();
    assert_eq!(read(&store, "a").await, "3");
    assert_eq!(read(&store, "b").await, "4");
}

#[tokio::test]
async fn expired_credentials_are_refused() {
    let server = S3Server::start();
    let store = client(&server);
    write(&store, "a", "1").await;
    server.set_faults(FaultPlan {
        expired: true,
        ..Default::default()
    });
    let error = store.get(&path("a")).await.unwrap_err();
    assert!(matches!(error, Error::PermissionDenied { .. }), "{error:?}");
    assert!(format!("{error:?}").contains("ExpiredToken"), "{error:?}");
    store.list(None).try_collect::<Vec<_>>().await.unwrap_err();
    store.put(&path("a"), "2".into()).await.unwrap_err();
    server.set_faults(FaultPlan::default());
    assert_eq!(read(&store, "a").await, "1");
}

#[tokio::test]
async fn the_clock_may_be_wrong() {
    for clock_offset in [-3600, 3600] {
        let server = S3Server::start();
        let store = client(&server);
        server.set_faults(FaultPlan {
            clock_offset,
            ..Default::default()
        });
        write(&store, "a", "1").await;
        let head = store.head(&path("a")).await.unwrap();
        let now = bucket::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let distance = head.last_modified.timestamp() - now.as_secs() as i64;
        assert!((distance - clock_offset).abs() < 60, "{distance}");
        let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
        assert_eq!(listed, std::slice::from_ref(&head));

        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let date = answer
            .lines()
            .find_map(|line| line.strip_prefix("date: "))
            .unwrap();
        let date = Timestamp::parse(TimestampFormat::HttpDate, date).unwrap();
        let written = Timestamp::parse(
            TimestampFormat::EpochSeconds,
            &head.last_modified.timestamp().to_string(),
        );
        assert!(date >= written.unwrap());
    }
}

#[tokio::test]
async fn a_seed_gives_the_same_faults() {
    let server = S3Server::start();
    let store = client(&server);
    let outcomes = async |seed, lost_answer| {
        server.set_faults(FaultPlan {
            seed,
            unavailable: 0.5,
            lost_answer,
            ..Default::default()
        });
        let mut is_unavailable = Vec::new();
        for _ in 0..40 {
            let result = store.put(&path("a"), "1".into()).await;
            is_unavailable.push(format!("{result:?}").contains("SlowDown"));
        }
        is_unavailable
    };
    let first = outcomes(1, 0.0).await;
    assert_eq!(outcomes(1, 0.0).await, first);
    assert_eq!(outcomes(1, 0.5).await, first);
    assert_ne!(outcomes(2, 0.0).await, first);
}
