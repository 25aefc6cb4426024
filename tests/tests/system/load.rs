//! Callers that make too many calls, and the log of calls in files that follow each other.

use std::path::Path;

use crawler_tests::process::{Home, Process};
use crawler_tests::up::Up;
use crawler_tests::{PATIENCE, http, until};
use reqwest::Method;
use serde_json::Value;

#[test]
fn a_caller_beyond_its_rate_is_refused_and_the_command_line_waits() {
    let home = Home::new();
    let up = Up::start(&home, &["--api-rate=1"]);
    let address = up.process.word_after("http=", PATIENCE);
    let url = format!("http://{address}/crawler/node");
    let refused = until("refusal", PATIENCE, || {
        let answer = http::ask(Method::GET, &url, None);
        (answer.status != 200).then_some(answer)
    });
    assert_eq!(
        refused.problem(),
        "429 RESOURCE_EXHAUSTED: 127.0.0.1 calls faster than --api-rate allows: 1 call a second"
    );
    // The health of a process is no call.
    for _ in 0..5 {
        let healthy = http::ask(Method::GET, &format!("http://{address}/healthz"), None);
        assert_eq!(healthy.status, 200);
    }
    for _ in 0..3 {
        up.ok(["node", "list"]);
    }
    up.stop();
}

#[test]
fn the_log_of_calls_is_written_to_files_that_follow_each_other() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("logs")).expect("a folder can be made");
    let log = home.path().join("logs").join("up.log");
    let options = [
        "--log-file=logs/up.log",
        "--log-file-size=2KiB",
        "--log-files=1000",
        "--log-format=json",
    ];
    let mut command = Up::command(&home, &options);
    let mut up = Process::start(command.env("CRAWLER_LOG", "info"));
    let listening = until("a line about the listeners", PATIENCE, || {
        let of_listeners = |line: &Value| Some(line["msg"].as_str()?.contains("listening grpc="));
        let mut lines = lines(&log).into_iter();
        lines.find(|line| of_listeners(line) == Some(true))
    });
    let message = listening["msg"].as_str().expect("it is text");
    let (_, address) = message.split_once("http=").expect("it is told");
    let address = address.split(' ').next().unwrap_or_default();
    for _ in 0..20 {
        let answer = http::ask(
            Method::GET,
            &format!("http://{address}/crawler/resource/missing"),
            None,
        );
        assert_eq!(answer.status, 404);
    }
    up.interrupt();
    let ended = up.wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "", "the log has a file");
    let lines = lines(&log);
    let is_call = |line: &&Value| line["target"] == "crawler_api::calls";
    let calls: Vec<&Value> = lines.iter().filter(is_call).collect();
    assert_eq!(calls.len(), 20, "{lines:?}");
    for call in calls {
        assert_eq!(call["method"], "GetResource");
        assert_eq!(call["result"], "NOT_FOUND");
        assert!(call["duration_ms"].is_u64(), "{call}");
    }
    let n_files = std::fs::read_dir(home.path().join("logs")).expect("it is there");
    assert!(n_files.count() > 2);
}

/// Returns the lines of all files of a log, the oldest first.
fn lines(log: &Path) -> Vec<Value> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let numbered = |n: u32| read(Path::new(&format!("{}.{n}", log.display())));
    let mut texts: Vec<String> = (1..).map_while(numbered).collect();
    texts.reverse();
    texts.extend(read(log));
    let texts = texts.concat();
    // The last line may not be whole yet.
    let whole = texts.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(|line| {
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?} is no JSON: {e}"))
    });
    lines.collect()
}
