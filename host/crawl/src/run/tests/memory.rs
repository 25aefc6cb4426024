//! Tests of a crawl in a process whose memory becomes short.

use super::*;
use crawler_process::memory::Memory;

const MIB: u64 = 1 << 20;

async fn crawl_in(
    memory: &Memory,
    frontier: Arc<dyn Frontier>,
    roots: &[&'static str],
    sink: Kept,
) -> (CrawlMemory, Ended) {
    let rest = Rest {
        crawl_memory: memory.for_crawl(),
        ..Rest::default()
    };
    let (crawl_memory, settings) = (rest.crawl_memory.clone(), CrawlSettings::default());
    let stop = CancellationToken::new();
    (
        crawl_memory,
        crawl_or_rest(frontier, roots, settings, sink, stop, rest).await,
    )
}

fn empty() -> Arc<MemoryFrontier> {
    Arc::new(MemoryFrontier::new(MemorySettings::default()))
}

#[tokio::test(start_paused = true)]
async fn no_page_is_taken_while_memory_is_short() {
    let memory = Memory::of(800 * MIB);
    memory.note(720 * MIB);
    let frontier = empty();
    let crawl = crawl_in(&memory, frontier.clone(), &["/"], Kept::default());
    let free = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!((frontier.counts().due, frontier.in_flight()), (1, 0));
        memory.note(100 * MIB);
    };
    let ((_, ended), ()) = tokio::join!(crawl, free);
    assert_eq!(ended.end, CrawlEnd::Finished);
    assert_eq!(ended.n_items, 5);
    let told = ended.log.iter().filter(|line| line.contains("--memory"));
    assert_eq!(told.count(), 1, "{:?}", ended.log);
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_is_put_back_keeps_its_pages_and_waits_for_no_sink() {
    let memory = Memory::of(800 * MIB);
    let frontier = empty();
    let sink = Kept::default();
    sink.n_failures.store(u32::MAX, Ordering::Relaxed);
    let crawl = crawl_in(&memory, frontier.clone(), &["/a", "/hang"], sink);
    let press = async {
        // Every other page has an item, which the sink does not take.
        while (frontier.counts().due, frontier.in_flight()) != (1, 1) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        memory.note(800 * MIB);
        memory.note(800 * MIB);
    };
    let ((crawl_memory, ended), ()) = tokio::join!(crawl, press);
    let CrawlEnd::PutBack(why) = ended.end else {
        panic!("{:?}", ended.end);
    };
    assert!(why.contains("--memory"), "{why}");
    assert_eq!((frontier.in_flight(), frontier.counts().due), (0, 1));
    assert_eq!(ended.n_items, 0);
    let n_items = frontier
        .outbox(&SinkName::lines(), 99)
        .await
        .unwrap()
        .items
        .len() as u64;
    assert!(n_items > 0 && n_items == frontier.counts().items);
    memory.note(100 * MIB);
    crawl_memory.free().await;
    assert_eq!(crawl_memory.put_back(), None);
}

#[tokio::test(start_paused = true)]
async fn a_crawl_with_nothing_left_ends_though_memory_is_short() {
    let memory = Memory::of(800 * MIB);
    let frontier = empty();
    let (_, ended) = crawl_in(&memory, frontier.clone(), &["/a"], Kept::default()).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    memory.note(720 * MIB);
    let (_, ended) = crawl_in(&memory, frontier, &["/a"], Kept::default()).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
}
