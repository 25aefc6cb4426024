//! Tests of the sender of spans, with a receiver that takes them, refuses them, or is away.

use std::collections::BTreeMap;

use super::*;
use crawler_model::id::{ResourceId, Run};
use crawler_process::clock::SystemClock;
use crawler_process::task::TaskScope;
use crawler_process::telemetry::testing::Log;
use crawler_process::traces::{SampleRatio, TraceSettings, Tracer};
use crawler_testing::otlp::{Manner, ReceivedSpan, Receiver};

/// Time for what takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sender at work.
struct Sending {
    tracer: Tracer,
    scope: TaskScope,
}

impl Sending {
    fn to(endpoint: String, timeout: Duration) -> Self {
        let settings = TraceSettings {
            sample: SampleRatio::new(1.0).unwrap(),
            ..TraceSettings::default()
        };
        let (tracer, queue) = Tracer::new(settings, Arc::new(SystemClock));
        let settings = ReceiverSettings {
            timeout,
            ..settings_of(endpoint)
        };
        let sender = SpanSender::new(settings, queue).unwrap();
        let scope = TaskScope::new();
        scope.spawn(
            "traces",
            sender.run("worker-1".to_owned(), scope.stop_signal()),
        );
        Self { tracer, scope }
    }

    fn add(&self, url: &str) {
        let span = self
            .tracer
            .of_url("page", (ResourceId(1), Run(1)), url, None);
        span.note(|notes| {
            notes
                .text("url.full", url)
                .number("crawler.attempt", 1)
                .fail("why");
        });
    }

    /// Adds spans until they are worth a call.
    fn fill(&self) {
        for n in 0..2_000 {
            self.add(&format!("http://shop.test/{n}"));
        }
    }

    /// Stops the sender. Returns the time that it took, and what has become of the spans.
    async fn stop(self) -> (Duration, BTreeMap<String, u64>) {
        let began = Instant::now();
        assert!(
            self.scope.stop(PATIENCE).await.is_empty(),
            "it ends by itself"
        );
        (began.elapsed(), self.tracer.counts())
    }
}

fn settings_of(endpoint: String) -> ReceiverSettings {
    ReceiverSettings {
        endpoint,
        headers: vec![("authorization".to_owned(), "Bearer t0ken".to_owned())],
        ca: None,
        timeout: DEFAULT_TIMEOUT,
    }
}

fn counts(sent: u64, failed: u64) -> BTreeMap<String, u64> {
    let counts = [("sent", sent), ("failed", failed), ("no-room", 0)];
    counts.map(|(word, n)| (word.to_owned(), n)).into()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect(what);
}

#[tokio::test]
async fn a_receiver_gets_spans_with_their_process_at_the_stop() {
    let receiver = Receiver::start();
    let sending = Sending::to(receiver.endpoint(), DEFAULT_TIMEOUT);
    sending.add("http://shop.test/a");
    let (_, read) = sending.stop().await;
    assert_eq!(read, counts(1, 0));
    let [span]: [ReceivedSpan; 1] = receiver.spans().try_into().unwrap();
    assert_eq!((span.trace.len(), span.id.len()), (32, 16));
    assert_eq!((span.name.as_str(), span.parent.as_str()), ("page", ""));
    assert_eq!(span.error.as_deref(), Some("why"));
    let expected = [("crawler.attempt", "1"), ("url.full", "http://shop.test/a")];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(span.attributes, expected.into());
    assert_eq!(span.resource["service.name"], "crawler");
    assert_eq!(span.resource["service.instance.id"], "worker-1");
    assert!(span.times.0 > 0 && span.times.0 <= span.times.1, "{span:?}");
    assert_eq!(receiver.authorization().as_deref(), Some("Bearer t0ken"));
}

#[tokio::test]
async fn many_spans_do_not_wait_for_the_interval() {
    let receiver = Receiver::start();
    let sending = Sending::to(receiver.endpoint(), DEFAULT_TIMEOUT);
    let began = Instant::now();
    sending.fill();
    until("some are sent", || sending.tracer.counts()["sent"] > 0).await;
    assert!(began.elapsed() < INTERVAL);
    let (_, read) = sending.stop().await;
    assert_eq!(read, counts(2_000, 0));
    assert_eq!(receiver.spans().len(), 2_000);
}

#[tokio::test]
async fn spans_that_end_while_others_are_sent_wait_for_the_interval() {
    let receiver = Receiver::start();
    let sending = Sending::to(receiver.endpoint(), DEFAULT_TIMEOUT);
    sending.fill();
    until("it is called", || receiver.n_calls() > 0).await;
    // So many calls could be made meanwhile.
    for _ in 0..100 {
        sending.add("http://shop.test/late");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(receiver.n_calls() < 10, "{} calls", receiver.n_calls());
    assert_eq!(sending.stop().await.1, counts(2_100, 0));
}

#[tokio::test]
async fn refused_spans_are_counted_and_not_sent_again() {
    let receiver = Receiver::start();
    receiver.set_manner(Manner::RefusesOne);
    let sending = Sending::to(receiver.endpoint(), DEFAULT_TIMEOUT);
    sending.add("http://shop.test/a");
    sending.add("http://shop.test/b");
    assert_eq!(sending.stop().await.1, counts(1, 1));
    receiver.set_manner(Manner::Fails(Code::InvalidArgument));
    let sending = Sending::to(receiver.endpoint(), DEFAULT_TIMEOUT);
    sending.fill();
    until("some are refused", || sending.tracer.counts()["failed"] > 0).await;
    receiver.set_manner(Manner::Takes);
    let (_, read) = sending.stop().await;
    assert!(read["failed"] > 0, "{read:?}");
    assert_eq!(read["failed"] + read["sent"], 2_000);
}

#[tokio::test]
async fn the_log_has_the_number_of_spans_that_are_refused() {
    let (log, _guard) = Log::of_this_thread("warn");
    let receiver = Receiver::start();
    receiver.set_manner(Manner::RefusesOne);
    let sending = Sending::to(receiver.endpoint(), DEFAULT_TIMEOUT);
    sending.add("http://shop.test/a");
    sending.add("http://shop.test/b");
    assert_eq!(sending.stop().await.1, counts(1, 1));
    let lines = log.lines();
    let is_told = |line: &String| {
        line.contains("it refuses 1 spans: on purpose") && line.contains("n_lost=1")
    };
    assert!(lines.iter().any(is_told), "{lines:?}");
}

#[tokio::test]
async fn a_batch_is_sent_again_when_the_receiver_is_back() {
    let receiver = Receiver::start();
    receiver.set_manner(Manner::Fails(Code::Unavailable));
    let sending = Sending::to(receiver.endpoint(), DEFAULT_TIMEOUT);
    sending.fill();
    until("it is called", || receiver.n_calls() > 0).await;
    receiver.set_manner(Manner::Takes);
    until("some are sent", || sending.tracer.counts()["sent"] > 0).await;
    assert_eq!(sending.stop().await.1, counts(2_000, 0));
    assert_eq!(receiver.spans().len(), 2_000);
}

#[tokio::test]
async fn a_stop_does_not_cut_a_call_off() {
    let receiver = Receiver::start();
    receiver.set_manner(Manner::Slow(Duration::from_secs(1)));
    let sending = Sending::to(receiver.endpoint(), DEFAULT_TIMEOUT);
    sending.fill();
    until("it is called", || receiver.n_calls() > 0).await;
    receiver.set_manner(Manner::Takes);
    assert_eq!(sending.stop().await.1, counts(2_000, 0));
    assert_eq!(receiver.spans().len(), 2_000, "no span comes twice");
}

#[tokio::test]
async fn a_receiver_that_is_away_or_silent_delays_no_stop() {
    let receiver = Receiver::start();
    receiver.set_manner(Manner::Silent);
    let silent = Sending::to(receiver.endpoint(), PATIENCE);
    silent.fill();
    until("it is called", || receiver.n_calls() > 0).await;
    let gone = Receiver::start().endpoint();
    let away = Sending::to(gone, PATIENCE);
    away.fill();
    let (silent, away) = tokio::join!(silent.stop(), away.stop());
    for (took, read) in [silent, away] {
        assert!(took < LAST + Duration::from_secs(5), "{took:?}");
        assert_eq!(read, counts(0, 2_000));
    }
}

#[test]
fn only_codes_that_time_may_mend_lead_to_another_call() {
    for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Aborted] {
        assert!(is_passing(code), "{code:?}");
    }
    for code in [
        Code::ResourceExhausted,
        Code::Unknown,
        Code::Internal,
        Code::Unauthenticated,
    ] {
        assert!(!is_passing(code), "{code:?}");
    }
}

#[test]
fn settings_that_make_no_call_are_refused_by_name() {
    let (_, queue) = Tracer::new(TraceSettings::default(), Arc::new(SystemClock));
    let refused = |settings| {
        let sender = SpanSender::new(settings, queue.clone());
        sender.err().expect("it is refused").to_string()
    };
    let headers = vec![("Wrong Name".to_owned(), "t0ken".to_owned())];
    let why = refused(ReceiverSettings {
        headers,
        ..settings_of("http://127.0.0.1:4317".to_owned())
    });
    assert!(
        why.contains("Wrong Name") && !why.contains("t0ken"),
        "{why}"
    );
    let why = refused(settings_of("127.0.0.1:4317".to_owned()));
    assert!(why.contains("http://"), "{why}");
    let why = refused(ReceiverSettings {
        ca: Some("/missing/ca.pem".into()),
        ..settings_of("https://127.0.0.1:4317".to_owned())
    });
    assert!(why.contains("/missing/ca.pem"), "{why}");
}
