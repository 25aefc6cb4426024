//! An object store that accepts writes and fails all reads.

use std::time::Duration;

use crawler_frontier::durable::DurableSettings;
use crawler_tests::faulty::{Fault, Faults};
use tokio::sync::watch;

use crate::store::{PACE, Seen, crawl, frontiers, has_come_some_way, settings, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_not_read_is_waited_for_by_name_and_nothing_is_lost() {
    let faults = Faults::default();
    let settings = DurableSettings {
        deadline: Duration::from_secs(1),
        // Writes are soon in files, and no file stays in memory.
        l0_bytes: 16 << 10,
        block_cache_bytes: 0,
        max_buffered: 64,
        ..settings()
    };
    let frontiers = frontiers(&faults, settings);
    let (seen, present) = watch::channel(Seen::default());
    let outage = async {
        has_come_some_way(&present).await;
        faults.always(Fault::Unreadable);
        until("word of it", || {
            (!present.borrow().why.is_empty()).then_some(())
        })
        .await;
        faults.none();
    };
    tokio::join!(crawl(&frontiers, PACE, &seen), outage);
    assert!(faults.met()[&Fault::Unreadable] > 0);
    let why: Vec<&str> = seen.borrow().why.keys().copied().collect();
    assert_eq!(why, ["StorageUnavailable"]);
}
