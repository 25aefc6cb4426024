//! Listings, and the deletion of many objects.

use super::*;

#[tokio::test]
async fn listings_have_prefixes_and_offsets() {
    let server = S3Server::start();
    let store = client(&server);
    for key in ["a", "a/1", "a/2", "a/b/3", "ab", "c"] {
        write(&store, key, key).await;
    }
    assert_eq!(
        keys(&store, "").await,
        ["a", "a/1", "a/2", "a/b/3", "ab", "c"]
    );
    assert_eq!(keys(&store, "a").await, ["a/1", "a/2", "a/b/3"]);

    let (folder, offset) = (path("a"), path("a/1"));
    let after: Vec<_> = store
        .list_with_offset(Some(&folder), &offset)
        .try_collect()
        .await
        .unwrap();
    let after: Vec<_> = after
        .iter()
        .map(|object| object.location.as_ref())
        .collect();
    assert_eq!(after, ["a/2", "a/b/3"]);

    let level = store.list_with_delimiter(Some(&folder)).await.unwrap();
    let objects: Vec<_> = level
        .objects
        .iter()
        .map(|object| object.location.as_ref())
        .collect();
    assert_eq!(objects, ["a/1", "a/2"]);
    assert_eq!(level.common_prefixes, [path("a/b")]);
    assert_eq!(level.objects[0], store.head(&path("a/1")).await.unwrap());
}

#[tokio::test]
async fn long_listings_come_in_pages() {
    let server = S3Server::start();
    let store = client(&server);
    let names: Vec<String> = (0..1100).map(|i| format!("{i:04}/object")).collect();
    let writes = stream::iter(&names).map(|name| write(&store, name, ""));
    writes.buffer_unordered(8).count().await;

    assert_eq!(keys(&store, "").await, names);
    assert_eq!(server.requests().list, 2);
    let level = store.list_with_delimiter(None).await.unwrap();
    assert_eq!(level.common_prefixes.len(), 1100);
    assert_eq!(server.requests().list, 4);
    let rest: Vec<_> = store
        .list_with_offset(None, &path("0049/object"))
        .try_collect()
        .await
        .unwrap();
    assert_eq!(rest.len(), 1050);
    assert_eq!(server.requests().put, 1100);
}

#[tokio::test]
async fn many_objects_are_deleted_at_once() {
    let server = S3Server::start();
    let store = client(&server);
    for i in 0..10 {
        write(&store, &i.to_string(), "").await;
    }
    let named: Vec<_> = (1..=10).map(|i| Ok(path(&i.to_string()))).collect();
    let deleted: Vec<_> = store
        .delete_stream(stream::iter(named).boxed())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(deleted.len(), 10);
    assert_eq!(server.requests().post, 1);
    assert_eq!(keys(&store, "").await, ["0"]);
    store.delete(&path("0")).await.unwrap();
    assert!(keys(&store, "").await.is_empty());
}
