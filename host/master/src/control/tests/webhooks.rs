//! Tests of webhooks, with a receiver in the place of HTTP. The clock is paused: waits between calls take no time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::watching::{SOON, caught_up, followed};
use super::*;
use crate::observed::Observed;
use crate::replica::Replica;
use crate::webhooks::{
    self, EventFilter, EventKind, PastWebhookEvent, RetrySettings, SendError, SendWebhook, Webhook,
    WebhookEvent,
};
use crawler_model::event::EventKind as PastKind;
use crawler_model::node::Role as NodeRole;
use crawler_process::task::TaskScope;
use crawler_store::catalog::encode;

/// Longest wait for events; with repeated calls it takes minutes of the paused clock.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Reaction to a call.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Taken,
    Refused,
    /// Refused with a wish for a long wait.
    Busy,
    Never,
    Panic,
    /// Taken after ten seconds, in steps that each have a deadline.
    Slow,
}

/// Wait that a busy receiver asks for.
const BUSY_WAIT: Duration = Duration::from_secs(200);

/// Receiver that notes what it is sent, and takes it if there is no other reaction left.
#[derive(Default)]
struct Receiver {
    /// Ids and bodies of all calls.
    heard: Mutex<Vec<(String, String)>>,
    replies: Mutex<VecDeque<Reply>>,
    n_bodies: AtomicUsize,
}

impl Receiver {
    fn replying(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().collect());
        Arc::new(Self {
            replies,
            ..Self::default()
        })
    }

    fn heard(&self) -> Vec<(String, String)> {
        self.heard.lock().unwrap().clone()
    }

    fn bodies(&self) -> Vec<String> {
        self.heard().into_iter().map(|(_, body)| body).collect()
    }

    /// Waits until a number of calls has come.
    async fn until(&self, n_calls: usize) {
        while self.heard.lock().unwrap().len() < n_calls {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[async_trait]
impl SendWebhook for Receiver {
    fn body(&self, event: &WebhookEvent) -> Bytes {
        self.n_bodies.fetch_add(1, Ordering::Relaxed);
        let phase = event.resource.as_ref().map(|view| view.phase.as_str());
        let mark = if event.resync { " resync" } else { "" };
        let (kind, name) = (event.kind.as_str(), &event.name);
        format!("{kind} {name} {}{mark}", phase.unwrap_or("-")).into()
    }

    fn past_body(&self, event: &PastWebhookEvent) -> Bytes {
        let name = event.name.as_ref().map(ToString::to_string);
        let node = event.told.node.as_ref().map(ToString::to_string);
        let mark = if event.resync { " resync" } else { "" };
        let about = name.or(node).unwrap_or_default();
        format!("{} {about}{mark}", event.told.event.kind).into()
    }

    async fn send(&self, id: &str, body: Bytes) -> Result<(), SendError> {
        let body = String::from_utf8(body.to_vec()).unwrap();
        self.heard.lock().unwrap().push((id.to_owned(), body));
        let reply = self.replies.lock().unwrap().pop_front();
        match reply {
            None | Some(Reply::Taken) => Ok(()),
            Some(Reply::Refused) => Err(SendError {
                why: "status 500".to_owned(),
                retry_after: None,
            }),
            Some(Reply::Busy) => Err(SendError {
                why: "status 503".to_owned(),
                retry_after: Some(BUSY_WAIT),
            }),
            Some(Reply::Never) => std::future::pending().await,
            Some(Reply::Panic) => panic!("on purpose"),
            Some(Reply::Slow) => {
                for _ in 0..100 {
                    let began_at = tokio::time::Instant::now();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    if began_at.elapsed() > Duration::from_secs(1) {
                        return Err(SendError {
                            why: "no step in time".to_owned(),
                            retry_after: None,
                        });
                    }
                }
                Ok(())
            }
        }
    }
}

fn webhook(name: &str, receiver: &Arc<Receiver>) -> Webhook {
    Webhook {
        name: name.parse().unwrap(),
        filter: EventFilter::default(),
        retries: RetrySettings::default(),
        max_queued: 1 << 20,
        sender: receiver.clone(),
    }
}

/// Begins a term of a leader.
fn lead(bench: &Bench, webhooks: &[Webhook]) -> TaskScope {
    let parts = &bench.control.parts;
    let term = webhooks::Term {
        catalog: bench.catalog().clone(),
        replica: parts.replica.clone(),
        leadership: bench.control.leadership().unwrap(),
        clock: parts.clock.clone(),
    };
    webhooks::start(webhooks, &term, &CancellationToken::new())
}

/// Sends events as a leader does, until what is waited for is there. The leader is then cut off.
async fn while_leading(bench: &Bench, webhooks: &[Webhook], waited: impl Future<Output = ()>) {
    let term = lead(bench, webhooks);
    let in_time = tokio::time::timeout(PATIENCE, waited).await;
    in_time.expect("in time");
    assert!(!term.failed().is_cancelled());
}

/// Waits until the position of a webhook has passed the last write of a resource or a shard.
async fn until_stored(bench: &Bench, name: &str) {
    let (catalog, keys) = (bench.catalog(), bench.catalog().keys());
    let key = keys.webhook_position(&name.parse().unwrap());
    let mut written = Revision(0);
    for prefix in [keys.resources(), keys.shards()] {
        let entries = catalog.store().list(&prefix).await.unwrap().entries;
        let revisions = entries.into_iter().map(|entry| entry.revision);
        written = revisions.fold(written, Revision::max);
    }
    loop {
        let position = catalog.read::<serde_json::Value>(&key).await.unwrap();
        let position = position.and_then(|found| found.value["revision"].as_u64());
        if position.is_some_and(|position| position >= written.0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_tells_what_happens_from_its_first_start_on() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let hooks = [webhook("chat", &receiver)];
    let told = async {
        until_stored(&bench, "chat").await;
        // Numbers are no event.
        bench.record("a", |shard| shard.counts.items = 7).await;
        bench.add("b").await.unwrap();
        receiver.until(1).await;
        bench.end("a", ShardState::Finished).await;
        receiver.until(2).await;
        bench.delete("b").await.unwrap();
        receiver.until(3).await;
    };
    while_leading(&bench, &hooks, told).await;
    let expected = ["added b Running", "changed a Finished", "deleted b -"];
    assert_eq!(receiver.bodies(), expected);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn events_of_histories_are_sent_as_they_are_and_once() {
    let (bench, scope) = followed().await;
    for name in ["a", "b"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let pause = async |name: &str, pause: bool| {
        let (name, request) = (name.parse().unwrap(), RequestId::random());
        let paused = bench.control.pause_resource(&name, pause, &request).await;
        paused.unwrap();
    };
    let receiver = Receiver::replying([]);
    let mut hook = webhook("chat", &receiver);
    hook.filter = EventFilter {
        name_prefix: "a".to_owned(),
        kinds: Vec::new(),
        history: vec![PastKind::Paused, PastKind::Draining],
        ..EventFilter::default()
    };
    let hooks = [hook];
    let told = async {
        until_stored(&bench, "chat.events").await;
        for name in ["a", "b"] {
            pause(name, true).await;
        }
        let worker = "worker-1".parse().unwrap();
        let drained = bench.control.drain_node(&worker, false, "alice").await;
        drained.unwrap();
        receiver.until(2).await;
        // The position is stored.
        tokio::time::sleep(SOON).await;
    };
    while_leading(&bench, &hooks, told).await;
    // Nobody leads.
    pause("a", false).await;
    pause("a", true).await;
    while_leading(&bench, &hooks, receiver.until(3)).await;
    assert_eq!(
        receiver.bodies(),
        ["paused a", "draining worker-1", "paused a"]
    );
    let ids: BTreeSet<String> = receiver.heard().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 3);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_webhook_does_not_begin_with_an_old_state() {
    let mut bench = bench().await;
    let strategy = Strategy::default();
    let (replica, feeder) = Replica::new(bench.catalog().clone(), strategy);
    let old = Observed::read(bench.catalog(), strategy).await.unwrap();
    feeder.follow_from(&old);
    replica.lose();
    bench.control.parts.replica = replica;
    bench.add("a").await.unwrap();
    let receiver = Receiver::replying([]);
    let told = async {
        tokio::time::sleep(SOON).await;
        let read = Observed::read_over(bench.catalog(), strategy, Arc::new(old));
        feeder.follow_from(&read.await.unwrap());
        until_stored(&bench, "chat").await;
        tokio::time::sleep(SOON).await;
    };
    while_leading(&bench, &[webhook("chat", &receiver)], told).await;
    assert_eq!(receiver.bodies(), [""; 0], "it was there before");
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_made_again_and_given_up_at_its_bound() {
    let (bench, scope) = followed().await;
    // The first event is taken at its third attempt; the second is not taken at any of them.
    let receiver = Receiver::replying([Reply::Refused; 2]);
    let mut hook = webhook("chat", &receiver);
    hook.retries.max_attempts = 3;
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("a").await.unwrap();
        receiver.until(3).await;
        receiver.replies.lock().unwrap().extend([Reply::Refused; 3]);
        bench.add("b").await.unwrap();
        receiver.until(6).await;
        bench.add("c").await.unwrap();
        receiver.until(7).await;
    };
    while_leading(&bench, &[hook], told).await;
    let heard = receiver.heard();
    let expected = ["a", "a", "a", "b", "b", "b", "c"].map(|name| format!("added {name} Running"));
    assert_eq!(receiver.bodies(), expected);
    for same in [&heard[..3], &heard[3..6]] {
        assert!(same.iter().all(|call| *call == same[0]), "{same:?}");
    }
    assert_ne!(heard[0].0, heard[3].0, "events have ids of their own");
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_receiver_is_left_alone_for_as_long_as_it_asks() {
    let (bench, scope) = followed().await;
    let receiver = Receiver::replying([Reply::Busy]);
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("a").await.unwrap();
        receiver.until(1).await;
        let busy_since = tokio::time::Instant::now();
        receiver.until(2).await;
        // The first call was noticed a moment late.
        assert!(busy_since.elapsed() + Duration::from_secs(1) > BUSY_WAIT);
    };
    while_leading(&bench, &[webhook("chat", &receiver)], told).await;
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_holds_up_no_other() {
    let (bench, scope) = followed().await;
    let hanging = Receiver::replying([Reply::Never]);
    let other = Receiver::replying([]);
    let hooks = [webhook("hanging", &hanging), webhook("other", &other)];
    let told = async {
        until_stored(&bench, "hanging").await;
        until_stored(&bench, "other").await;
        for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
            bench.add(name).await.unwrap();
            other.until(n + 1).await;
        }
        hanging.until(1).await;
    };
    while_leading(&bench, &hooks, told).await;
    assert_eq!(hanging.bodies(), ["added a Running"]);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn events_wait_within_their_bound_and_the_rest_is_told_later() {
    let (bench, scope) = followed().await;
    let receiver = Receiver::replying([Reply::Refused; 9]);
    let mut hook = webhook("chat", &receiver);
    hook.max_queued = 1;
    hook.retries.max_attempts = 10;
    let names = ["d", "b", "c", "a"];
    let told = async {
        until_stored(&bench, "chat").await;
        for name in names {
            bench.add(name).await.unwrap();
        }
        receiver.until(9).await;
        // One is sent, and one waits for room.
        assert_eq!(receiver.n_bodies.load(Ordering::Relaxed), 2);
        receiver.until(10 + 3).await;
    };
    while_leading(&bench, &[hook], told).await;
    let told = receiver.bodies().split_off(9);
    assert_eq!(told, names.map(|name| format!("added {name} Running")));
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_a_later_version_has_written_is_no_deletion() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let told = async {
        until_stored(&bench, "chat").await;
        let key = bench.catalog().keys().resource(&"a".parse().unwrap());
        bench.write(Txn::new().put(key, "from the future")).await;
        bench.add("b").await.unwrap();
        receiver.until(1).await;
    };
    while_leading(&bench, &[webhook("chat", &receiver)], told).await;
    assert_eq!(receiver.bodies(), ["added b Running"]);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_goes_on_where_the_last_one_ended() {
    let (bench, scope) = followed().await;
    for name in ["a", "b", "c"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let hooks = [webhook("chat", &receiver)];
    while_leading(&bench, &hooks, until_stored(&bench, "chat")).await;
    bench.delete("b").await.unwrap();
    bench.end("c", ShardState::Finished).await;
    bench.add("d").await.unwrap();
    caught_up(&bench).await;
    // This leader is deposed while it sends the first of them.
    receiver.replies.lock().unwrap().push_back(Reply::Never);
    while_leading(&bench, &hooks, receiver.until(1)).await;
    while_leading(&bench, &hooks, receiver.until(4)).await;
    let heard = receiver.heard();
    assert_eq!(heard[0], heard[1], "it is sent again, under its id");
    let expected = ["deleted b -", "changed c Finished", "added d Running"];
    assert_eq!(receiver.bodies().split_off(1), expected);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn the_position_moves_with_each_event_while_another_is_retried() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let taken_and_refused = [Reply::Taken, Reply::Refused, Reply::Refused];
    let receiver = Receiver::replying(taken_and_refused);
    let hooks = [webhook("chat", &receiver)];
    let told = async {
        until_stored(&bench, "chat").await;
        for name in ["b", "c", "d"] {
            bench.add(name).await.unwrap();
        }
        receiver.until(3).await;
    };
    while_leading(&bench, &hooks, told).await;
    while_leading(&bench, &hooks, receiver.until(5)).await;
    let expected = ["b", "c", "c", "c", "d"].map(|name| format!("added {name} Running"));
    assert_eq!(receiver.bodies(), expected, "b is not sent again");
    let heard = receiver.heard();
    assert_eq!(heard[1].0, heard[3].0, "the next leader uses the same id");
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn the_position_is_stored_while_a_call_hangs() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([Reply::Taken, Reply::Taken, Reply::Never]);
    let hooks = [webhook("chat", &receiver)];
    let told = async {
        until_stored(&bench, "chat").await;
        for name in ["b", "c", "d"] {
            bench.add(name).await.unwrap();
        }
        receiver.until(3).await;
        tokio::time::sleep(SOON).await;
    };
    while_leading(&bench, &hooks, told).await;
    while_leading(&bench, &hooks, receiver.until(4)).await;
    let expected = ["b", "c", "d", "d"].map(|name| format!("added {name} Running"));
    assert_eq!(receiver.bodies(), expected, "c is not sent again");
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn the_position_moves_within_one_write_that_concerns_many() {
    let (bench, scope) = followed().await;
    let (catalog, keys) = (bench.catalog(), bench.catalog().keys());
    let [first, second] = ["worker-1", "worker-2"].map(|id| id.parse().unwrap());
    let unregistered = |id| Txn::new().delete(keys.node(NodeRole::Worker, id));
    bench.write(unregistered(&second)).await;
    for name in ["a", "b", "c"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let receiver = Receiver::replying([Reply::Taken, Reply::Refused, Reply::Refused]);
    let hooks = [webhook("chat", &receiver)];
    let told = async {
        until_stored(&bench, "chat").await;
        bench.write(unregistered(&first)).await;
        // With a later write it is known that the one before has no further changes.
        let later = Txn::new().put(catalog.keys().status(&first), "{}");
        bench.write(later).await;
        receiver.until(3).await;
    };
    while_leading(&bench, &hooks, told).await;
    while_leading(&bench, &hooks, receiver.until(5)).await;
    let expected = ["a", "b", "b", "b", "c"].map(|name| format!("changed {name} Pending"));
    assert_eq!(receiver.bodies(), expected, "a is not sent again");
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_has_its_id_however_changes_fall_together() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let hooks = [webhook("chat", &receiver)];
    let told = async {
        until_stored(&bench, "chat").await;
        bench.end("a", ShardState::Finished).await;
        receiver.until(1).await;
    };
    // This leader is cut off before it stores the position.
    while_leading(&bench, &hooks, told).await;
    bench.record("a", |shard| shard.counts.items = 7).await;
    caught_up(&bench).await;
    while_leading(&bench, &hooks, receiver.until(2)).await;
    let heard = receiver.heard();
    assert_eq!(heard[0], heard[1], "numbers are no part of it");
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_state_that_comes_back_is_another_event() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let told = async {
        until_stored(&bench, "chat").await;
        let states = [
            ShardState::Finished,
            ShardState::Assigned,
            ShardState::Finished,
        ];
        for (n, state) in states.into_iter().enumerate() {
            bench.end("a", state).await;
            receiver.until(n + 1).await;
        }
    };
    while_leading(&bench, &[webhook("chat", &receiver)], told).await;
    let heard = receiver.heard();
    assert_eq!(heard[0].1, heard[2].1);
    assert_ne!(heard[0].0, heard[2].0);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_stores_the_position_first() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    // The call in hand is cut off.
    let receiver = Receiver::replying([Reply::Taken, Reply::Never]);
    let hooks = [webhook("chat", &receiver)];
    let term = lead(&bench, &hooks);
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("b").await.unwrap();
        bench.add("c").await.unwrap();
        receiver.until(2).await;
    };
    let in_time = tokio::time::timeout(PATIENCE, told).await;
    in_time.expect("in time");
    let stopped_at = tokio::time::Instant::now();
    assert_eq!(term.stop(webhooks::STOP_GRACE).await, [""; 0]);
    let time = stopped_at.elapsed();
    assert!(
        time < webhooks::STOP_GRACE,
        "the lead was held for {time:?}"
    );
    while_leading(&bench, &hooks, receiver.until(3)).await;
    let expected = ["b", "c", "c"].map(|name| format!("added {name} Running"));
    assert_eq!(receiver.bodies(), expected);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_holds_up_no_stop() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let term = lead(&bench, &[webhook("chat", &receiver)]);
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("b").await.unwrap();
        // The position behind this event is not stored.
        bench.store.silence_commits();
        receiver.until(1).await;
    };
    let in_time = tokio::time::timeout(PATIENCE, told).await;
    in_time.expect("in time");
    assert_eq!(term.stop(webhooks::STOP_GRACE).await, [""; 0]);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_while_the_store_hangs() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([Reply::Taken, Reply::Taken, Reply::Slow]);
    let told = async {
        until_stored(&bench, "chat").await;
        for name in ["b", "c", "d"] {
            bench.add(name).await.unwrap();
        }
        receiver.until(3).await;
        // The position behind `b` is stored at once, and that behind `c` becomes due while `d` is sent.
        bench.store.silence_commits();
        tokio::time::sleep(Duration::from_secs(30)).await;
    };
    while_leading(&bench, &[webhook("chat", &receiver)], told).await;
    let expected = ["b", "c", "d"].map(|name| format!("added {name} Running"));
    assert_eq!(receiver.bodies(), expected, "d is not sent again");
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_panics_goes_on_and_ends_nothing_else() {
    let (bench, scope) = followed().await;
    let faulty = Receiver::replying([Reply::Taken, Reply::Panic, Reply::Panic]);
    let other = Receiver::replying([]);
    let hooks = [webhook("faulty", &faulty), webhook("other", &other)];
    let told = async {
        until_stored(&bench, "faulty").await;
        until_stored(&bench, "other").await;
        bench.add("a").await.unwrap();
        faulty.until(1).await;
        until_stored(&bench, "faulty").await;
        bench.add("b").await.unwrap();
        faulty.until(4).await;
        other.until(2).await;
    };
    while_leading(&bench, &hooks, told).await;
    let expected = ["a", "b", "b", "b"].map(|name| format!("added {name} Running"));
    assert_eq!(faulty.bodies(), expected);
    assert_eq!(other.bodies().len(), 2);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_after_a_panic_is_short_again_after_progress() {
    let (bench, scope) = followed().await;
    let panics = [Reply::Panic; 6];
    let receiver = Receiver::replying(panics);
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("a").await.unwrap();
        receiver.until(panics.len() + 1).await;
        until_stored(&bench, "chat").await;
        // The position has passed the first event. After six panics in a row the wait would be half a minute.
        receiver.replies.lock().unwrap().push_back(Reply::Panic);
        bench.add("b").await.unwrap();
        receiver.until(panics.len() + 2).await;
        let panicked_at = tokio::time::Instant::now();
        receiver.until(panics.len() + 3).await;
        let wait = panicked_at.elapsed();
        assert!(wait < Duration::from_secs(10), "{wait:?}");
    };
    while_leading(&bench, &[webhook("chat", &receiver)], told).await;
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn what_came_and_went_while_events_waited_is_told_once() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([Reply::Refused]);
    let mut hook = webhook("chat", &receiver);
    hook.max_queued = 1;
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("b").await.unwrap();
        bench.add("c").await.unwrap();
        bench.add("d").await.unwrap();
        receiver.until(1).await;
        bench.delete("d").await.unwrap();
        caught_up(&bench).await;
        bench.add("e").await.unwrap();
        receiver.until(5).await;
    };
    while_leading(&bench, &[hook], told).await;
    let expected = [
        "added b Running",
        "added b Running",
        "added c Running",
        "deleted d -",
        "added e Running",
    ];
    assert_eq!(receiver.bodies(), expected);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_what_the_last_leader_has_told_is_told() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let hooks = [webhook("chat", &receiver)];
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("b").await.unwrap();
        receiver.until(1).await;
    };
    // This leader is cut off before it stores the position.
    while_leading(&bench, &hooks, told).await;
    bench.delete("b").await.unwrap();
    caught_up(&bench).await;
    while_leading(&bench, &hooks, receiver.until(2)).await;
    assert_eq!(receiver.bodies(), ["added b Running", "deleted b -"]);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn what_changed_before_it_was_told_is_told_to_each_filter() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receivers = [(); 3].map(|()| Receiver::replying([]));
    let mut hooks = ["new", "changed", "all"].map(|name| webhook(name, &receivers[0]));
    let kinds = [
        vec![EventKind::Added],
        vec![EventKind::Changed],
        EventKind::ALL.to_vec(),
    ];
    for ((hook, receiver), kinds) in hooks.iter_mut().zip(&receivers).zip(kinds) {
        hook.sender = receiver.clone();
        hook.filter.kinds = kinds;
    }
    let stored = async {
        for hook in &hooks {
            until_stored(&bench, hook.name.as_str()).await;
        }
    };
    while_leading(&bench, &hooks, stored).await;
    bench.add("b").await.unwrap();
    bench.end("b", ShardState::Finished).await;
    caught_up(&bench).await;
    let told = async {
        for receiver in &receivers {
            receiver.until(1).await;
        }
        bench.delete("b").await.unwrap();
        receivers[2].until(2).await;
    };
    while_leading(&bench, &hooks, told).await;
    let told = receivers.map(|receiver| receiver.bodies());
    assert_eq!(told[0], ["added b Finished"]);
    assert_eq!(told[1], ["changed b Finished"]);
    assert_eq!(told[2], ["added b Finished", "deleted b -"]);
    scope.stop(SOON).await;
}

/// Gives the master a replica of a new process, whose log begins with what it finds.
fn restart(bench: &mut Bench) -> TaskScope {
    let (replica, feeder) = Replica::new(bench.catalog().clone(), Strategy::default());
    let restarted = TaskScope::new();
    restarted.spawn("replica", feeder.run(restarted.stop_signal()));
    bench.control.parts.replica = replica;
    restarted
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_what_may_have_changed_is_sent_with_a_mark() {
    let (mut bench, scope) = followed().await;
    for name in ["a", "b", "c"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let hooks = [webhook("chat", &receiver)];
    while_leading(&bench, &hooks, until_stored(&bench, "chat")).await;
    bench.end("a", ShardState::Finished).await;
    bench.delete("c").await.unwrap();
    let restarted = restart(&mut bench);
    let told = async {
        receiver.until(3).await;
        bench.end("b", ShardState::Finished).await;
        receiver.until(4).await;
    };
    while_leading(&bench, &hooks, told).await;
    let expected = [
        "changed a Finished resync",
        // Its worker may have been away.
        "changed b Running resync",
        "deleted c - resync",
        "changed b Finished",
    ];
    assert_eq!(receiver.bodies(), expected);
    restarted.stop(SOON).await;
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_loss_of_a_worker_is_told() {
    let (mut bench, scope) = followed().await;
    let keys = bench.catalog().keys().clone();
    let unregistered = |id: &str| {
        let id = id.parse().unwrap();
        Txn::new().delete(keys.node(NodeRole::Worker, &id))
    };
    bench.write(unregistered("worker-2")).await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let hooks = [webhook("chat", &receiver)];
    while_leading(&bench, &hooks, until_stored(&bench, "chat")).await;
    // No record of the resource is written.
    bench.write(unregistered("worker-1")).await;
    let restarted = restart(&mut bench);
    while_leading(&bench, &hooks, receiver.until(1)).await;
    assert_eq!(receiver.bodies(), ["changed a Pending resync"]);
    restarted.stop(SOON).await;
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_position_moves_with_each_deletion() {
    let (mut bench, scope) = followed().await;
    for name in ["a", "b", "c"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let receiver = Receiver::replying([Reply::Taken, Reply::Refused]);
    let mut hook = webhook("chat", &receiver);
    hook.filter.kinds = vec![EventKind::Deleted];
    let hooks = [hook];
    while_leading(&bench, &hooks, until_stored(&bench, "chat")).await;
    for name in ["c", "b", "a"] {
        bench.delete(name).await.unwrap();
    }
    let restarted = restart(&mut bench);
    // The position is stored because the second call fails.
    let told = async {
        receiver.until(2).await;
        let position = bench.catalog().keys().webhook_position(&hooks[0].name);
        loop {
            let record = bench.catalog().store().get(&position).await.unwrap();
            let record = record.map(|entry| entry.value).unwrap_or_default();
            if String::from_utf8_lossy(&record).contains("ahead") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    while_leading(&bench, &hooks, told).await;
    let n_calls = receiver.heard().len();
    while_leading(&bench, &hooks, receiver.until(n_calls + 2)).await;
    let told = receiver.bodies().split_off(n_calls);
    assert_eq!(told, ["deleted b - resync", "deleted c - resync"]);
    restarted.stop(SOON).await;
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_settled_at_a_restart_is_told() {
    let (mut bench, scope) = followed().await;
    for name in ["a", "b"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let mut hook = webhook("chat", &receiver);
    hook.filter.kinds = vec![EventKind::Deleted];
    let hooks = [hook];
    while_leading(&bench, &hooks, until_stored(&bench, "chat")).await;
    bench.end("a", ShardState::Finished).await;
    let restarted = restart(&mut bench);
    caught_up(&bench).await;
    // The replica has the deletion as its last write, of which further parts may be on their way.
    bench.delete("b").await.unwrap();
    caught_up(&bench).await;
    while_leading(&bench, &hooks, receiver.until(1)).await;
    assert_eq!(receiver.bodies(), ["deleted b -"]);
    restarted.stop(SOON).await;
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_second_read_of_all_records_finds_has_a_mark() {
    let mut bench = bench().await;
    bench.add("a").await.unwrap();
    // Nothing is followed between the two reads.
    let strategy = Strategy::default();
    let (replica, feeder) = Replica::new(bench.catalog().clone(), strategy);
    let first = Observed::read(bench.catalog(), strategy).await.unwrap();
    feeder.follow_from(&first);
    bench.control.parts.replica = replica;
    let receiver = Receiver::replying([]);
    let hooks = [webhook("chat", &receiver)];
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("b").await.unwrap();
        bench.end("a", ShardState::Finished).await;
        let second = Observed::read_over(bench.catalog(), strategy, Arc::new(first));
        feeder.follow_from(&second.await.unwrap());
        receiver.until(2).await;
    };
    while_leading(&bench, &hooks, told).await;
    let expected = ["changed a Finished resync", "added b Running resync"];
    assert_eq!(receiver.bodies(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_write_is_no_event() {
    let mut bench = bench().await;
    let keys = bench.catalog().keys().clone();
    let worker = |id: &str| keys.node(NodeRole::Worker, &id.parse().unwrap());
    bench.write(Txn::new().delete(worker("worker-2"))).await;
    bench.add("a").await.unwrap();
    let strategy = Strategy::default();
    let (replica, feeder) = Replica::new(bench.catalog().clone(), strategy);
    let mut observed = Observed::read(bench.catalog(), strategy).await.unwrap();
    feeder.follow_from(&observed);
    bench.control.parts.replica = replica;
    let receiver = Receiver::replying([]);
    let told = async {
        until_stored(&bench, "chat").await;
        // One write ends the crawl and removes the worker. It arrives in two parts.
        let (id, mut shard) = bench.shard("a").await;
        shard.state = ShardState::Finished;
        let write = Txn::new()
            .put(keys.shard(id), encode(&shard))
            .delete(worker("worker-1"));
        bench.write(write).await;
        let entry = bench.catalog().store().get(&keys.shard(id)).await;
        let entry = entry.unwrap().unwrap();
        observed.remove(&keys, &worker("worker-1"), entry.revision);
        feeder.follow_from(&observed);
        tokio::time::sleep(Duration::from_millis(500)).await;
        observed.put(&keys, &entry);
        feeder.follow_from(&observed);
        receiver.until(1).await;
    };
    while_leading(&bench, &[webhook("chat", &receiver)], told).await;
    assert_eq!(receiver.bodies(), ["changed a Finished"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_leader_leaves_of_a_second_read_is_told() {
    for follows in [true, false] {
        let (mut bench, scope) = followed().await;
        for name in ["a", "b", "c"] {
            bench.add(name).await.unwrap();
        }
        caught_up(&bench).await;
        let strategy = Strategy::default();
        let (replica, feeder) = Replica::new(bench.catalog().clone(), strategy);
        let first = Observed::read(bench.catalog(), strategy).await.unwrap();
        feeder.follow_from(&first);
        let follower = std::mem::replace(&mut bench.control.parts.replica, replica);
        let receiver = Receiver::replying([Reply::Taken, Reply::Refused, Reply::Refused]);
        let hooks = [webhook("chat", &receiver)];
        while_leading(&bench, &hooks, until_stored(&bench, "chat")).await;
        // Nothing is followed between this read and the first one.
        for name in ["b", "a", "c"] {
            bench.end(name, ShardState::Finished).await;
        }
        let read = Observed::read_over(bench.catalog(), strategy, Arc::new(first));
        let second = read.await.unwrap();
        feeder.follow_from(&second);
        // The leader is cut off behind the first name.
        while_leading(&bench, &hooks, receiver.until(3)).await;
        let expected = ["a", "b", "b"].map(|name| format!("changed {name} Finished resync"));
        assert_eq!(receiver.bodies(), expected);
        if follows {
            bench.control.parts.replica = follower;
            caught_up(&bench).await;
        } else {
            let read = Observed::read_over(bench.catalog(), strategy, Arc::new(second));
            feeder.follow_from(&read.await.unwrap());
        }
        while_leading(&bench, &hooks, receiver.until(5)).await;
        let mark = if follows { "" } else { " resync" };
        let expected = ["b", "c"].map(|name| format!("changed {name} Finished{mark}"));
        assert_eq!(receiver.bodies().split_off(3), expected);
        scope.stop(SOON).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_behind_is_no_store_that_was_set_back() {
    let (mut bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    let replica = bench.control.parts.replica.clone();
    let follows = restart(&mut bench);
    caught_up(&bench).await;
    follows.stop(SOON).await;
    let behind = std::mem::replace(&mut bench.control.parts.replica, replica.clone());
    caught_up(&bench).await;
    let receiver = Receiver::replying([]);
    let hooks = [webhook("chat", &receiver)];
    let told = async {
        until_stored(&bench, "chat").await;
        bench.add("b").await.unwrap();
        receiver.until(1).await;
        until_stored(&bench, "chat").await;
    };
    while_leading(&bench, &hooks, told).await;
    bench.control.parts.replica = behind;
    while_leading(&bench, &hooks, tokio::time::sleep(SOON)).await;
    assert_eq!(receiver.bodies(), ["added b Running"]);
    bench.control.parts.replica = replica;
    bench.end("a", ShardState::Finished).await;
    while_leading(&bench, &hooks, receiver.until(2)).await;
    let expected = ["added b Running", "changed a Finished"];
    assert_eq!(receiver.bodies(), expected);
    scope.stop(SOON).await;
}
