//! Test that files which a database leaves behind are removed at their age while it is open.

use std::collections::HashSet;

use futures::TryStreamExt as _;
use object_store::ObjectStore as _;
use object_store::path::Path;

use super::*;
use crate::path_of;

/// Time longer than the database takes to see that a table was replaced.
const AGE: Duration = Duration::from_secs(3);
const KINDS: [&str; 4] = ["wal", "compacted", "manifest", "compactions"];

/// Returns the names of the files of this kind at this moment.
async fn files(objects: &InMemory, kind: &str) -> HashSet<Path> {
    let found = objects.list(Some(&path_of(shard()).join(kind)));
    found
        .map_ok(|file| file.location)
        .try_collect()
        .await
        .unwrap()
}

#[tokio::test]
async fn what_a_compaction_has_replaced_goes_at_its_age() {
    let objects = Arc::new(InMemory::new());
    let settings = DurableSettings {
        l0_bytes: 4 << 10,
        min_age: AGE,
        ..settings()
    };
    let frontiers = frontiers_in(&objects, settings);
    let open_options = open_options(&frontiers, 1).await;
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    frontier.seed(urls(&["0"])).await.unwrap();
    let mut written = KINDS.map(|_| HashSet::new());
    let mut n_pages = 0;
    let going = async {
        loop {
            n_pages += 1;
            let mut commit = parsed(ready(next(&frontier, 0).await));
            commit.result.requests = urls(&[&n_pages.to_string()]);
            frontier.commit(commit).await.unwrap();
            frontier.settle().await.unwrap();
            let mut all_go = true;
            for (kind, written) in KINDS.iter().zip(&mut written) {
                let there = files(&objects, kind).await;
                all_go &= written.difference(&there).count() > 4;
                written.extend(there);
            }
            if all_go {
                break;
            }
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(60), going).await;
    let n_written = written.map(|written| written.len());
    assert!(
        gone.is_ok(),
        "of {n_written:?} files of {KINDS:?} some never go"
    );
    // Files that are still needed are kept.
    let again = reopen(&objects, 1).await;
    assert_eq!(again.counts().parsed, n_pages);
    for n in [0, n_pages] {
        let url = format!("http://a/{n}");
        assert!(again.knows(&new(&url).request).await.unwrap(), "{url}");
    }
}
