//! Calls that make no sense, or cannot be carried out: over HTTP, gRPC and the command line.

use crawler_proto as proto;
use crawler_tests::guests;

use crate::Differences;
use crate::server::{Server, failure, status};

const JSON: &str = "application/json";
const NAME_RULE: &str = "use letters, digits, '-', '_' and '.', and start with a letter or digit";
const EMPTY_PART: &str = "has an empty part; leave out the '/' beside it";
const EXISTS: &str = "change it with `crawler resource update there`, or delete it first";
const NO_RESOURCE: &str = "`crawler resource list` shows those there are";

/// Request line, type of its body, body, and the problem that answers it.
type HttpCase = (&'static str, &'static str, String, String);

fn http_cases() -> Vec<HttpCase> {
    let post = |body: &str, problem: &str| -> HttpCase {
        ("POST /crawler/resource", JSON, body.into(), problem.into())
    };
    let bare = |line, problem: &str| -> HttpCase { (line, "", String::new(), problem.into()) };
    let curl = r#"with curl: -H 'content-type: application/json' -d '{"name":"books"}'"#;
    let paths =
        "resources are at /crawler/resource, plugins at /crawler/plugin, nodes at /crawler/node";
    vec![
        post(
            r#"{"name":"shop"}"#,
            "412 FAILED_PRECONDITION: there is no plugin shop | push it first: `crawler plugin push PATH --as shop@VERSION`, or name another with --plugin when adding shop",
        ),
        post(
            r#"{"name":"there","plugin":"hostile"}"#,
            &format!("409 ALREADY_EXISTS: resource there exists already | {EXISTS}"),
        ),
        post(
            r#"{"name":""}"#,
            "400 INVALID_ARGUMENT: resource name is empty",
        ),
        post(
            r#"{"name":"a//b"}"#,
            &format!(r#"400 INVALID_ARGUMENT: resource name "a//b" {EMPTY_PART}"#),
        ),
        post(
            r#"{"name":".."}"#,
            &format!(r#"400 INVALID_ARGUMENT: resource name ".." has '.'; {NAME_RULE}"#),
        ),
        post(
            r#"{"name":"a\u0000"}"#,
            &format!(r#"400 INVALID_ARGUMENT: resource name "a\0" has '\0'; {NAME_RULE}"#),
        ),
        post(
            &format!(r#"{{"name":"{}"}}"#, "a".repeat(300)),
            "400 INVALID_ARGUMENT: resource name is 300 bytes long; at most 128 are allowed",
        ),
        post(
            r#"{"name":"shop","plugin":"a@1"}"#,
            r#"400 INVALID_ARGUMENT: version "1" is not of the form 1.2.3: unexpected end of input while parsing major version number"#,
        ),
        post(
            r#"{"name":"#,
            r#"400 INVALID_ARGUMENT: the body is not JSON: EOF while parsing a value at line 1 column 8 | send an object like {"name":"books"}"#,
        ),
        post(
            r#"{"nmae":"a"}"#,
            r#"400 INVALID_ARGUMENT: the body has an unknown field "nmae" | did you mean "name"?"#,
        ),
        post(
            r#"{"name":"shop","limits":{"memory":"100GiB"}}"#,
            "400 INVALID_ARGUMENT: limit memory is 107374182400, above the ceiling of 671088640; the operator can raise it with --limit-ceiling memory=VALUE",
        ),
        post(
            r#"{"name":"shop","crawl":{"concurrency":0}}"#,
            "400 INVALID_ARGUMENT: setting concurrency must be above zero",
        ),
        post(
            r#"{"name":"shop","crawl":{"max_url_length":9000}}"#,
            "400 INVALID_ARGUMENT: setting max-url-length is 9000; at most 8192 are allowed",
        ),
        post(
            r#"{"name":"shop","crawl":{"maxBytes":"10GiB"}}"#,
            r#"400 INVALID_ARGUMENT: field crawl.max_bytes takes a whole number, not "10GiB""#,
        ),
        post(
            r#"{"name":"shop","crawl":{"robots":"bend"}}"#,
            "400 INVALID_ARGUMENT: setting robots takes obey or ignore, not \"bend\"",
        ),
        post(
            r#"{"name":"shop","crawl":{"unchanged":"ignore"}}"#,
            "400 INVALID_ARGUMENT: setting unchanged takes parse or skip, not \"ignore\"",
        ),
        post(
            r#"{"name":"shop","placement":{"shards":0}}"#,
            "400 INVALID_ARGUMENT: setting shards is 0; it goes from 1 to 32",
        ),
        post(
            r#"{"name":"shop","placement":{"shards":33}}"#,
            "400 INVALID_ARGUMENT: setting shards is 33; it goes from 1 to 32",
        ),
        post(
            r#"{"name":"shop","placement":{"weight":-1}}"#,
            "400 INVALID_ARGUMENT: field placement.weight takes a whole number, not -1",
        ),
        post(
            r#"{"name":"shop","placement":{"weight":"NaN"}}"#,
            r#"400 INVALID_ARGUMENT: field placement.weight takes a whole number, not "NaN""#,
        ),
        post(
            r#"{"name":"shop","placement":{"near":"shop"}}"#,
            "400 INVALID_ARGUMENT: setting near names shop itself; name another resource",
        ),
        post(
            r#"{"name":"shop","placement":{"near":"a","apart":"a"}}"#,
            "400 INVALID_ARGUMENT: setting apart names a, as near does; name it in one of them",
        ),
        post(
            r#"{"name":"shop","placement":{"selector":"gpu"}}"#,
            r#"400 INVALID_ARGUMENT: field placement.selector takes an object, not "gpu""#,
        ),
        (
            "PATCH /crawler/resource",
            JSON,
            r#"{"name":"there","placement":{"shards":2}}"#.into(),
            "412 FAILED_PRECONDITION: shards of resource there can only change with a new run | `crawler resource restart there --shards 2` begins one".into(),
        ),
        (
            "PATCH /crawler/resource",
            JSON,
            r#"{"name":"there","params":{"start":"x"}}"#.into(),
            "412 FAILED_PRECONDITION: params of resource there can only change with a new run | `crawler resource restart there --param start=x` begins one".into(),
        ),
        (
            "POST /crawler/resource/shop/pause",
            JSON,
            "{}".into(),
            format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        (
            "POST /crawler/node/worker-9/drain",
            JSON,
            "{}".into(),
            "404 NOT_FOUND: there is no worker worker-9 | `crawler node list` shows those there are".into(),
        ),
        (
            "POST /crawler/node/master-1/drain",
            JSON,
            "{}".into(),
            "404 NOT_FOUND: there is no worker master-1 | `crawler node list` shows those there are".into(),
        ),
        post(
            &" ".repeat((4 << 20) + 1),
            "413 RESOURCE_EXHAUSTED: the body has more than 4194304 bytes",
        ),
        (
            "POST /crawler/resource",
            "text/plain",
            r#"{"name":"shop"}"#.into(),
            format!(
                "415 INVALID_ARGUMENT: the body is of type text/plain, not application/json | {curl}"
            ),
        ),
        (
            "POST /crawler/resource",
            "",
            r#"{"name":"shop"}"#.into(),
            format!(
                "415 INVALID_ARGUMENT: the body has no type; it should be application/json | {curl}"
            ),
        ),
        (
            "PATCH /crawler/resource",
            JSON,
            r#"{"name":"shop"}"#.into(),
            format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        (
            "DELETE /crawler/resource",
            JSON,
            r#"{"name":"shop"}"#.into(),
            format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        bare(
            "GET /crawler/resource/shop",
            &format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        bare(
            "GET /crawler/resource/shop/items",
            &format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        bare(
            "GET /crawler/resource/shop/files/ab12",
            r#"400 INVALID_ARGUMENT: digest "ab12" is not 64 hexadecimal digits"#,
        ),
        bare(
            "GET /crawler/resource/shop/files/0000000000000000000000000000000000000000000000000000000000000000",
            &format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        bare(
            "GET /crawler/resource/shop/logs",
            &format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        bare(
            "GET /crawler/resource/a%2F",
            &format!(r#"400 INVALID_ARGUMENT: resource name "a/" {EMPTY_PART}"#),
        ),
        bare(
            "GET /crawler/resource/a%2Fb",
            &format!("404 NOT_FOUND: there is no resource a/b | {NO_RESOURCE}"),
        ),
        bare(
            "GET /crawler/resource/a/b/items",
            "404 NOT_FOUND: there is nothing at /crawler/resource/a/b/items | did you mean /crawler/resource/a/items, or a name with a slash, which is written %2F?",
        ),
        bare(
            "GET /crawler/resource/..",
            &format!(r#"400 INVALID_ARGUMENT: resource name ".." has '.'; {NAME_RULE}"#),
        ),
        bare(
            "GET /crawler/resource/%FF",
            "400 INVALID_ARGUMENT: Invalid URL: Invalid UTF-8 in `name`",
        ),
        bare(
            "GET /crawler/resource?colour=2",
            r#"400 INVALID_ARGUMENT: there is no parameter "colour" here | there are page_size, page_token, phase, label, prefix, plugin"#,
        ),
        bare(
            "GET /crawler/schedule?phase=paused",
            r#"400 INVALID_ARGUMENT: there is no parameter "phase" here | there are page_size, page_token, prefix"#,
        ),
        bare(
            "GET /crawler/resource?phase=Faild",
            r#"400 INVALID_ARGUMENT: there is no phase "Faild"; did you mean "Failed"?"#,
        ),
        bare(
            "GET /crawler/resource?label=team",
            r#"400 INVALID_ARGUMENT: label takes KEY=VALUE, not "team" | write several with commas between them"#,
        ),
        bare(
            "GET /crawler/node?role=king",
            r#"400 INVALID_ARGUMENT: there is no role "king"; there are master, worker"#,
        ),
        bare(
            "GET /crawler/node?page_token=worker-1",
            "400 INVALID_ARGUMENT: page_token is not one that an answer to the same question gave",
        ),
        bare(
            "GET /crawler/plugin?page_token=books",
            "400 INVALID_ARGUMENT: page_token is not one that an answer to the same question gave",
        ),
        bare(
            "GET /crawler/plugin/shop",
            "404 NOT_FOUND: there is no plugin shop | `crawler plugin list` shows those there are",
        ),
        bare(
            "DELETE /crawler/plugin/shop@1.0.0",
            "404 NOT_FOUND: there is no plugin shop@1.0.0 | `crawler plugin list` shows those there are",
        ),
        bare(
            "DELETE /crawler/plugin/shop",
            "400 INVALID_ARGUMENT: plugin shop is named without a version; write shop@VERSION",
        ),
        bare(
            "GET /nowhere",
            &format!("404 NOT_FOUND: there is nothing at /nowhere | {paths}"),
        ),
        bare(
            "GET /crawler/resources/shop",
            "404 NOT_FOUND: there is nothing at /crawler/resources/shop | did you mean /crawler/resource/shop?",
        ),
        bare(
            "DELETE /crawler/resource/shop",
            &format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        bare(
            "POST /crawler/resource/shop/pause",
            &format!("404 NOT_FOUND: there is no resource shop | {NO_RESOURCE}"),
        ),
        (
            "PATCH /crawler/resource/there",
            JSON,
            r#"{"name":"shop"}"#.into(),
            "400 INVALID_ARGUMENT: the path names resource there, the body shop | leave the name out of the body".into(),
        ),
        (
            "DELETE /crawler/resource/there",
            JSON,
            r#"{"name":"shop"}"#.into(),
            "400 INVALID_ARGUMENT: the path names resource there, the body shop | leave the name out of the body".into(),
        ),
        bare(
            "PUT /crawler/resource",
            "405 INVALID_ARGUMENT: /crawler/resource does not take PUT | it takes POST, PATCH, DELETE, GET, HEAD",
        ),
    ]
}

/// Returns the same faults over gRPC, as far as it can carry them.
async fn grpc_cases(server: &Server) -> Vec<(String, String)> {
    let mut calls = server.calls().await;
    let mut cases = Vec::new();
    let named = |name: &str| proto::ResourceSpec {
        name: name.into(),
        ..Default::default()
    };
    for (name, expected) in [
        (
            "shop",
            "FailedPrecondition: there is no plugin shop; push it first: `crawler plugin push PATH --as shop@VERSION`, or name another with --plugin when adding shop".to_owned(),
        ),
        (
            "there",
            format!("AlreadyExists: resource there exists already; {EXISTS}"),
        ),
        ("", "InvalidArgument: resource name is empty".to_owned()),
        (
            "a//b",
            format!(r#"InvalidArgument: resource name "a//b" {EMPTY_PART}"#),
        ),
        (
            "..",
            format!(r#"InvalidArgument: resource name ".." has '.'; {NAME_RULE}"#),
        ),
        (
            "a\0",
            format!(r#"InvalidArgument: resource name "a\0" has '\0'; {NAME_RULE}"#),
        ),
        (
            &"a".repeat(300),
            "InvalidArgument: resource name is 300 bytes long; at most 128 are allowed".to_owned(),
        ),
    ] {
        let answer = calls.add_resource(named(name)).await.map(drop);
        cases.push((status(&answer.expect_err(name)), expected));
    }
    let none = format!("NotFound: there is no resource shop; {NO_RESOURCE}");
    let answer = calls.delete_resource(named("shop")).await.map(drop);
    cases.push((status(&answer.expect_err("delete")), none.clone()));
    let shop = proto::ResourceRequest {
        name: "shop".into(),
    };
    let answer = calls.get_resource(shop).await.map(drop);
    cases.push((status(&answer.expect_err("get")), none.clone()));
    let shop = proto::ReadItemsRequest {
        name: "shop".into(),
        follow: true,
        ..Default::default()
    };
    let answer = calls.read_items(shop).await.map(drop);
    cases.push((status(&answer.expect_err("items")), none));
    let mut unknown_limit = named("shop");
    unknown_limit.limits.insert("memroy".into(), 1);
    let answer = calls.add_resource(unknown_limit).await.map(drop);
    cases.push((
        status(&answer.expect_err("limit")),
        r#"InvalidArgument: there is no limit "memroy"; the limits are fuel, cpu, timeout, memory, body, items, item-bytes, requests, log-lines, captures, capture-bytes"#.to_owned(),
    ));
    let digest = proto::FetchPluginRequest {
        digest: "../x".into(),
        offset: 0,
    };
    let answer = calls.fetch_plugin(digest).await.map(drop);
    cases.push((
        status(&answer.expect_err("digest")),
        r#"InvalidArgument: digest "../x" is not 64 hexadecimal digits"#.to_owned(),
    ));
    cases
}

fn cli_cases() -> Vec<(&'static [&'static str], String)> {
    let none = format!("1: there is no resource shop | {NO_RESOURCE}");
    vec![
        (
            &["resource", "add", "shop"],
            "1: there is no plugin shop | push it first: `crawler plugin push PATH --as shop@VERSION`, or name another with --plugin when adding shop".into(),
        ),
        (
            &["resource", "add", "there", "--plugin=hostile"],
            format!("1: resource there exists already | {EXISTS}"),
        ),
        (&["resource", "get", "shop"], none.clone()),
        (&["resource", "logs", "shop", "--follow"], none.clone()),
        (&["resource", "wait", "shop"], none.clone()),
        (&["resource", "update", "shop", "--max-pages=3"], none.clone()),
        (&["resource", "delete", "shop", "--purge"], none.clone()),
        (&["items", "shop", "--follow"], none),
        (
            &["plugin", "get", "shop@1.0.0"],
            "1: there is no plugin shop@1.0.0 | `crawler plugin list` shows those there are".into(),
        ),
        (
            &["resource", "add", "shop", "--limit=memory=100GiB"],
            "1: limit memory is 107374182400, above the ceiling of 671088640; the operator can raise it with --limit-ceiling memory=VALUE".into(),
        ),
        (
            &["resource", "add", "shop", "--concurrency=0"],
            "1: setting concurrency must be above zero".into(),
        ),
    ]
}

#[tokio::test]
async fn s12_s13_a_call_that_cannot_be_carried_out_is_told_why_at_every_door() {
    let mut server = Server::start();
    let mut differences = Differences::default();
    let hostile = guests::guest("hostile");
    server.ok(&["plugin", "push", &hostile.display().to_string()]);
    server.ok(&[
        "resource",
        "add",
        "there",
        "--plugin=hostile",
        "--param=root=page",
    ]);
    let before = server.json("/crawler/resource/there")["spec"].clone();
    for (line, kind, body, expected) in http_cases() {
        let answer = server.http(line, kind, body.as_bytes());
        let case = format!("{line} {}", body.get(..80).unwrap_or(&body));
        differences.compare(&case, &answer.problem(), &expected);
    }
    for (found, expected) in grpc_cases(&server).await {
        differences.compare("gRPC", &found, &expected);
    }
    for (arguments, expected) in cli_cases() {
        let ended = server.cli(arguments);
        differences.compare(&arguments.join(" "), &failure(&ended), &expected);
    }
    differences.assert_none();
    let resources = server.json("/crawler/resource")["resources"].clone();
    assert_eq!(resources.as_array().map(Vec::len), Some(1), "{resources}");
    assert_eq!(resources[0]["spec"], before, "nothing half-written stays");
    assert!(server.process.is_running());
}
