//! Tests of the traces of a crawl.

use super::*;
use crawler_process::traces::{EndedSpan, SampleRatio, SpanQueue, TraceSettings, Tracer, Value};

const PAGES: [&str; 6] = ["", "a", "b", "deep", "deeper", "gone"];

fn tracer(sample: f64) -> (Tracer, Arc<SpanQueue>) {
    let settings = TraceSettings {
        sample: SampleRatio::new(sample).unwrap(),
        ..TraceSettings::default()
    };
    Tracer::new(settings, Arc::new(SystemClock))
}

/// Returns the spans of a crawl by the URL of their trace.
async fn crawled(sample: f64) -> BTreeMap<String, Vec<EndedSpan>> {
    let (tracer, queue) = tracer(sample);
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let rules = Arc::new(Links {
        description: description(),
        roots: vec!["/"],
    });
    let (site, clock) = (Arc::new(Site::default()), Arc::new(SystemClock));
    let parts = CrawlParts {
        tracer,
        ..parts(frontier, rules, site, clock, CrawlSettings::default())
    };
    let run = run(parts, Box::new(Kept::default()), CancellationToken::new());
    let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
    assert_eq!(ended.expect("the crawl ends"), CrawlEnd::Finished);
    let mut spans = Vec::new();
    while let Some(batch) = queue.take() {
        spans.extend_from_slice(batch.spans());
    }
    let mut traces = BTreeMap::<_, Vec<EndedSpan>>::new();
    for span in spans {
        traces.entry(span.context.trace).or_default().push(span);
    }
    let traces = traces.into_values().map(|spans| {
        let url = spans.iter().find_map(|span| text(span, "url.full"));
        (url.expect("the first span has it"), spans)
    });
    traces.collect()
}

fn text(span: &EndedSpan, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|(known, _)| *known == key);
    found.and_then(|(_, value)| match value {
        Value::Text(text) => Some(text.clone()),
        Value::Number(_) => None,
    })
}

#[track_caller]
fn only<'s>(spans: &'s [EndedSpan], name: &str) -> &'s EndedSpan {
    let mut named = spans.iter().filter(|span| span.name == name);
    let span = named.next();
    let span = span.unwrap_or_else(|| panic!("no span {name} in {spans:?}"));
    assert!(named.next().is_none(), "two spans {name} in {spans:?}");
    span
}

#[tokio::test]
async fn a_page_is_one_trace_from_its_take_to_its_delivery() {
    let traces = crawled(1.0).await;
    let urls = PAGES.map(|page| format!("http://site.test/{page}"));
    assert!(traces.keys().eq(&urls), "{:?}", traces.keys());
    for (url, spans) in &traces {
        let page = only(spans, "page");
        assert_eq!(page.parent, None);
        let of_page = spans
            .iter()
            .filter(|span| span.parent == Some(page.context.span));
        let mut steps: Vec<_> = of_page.map(|span| span.name).collect();
        steps.sort_unstable();
        let is_gone = url.ends_with("gone");
        let outcome = if is_gone { "gone" } else { "parsed" };
        let expected: &[&str] = match is_gone {
            true => &["commit", "take"],
            false => &["commit", "deliver", "rule", "take"],
        };
        assert_eq!(steps, expected, "{url}");
        let told = text(page, "crawler.outcome");
        assert_eq!(told.as_deref(), Some(outcome), "{url}");
        if !is_gone {
            let rule = only(spans, "rule");
            assert_eq!(text(rule, "crawler.plugin").unwrap(), "links@1.0.0");
            let (commit, deliver) = (only(spans, "commit"), only(spans, "deliver"));
            assert_eq!(text(deliver, "crawler.sink").unwrap(), "lines");
            assert!(deliver.ended_at >= commit.begun_at, "{spans:?}");
        }
    }
}

#[tokio::test]
async fn only_urls_that_are_sampled_have_spans() {
    let sample = 0.62;
    let (known, _queue) = tracer(sample);
    let run = (ResourceId(1), Run(1));
    let urls = PAGES.map(|page| format!("http://site.test/{page}"));
    let is_taken = |url: &&String| known.of_url("page", run, url, None).is_recorded();
    let expected: Vec<_> = urls.iter().filter(is_taken).collect();
    assert!((1..PAGES.len()).contains(&expected.len()), "{expected:?}");
    let traces = crawled(sample).await;
    assert!(traces.keys().eq(expected), "{:?}", traces.keys());
    for spans in traces.values() {
        only(spans, "page");
        only(spans, "commit");
    }
}
