//! Items that tests of all modules use, and tests of what the modules share.

use serde_json::value::RawValue;

use super::*;
use crawler_model::crawl::ItemKey;
use crawler_model::id::{ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_sink::Delivery;

pub(crate) fn record(n: u32, json: &str) -> ItemRecord {
    ItemRecord {
        key: ItemKey(format!("key-{n}")),
        url: format!("http://a.test/{n}"),
        rule: "page".to_owned(),
        schema: "thing".to_owned(),
        run: Run(1),
        fetched_at: 1_795_881_600_123,
        item: RawValue::from_string(json.to_owned()).unwrap(),
        change: None,
    }
}

/// Returns the delivery of the only shard of `team/books` to the sink `out`.
pub(crate) fn delivery() -> Delivery {
    Delivery {
        sink: "out".parse().unwrap(),
        shard: ShardId::only(ResourceId(7)),
        cluster: "c1".to_owned(),
        run: Run(1),
        storage_epoch: 1,
        spec: serde_json::from_str(r#"{"name":"team/books","plugin":"books"}"#).unwrap(),
        schemas: Vec::new(),
        other_kinds: None,
        marks: Vec::new(),
    }
}

#[test]
fn a_batch_ends_at_its_bounds_and_has_one_item_at_least() {
    let items: Vec<ItemRecord> = (0..5).map(|n| record(n, "{}")).collect();
    let mut line = Vec::new();
    push_line(&mut line, &items[0]).unwrap();
    // An envelope counts, too.
    let n_of_line = line.len() as u64;
    assert!(n_of_line > 50);
    for (max_items, max_bytes, n_expected) in [
        (3, 1 << 20, 3_usize),
        (9, 3 * n_of_line - 1, 2),
        (9, 3 * n_of_line, 3),
        (9, 1 << 20, 5),
        (9, 1, 1),
        (0, 1 << 20, 1),
    ] {
        let expected = (n_expected, n_expected as u64 * n_of_line);
        assert_eq!(fitting(&items, max_items, max_bytes).unwrap(), expected);
    }
    assert_eq!(fitting(&[], 9, 9).unwrap(), (0, 0));
}
