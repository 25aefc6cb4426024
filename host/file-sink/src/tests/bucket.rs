//! Tests with a server of S3: what a bucket that fails, refuses or loses answers leaves.

use crawler_data::{AccessKey, Bucket, DataPlace, RemoteSettings, Secret};
use crawler_testing::s3::{ACCESS_KEY, BUCKET, FaultPlan, S3Server, SECRET_KEY};

use super::*;

/// Returns the objects of a prefix in the bucket of a server.
fn objects(server: &S3Server) -> Arc<dyn ObjectStore> {
    let settings = RemoteSettings {
        endpoint: Some(server.endpoint()),
        access_key: Some(AccessKey {
            id: ACCESS_KEY.to_owned(),
            secret: Secret::new(SECRET_KEY.to_owned()),
            token: None,
        }),
        retry_timeout: Duration::from_secs(2),
        ..RemoteSettings::default()
    };
    settings.objects(&bucket()).unwrap()
}

fn bucket() -> Bucket {
    match format!("s3://{BUCKET}/items").parse().unwrap() {
        DataPlace::Bucket(bucket) => bucket,
        other => panic!("{other:?} is no bucket"),
    }
}

fn sinks(server: &S3Server) -> FileSinks {
    let settings = settings("{resource}/{kind}");
    FileSinks::in_bucket(objects(server), bucket().to_string(), settings).unwrap()
}

/// Returns how many times each key is in the bucket.
async fn keys(server: &S3Server) -> BTreeMap<String, u32> {
    let objects = objects(server);
    let listed: Vec<_> = objects.list(None).try_collect().await.unwrap();
    let mut keys = BTreeMap::new();
    for object in listed {
        let bytes = objects.get(&object.location).await.unwrap().bytes().await;
        let text = String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        for line in text.lines() {
            let record: ItemRecord = serde_json::from_str(line).unwrap();
            *keys.entry(record.key.0).or_default() += 1;
        }
    }
    keys
}

#[tokio::test]
async fn lost_answers_of_a_bucket_repeat_nothing() {
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        seed: 7,
        unavailable: 0.1,
        reset: 0.1,
        lost_answer: 0.3,
        ..FaultPlan::default()
    });
    let mut sink = sinks(&server).open(&Bench::new().delivery()).await.unwrap();
    let all = records(0..24);
    let (mut cursor, mut n_failed) = (0, 0);
    while cursor < all.len() {
        let end = all.len().min(cursor + 6);
        match sink.write(cursor as u64, &all[cursor..end]).await {
            Ok(written) => cursor += written.n_items as usize,
            Err(error) => {
                assert!(matches!(error, SinkError::Retry { .. }), "{error}");
                n_failed += 1;
                assert!(n_failed < 100, "{error}");
            }
        }
    }
    assert!(server.requests().faults > 0);
    server.set_faults(FaultPlan::default());
    assert_eq!(keys(&server).await, once(0..24));
}

#[tokio::test]
async fn a_bucket_that_refuses_keeps_the_items() {
    let server = S3Server::start();
    let sinks = sinks(&server);
    sinks.check().await.unwrap();
    assert!(server.requests().head > 0, "a check looks for its object");
    assert!(keys(&server).await.is_empty(), "a check leaves nothing");
    let mut sink = sinks.open(&Bench::new().delivery()).await.unwrap();
    let items = records(0..3);
    for _ in 0..2 {
        assert_eq!(sink.write(0, &items).await.unwrap().n_items, 0);
    }
    server.set_faults(FaultPlan {
        read_only: true,
        ..FaultPlan::default()
    });
    for error in [
        sink.write(0, &items).await.map(drop).unwrap_err(),
        sinks.check().await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, SinkError::Retry { .. }), "{error}");
        let expected = format!("cannot write s3://{BUCKET}/items/");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    server.set_faults(FaultPlan::default());
    assert_eq!(sink.write(0, &items).await.unwrap().n_items, 3);
    assert_eq!(keys(&server).await, once(0..3));
}
