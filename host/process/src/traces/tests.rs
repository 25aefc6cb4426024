//! Tests of traces: which are recorded, how spans hang together, and their bound.

use std::pin::pin;
use std::time::Duration;

use super::*;
use crate::clock::SystemClock;
use crate::stage::Stage;

const RUN: (ResourceId, Run) = (ResourceId(7), Run(3));

fn tracer(sample: f64, max_queued: usize) -> (Tracer, Arc<SpanQueue>) {
    let settings = TraceSettings {
        sample: SampleRatio::new(sample).unwrap(),
        max_queued,
    };
    Tracer::new(settings, Arc::new(SystemClock))
}

fn of_url(tracer: &Tracer, url: &str) -> Span {
    tracer.of_url("page", RUN, url, None)
}

fn ended(queue: &Arc<SpanQueue>) -> Vec<EndedSpan> {
    let batch = queue.take().expect("a span has ended");
    batch.spans().to_vec()
}

#[test]
fn a_ratio_is_from_zero_to_one() {
    for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(SampleRatio::new(wrong), None, "{wrong}");
    }
    assert_eq!(SampleRatio::default().to_string(), "0.01");
}

#[test]
fn urls_alone_decide_which_traces_are_recorded() {
    let url = |n: u32| format!("http://shop.test/{n}");
    let [first, second] = [tracer(0.1, 1 << 30), tracer(0.1, 1 << 30)].map(|(tracer, _)| tracer);
    let taken = |tracer: &Tracer, run| {
        let is_taken = |n: &u32| tracer.of_url("page", run, &url(*n), None).is_recorded();
        (0..10_000).filter(is_taken).collect::<Vec<u32>>()
    };
    let known = taken(&first, RUN);
    assert!((800..1_200).contains(&known.len()), "{}", known.len());
    assert_eq!(taken(&second, RUN), known, "on another machine");
    assert_eq!(taken(&first, (RUN.0, Run(4))), known, "in another run");
    let all = tracer(1.0, 1 << 30).0;
    assert_eq!(taken(&all, RUN).len(), 10_000);
    assert!(taken(&tracer(0.0, 1 << 30).0, RUN).is_empty());
    let trace = |run, url| all.of_url("page", run, url, None).context().unwrap().trace;
    assert_eq!(trace(RUN, "/a"), trace(RUN, "/a"), "of two attempts");
    assert_ne!(trace(RUN, "/a"), trace(RUN, "/b"));
    assert_ne!(trace(RUN, "/a"), trace((RUN.0, Run(4)), "/a"));
}

#[test]
fn clusters_share_no_trace() {
    let [one, same, other] = ["a", "a", "b"].map(|home| {
        let (tracer, _queue) = tracer(1.0, 1 << 20);
        tracer.tell_home(home);
        tracer.tell_home("later");
        of_url(&tracer, "http://shop.test/")
            .context()
            .unwrap()
            .trace
    });
    assert_eq!(one, same);
    assert_ne!(one, other);
}

#[test]
fn a_call_goes_on_with_the_trace_of_its_caller() {
    let (none, all) = (tracer(0.0, 1 << 20).0, tracer(1.0, 1 << 20).0);
    let header = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parent = TraceParent::parse(header).unwrap();
    let span = none.of_call("ListNodes", Some(parent), true);
    assert_eq!(span.context().unwrap().trace, parent.context.trace);
    let silent = TraceParent {
        is_recorded: false,
        ..parent
    };
    assert!(!all.of_call("ListNodes", Some(silent), true).is_recorded());
    assert!(all.of_call("ListNodes", None, true).is_recorded());
    assert!(!all.of_call("ListNodes", None, false).is_recorded());
    assert!(!none.of_call("ListNodes", None, true).is_recorded());
    let off = Tracer::default();
    assert!(!off.of_call("ListNodes", Some(parent), true).is_recorded());
}

#[tokio::test]
async fn spans_lie_within_the_work_that_began_them() {
    let (tracer, queue) = tracer(1.0, 1 << 20);
    let page = of_url(&tracer, "http://shop.test/");
    page.past("take", Some(Instant::now()));
    let work = async {
        note(|notes| {
            notes.number("attempt", 2_u32);
        });
        tokio::time::sleep(Duration::from_millis(2)).await;
        let fetch = child("fetch");
        fetch.around(pin!(tokio::task::yield_now())).await;
        let rule = async { child("guest").around(pin!(async {})).await };
        child("rule").around(pin!(rule)).await;
    };
    // A task beside it works on the same thread, and has nothing to do with the page.
    let beside = async {
        tokio::task::yield_now().await;
        assert_eq!(current(), None);
        assert!(!child("none").is_recorded());
    };
    let work = pin!(work);
    tokio::join!(page.around(work), beside);
    assert_eq!(current(), None);
    let spans = ended(&queue);
    let names: Vec<_> = spans.iter().map(|span| span.name).collect();
    assert_eq!(names, ["take", "fetch", "guest", "rule", "page"]);
    let [take, fetch, guest, rule, page] = &spans[..] else {
        panic!("{spans:?}");
    };
    let traces = spans
        .iter()
        .filter(|s| s.context.trace == page.context.trace);
    assert_eq!(traces.count(), spans.len());
    for inner in [take, fetch, rule] {
        assert_eq!(inner.parent, Some(page.context.span), "{}", inner.name);
    }
    assert_eq!(guest.parent, Some(rule.context.span));
    assert_eq!(page.parent, None);
    assert_eq!(page.attributes, [("attempt", Value::Number(2))]);
    assert!(page.ended_at - page.begun_at >= 2_000_000, "{page:?}");
}

#[tokio::test]
async fn work_that_is_dropped_before_its_end_has_failed() {
    let (tracer, queue) = tracer(1.0, 1 << 20);
    let begin = || of_url(&tracer, "http://shop.test/");
    let fetch = async { Stage::Fetch.timed(std::future::pending::<()>()).await };
    let mut work = begin().around(Box::pin(fetch));
    assert!(futures::poll!(&mut work).is_pending());
    drop(work);
    begin().around(pin!(async {})).await;
    let spans = ended(&queue);
    let [fetch, page, done] = &spans[..] else {
        panic!("{spans:?}");
    };
    assert_eq!((page.name, fetch.name), ("page", "fetch"));
    let word = Value::Text("cancelled".to_owned());
    for dropped in [page, fetch] {
        assert_eq!(dropped.attributes, [("error.type", word.clone())]);
        assert_eq!(dropped.error.as_deref(), Some("cancelled"));
    }
    assert!(
        done.attributes.is_empty() && done.error.is_none(),
        "{done:?}"
    );
}

#[test]
fn texts_and_attributes_of_a_span_are_bounded() {
    let (tracer, queue) = tracer(1.0, 1 << 20);
    const KEYS: [&str; 40] = {
        let mut keys = ["a"; 40];
        let mut n = 0;
        // Keys are the ends of one text, which all differ.
        while n < keys.len() {
            keys[n] = "0123456789012345678901234567890123456789".split_at(n).1;
            n += 1;
        }
        keys
    };
    let span = of_url(&tracer, "http://shop.test/");
    let url = "http://user:secret@shop.test/a".parse().unwrap();
    span.note(|notes| {
        notes.text("text", "x\u{7}".repeat(10_000)).fail("why");
        notes.url("url.full", &url).number("large", u64::MAX);
        for key in KEYS {
            notes.number(key, 1);
        }
        notes.text("text", "y".repeat(10_000));
    });
    drop(span);
    let [span] = &ended(&queue)[..] else {
        panic!("one span");
    };
    assert_eq!(span.attributes.len(), 32);
    let Value::Text(text) = &span.attributes[0].1 else {
        panic!("{span:?}");
    };
    assert!(text.len() <= 1 << 10 && text.starts_with('y'), "{text}");
    let shown = Value::Text("http://shop.test/a".to_owned());
    assert_eq!(span.attributes[1], ("url.full", shown));
    assert_eq!(span.attributes[2], ("large", Value::Number(i64::MAX)));
    assert_eq!(span.error.as_deref(), Some("why"));
}

#[test]
fn a_batch_is_small_beside_the_queue() {
    let (tracer, queue) = tracer(1.0, TraceSettings::default().max_queued);
    for n in 0..10_000 {
        let span = of_url(&tracer, &format!("http://shop.test/{n}"));
        span.note(|notes| {
            notes.text("text", "x".repeat(1_000));
        });
    }
    let batch = queue.take().unwrap();
    let n_bytes: usize = batch.spans().iter().map(EndedSpan::n_bytes).sum();
    assert!((BATCH_BYTES..300 << 10).contains(&n_bytes), "{n_bytes}");
}

#[test]
fn spans_wait_within_their_bound_and_the_rest_is_counted() {
    let (tracer, queue) = tracer(1.0, 64 << 10);
    let add = |n: usize| {
        for n in 0..n {
            drop(of_url(&tracer, &format!("http://shop.test/{n}")));
        }
    };
    add(10_000);
    let counts = tracer.counts();
    let batch = queue.take().unwrap();
    let n_kept = batch.spans().len() as u64;
    assert!((100..1_000).contains(&n_kept), "{n_kept}");
    assert_eq!(counts["no-room"], 10_000 - n_kept);
    // A batch in hand keeps its room.
    add(10);
    assert_eq!(tracer.counts()["no-room"], 10_010 - n_kept);
    assert!(queue.take().is_none());
    batch.end(3);
    let counts = tracer.counts();
    assert_eq!((counts["sent"], counts["failed"]), (n_kept - 3, 3));
    add(10);
    assert_eq!(queue.take().unwrap().spans().len(), 10);
    assert!(Tracer::default().counts().is_empty());
}
