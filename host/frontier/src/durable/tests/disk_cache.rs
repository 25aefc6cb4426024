//! Tests that a frontier is the same with a cache on the disk, whatever becomes of the disk.

use std::fs::File;

use super::super::disk_cache::PIECE_BYTES;
use super::*;

/// Crawls 500 pages with a cache in this file, and with nothing in memory that can be read again.
async fn crawl_with(file: File) {
    let objects = Arc::new(InMemory::new());
    let names: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&names)).await.unwrap();
    frontier.close().await.unwrap();
    let cache = DiskCache::in_file(file, 3 * PIECE_BYTES);
    let frontiers = Frontiers::new(objects, settings()).with_disk_cache(cache);
    let frontiers = Arc::new(frontiers);
    let open_options = open_options(&frontiers, 1).await;
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    let mut paths = Vec::new();
    while let Take::Ready(claim) = next(&frontier, 1_000_000).await {
        frontiers.shrink(true);
        assert!(frontier.knows(&claim.request).await.unwrap());
        paths.push(claim.request.url.path()[1..].to_owned());
        frontier.commit(parsed(claim)).await.unwrap();
    }
    assert_eq!(paths, names);
    frontier.close().await.unwrap();
}

#[tokio::test]
async fn a_crawl_goes_on_whatever_becomes_of_its_disk_cache() {
    let file = tempfile::tempfile().unwrap();
    let kept = file.try_clone().unwrap();
    crawl_with(file).await;
    let n_bytes = kept.metadata().unwrap().len();
    assert!((1..=3 * PIECE_BYTES).contains(&n_bytes), "{n_bytes}");
    #[cfg(target_os = "linux")]
    {
        let full = File::options().read(true).write(true).open("/dev/full");
        crawl_with(full.unwrap()).await;
    }
}
