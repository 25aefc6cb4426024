//! Tests of workers that write files again, of which compactions have taken some.

use futures::future::BoxFuture;

use super::*;
use crate::compact::tests::steps::{Meanwhile, Steps};
use crate::compact::tests::{LATER, compact, compact_with, keys, settings as of_compaction};

/// Returns two writes that were planned one after the other, of which the frontier knows nothing but the plan of the second,
/// although its files are there.
async fn interrupted() -> (Bench, Vec<ItemRecord>) {
    let mut bench = Bench::new();
    let items = records(0..6);
    let mut first = bench.planned(0, &items).await;
    let written = first.write(0, &items).await.unwrap();
    bench.keep(&written);
    let items = records(6..12);
    let mut second = bench.planned(6, &items).await;
    second.write(6, &items).await.unwrap();
    (bench, items)
}

/// Writes all that is planned again, as the next owner.
async fn write_again(bench: &Bench, items: &[ItemRecord]) {
    let written = bench.open().await.write(6, items).await.unwrap();
    assert_eq!(written.n_items, 6);
}

/// Compacts while somebody else does their work before this step. Returns true if there were no more steps than that.
async fn compact_meanwhile(
    bench: &Bench,
    n: i64,
    run: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> bool {
    let steps = Steps::new(bench.objects.clone(), n, Meanwhile::run(run));
    compact(Arc::new(steps.clone())).await.unwrap();
    steps.is_untouched()
}

#[tokio::test]
async fn a_file_that_was_taken_is_not_written_again() {
    let (bench, items) = interrupted().await;
    let compacted = compact(bench.objects.clone()).await.unwrap();
    assert_eq!((compacted.n_inputs, compacted.n_outputs), (6, 3));
    let before = bench.paths().await;
    write_again(&bench, &items).await;
    assert_eq!(bench.paths().await, before);
    assert_eq!(keys(&bench.objects).await, once(0..12));
}

#[tokio::test]
async fn files_written_again_at_any_step_are_there_once() {
    for n in 0.. {
        let (bench, items) = interrupted().await;
        let (objects, marks) = (bench.objects.clone(), bench.marks.clone());
        let is_last = compact_meanwhile(&bench, n, move || {
            let (objects, marks, items) = (objects.clone(), marks.clone(), items.clone());
            Box::pin(async move {
                let other = Bench {
                    objects,
                    marks,
                    ..Bench::new()
                };
                write_again(&other, &items).await;
            })
        });
        let is_last = is_last.await;
        assert_eq!(keys(&bench.objects).await, once(0..12), "step {n}");
        if is_last {
            break;
        }
    }
}

#[tokio::test]
async fn other_settings_at_any_step_repeat_nothing() {
    let mut n_refused = 0;
    for n in 0.. {
        let (bench, items) = interrupted().await;
        let (objects, marks) = (bench.objects.clone(), bench.marks.clone());
        let refused = Arc::new(std::sync::Mutex::new(None));
        let told = Arc::clone(&refused);
        let is_last = compact_meanwhile(&bench, n, move || {
            let (objects, marks, items) = (objects.clone(), marks.clone(), items.clone());
            let told = Arc::clone(&told);
            Box::pin(async move {
                let mut other = Bench {
                    objects,
                    marks,
                    settings: settings("all/{kind}"),
                };
                let mut sink = other.open().await;
                match sink.write(6, &items).await {
                    Ok(planned) => {
                        other.keep(&planned);
                        assert_eq!(sink.write(6, &items).await.unwrap().n_items, 6);
                    }
                    Err(error) => {
                        assert!(matches!(error, SinkError::Retry { .. }), "{error}");
                        *told.lock().unwrap() = Some(error.to_string());
                        other.settings = Bench::new().settings;
                        write_again(&other, &items).await;
                    }
                }
            })
        });
        let is_last = is_last.await;
        assert_eq!(keys(&bench.objects).await, once(0..12), "step {n}");
        if let Some(error) = refused.lock().unwrap().take() {
            let why = "because it was compacted before its write was done; give the sink the settings that it had, until nothing is undelivered";
            assert!(error.ends_with(why), "{error}");
            n_refused += 1;
        }
        if is_last {
            break;
        }
    }
    assert!(n_refused > 0, "a taken file cannot be written elsewhere");
}

#[tokio::test]
async fn a_file_of_a_late_worker_goes_with_the_next_compaction() {
    let mut bench = Bench::new();
    let items = records(0..6);
    // The worker loses its lease before it begins, and another one goes on.
    let mut late = bench.planned(0, &items).await;
    let written = bench.open().await.write(0, &items).await.unwrap();
    bench.keep(&written);
    let more = records(6..12);
    let mut next = bench.planned(6, &more).await;
    next.write(6, &more).await.unwrap();
    compact(bench.objects.clone()).await.unwrap();
    assert_eq!(late.write(0, &items).await.unwrap().n_items, 6);
    let there = keys(&bench.objects).await;
    assert!(there.values().any(|n| *n == 2), "{there:?}");
    let compacted = compact(bench.objects.clone()).await.unwrap();
    assert_eq!(compacted.n_removed, 3);
    assert_eq!(keys(&bench.objects).await, once(0..12));
}

#[tokio::test]
async fn a_bucket_that_refuses_keeps_all_rows() {
    let (bench, _) = interrupted().await;
    let settings = of_compaction();
    let died = Steps::new(
        bench.objects.clone(),
        1,
        Meanwhile::Die { dies_after: false },
    );
    let (compacted, told) = compact_with(Arc::new(died), &settings, LATER).await;
    assert_eq!(compacted.unwrap().n_failed, 1, "{told:?}");
    assert!(told[0].starts_with("cannot list s3://b/"), "{told:?}");
    assert_eq!(keys(&bench.objects).await, once(0..12));
}
