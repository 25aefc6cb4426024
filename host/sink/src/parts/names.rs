//! Names of part objects and of their folders; no other module builds or parses them.

use object_store::path::Path as ObjectPath;

use crawler_model::crawl::ItemKey;
use crawler_model::id::Run;

/// Number of digits of an item's number, with leading zeros: names sort in the order of the items.
const DIGITS: usize = 20;

/// Returns the path of a part that begins with this item, in a shard's folder.
pub(super) fn part(folder: &ObjectPath, run: Run, first: u64, key: &ItemKey) -> ObjectPath {
    of_run(folder, run).join(format!("{first:0DIGITS$}-{}.jsonl", key.0))
}

/// Returns the path of the parts of one run, in a shard's folder.
pub(super) fn of_run(folder: &ObjectPath, run: Run) -> ObjectPath {
    folder.clone().join(run.to_string())
}
