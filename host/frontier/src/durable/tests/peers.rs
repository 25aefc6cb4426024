//! Tests of links between shards whose processes are killed.

use super::*;
use crate::reader::FrontierReader;
use crate::suite::links::{ALL, Shards, bounds, reload};
use crate::{LinkBatch, LinkExchange as _, keys};
use crawler_model::frontier::UrlState;
use crawler_model::resource::LinkTotals;

async fn open_shard(objects: &Arc<InMemory>, shard: u32, run: u64) -> Arc<DurableFrontier> {
    open_with(objects, shard, run, settings()).await
}

async fn open_with(
    objects: &Arc<InMemory>,
    shard: u32,
    run: u64,
    settings: DurableSettings,
) -> Arc<DurableFrontier> {
    let frontiers = frontiers_in(objects, settings);
    let shard = ShardId {
        resource: ResourceId(7),
        shard: Shard(shard),
    };
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open_options = OpenOptions {
        shard,
        storage_epoch,
        created: storage_epoch > 0,
        ..open_options(&frontiers, run).await
    };
    Arc::new(frontiers.open(open_options).await.unwrap())
}

/// Ends a page of the sender, which leads to this link of shard 1.
async fn send(sender: &Arc<dyn Frontier>, link: NewRequest) {
    let mut commit = parsed(ready(take(sender, 0, 9).await));
    commit.result.for_peers = vec![(Shard(1), link)];
    sender.commit(commit).await.unwrap();
}

#[tokio::test]
async fn f23_a_crawl_of_several_shards_gives_each_page_once_however_often_they_are_killed() {
    for seed in 0..4 {
        let objects = Arc::new(InMemory::new());
        let mut frontiers: Vec<Arc<dyn Frontier>> = Vec::new();
        for shard in 0..3 {
            frontiers.push(open_shard(&objects, shard, 1).await);
        }
        let objects = &objects;
        let shards = Shards {
            frontiers,
            reopen: Some(&|shard| {
                Box::pin(async move {
                    let opened: Arc<dyn Frontier> = open_shard(objects, shard, 1).await;
                    opened
                })
            }),
        };
        suite::links::a_crawl_of_several_shards_gives_each_page_once(shards, seed).await;
    }
}

/// Step before which a process is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Killed {
    Nobody,
    SenderBeforeItSends,
    ReceiverBeforeItIsDurable,
    ReceiverBeforeItAnswers,
    SenderBeforeItForgets,
    SenderBeforeItHasForgotten,
}

async fn fetch_all(frontier: &Arc<dyn Frontier>) {
    while frontier.counts().due > 0 {
        let claim = ready(next(frontier, 0).await);
        frontier.commit(parsed(claim)).await.unwrap();
    }
    frontier.settle().await.unwrap();
}

/// The link is a reload of a page that is over, so each time that it is applied is a visit.
#[tokio::test]
async fn a_link_is_applied_once_wherever_one_of_both_is_killed() {
    use Killed::*;
    for killed in [
        Nobody,
        SenderBeforeItSends,
        ReceiverBeforeItIsDurable,
        ReceiverBeforeItAnswers,
        SenderBeforeItForgets,
        SenderBeforeItHasForgotten,
    ] {
        let objects = Arc::new(InMemory::new());
        let mut sender: Arc<dyn Frontier> = open_shard(&objects, 0, 1).await;
        let mut receiver: Arc<dyn Frontier> = open_shard(&objects, 1, 1).await;
        sender.seed(vec![new("http://a/")]).await.unwrap();
        receiver.seed(vec![new("http://b/")]).await.unwrap();
        let first = parsed(ready(take(&receiver, 0, 9).await));
        receiver.commit(first).await.unwrap();
        receiver.settle().await.unwrap();
        send(&sender, reload("http://b/")).await;
        sender.settle().await.unwrap();
        if killed == SenderBeforeItSends {
            sender = open_shard(&objects, 0, 1).await;
        }
        let mut lost = killed;
        loop {
            let batch = sender.links_for(Shard(1), bounds(9)).await.unwrap();
            if batch.links.is_empty() {
                break;
            }
            assert_eq!((batch.first, batch.links.len()), (1, 1), "{killed:?}");
            let end = batch.end();
            assert_eq!(receiver.apply(Shard(0), batch, ALL).await, Ok(1));
            if lost == ReceiverBeforeItIsDurable {
                (receiver, lost) = (open_shard(&objects, 1, 1).await, Nobody);
                continue;
            }
            receiver.settle().await.unwrap();
            // The page is fetched again before the sender hears that the link is there.
            fetch_all(&receiver).await;
            if lost == ReceiverBeforeItAnswers {
                (receiver, lost) = (open_shard(&objects, 1, 1).await, Nobody);
                continue;
            }
            if lost == SenderBeforeItForgets {
                (sender, lost) = (open_shard(&objects, 0, 1).await, Nobody);
                continue;
            }
            sender.delivered(Shard(1), end).await.unwrap();
            if lost == SenderBeforeItHasForgotten {
                (sender, lost) = (open_shard(&objects, 0, 1).await, Nobody);
            }
        }
        fetch_all(&receiver).await;
        assert_eq!(receiver.counts().parsed, 2, "{killed:?}");
        assert_eq!(take(&receiver, 0, 9).await, Take::Empty, "{killed:?}");
        assert_eq!(take(&sender, 0, 9).await, Take::Empty, "{killed:?}");
        let totals = (sender.link_totals().sent, receiver.link_totals().applied);
        assert_eq!(totals, ([(1, 1)].into(), [(0, 1)].into()), "{killed:?}");
    }
}

#[tokio::test]
async fn calls_with_the_same_links_at_the_same_time_store_each_once() {
    let objects = Arc::new(InMemory::new());
    let durable = open_shard(&objects, 0, 1).await;
    durable.seed(vec![new("http://a/")]).await.unwrap();
    let links = |n: usize| {
        let urls = (1..=n).map(|n| new(&format!("http://a/{n}")));
        let links = urls.map(|mut link| {
            link.request.reload = true;
            link
        });
        durable.apply(
            Shard(1),
            LinkBatch {
                first: 1,
                links: links.collect(),
            },
            ALL,
        )
    };
    let guard = durable.inner.writer.lock().await;
    let (two, again, four) = (links(2), links(2), links(4));
    let (two, again, four, ()) = tokio::join!(two, again, four, async { drop(guard) });
    // The rest of the longer batch comes again.
    assert_eq!((two, again, four), (Ok(2), Ok(2), Ok(2)));
    assert_eq!(durable.counts().due, 3);
    assert_eq!(links(4).await, Ok(4));
    assert_eq!(durable.counts().due, 5);
    assert_eq!(durable.link_totals().applied, [(1, 4)].into());
}

#[tokio::test]
async fn links_are_given_once_they_are_durable_and_not_before() {
    let objects = Arc::new(InMemory::new());
    let slow = DurableSettings {
        flush_interval: Duration::from_secs(3_600),
        ..settings()
    };
    let durable = open_with(&objects, 0, 1, slow).await;
    let sender: Arc<dyn Frontier> = durable;
    sender.seed(vec![new("http://a/")]).await.unwrap();
    send(&sender, new("http://b/")).await;
    assert_eq!(sender.peers(), []);
    let found = sender.links_for(Shard(1), bounds(9)).await.unwrap();
    assert_eq!(found.links, []);
    sender.settle().await.unwrap();
    sender.links_changed().await;
    assert_eq!(sender.peers(), [Shard(1)]);
    let found = sender.links_for(Shard(1), bounds(9)).await.unwrap();
    assert_eq!(found.links, [new("http://b/")]);
}

#[tokio::test]
async fn whoever_is_overtaken_applies_and_forgets_no_links() {
    let objects = Arc::new(InMemory::new());
    let first: Arc<dyn Frontier> = open_shard(&objects, 0, 1).await;
    first.seed(vec![new("http://a/")]).await.unwrap();
    send(&first, new("http://b/")).await;
    first.settle().await.unwrap();
    let second: Arc<dyn Frontier> = open_shard(&objects, 0, 1).await;
    let links = vec![new("http://a/1")];
    let mut applied = first.apply(Shard(1), LinkBatch { first: 1, links }, ALL);
    let mut applied = (&mut applied).await.map(drop);
    if applied.is_ok() {
        applied = first.settle().await;
    }
    let shard = shard();
    let fenced = Err(FrontierError::Fenced { shard });
    assert_eq!(applied, fenced);
    assert_eq!(first.delivered(Shard(1), 2).await, fenced);
    let third: Arc<dyn Frontier> = open_shard(&objects, 0, 1).await;
    for frontier in [second, third] {
        assert_eq!(frontier.link_totals().applied, [].into());
        assert_eq!(frontier.peers(), [Shard(1)]);
        assert_eq!(frontier.counts().due, 0);
    }
}

#[tokio::test]
async fn no_page_is_taken_while_too_many_links_wait_before_and_after_an_opening() {
    let objects = Arc::new(InMemory::new());
    let few = DurableSettings {
        max_links: 2,
        ..settings()
    };
    let frontier: Arc<dyn Frontier> = open_with(&objects, 0, 1, few.clone()).await;
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    send(&frontier, new("http://b/1")).await;
    send(&frontier, new("http://b/2")).await;
    assert_eq!(take(&frontier, 0, 9).await, Take::Blocked);
    let durable = open_with(&objects, 0, 1, few).await;
    while durable.inner.state().bench.n_buffered() == 0 {
        durable.take_changed().await;
    }
    let frontier: Arc<dyn Frontier> = durable;
    assert_eq!(take(&frontier, 0, 9).await, Take::Blocked);
    frontier.delivered(Shard(1), 2).await.unwrap();
    ready(next(&frontier, 0).await);
}

#[tokio::test]
async fn links_of_earlier_runs_go_when_a_run_begins_and_numbers_begin_anew() {
    let objects = Arc::new(InMemory::new());
    for run in [1, 2] {
        let durable = open_shard(&objects, 0, run).await;
        let frontier: Arc<dyn Frontier> = durable.clone();
        frontier.seed(urls(&["1"])).await.unwrap();
        assert_eq!(frontier.link_totals(), LinkTotals::default());
        send(&frontier, new("http://b/1")).await;
        let links = vec![new("http://a/2")];
        let applied = frontier.apply(Shard(1), LinkBatch { first: 1, links }, ALL);
        assert_eq!(applied.await, Ok(1));
        frontier.settle().await.unwrap();
        let found = frontier.links_for(Shard(1), bounds(9)).await.unwrap();
        assert_eq!((found.first, found.links.len()), (1, 1));
        while durable.inner.state().head.swept_before < run {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for run in 0..run {
            for prefix in [keys::links_of(Run(run)), keys::applied_of(Run(run))] {
                let range = prefix.clone()..keys::end_of(&prefix);
                assert_eq!(durable.inner.piece(range).await.unwrap(), []);
            }
        }
        frontier.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_link_that_is_gone_is_damage() {
    let objects = Arc::new(InMemory::new());
    let durable = open_shard(&objects, 0, 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    send(&frontier, new("http://b/1")).await;
    send(&frontier, new("http://b/2")).await;
    frontier.settle().await.unwrap();
    let inner = &durable.inner;
    inner
        .db
        .delete(keys::link(Run(1), Shard(1), 2))
        .await
        .unwrap();
    let error = frontier.links_for(Shard(1), bounds(9)).await.unwrap_err();
    assert!(
        error.to_string().contains("link 2 for shard 1 is missing"),
        "{error}"
    );
}

#[tokio::test]
async fn why_a_url_is_not_here_is_told_of_one_that_was_sent() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    send(&frontier, new("http://b/1")).await;
    frontier.close().await.unwrap();
    let reader = FrontierReader::open(objects.clone(), shard()).await;
    let reader = reader.unwrap().unwrap();
    let found = reader.find(&new("http://b/1").request, 0).await.unwrap();
    assert_eq!(found.unwrap().state, UrlState::Sent { to: Shard(1) });
    let sums = reader.stats(0).await.unwrap().counts;
    assert_eq!((sums.parsed, sums.due), (1, 0));
    reader.close().await;
}
