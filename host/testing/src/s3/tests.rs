//! Behaviour of the server, seen through the client that the crawler uses.

mod faults;
mod listings;
mod writes;

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, BackoffConfig, Error, GetOptions, GetRange, MultipartUpload,
    ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, RetryConfig,
    UpdateVersion,
};

use super::{ACCESS_KEY, BUCKET, S3Server, SECRET_KEY};

/// A client that gives up at the first error.
fn client(server: &S3Server) -> AmazonS3 {
    builder(server, 0).build().unwrap()
}

fn builder(server: &S3Server, max_retries: usize) -> AmazonS3Builder {
    // A build of the whole workspace gives the HTTP client TLS without a provider, and it refuses to start then.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_allow_http(true)
        .with_region("eu-central-1")
        .with_bucket_name(BUCKET)
        .with_access_key_id(ACCESS_KEY)
        .with_secret_access_key(SECRET_KEY)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(1),
                max_backoff: Duration::from_millis(4),
                base: 2.0,
            },
            max_retries,
            retry_timeout: Duration::from_secs(30),
        })
}

fn path(key: &str) -> Path {
    Path::from(key)
}

async fn write(store: &AmazonS3, key: &str, body: &str) -> PutResult {
    store
        .put(&path(key), PutPayload::from(body.to_owned()))
        .await
        .unwrap()
}

async fn create(store: &AmazonS3, key: &str, body: &str) -> Result<PutResult, Error> {
    let body = PutPayload::from(body.to_owned());
    store
        .put_opts(&path(key), body, PutMode::Create.into())
        .await
}

async fn update(
    store: &AmazonS3,
    key: &str,
    body: &str,
    e_tag: Option<String>,
) -> Result<PutResult, Error> {
    let version = UpdateVersion {
        e_tag,
        version: None,
    };
    let body = PutPayload::from(body.to_owned());
    let mode = PutMode::Update(version);
    store.put_opts(&path(key), body, mode.into()).await
}

async fn read(store: &AmazonS3, key: &str) -> Bytes {
    store.get(&path(key)).await.unwrap().bytes().await.unwrap()
}

async fn keys(store: &AmazonS3, prefix: &str) -> Vec<String> {
    let prefix = path(prefix);
    let objects = store.list(Some(&prefix));
    let keys = objects.map_ok(|object| object.location.to_string());
    keys.try_collect().await.unwrap()
}

#[tokio::test]
async fn attributes_come_back() {
    let server = S3Server::start();
    let store = client(&server);
    let mut attributes = Attributes::new();
    attributes.insert(Attribute::Metadata("slatedbputid".into()), "01J".into());
    attributes.insert(Attribute::ContentType, "text/x-test".into());
    attributes.insert(Attribute::CacheControl, "no-cache".into());
    let options = PutOptions {
        mode: PutMode::Create,
        attributes: attributes.clone(),
        ..Default::default()
    };
    store
        .put_opts(&path("put"), "1".into(), options)
        .await
        .unwrap();
    let parts = attributes.clone().into();
    let mut upload = store
        .put_multipart_opts(&path("parts"), parts)
        .await
        .unwrap();
    upload.put_part("2".into()).await.unwrap();
    upload.complete().await.unwrap();
    store.copy(&path("put"), &path("copy")).await.unwrap();
    for key in ["put", "parts", "copy"] {
        for head in [false, true] {
            let options = GetOptions {
                head,
                ..Default::default()
            };
            let result = store.get_opts(&path(key), options).await.unwrap();
            assert_eq!(result.attributes, attributes, "{key}, head: {head}");
            assert_eq!(result.meta.size, 1);
        }
    }

    write(&store, "put", "3").await;
    let replaced = store.get(&path("put")).await.unwrap().attributes;
    assert!(
        replaced.get(&Attribute::CacheControl).is_none(),
        "{replaced:?}"
    );
}

#[tokio::test]
async fn parts_become_one_object() {
    let server = S3Server::start();
    let store = client(&server);
    let sizes = [5 << 20, (5 << 20) + 1, 1000];
    let mut upload = store.put_multipart(&path("large")).await.unwrap();
    let parts: Vec<_> = (0..3).map(|i| vec![i as u8; sizes[i]]).collect();
    let sent = parts
        .iter()
        .map(|part| upload.put_part(part.clone().into()));
    let sent: Vec<_> = sent.collect();
    futures::future::try_join_all(sent).await.unwrap();
    assert!(keys(&store, "").await.is_empty());
    let result = upload.complete().await.unwrap();
    assert!(
        result.e_tag.as_ref().unwrap().ends_with("-3\""),
        "{result:?}"
    );
    assert_eq!(read(&store, "large").await, parts.concat());
    assert_eq!(
        store.head(&path("large")).await.unwrap().e_tag,
        result.e_tag
    );
}

#[tokio::test]
async fn uploads_with_small_parts_are_refused() {
    let server = S3Server::start();
    let store = client(&server);
    let mut upload = store.put_multipart(&path("large")).await.unwrap();
    upload.put_part("1".into()).await.unwrap();
    upload.put_part("2".into()).await.unwrap();
    let error = upload.complete().await.unwrap_err();
    assert!(format!("{error:?}").contains("EntityTooSmall"), "{error:?}");
    upload.abort().await.unwrap();
    let error = upload.put_part("3".into()).await.unwrap_err();
    assert!(format!("{error:?}").contains("NoSuchUpload"), "{error:?}");
    assert!(keys(&store, "").await.is_empty());
}

#[tokio::test]
async fn ranges_are_read() {
    let server = S3Server::start();
    let store = client(&server);
    write(&store, "a", "0123456789").await;
    let cases = [
        (GetRange::Bounded(2..5), "234"),
        (GetRange::Bounded(8..20), "89"),
        (GetRange::Offset(7), "789"),
        (GetRange::Suffix(4), "6789"),
        (GetRange::Suffix(40), "0123456789"),
    ];
    for (range, expected) in cases {
        let options = GetOptions {
            range: Some(range.clone()),
            ..Default::default()
        };
        let result = store.get_opts(&path("a"), options).await.unwrap();
        assert_eq!(result.meta.size, 10);
        assert_eq!(result.bytes().await.unwrap(), expected, "{range:?}");
    }
    store.get_range(&path("a"), 10..12).await.unwrap_err();
}

#[tokio::test]
async fn reads_have_conditions() {
    let server = S3Server::start();
    let store = client(&server);
    let e_tag = write(&store, "a", "1").await.e_tag;
    let modified = store.head(&path("a")).await.unwrap().last_modified;
    let check = async |options: GetOptions| store.get_opts(&path("a"), options).await;

    let unchanged = GetOptions {
        if_none_match: e_tag.clone(),
        ..Default::default()
    };
    assert!(matches!(
        check(unchanged).await,
        Err(Error::NotModified { .. })
    ));
    let unchanged = GetOptions {
        if_modified_since: Some(modified),
        ..Default::default()
    };
    assert!(matches!(
        check(unchanged).await,
        Err(Error::NotModified { .. })
    ));
    let other = GetOptions {
        if_match: Some("\"other\"".into()),
        ..Default::default()
    };
    assert!(matches!(
        check(other).await,
        Err(Error::Precondition { .. })
    ));
    let same = GetOptions {
        if_match: e_tag,
        if_unmodified_since: Some(modified),
        ..Default::default()
    };
    check(same).await.unwrap();
}

#[tokio::test]
async fn keys_can_have_any_characters() {
    let server = S3Server::start();
    let store = client(&server);
    let key = "a b+c=d&e;f/é~<'>%2F$@!*()";
    let path = Path::parse("a b+c=d&e;f/é~<'>%2F$@!*()").unwrap();
    store.put(&path, "1".into()).await.unwrap();
    assert_eq!(keys(&store, "").await, [key]);
    assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "1");
    store.copy(&path, &Path::from("copy")).await.unwrap();
    let named = stream::iter([Ok(path)]).boxed();
    store
        .delete_stream(named)
        .try_collect::<Vec<_>>()
        .await
        .unwrap();
    assert_eq!(keys(&store, "").await, ["copy"]);
}

#[tokio::test]
async fn requests_of_strangers_are_refused() {
    let server = S3Server::start();
    let wrong_secret = builder(&server, 0).with_secret_access_key("wrong");
    let unsigned = builder(&server, 0).with_skip_signature(true);
    let wrong_key = builder(&server, 0).with_access_key_id("wrong");
    for stranger in [wrong_secret, unsigned, wrong_key] {
        let result = stranger.build().unwrap().put(&path("a"), "1".into()).await;
        assert!(
            matches!(result, Err(Error::PermissionDenied { .. })),
            "{result:?}"
        );
    }
    let other_bucket = builder(&server, 0)
        .with_bucket_name("other")
        .build()
        .unwrap();
    let result = other_bucket.put(&path("a"), "1".into()).await;
    assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    assert!(keys(&client(&server), "").await.is_empty());
}

#[tokio::test]
async fn a_dropped_server_stops() {
    let server = S3Server::start();
    let address = server.address;
    drop(server);
    let refused = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), refused)
        .await
        .unwrap();
}
