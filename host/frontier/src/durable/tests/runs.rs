//! Tests of what a new run takes over from earlier ones, and what it leaves.

use super::*;
use crate::keys;
use crate::reader::FrontierReader;
use crawler_model::crawl::Done;
use crawler_model::frontier::{ContentHash, UrlState, Validators};
use crawler_model::parsed_by::ParsedBy;
use crawler_model::visit::Visit;

#[tokio::test]
async fn a_new_run_begins_anew_and_what_the_last_left_goes() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    let dead = Ended::Dead {
        reason: "timeout".into(),
    };
    frontier
        .commit(commit_of(ready(take(&frontier, 0, 1).await), dead))
        .await
        .unwrap();
    frontier
        .commit(parsed(ready(take(&frontier, 0, 1).await)))
        .await
        .unwrap();
    frontier.close().await.unwrap();

    let durable = open(&objects, 2).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    assert_eq!(
        (frontier.roots(), frontier.counts()),
        (None, Counts::default())
    );
    frontier.seed(urls(&["2"])).await.unwrap();
    assert_eq!(crawl(&frontier).await, ["/2"]);
    let inner = &durable.inner;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while inner.state().head.swept_before < 2 {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the sweep has not ended"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for prefix in [
        keys::seen_of(Run(1)),
        keys::ready_of(Run(1)),
        keys::dead_letters_of(Run(1)),
        keys::totals(Run(1)),
    ] {
        let first = inner
            .scan_prefix(&prefix)
            .await
            .unwrap()
            .next()
            .await
            .unwrap();
        assert_eq!(first, None, "{prefix:?}");
    }
}

#[tokio::test]
async fn a_run_that_carries_on_asks_again_for_all_that_the_last_knew_with_its_validators() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    let validators = Validators {
        etag: Some("e".into()),
        ..Default::default()
    };
    commit.result.validators = Some(validators.clone());
    frontier.commit(commit).await.unwrap();
    let gone = Ended::Done(Done::Gone);
    frontier
        .commit(commit_of(ready(take(&frontier, 0, 1).await), gone))
        .await
        .unwrap();
    frontier.close().await.unwrap();
    let frontiers = frontiers_in(&objects, settings());
    let open_options = OpenOptions {
        carry: Some(Run(1)),
        ..open_options(&frontiers, 2).await
    };
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    frontier.seed(urls(&["new"])).await.unwrap();
    let mut found = Vec::new();
    loop {
        match take(&frontier, 0, 1).await {
            Take::Ready(claim) => {
                let etag = claim.validators.as_ref().and_then(|v| v.etag.clone());
                found.push((claim.request.url.path().to_owned(), etag));
                frontier.commit(parsed(claim)).await.unwrap();
            }
            Take::Blocked => frontier.take_changed().await,
            Take::Empty => break,
            Take::WaitUntil(at) => panic!("{at}"),
        }
    }
    found.sort();
    let etag = Some("e".to_owned());
    let expected = [("/1", etag), ("/3", None), ("/new", None)];
    assert_eq!(found, expected.map(|(path, etag)| (path.to_owned(), etag)));
}

/// An accepted failure is a page that a rule has read: the next run asks for it again, whatever links there by then.
#[tokio::test]
async fn a_carried_url_keeps_its_referrer_and_its_statuses() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let link = suite::requests::linked("http://a/2", "http://a/1");
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.requests = vec![link.clone()];
    frontier.commit(commit).await.unwrap();
    let failure = parsed(ready(take(&frontier, 0, 1).await));
    frontier.commit(failure).await.unwrap();
    frontier.close().await.unwrap();
    let frontiers = frontiers_in(&objects, settings());
    let run_2 = OpenOptions {
        carry: Some(Run(1)),
        ..open_options(&frontiers, 2).await
    };
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(run_2).await.unwrap());
    frontier.seed(urls(&["1"])).await.unwrap();
    let mut found = Vec::new();
    loop {
        match take(&frontier, 0, 1).await {
            Take::Ready(claim) => {
                found.push(claim.request.clone());
                frontier.commit(parsed(claim)).await.unwrap();
            }
            Take::Blocked => frontier.take_changed().await,
            Take::Empty => break,
            Take::WaitUntil(at) => panic!("{at}"),
        }
    }
    assert!(found.contains(&link.request), "{found:?}");
}

#[tokio::test]
async fn what_one_run_did_not_come_to_carry_on_the_next_one_does() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    assert_eq!(crawl(&frontier).await, ["/1", "/2"]);
    frontier.close().await.unwrap();
    let frontiers = frontiers_in(&objects, settings());
    // The root of this run is not asked, and the frontier is never opened in run 3.
    let run_2 = OpenOptions {
        carry: Some(Run(1)),
        ..open_options(&frontiers, 2).await
    };
    frontiers.open(run_2).await.unwrap().close().await.unwrap();
    let run_4 = OpenOptions {
        carry: Some(Run(1)),
        ..open_options(&frontiers, 4).await
    };
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(run_4).await.unwrap());
    frontier.seed(urls(&["1"])).await.unwrap();
    assert_eq!(crawl_carried(&frontier).await, ["/1", "/2"]);
}

/// Returns the paths, in order, until nothing is left to crawl or to carry over.
async fn crawl_carried(frontier: &Arc<dyn Frontier>) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        match take(frontier, 0, 1).await {
            Take::Ready(claim) => {
                found.push(claim.request.url.path().to_owned());
                frontier.commit(parsed(claim)).await.unwrap();
            }
            Take::Blocked => frontier.take_changed().await,
            Take::Empty => break,
            Take::WaitUntil(at) => panic!("{at}"),
        }
    }
    found
}

#[tokio::test]
async fn nothing_is_carried_on_from_a_run_that_had_other_hosts() {
    for (first, expected) in [(1, ["/1", "/2", "/3"].as_slice()), (2, &["/3"])] {
        let objects = Arc::new(InMemory::new());
        let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
        frontier.seed(urls(&["1", "2"])).await.unwrap();
        assert_eq!(crawl(&frontier).await, ["/1", "/2"]);
        frontier.close().await.unwrap();
        let frontiers = frontiers_in(&objects, settings());
        // Run 2, which began with other hosts, was over before its frontier was opened.
        let run_3 = OpenOptions {
            carry: Some(Run(first)),
            ..open_options(&frontiers, 3).await
        };
        let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(run_3).await.unwrap());
        frontier.seed(urls(&["3"])).await.unwrap();
        let mut found = crawl_carried(&frontier).await;
        found.sort();
        assert_eq!(found, expected, "from run {first} on");
    }
}

#[tokio::test]
async fn a_url_that_an_earlier_run_left_due_is_reloaded_where_redirects_led_to_it() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["a", "b"])).await.unwrap();
    frontier.close().await.unwrap();

    let frontier: Arc<dyn Frontier> = open(&objects, 2).await;
    frontier.seed(urls(&["a"])).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    let [mut link] = urls(&["b"]).try_into().unwrap();
    commit.result.final_url = Some(link.request.clone());
    link.request.reload = true;
    commit.result.requests = vec![link];
    assert_eq!(frontier.commit(commit).await.unwrap().n_new, 0);
    assert_eq!(
        crawl(&frontier).await,
        [] as [&str; 0],
        "where it was led just now"
    );
    frontier.close().await.unwrap();

    let frontier: Arc<dyn Frontier> = open(&objects, 3).await;
    frontier.seed(urls(&["a", "c"])).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    let [mut link] = urls(&["b"]).try_into().unwrap();
    commit.result.final_url = Some(link.request.clone());
    frontier.commit(commit).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    link.request.reload = true;
    commit.result.requests = vec![link];
    frontier.commit(commit).await.unwrap();
    assert_eq!(crawl(&frontier).await, ["/b"]);
}

#[tokio::test]
async fn a_page_that_is_not_due_keeps_its_visit_over_runs() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let known = Validators {
        content: Some(ContentHash::of(b"body")),
        parsed_by: Some(ParsedBy([7; 16])),
        visit: Some(Visit {
            at: 5,
            interval_ms: 6,
        }),
        ..Validators::default()
    };
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    let request = commit.claim.request.clone();
    commit.result.validators = Some(known.clone());
    frontier.commit(commit).await.unwrap();
    frontier.close().await.unwrap();
    for run in 2..4 {
        let frontiers = frontiers_in(&objects, settings());
        let open_options = OpenOptions {
            carry: Some(Run(1)),
            ..open_options(&frontiers, run).await
        };
        let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
        // No root request leads to the page.
        frontier.seed(urls(&["other"])).await.unwrap();
        let mut found = Vec::new();
        loop {
            match take(&frontier, 0, 1).await {
                Take::Ready(claim) if claim.request == request => {
                    found.push(claim.validators.as_deref().cloned());
                    let not_due = Ended::Done(Done::NotDue);
                    frontier.commit(commit_of(claim, not_due)).await.unwrap();
                }
                Take::Ready(claim) => {
                    frontier.commit(parsed(claim)).await.unwrap();
                }
                Take::Blocked => frontier.take_changed().await,
                Take::Empty => break,
                Take::WaitUntil(at) => panic!("{at}"),
            }
        }
        assert_eq!(found, [Some(known.clone())], "run {run}");
        assert_eq!(frontier.counts().outcomes["not-due"], 1);
        frontier.close().await.unwrap();
        let reader = FrontierReader::open(objects.clone(), shard()).await;
        let reader = reader.unwrap().expect("it is there");
        let entry = reader
            .find(&request, 0)
            .await
            .unwrap()
            .expect("it is stored");
        assert_eq!(entry.state, UrlState::Done(Done::NotDue), "run {run}");
        reader.close().await;
    }
}
