//! Tests of what crawls are told as samples come in.

use std::sync::atomic::AtomicUsize;

use super::*;

const MIB: u64 = 1 << 20;

/// Takes `n_samples` samples at the hard mark.
fn at_hard(memory: &Memory, n_samples: u32) {
    for _ in 0..n_samples {
        memory.note(800 * MIB);
    }
}

#[test]
fn the_crawl_that_uses_most_is_put_back_with_the_reason() {
    let memory = Memory::of(800 * MIB);
    let (small, large) = (memory.for_crawl(), memory.for_crawl());
    let _body = small.account().reserve(10 * MIB);
    let _call = large.account().reserve(4 * MIB);
    large.count_also(|| 300 * MIB);
    at_hard(&memory, 2);
    assert_eq!(small.put_back(), None);
    let why = large.put_back().unwrap();
    assert!(
        why.starts_with("put back: this worker uses 800 MiB of the 800 MiB that --memory allows, and this crawl has 304 MiB in use"),
        "{why}"
    );
    // The first crawl did not free enough, so the next one follows.
    at_hard(&memory, 5);
    assert!(small.put_back().is_some());
}

#[test]
fn a_crawl_that_uses_nothing_is_left_alone() {
    let memory = Memory::of(800 * MIB);
    let crawl_memory = memory.for_crawl();
    at_hard(&memory, 100);
    assert_eq!((crawl_memory.put_back(), crawl_memory.share(8)), (None, 0));
    let why = crawl_memory.short().unwrap();
    assert_eq!(
        why,
        "no page is taken while this worker uses 800 MiB of the 800 MiB that --memory allows"
    );
}

#[tokio::test]
async fn a_crawl_that_was_put_back_goes_on_with_fewer_pages() {
    let memory = Memory::of(800 * MIB);
    let crawl_memory = memory.for_crawl();
    assert_eq!(crawl_memory.share(8), 8);
    let held = crawl_memory.account().reserve(700 * MIB);
    at_hard(&memory, 2);
    let why = crawl_memory.until_put_back().await;
    assert_eq!(crawl_memory.put_back(), Some(why));
    drop(held);
    let free = crawl_memory.free();
    tokio::pin!(free);
    assert!(futures::poll!(&mut free).is_pending());
    memory.note(100 * MIB);
    free.await;
    assert_eq!((crawl_memory.put_back(), crawl_memory.share(8)), (None, 4));
    assert_eq!(crawl_memory.share(1), 1);
    for _ in 0..300 {
        memory.note(100 * MIB);
    }
    assert_eq!(crawl_memory.share(8), 8);
}

#[test]
fn caches_shrink_and_grow_and_crawls_that_have_ended_are_forgotten() {
    let memory = Memory::of(800 * MIB);
    let n_shrunk = Arc::new(AtomicUsize::new(0));
    let counted = n_shrunk.clone();
    memory.shrinks(move |is_short| {
        if is_short {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(memory.note(720 * MIB).shrinks);
    memory.shrink();
    memory.expand();
    assert_eq!(n_shrunk.load(Ordering::Relaxed), 1);
    for _ in 0..10 {
        let crawl_memory = memory.for_crawl();
        assert!(memory.has_crawls());
        drop(crawl_memory);
        assert!(!memory.has_crawls());
    }
    assert_eq!(memory.state().usages.len(), 1);
}

#[test]
fn memory_that_nobody_watches_is_never_short() {
    let memory = Memory::unwatched();
    let crawl_memory = memory.for_crawl();
    let _held = crawl_memory.account().reserve(u64::MAX);
    assert_eq!(memory.note(u64::MAX), Advice::default());
    assert_eq!((crawl_memory.share(8), crawl_memory.put_back()), (8, None));
}

#[tokio::test(start_paused = true)]
async fn a_watch_takes_samples_until_it_is_told_to_stop() {
    let memory = Memory::of(800 * MIB);
    let crawl_memory = memory.for_crawl();
    let stop = CancellationToken::new();
    let samples = Arc::new(AtomicUsize::new(0));
    let (taken, last) = (samples.clone(), stop.clone());
    let resident = move || match taken.fetch_add(1, Ordering::Relaxed) {
        0 => Some(720 * MIB),
        1 => Some(100 * MIB),
        _ => {
            last.cancel();
            Some(750 * MIB)
        }
    };
    watch(memory.clone(), resident, stop).await;
    assert_eq!(samples.load(Ordering::Relaxed), 3);
    assert_eq!(crawl_memory.share(1), 0);
    // A system that tells nothing ends the watch, and nothing is short.
    let memory = Memory::of(800 * MIB);
    watch(memory.clone(), || None, CancellationToken::new()).await;
    assert_eq!(memory.for_crawl().share(1), 1);
}
