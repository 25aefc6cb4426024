//! Traces of a running `crawler up`, and a receiver that keeps them or does not answer.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crawler_testing::otlp::{Manner, ReceivedSpan, Receiver};
use crawler_tests::process::Home;

use crate::server::Server;
use crate::sites;

/// Longest time of a stop whose last spans cannot be sent, with that of everything else.
const STOPS_WITHIN: Duration = Duration::from_secs(20);

fn start(receiver: &Receiver, sample: &str) -> Server {
    let home = Home::new();
    let endpoint = receiver.endpoint();
    let config = format!("[traces]\nendpoint = '{endpoint}'\nsample = {sample}\n");
    home.write("traces.toml", &config);
    let file = home.path().join("traces.toml").display().to_string();
    let server = Server::start_in(home, &["--config", &file]);
    server.push("puppet", &[]);
    server
}

fn has(span: &ReceivedSpan, key: &str, value: &str) -> bool {
    span.attributes.get(key).is_some_and(|found| found == value)
}

#[test]
fn pages_and_calls_are_traces_down_to_sink_and_store() {
    let web = sites::chain(3).open();
    let receiver = Receiver::start();
    let server = start(&receiver, "1.0");
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    server.stop();
    let spans = receiver.spans();
    for path in ["/0", "/1", "/2"] {
        let url = web.url(path).to_string();
        // An attempt may have been put back before.
        let mut pages = spans.iter().filter(|span| span.name == "page");
        let is_parsed = |span: &&ReceivedSpan| {
            has(span, "url.full", &url) && has(span, "crawler.outcome", "parsed")
        };
        let page = pages.find(is_parsed);
        let page = page.unwrap_or_else(|| panic!("no page {url}: {spans:?}"));
        assert_eq!(page.resource["service.name"], "crawler");
        assert_eq!(page.resource["service.instance.id"], "master-1,worker-1");
        let of_trace = spans.iter().filter(|span| span.trace == page.trace);
        let of_trace: Vec<&ReceivedSpan> = of_trace.collect();
        let names: BTreeSet<&str> = of_trace.iter().map(|span| span.name.as_str()).collect();
        for name in [
            "take", "GET", "guard", "turn", "fetch", "rule", "instance", "guest", "commit",
            "deliver",
        ] {
            assert!(names.contains(name), "no {name} in {names:?}");
        }
        let ids: BTreeSet<&str> = of_trace.iter().map(|span| span.id.as_str()).collect();
        for span in &of_trace {
            let parent = span.parent.as_str();
            assert!(parent.is_empty() || ids.contains(parent), "{span:?}");
        }
        let mut requests = of_trace.iter().filter(|span| span.parent == page.id);
        let request = requests.find(|span| span.name == "GET").expect("a request");
        assert!(has(request, "url.full", &url), "{request:?}");
        assert!(
            has(request, "http.response.status_code", "200"),
            "{request:?}"
        );
        assert!(has(request, "http.request.method", "GET"), "{request:?}");
    }
    let call = spans.iter().find(|span| span.name == "AddResource");
    let call = call.expect("the call has a span");
    assert!(has(call, "rpc.system", "grpc"), "{call:?}");
    let mut of_call = spans.iter().filter(|span| span.trace == call.trace);
    assert!(of_call.any(|span| span.name == "store commit"), "{spans:?}");
}

#[test]
fn urls_that_are_not_sampled_have_no_span() {
    let web = sites::chain(3).open();
    let receiver = Receiver::start();
    let server = start(&receiver, "0.0");
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    server.stop();
    assert_eq!(receiver.spans(), []);
    assert_eq!(receiver.n_calls(), 0);
}

#[test]
fn a_receiver_that_never_answers_delays_no_crawl_and_no_stop() {
    let web = sites::chain(3).open();
    let receiver = Receiver::start();
    receiver.set_manner(Manner::Silent);
    let server = start(&receiver, "1.0");
    server.add("books", &web.url("/0"), &[]);
    let books = server.finished("books");
    assert_eq!(books["counts"]["parsed"], 3, "{books}");
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < STOPS_WITHIN, "{:?}", began.elapsed());
    assert_eq!(receiver.spans(), []);
}
