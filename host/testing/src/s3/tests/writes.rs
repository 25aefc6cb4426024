//! Conditional writes, by one client and by several at once.

use super::*;

#[tokio::test]
async fn one_of_concurrent_creates_succeeds() {
    let server = S3Server::start();
    let store = client(&server);
    for round in 0..20 {
        let key = format!("round-{round}");
        let bodies: Vec<String> = (0..8).map(|writer| format!("writer {writer}")).collect();
        let writes = bodies.iter().map(|body| create(&store, &key, body));
        let results = futures::future::join_all(writes).await;
        let winners: Vec<_> = (0..8).filter(|&i| results[i].is_ok()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        let mut refused = results.iter().filter_map(|result| result.as_ref().err());
        assert!(refused.all(|e| matches!(e, Error::AlreadyExists { .. })));
        assert_eq!(read(&store, &key).await, bodies[winners[0]]);
    }
}

#[tokio::test]
async fn one_of_concurrent_updates_succeeds() {
    let server = S3Server::start();
    let store = client(&server);
    let mut e_tag = write(&store, "counter", "none").await.e_tag;
    for round in 0..20 {
        let bodies: Vec<String> = (0..8).map(|i| format!("{round}, writer {i}")).collect();
        let writes = bodies
            .iter()
            .map(|body| update(&store, "counter", body, e_tag.clone()));
        let results = futures::future::join_all(writes).await;
        let winners: Vec<_> = (0..8).filter(|&i| results[i].is_ok()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        let mut refused = results.iter().filter_map(|result| result.as_ref().err());
        assert!(refused.all(|e| matches!(e, Error::Precondition { .. })));
        assert_eq!(read(&store, "counter").await, bodies[winners[0]]);
        e_tag = results[winners[0]].as_ref().unwrap().e_tag.clone();
    }
}

#[tokio::test]
async fn concurrent_increments_lose_none() {
    let server = S3Server::start();
    let store = client(&server);
    write(&store, "counter", "0").await;
    let increments = (0..8).map(|_| async {
        let mut n_done = 0;
        while n_done < 10 {
            // The content and its ETag come from one answer, and must belong together.
            let current = store.get(&path("counter")).await.unwrap();
            let e_tag = current.meta.e_tag.clone();
            let count = current.bytes().await.unwrap();
            let count: u32 = std::str::from_utf8(&count).unwrap().parse().unwrap();
            let next = (count + 1).to_string();
            n_done += u32::from(update(&store, "counter", &next, e_tag).await.is_ok());
        }
    });
    futures::future::join_all(increments).await;
    assert_eq!(read(&store, "counter").await, "80");
}

#[tokio::test]
async fn updates_with_a_wrong_etag_are_refused() {
    let server = S3Server::start();
    let store = client(&server);
    let first = write(&store, "a", "1").await;
    write(&store, "a", "2").await;
    let stale = update(&store, "a", "3", first.e_tag.clone()).await;
    assert!(
        matches!(stale, Err(Error::Precondition { .. })),
        "{stale:?}"
    );
    let missing = update(&store, "b", "3", first.e_tag).await;
    assert!(
        matches!(missing, Err(Error::Precondition { .. })),
        "{missing:?}"
    );
    assert_eq!(read(&store, "a").await, "2");
    assert_eq!(keys(&store, "").await, ["a"]);
}
