//! Calls about runs and frontiers that make no sense, or cannot be carried out.

use crawler_proto as proto;
use crawler_tests::guests;
use crawler_tests::process::Home;

use crate::Differences;
use crate::server::{Server, failure, status};

const JSON: &str = "application/json";
const NO_RESOURCE: &str =
    "NOT_FOUND: there is no resource shop | `crawler resource list` shows those there are";
const NEVER: &str = "resource waits was never crawled: it has no frontier yet";
const LOOK: &str = "`crawler resource get waits` shows what it waits for";
const STATE: &str = "there are due, done, dead";
const HOST_STATE: &str = "there are ready, waiting, backing-off, given-up, idle";
const TOKEN: &str = "page_token is not one that an answer to the same question gave";
const RELATIVE: &str =
    r#"url "/page" is relative; write the whole of it, like http://example.org/page"#;
const METHOD: &str = r#"method "G T" is not a method; write one like GET or POST"#;

/// Request line, type of its body, body, and the problem that answers it.
type HttpCase = (&'static str, &'static str, &'static str, String);

fn http_cases() -> Vec<HttpCase> {
    let get = |line, problem: &str| -> HttpCase { (line, "", "", problem.to_owned()) };
    let invalid = |line, problem: &str| -> HttpCase {
        (line, "", "", format!("400 INVALID_ARGUMENT: {problem}"))
    };
    let post = |line, body, problem: &str| -> HttpCase { (line, JSON, body, problem.to_owned()) };
    let unknown = format!("404 {NO_RESOURCE}");
    let never = format!("412 FAILED_PRECONDITION: {NEVER} | {LOOK}");
    vec![
        post("POST /crawler/resource/shop/restart", "{}", &unknown),
        post(
            "POST /crawler/resource/there/restart",
            r#"{"run":3}"#,
            r#"400 INVALID_ARGUMENT: the body has an unknown field "run" | there are plugin, params, no_params, limits, crawl, placement, labels, replace, if_generation, if_id"#,
        ),
        post(
            "POST /crawler/resource/there/restart",
            "",
            "400 INVALID_ARGUMENT: the body is not JSON: EOF while parsing a value at line 1 column 0 | send an object like {}",
        ),
        (
            "POST /crawler/resource/there/restart",
            "text/plain",
            "{}",
            "415 INVALID_ARGUMENT: the body is of type text/plain, not application/json | with curl: -H 'content-type: application/json' -d '{}'".to_owned(),
        ),
        get(
            "GET /crawler/resource/there/restart",
            "405 INVALID_ARGUMENT: /crawler/resource/there/restart does not take GET | it takes POST",
        ),
        post(
            "PUT /crawler/resource/shop/schedule",
            r#"{"cron":"0 3 * * *"}"#,
            &unknown,
        ),
        post(
            "PUT /crawler/resource/there/schedule",
            r#"{"corn":"0 3 * * *"}"#,
            r#"400 INVALID_ARGUMENT: the body has an unknown field "corn" | did you mean "cron"?"#,
        ),
        post(
            "PUT /crawler/resource/there/schedule",
            r#"{"cron":"0 3 * *"}"#,
            r#"400 INVALID_ARGUMENT: setting cron takes five fields: minute, hour, day of the month, month and day of the week, such as 0 3 * * *, not "0 3 * *""#,
        ),
        get("GET /crawler/resource/shop/runs", &unknown),
        get("GET /crawler/resource/shop/runs/diff?before=1&after=2", &unknown),
        get(
            "GET /crawler/resource/there/runs/diff?before=1&after=7",
            "404 NOT_FOUND: resource there has no run 7: the newest is 1",
        ),
        invalid(
            "GET /crawler/resource/there/runs/diff?after=1",
            "field before is missing: it takes the earlier one of two runs",
        ),
        invalid(
            "GET /crawler/resource/there/runs/diff?before=2&after=1",
            "run 1 does not come after run 2; name the earlier one first",
        ),
        invalid(
            "GET /crawler/resource/there/runs/diff?before=x&after=1",
            r#"before takes a whole number above 0, not "x""#,
        ),
        get(
            "GET /crawler/resource/there/schedule",
            "404 NOT_FOUND: resource there has no schedule | `crawler resource schedule there --every 1d` sets one",
        ),
        get("GET /crawler/resource/shop/frontier", &unknown),
        get("GET /crawler/resource/shop/statistics", &unknown),
        get("GET /crawler/resource/waits/statistics", &never),
        get("GET /crawler/resource/shop/frontier/urls", &unknown),
        get("GET /crawler/resource/shop/frontier/why?url=http://a.test/", &unknown),
        post("POST /crawler/resource/shop/frontier/redrive", "{}", &unknown),
        get("GET /crawler/resource/shop/changes", &unknown),
        get("GET /crawler/resource/waits/changes", &never),
        get(
            "GET /crawler/resource/there/changes?run=7",
            "404 NOT_FOUND: resource there has no run 7: the newest is 1",
        ),
        invalid("GET /crawler/resource/there/changes?page_token=x", TOKEN),
        invalid(
            "GET /crawler/resource/there/changes?colour=red",
            r#"there is no parameter "colour" here | there are run, page_size, page_token"#,
        ),
        get("GET /crawler/resource/shop/quarantine", &unknown),
        invalid(
            "GET /crawler/resource/there/quarantine/items?hold=7",
            r#"a hold is a shard and a number, like 0.1, not "7""#,
        ),
        get(
            "GET /crawler/resource/waits/quarantine/items?hold=0.1",
            "412 FAILED_PRECONDITION: resource waits has no hold 0.1 | `crawler quarantine list waits` shows what is held",
        ),
        get(
            "GET /crawler/resource/there/quarantine/items?hold=0.18446744073709551615",
            "412 FAILED_PRECONDITION: resource there has no hold 0.18446744073709551615 | `crawler quarantine list there` shows what is held",
        ),
        post(
            "POST /crawler/resource/waits/quarantine",
            r#"{"action":"drop"}"#,
            "412 FAILED_PRECONDITION: resource waits holds no items | `crawler quarantine list waits` shows what is held",
        ),
        get("GET /crawler/resource/waits/frontier", &never),
        get("GET /crawler/resource/waits/frontier/urls", &never),
        post("POST /crawler/resource/waits/frontier/redrive", "{}", &never),
        invalid(
            "GET /crawler/resource/there/frontier/urls?state=lost",
            &format!(r#"there is no state "lost" of URLs | {STATE}"#),
        ),
        invalid(
            "GET /crawler/resource/there/frontier/urls?state=deda",
            r#"there is no state "deda" of URLs | did you mean "dead"?"#,
        ),
        invalid(
            "GET /crawler/resource/there/frontier/urls?page_size=many",
            r#"page_size takes a whole number, not "many""#,
        ),
        invalid("GET /crawler/resource/there/frontier/urls?page_token=x", TOKEN),
        invalid(
            "GET /crawler/resource/there/frontier/urls?state=due&page_token=dead:00",
            TOKEN,
        ),
        invalid(
            "GET /crawler/resource/there/frontier/urls?stat=due",
            r#"there is no parameter "stat" here | did you mean "state"?"#,
        ),
        invalid(
            "GET /crawler/resource/there/frontier?state=due",
            r#"there is no parameter "state" here | leave it out"#,
        ),
        invalid(
            "GET /crawler/resource/there/frontier/why",
            "url is missing; write one like http://example.org/page",
        ),
        invalid("GET /crawler/resource/there/frontier/why?url=/page", RELATIVE),
        invalid(
            "GET /crawler/resource/there/frontier/why?url=http://%5B",
            r#"url "http://[" does not parse: invalid IPv6 address"#,
        ),
        invalid(
            "GET /crawler/resource/there/frontier/why?url=http://a.test/&method=G%20T",
            METHOD,
        ),
        post(
            "POST /crawler/resource/there/frontier/redrive",
            r#"{"reason":7}"#,
            "400 INVALID_ARGUMENT: field reason takes a string, not 7",
        ),
        post(
            "POST /crawler/resource/there/frontier/redrive",
            r#"{"reasn":"timeout"}"#,
            r#"400 INVALID_ARGUMENT: the body has an unknown field "reasn" | did you mean "reason"?"#,
        ),
        invalid(
            "GET /crawler/resource/there/items?after=7",
            r#""7" is not a position that an item had"#,
        ),
        get(
            "GET /crawler/resource/there/items?run=7",
            "404 NOT_FOUND: resource there has no run 7: the newest is 1",
        ),
        invalid(
            "GET /crawler/resource/there/items?run=0",
            r#"run takes a whole number above 0, not "0""#,
        ),
        invalid(
            "GET /crawler/resource/there/items?limit=-1",
            r#"limit takes a whole number above 0, not "-1""#,
        ),
        invalid(
            "GET /crawler/resource/there/items?since=2h",
            r#"since takes a whole number above 0, not "2h""#,
        ),
        invalid(
            "GET /crawler/resource/there/items?kind=ayn",
            r#"plugin hostile has no items of kind "ayn" | did you mean "any"?"#,
        ),
    ]
}

/// Returns the same faults over gRPC, as far as it can carry them.
async fn grpc_cases(server: &Server) -> Vec<(String, String)> {
    let mut calls = server.calls().await;
    let named = |name: &str| proto::ResourceRequest { name: name.into() };
    let urls = |name: &str, state: &str, page_token: &str| proto::ListUrlsRequest {
        name: name.into(),
        state: state.into(),
        page_token: page_token.into(),
        ..Default::default()
    };
    let hosts = |name: &str, state: &str, page_token: &str| proto::ListHostsRequest {
        name: name.into(),
        state: state.into(),
        page_token: page_token.into(),
        ..Default::default()
    };
    let why = |name: &str, url: &str, method: &str| proto::ExplainUrlRequest {
        name: name.into(),
        url: url.into(),
        method: method.into(),
        ..Default::default()
    };
    let redrive = |name: &str| proto::RedriveRequest {
        name: name.into(),
        ..Default::default()
    };
    let unknown =
        "NotFound: there is no resource shop; `crawler resource list` shows those there are";
    let never = &format!("FailedPrecondition: {NEVER}; {LOOK}");
    let invalid = |text: &str| format!("InvalidArgument: {text}");
    let mut cases = Vec::new();
    let mut case = |refused: Option<tonic::Status>, expected: &str| {
        let found = refused.map_or("it was carried out".to_owned(), |refused| status(&refused));
        cases.push((found, expected.to_owned()));
    };
    let restart = proto::RestartRequest {
        name: "shop".to_owned(),
        changes: None,
    };
    case(calls.restart_resource(restart).await.err(), unknown);
    case(calls.pause_resource(named("shop")).await.err(), unknown);
    case(calls.resume_resource(named("shop")).await.err(), unknown);
    case(calls.get_schedule(named("shop")).await.err(), unknown);
    case(calls.list_runs(named("shop")).await.err(), unknown);
    let diff = |name: &str, before: u64, after: u64| proto::DiffRunsRequest {
        name: name.into(),
        before,
        after,
    };
    case(calls.diff_runs(diff("shop", 1, 2)).await.err(), unknown);
    case(
        calls.diff_runs(diff("there", 1, 1)).await.err(),
        &invalid("run 1 does not come after run 1; name the earlier one first"),
    );
    let set = proto::SetScheduleRequest {
        name: "there".to_owned(),
        spec: None,
    };
    case(
        calls.set_schedule(set).await.err(),
        &invalid(
            "setting cron is missing; write times like '0 3 * * *', or an interval with every",
        ),
    );
    case(
        calls.delete_schedule(named("there")).await.err(),
        "NotFound: resource there has no schedule; `crawler resource schedule there --every 1d` sets one",
    );
    case(calls.get_frontier_stats(named("shop")).await.err(), unknown);
    case(calls.get_frontier_stats(named("waits")).await.err(), never);
    case(calls.get_statistics(named("shop")).await.err(), unknown);
    case(calls.get_statistics(named("waits")).await.err(), never);
    case(calls.list_urls(urls("shop", "", "")).await.err(), unknown);
    case(calls.list_urls(urls("waits", "", "")).await.err(), never);
    case(
        calls.list_urls(urls("there", "lost", "")).await.err(),
        &invalid(&format!(r#"there is no state "lost" of URLs; {STATE}"#)),
    );
    case(
        calls.list_urls(urls("there", "", "lost:")).await.err(),
        &invalid(TOKEN),
    );
    case(calls.list_hosts(hosts("shop", "", "")).await.err(), unknown);
    case(calls.list_hosts(hosts("waits", "", "")).await.err(), never);
    case(
        calls.list_hosts(hosts("there", "lost", "")).await.err(),
        &invalid(&format!(
            r#"there is no state "lost" of hosts; {HOST_STATE}"#
        )),
    );
    case(
        calls.list_hosts(hosts("there", "", "0")).await.err(),
        &invalid(TOKEN),
    );
    let changes = |name: &str, run: u64, page_token: &str| proto::ListChangesRequest {
        name: name.into(),
        run,
        page_token: page_token.into(),
        ..Default::default()
    };
    case(
        calls.list_changes(changes("shop", 0, "")).await.err(),
        unknown,
    );
    case(
        calls.list_changes(changes("waits", 0, "")).await.err(),
        never,
    );
    case(
        calls.list_changes(changes("there", 7, "")).await.err(),
        "NotFound: resource there has no run 7: the newest is 1",
    );
    case(
        calls.list_changes(changes("there", 0, "x")).await.err(),
        &invalid(TOKEN),
    );
    let page = "http://a.test/";
    case(
        calls.explain_url(why("shop", page, "")).await.err(),
        unknown,
    );
    case(
        calls.explain_url(why("there", "/page", "")).await.err(),
        &invalid(RELATIVE),
    );
    case(
        calls.explain_url(why("there", page, "G T")).await.err(),
        &invalid(METHOD),
    );
    case(calls.redrive_frontier(redrive("shop")).await.err(), unknown);
    case(calls.redrive_frontier(redrive("waits")).await.err(), never);
    let items = proto::ReadItemsRequest {
        name: "there".into(),
        after: "7".into(),
        ..Default::default()
    };
    case(
        calls.read_items(items).await.err(),
        &invalid(r#""7" is not a position that an item had"#),
    );
    let items = proto::ReadItemsRequest {
        name: "there".into(),
        run: 7,
        ..Default::default()
    };
    case(
        calls.read_items(items).await.err(),
        "NotFound: resource there has no run 7: the newest is 1",
    );
    cases
}

fn cli_cases() -> Vec<(&'static [&'static str], String)> {
    let unknown = format!("1: {}", NO_RESOURCE.trim_start_matches("NOT_FOUND: "));
    let never = format!("1: {NEVER} | {LOOK}");
    vec![
        (&["resource", "restart", "shop"], unknown.clone()),
        (&["frontier", "stats", "shop"], unknown.clone()),
        (&["frontier", "list", "shop"], unknown.clone()),
        (&["resource", "stats", "shop"], unknown.clone()),
        (&["resource", "stats", "waits"], never.clone()),
        (
            &["frontier", "why", "shop", "http://a.test/"],
            unknown.clone(),
        ),
        (&["frontier", "redrive", "shop"], unknown),
        (&["frontier", "stats", "waits"], never.clone()),
        (
            &["frontier", "list", "waits", "--state=dead"],
            never.clone(),
        ),
        (
            &["frontier", "redrive", "waits", "--reason=timeout"],
            never.clone(),
        ),
        (
            &["frontier", "why", "there", "/page"],
            format!("1: {RELATIVE}"),
        ),
        (
            &["frontier", "why", "there", "http://a.test/", "--method=G T"],
            format!("1: {METHOD}"),
        ),
        (
            &["items", "there", "--run=7"],
            "1: resource there has no run 7: the newest is 1".to_owned(),
        ),
        (
            &["items", "there", "--changes", "--run=7"],
            "1: resource there has no run 7: the newest is 1".to_owned(),
        ),
        (&["items", "waits", "--changes"], never),
        (
            &["items", "there", "--kind=ayn"],
            r#"1: plugin hostile has no items of kind "ayn" | did you mean "any"?"#.to_owned(),
        ),
        (
            &["items", "there", "-o=table", "--envelope"],
            "1: a table has no room for --envelope | leave it out, or print lines with -o json"
                .to_owned(),
        ),
    ]
}

#[tokio::test]
async fn a_call_about_a_frontier_that_cannot_be_carried_out_is_told_why_at_every_door() {
    let home = Home::new();
    home.write("crawler.toml", "[[resource]]\nname = \"waits\"\n");
    let mut server = Server::start_in(home, &[]);
    let mut differences = Differences::default();
    let hostile = guests::guest("hostile");
    server.ok(&["plugin", "push", &hostile.display().to_string()]);
    let add = [
        "resource",
        "add",
        "there",
        "--plugin=hostile",
        "--param=root=page",
    ];
    server.ok(&add);
    let before = server.json("/crawler/resource/there")["spec"].clone();
    for (line, kind, body, expected) in http_cases() {
        let answer = server.http(line, kind, body.as_bytes());
        differences.compare(&format!("{line} {body}"), &answer.problem(), &expected);
    }
    for (n, (found, expected)) in grpc_cases(&server).await.into_iter().enumerate() {
        differences.compare(&format!("gRPC {n}"), &found, &expected);
    }
    for (arguments, expected) in cli_cases() {
        let ended = server.cli(arguments);
        differences.compare(&arguments.join(" "), &failure(&ended), &expected);
    }
    // Nothing is known of the URL yet, and the answer says so.
    let why = server.ok(&["frontier", "why", "waits", "http://a.test/"]);
    let unseen = "unseen: root has not run in run 1 yet, so no URL of it is known\n";
    differences.compare("why", &why, unseen);
    differences.assert_none();
    assert_eq!(server.json("/crawler/resource/there")["spec"], before);
    assert_eq!(server.json("/crawler/resource/there")["run"], 1);
    assert!(server.process.is_running());
}
