//! Tests of a data root in a bucket: what it keeps, what it refuses, and how it copes with faults.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{
    Attribute, Attributes, Error as ObjectError, MultipartUpload as _, ObjectStoreExt as _,
    PutMultipartOptions,
};

use super::*;
use crate::DataRoot;
use crate::tests::race_for_the_root;
use crawler_model::id::{Digest, ResourceId, Shard};
use crawler_process::clock::{Clock as _, SystemClock};
use crawler_process::telemetry;
use crawler_testing::s3::{ACCESS_KEY, BUCKET, FaultPlan, S3Server, SECRET_KEY};

fn settings(server: &S3Server) -> RemoteSettings {
    RemoteSettings {
        endpoint: Some(server.endpoint()),
        access_key: Some(AccessKey {
            id: ACCESS_KEY.to_owned(),
            secret: Secret::new(SECRET_KEY.to_owned()),
            token: None,
        }),
        retry_timeout: Duration::from_secs(5),
        ..RemoteSettings::default()
    }
}

fn open(server: &S3Server) -> DataRoot {
    let place = format!("s3://{BUCKET}/some/prefix");
    DataRoot::open_with(&place, &settings(server)).unwrap()
}

/// Returns the reason why the probe of this bucket fails.
async fn refused(place: &str, settings: &RemoteSettings) -> String {
    let root = DataRoot::open_with(place, settings).unwrap();
    telemetry::chain(&root.probe().await.unwrap_err())
}

#[tokio::test]
async fn a_bucket_keeps_what_a_folder_keeps() {
    let server = S3Server::start();
    let root = open(&server);
    root.probe().await.unwrap();
    assert_eq!(root.folder(), None);
    let bytes = Bytes::from("0123456789");
    let digest = Digest::of(&bytes);
    assert_eq!(root.plugin(digest).await.unwrap(), None);
    for _ in 0..2 {
        root.put_plugin(digest, bytes.clone()).await.unwrap();
    }
    assert_eq!(root.plugin(digest).await.unwrap(), Some(bytes.clone()));
    assert_eq!(root.plugin_piece(digest, 8, 4).await.unwrap(), "89");
    let late = SystemClock.unix_millis() + 2 * 60 * 60 * 1_000;
    let kept = root.keep_plugins(&BTreeSet::new(), late, || true).await;
    assert_eq!(kept.unwrap(), 1);
    let (resource, objects) = (ResourceId(7), root.object_store());
    root.files(resource).keep(digest, bytes).await.unwrap();
    for shard in [0, 2] {
        let path = ObjectPath::from(format!("frontiers/7/{shard}/wal/1.sst"));
        objects.put(&path, "1".into()).await.unwrap();
    }
    let shards = root.frontier_shards(resource).await.unwrap();
    assert_eq!(shards, [Shard(0), Shard(2)]);
    assert_eq!(root.delete_frontiers(resource).await.unwrap(), 2);
    root.delete_files(resource).await.unwrap();
    let left = objects.list_with_delimiter(None).await.unwrap();
    assert!(left.common_prefixes.is_empty(), "{left:?}");
}

#[tokio::test]
async fn probes_that_were_left_are_swept_once_they_are_old() {
    let server = S3Server::start();
    let root = open(&server);
    let left = ObjectPath::from("probe/left");
    root.object_store().put(&left, "1".into()).await.unwrap();
    let now = SystemClock.unix_millis();
    assert_eq!(root.sweep(now).await.unwrap(), 0);
    assert_eq!(root.sweep(now + 2 * 60 * 60 * 1_000).await.unwrap(), 1);
    let gone = root.object_store().head(&left).await.unwrap_err();
    assert!(matches!(gone, ObjectError::NotFound { .. }), "{gone}");
}

#[tokio::test]
async fn a_bucket_belongs_to_one_cluster() {
    let server = S3Server::start();
    for _ in 0..2 {
        open(&server).bind_cluster("one").await.unwrap();
    }
    let error = open(&server).bind_cluster("two").await.unwrap_err();
    let why = "belongs to cluster one, and this is cluster two";
    assert!(error.to_string().contains(why), "{error}");
    // Another prefix of the bucket is another data root.
    let beside = format!("s3://{BUCKET}/beside");
    let beside = DataRoot::open_with(&beside, &settings(&server)).unwrap();
    beside.bind_cluster("two").await.unwrap();
}

#[tokio::test]
async fn of_clusters_that_start_at_once_one_gets_the_bucket() {
    let server = S3Server::start();
    let faulty = FaultPlan {
        seed: 3,
        unavailable: 0.1,
        lost_answer: 0.2,
        ..FaultPlan::default()
    };
    for (n, plan) in [(0, FaultPlan::default()), (1, faulty.clone()), (2, faulty)] {
        server.set_faults(plan);
        let place = format!("s3://{BUCKET}/{n}");
        let open = || DataRoot::open_with(&place, &settings(&server)).unwrap();
        race_for_the_root(open).await;
    }
}

#[tokio::test]
async fn more_objects_than_a_list_has_at_once_are_found_and_deleted() {
    const N_SHARDS: u32 = 1_100;
    let server = S3Server::start();
    let root = open(&server);
    let objects = root.object_store();
    let writes = stream::iter(0..N_SHARDS).map(|shard| {
        let path = ObjectPath::from(format!("frontiers/7/{shard}/wal/1.sst"));
        let objects = objects.clone();
        async move { objects.put(&path, "1".into()).await }
    });
    let written: Vec<_> = writes.buffer_unordered(16).collect().await;
    assert!(written.iter().all(Result::is_ok));
    let shards = root.frontier_shards(ResourceId(7)).await.unwrap();
    assert_eq!(shards, (0..N_SHARDS).map(Shard).collect::<Vec<_>>());
    assert_eq!(server.requests().list, 2);
    let n_deleted = root.delete_frontiers(ResourceId(7)).await.unwrap();
    assert_eq!(n_deleted, N_SHARDS as usize);
    let left = root.frontier_shards(ResourceId(7)).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_bucket_that_cannot_be_used_is_refused_with_the_reason() {
    let server = S3Server::start();
    let (place, usual) = (format!("s3://{BUCKET}/x"), settings(&server));
    let check = async |place: &str, settings: &RemoteSettings, expected: &str| {
        let why = refused(place, settings).await;
        assert!(why.contains(expected), "{why}");
        assert!(!why.contains(SECRET_KEY), "{why}");
    };
    let none = "there is no bucket for the data root s3://nobody-has-this/x; create it, ";
    check("s3://nobody-has-this/x", &usual, none).await;
    let wrong = RemoteSettings {
        access_key: Some(AccessKey {
            id: ACCESS_KEY.to_owned(),
            secret: Secret::new("wrong".to_owned()),
            token: None,
        }),
        ..usual.clone()
    };
    check(&place, &wrong, "does not let this process write ").await;
    for (plan, expected) in [
        (
            FaultPlan {
                read_only: true,
                ..FaultPlan::default()
            },
            "does not let this process write probe in the data root s3://crawler/x; check its credentials",
        ),
        (
            FaultPlan {
                expired: true,
                ..FaultPlan::default()
            },
            "ExpiredToken",
        ),
        (
            FaultPlan {
                without_conditions: true,
                ..FaultPlan::default()
            },
            "created one object at once, 8 were told that they did; name another one with --data",
        ),
        (
            FaultPlan {
                clock_offset: 3_600,
                ..FaultPlan::default()
            },
            "s behind that of the data root s3://crawler/x, and max-clock-skew of [data] allows 60 s",
        ),
        (
            FaultPlan {
                clock_offset: -3_600,
                ..FaultPlan::default()
            },
            "s ahead of that of the data root s3://crawler/x",
        ),
    ] {
        server.set_faults(plan);
        check(&place, &usual, expected).await;
    }
    let nobody = RemoteSettings {
        endpoint: Some("http://127.0.0.1:9".to_owned()),
        retry_timeout: Duration::from_millis(300),
        ..usual.clone()
    };
    check(&place, &nobody, "cannot write probe in the data root").await;
}

#[tokio::test]
async fn a_bucket_that_was_removed_is_not_called_empty() {
    let server = S3Server::start();
    let root = DataRoot::open_with("s3://removed/x", &settings(&server)).unwrap();
    let error = root.plugin(Digest::of(b"1")).await.unwrap_err();
    let why = telemetry::chain(&error);
    assert!(why.contains("there is no such bucket any more"), "{why}");
    assert!(error.is_transient(), "it may be put back");
    assert!(root.last_error().unwrap().contains("no such bucket"));
}

#[tokio::test]
async fn requests_that_fail_are_repeated() {
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        seed: 7,
        unavailable: 0.2,
        reset: 0.1,
        lost_answer: 0.1,
        ..FaultPlan::default()
    });
    let root = open(&server);
    for n in 0..50 {
        let bytes = Bytes::from(format!("bytes {n}"));
        let digest = Digest::of(&bytes);
        root.put_plugin(digest, bytes.clone()).await.unwrap();
        assert_eq!(root.plugin(digest).await.unwrap(), Some(bytes));
    }
    assert!(server.requests().faults > 20);
}

#[tokio::test]
async fn an_upload_whose_last_answer_was_lost_is_complete() {
    let server = S3Server::start();
    let objects = open(&server).object_store();
    let path = ObjectPath::from("large");
    let begin = async |id: &str| {
        let key = Attribute::Metadata("id".into());
        let options = PutMultipartOptions {
            attributes: Attributes::from_iter([(key, id.to_owned())]),
            ..PutMultipartOptions::default()
        };
        let mut upload = objects.put_multipart_opts(&path, options).await.unwrap();
        upload.put_part("1".into()).await.unwrap();
        upload
    };
    let mut upload = begin("1").await;
    server.set_faults(FaultPlan {
        lost_answer: 0.5,
        seed: 1,
        ..FaultPlan::default()
    });
    upload.complete().await.unwrap();
    assert!(server.requests().faults > 0, "choose another seed");
    server.set_faults(FaultPlan::default());
    // An upload that another one has replaced is not taken for complete.
    let mut aborted = begin("2").await;
    aborted.abort().await.unwrap();
    aborted.complete().await.unwrap_err();
}

#[tokio::test]
async fn settings_replace_all_credentials_of_the_environment() {
    let server = S3Server::start();
    let environment = |id: &str, secret: &str| {
        [
            ("AWS_ACCESS_KEY_ID", id),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_ENDPOINT_URL", &server.endpoint()),
            ("AWS_ALLOW_HTTP", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    };
    let place = format!("s3://{BUCKET}/x");
    let of_environment = RemoteSettings {
        environment: environment(ACCESS_KEY, SECRET_KEY),
        ..RemoteSettings::default()
    };
    let root = DataRoot::open_with(&place, &of_environment).unwrap();
    root.probe().await.unwrap();
    assert!(!format!("{of_environment:?}").contains(SECRET_KEY));
    let mut environment: BTreeMap<String, String> = environment("other", "wrong");
    environment.insert("AWS_SESSION_TOKEN".to_owned(), "of another key".to_owned());
    let replaced = RemoteSettings {
        environment,
        ..settings(&server)
    };
    let root = DataRoot::open_with(&place, &replaced).unwrap();
    root.probe().await.unwrap();
}
