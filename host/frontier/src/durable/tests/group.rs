//! Tests of pages that end at the same time.

use std::collections::BTreeMap;

use futures::future::join_all;

use super::*;
use crawler_model::id::Run;
use crawler_process::clock::SystemClock;
use crawler_process::stage::Stage;
use crawler_process::traces::{SampleRatio, TraceSettings, Tracer};

/// Ends pages while the guard is held, so that all of them wait for it.
async fn end_at_once(
    durable: &DurableFrontier,
    commits: Vec<Commit>,
) -> Vec<Result<Committed, FrontierError>> {
    let guard = durable.inner.writer.lock().await;
    let mut ends = Box::pin(join_all(commits.into_iter().map(|c| durable.commit(c))));
    assert!(futures::poll!(&mut ends).is_pending());
    drop(guard);
    ends.await
}

async fn seeded(objects: &Arc<InMemory>, names: &[&str]) -> (Arc<DurableFrontier>, Vec<Commit>) {
    let durable = open(objects, 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(names)).await.unwrap();
    let mut commits = Vec::new();
    for _ in names {
        let mut commit = parsed(ready(take(&frontier, 0, 9).await));
        commit.result.items = vec![item_of(&commit.claim, 0)];
        commits.push(commit);
    }
    (durable, commits)
}

#[tokio::test]
async fn pages_that_end_at_once_share_a_batch_and_store_a_link_once() {
    let objects = Arc::new(InMemory::new());
    let (durable, mut commits) = seeded(&objects, &["1", "2", "3"]).await;
    for (n, commit) in commits.iter_mut().enumerate() {
        commit.result.requests = urls(&["1", "shared", &format!("own-{n}")]);
    }
    let n_batches = durable.inner.state().last.n;
    let n_new: u64 = end_at_once(&durable, commits)
        .await
        .into_iter()
        .map(|committed| committed.unwrap().n_new)
        .sum();
    assert_eq!(n_new, 4);
    assert_eq!(durable.inner.state().last.n, n_batches + 1);
    durable.settle().await.unwrap();
    let again = reopen(&objects, 1).await;
    let counts = again.counts();
    assert_eq!((counts.parsed, counts.due, counts.items), (3, 4, 3));
    assert_eq!(
        again
            .outbox(&SinkName::lines(), 9)
            .await
            .unwrap()
            .items
            .len(),
        3
    );
    let mut paths = crawl(&again).await;
    paths.sort();
    assert_eq!(paths, ["/own-0", "/own-1", "/own-2", "/shared"]);
}

#[tokio::test]
async fn pages_of_one_batch_have_only_their_own_spans() {
    let objects = Arc::new(InMemory::new());
    let (durable, mut commits) = seeded(&objects, &["1", "2"]).await;
    for commit in &mut commits {
        commit.result.requests = urls(&["shared"]);
    }
    let settings = TraceSettings {
        sample: SampleRatio::new(1.0).unwrap(),
        ..TraceSettings::default()
    };
    let (tracer, queue) = Tracer::new(settings, Arc::new(SystemClock));
    let n_batches = durable.inner.state().last.n;
    let guard = durable.inner.writer.lock().await;
    let durable = &durable;
    let ends = commits.into_iter().map(|commit| {
        let url = commit.claim.request.url.as_str();
        let page = tracer.of_url("page", (ResourceId(7), Run(1)), url, None);
        let work = async move { Stage::Commit.timed(durable.commit(commit)).await };
        page.around(Box::pin(work))
    });
    let mut ends = Box::pin(join_all(ends));
    assert!(futures::poll!(&mut ends).is_pending());
    drop(guard);
    assert!(ends.await.iter().all(Result::is_ok));
    assert_eq!(durable.inner.state().last.n, n_batches + 1);
    let mut traces = BTreeMap::<_, Vec<&str>>::new();
    for span in queue.take().unwrap().spans() {
        let names = traces.entry(span.context.trace).or_default();
        names.push(span.name);
    }
    let traces: Vec<_> = traces.into_values().collect();
    assert_eq!(traces, [["commit", "page"]; 2]);
}

#[tokio::test]
async fn a_page_that_is_refused_does_no_harm_to_those_beside_it() {
    let objects = Arc::new(InMemory::new());
    let (durable, mut commits) = seeded(&objects, &["1", "2"]).await;
    let again = commit_of(
        Box::new(Claim {
            attempt: 7,
            ..(*commits[0].claim).clone()
        }),
        Ended::Done(crawler_model::crawl::Done::Parsed),
    );
    commits.insert(1, again);
    let ended = end_at_once(&durable, commits).await;
    assert!(matches!(ended[1], Err(FrontierError::NotInFlight { .. })));
    assert!(ended[0].is_ok() && ended[2].is_ok());
    assert_eq!(durable.counts().parsed, 2);
}

#[tokio::test]
async fn of_pages_that_end_at_once_and_are_led_to_one_place_one_gives_its_items() {
    let objects = Arc::new(InMemory::new());
    let (durable, mut commits) = seeded(&objects, &["1", "2", "3"]).await;
    for commit in &mut commits {
        commit.result.final_url = Some(urls(&["target"])[0].request.clone());
    }
    for committed in end_at_once(&durable, commits).await {
        committed.unwrap();
    }
    let counts = durable.counts();
    assert_eq!((counts.parsed, counts.other_done, counts.items), (1, 2, 1));
}

#[tokio::test]
async fn a_reload_of_a_page_that_ends_beside_it_is_a_visit_of_its_own() {
    let objects = Arc::new(InMemory::new());
    let (durable, mut commits) = seeded(&objects, &["1", "2"]).await;
    commits[1].result.requests = urls(&["1"]);
    commits[1].result.requests[0].request.reload = true;
    for committed in end_at_once(&durable, commits).await {
        committed.unwrap();
    }
    let frontier: Arc<dyn Frontier> = durable;
    let claim = ready(next(&frontier, 0).await);
    assert_eq!((claim.request.url.path(), claim.visit), ("/1", 1));
}

#[tokio::test]
async fn whoever_is_cut_off_with_the_batch_of_others_breaks_the_frontier_for_all() {
    let objects = Arc::new(InMemory::new());
    let (durable, commits) = seeded(&objects, &["1", "2"]).await;
    let [first, second] = <[Commit; 2]>::try_from(commits).unwrap();
    let guard = durable.inner.writer.lock().await;
    let mut first = Box::pin(durable.commit(first));
    let mut second = Box::pin(durable.commit(second));
    assert!(futures::poll!(&mut first).is_pending());
    assert!(futures::poll!(&mut second).is_pending());
    drop(guard);
    // The first call holds the guard now, waits once, and has the other's page in its batch then.
    for _ in 0..2 {
        assert!(futures::poll!(&mut first).is_pending());
    }
    drop(first);
    let shard = shard();
    assert_eq!(second.await, Err(FrontierError::Closed { shard }));
    let again = reopen(&objects, 1).await;
    let counts = again.counts();
    assert_eq!(counts.parsed + counts.due, 2);
    assert_eq!(counts.parsed, counts.items);
}

#[tokio::test]
async fn whoever_is_cut_off_before_its_batch_is_begun_harms_no_other() {
    let objects = Arc::new(InMemory::new());
    let (durable, commits) = seeded(&objects, &["1", "2"]).await;
    let [first, second] = <[Commit; 2]>::try_from(commits).unwrap();
    let mut first = Box::pin(durable.commit(first));
    assert!(futures::poll!(&mut first).is_pending());
    let mut second = Box::pin(durable.commit(second));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    second.await.unwrap();
    // The page that was handed in first is part of the batch, though nobody waits for it.
    assert_eq!(durable.counts().parsed, 2);
}
