//! Test of more part objects than a list of the store has at once.

use std::sync::Arc;

use crawler_data::{AccessKey, DataRoot, RemoteSettings, Secret};
use crawler_model::crawl::{ItemKey, ItemRecord};
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::resource::ShardId;
use crawler_sink::items::{Extent, Extents, ItemStore as _};
use crawler_sink::parts::{PartFolders, PartSettings};
use crawler_testing::s3::{ACCESS_KEY, BUCKET, S3Server, SECRET_KEY};
use futures::stream::{self, StreamExt as _};
use serde_json::value::RawValue;

const RESOURCE: ResourceId = ResourceId(7);
const N_PARTS: u64 = 1_100;

fn open(server: &S3Server) -> PartFolders {
    let remote = RemoteSettings {
        endpoint: Some(server.endpoint()),
        access_key: Some(AccessKey {
            id: ACCESS_KEY.to_owned(),
            secret: Secret::new(SECRET_KEY.to_owned()),
            token: None,
        }),
        ..RemoteSettings::default()
    };
    let root = DataRoot::open_with(&format!("s3://{BUCKET}/x"), &remote);
    let root = root.expect("nothing is sent yet");
    PartFolders::new(
        root.object_store(),
        root.items_path(),
        PartSettings::default(),
    )
}

fn key(n: u64) -> String {
    format!("key-{n}")
}

fn record(n: u64) -> ItemRecord {
    ItemRecord {
        key: ItemKey(key(n)),
        url: "http://a.test/".to_owned(),
        rule: "page".to_owned(),
        schema: "thing".to_owned(),
        run: Run(1),
        fetched_at: 7,
        item: RawValue::from_string("{}".to_owned()).expect("it is JSON"),
        change: None,
    }
}

#[tokio::test]
async fn more_parts_than_a_list_has_are_read_in_order_and_removed() {
    let server = S3Server::start();
    let parts = open(&server);
    let writes = stream::iter(0..N_PARTS).map(|n| {
        let mut sink = parts.open_rest(ShardId::only(RESOURCE), 1);
        async move { sink.write(n, &[record(n)]).await.unwrap().n_items }
    });
    let written: Vec<u64> = writes.buffer_unordered(16).collect().await;
    assert_eq!(written.iter().sum::<u64>(), N_PARTS);

    let extents = Arc::new(Extents::from([(Shard(0), Extent::Whole)]));
    let mut reader = parts.reader(RESOURCE, Run(1));
    let mut keys = Vec::new();
    loop {
        let batch = reader.read(&extents, 300).await.unwrap();
        keys.extend(batch.items.into_iter().map(|(_, item)| item.key.0));
        if batch.is_end {
            break;
        }
    }
    assert_eq!(keys, (0..N_PARTS).map(key).collect::<Vec<_>>());
    assert!(server.requests().list > 1);

    parts.delete(RESOURCE).await.unwrap();
    assert!(parts.shards(RESOURCE).await.unwrap().is_empty());
}
