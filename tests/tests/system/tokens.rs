//! Access tokens: every call with every role, over gRPC and HTTP, and tokens that are not valid any more.

use std::fs;

use crawler_proto::crawler_master_client::CrawlerMasterClient;
use crawler_proto::{FetchPluginRequest, RecordPluginRequest};
use crawler_tests::process::Home;
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, guests, http, repository, until};
use serde_json::{Value, json};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request};

use crate::server::{Server, block_on, text};
use crate::sites;

/// A call, as the page about access shows it.
struct Call {
    name: String,
    /// Methods and paths of HTTP.
    over_http: Vec<(Method, String)>,
    /// Roles that may make it.
    allowed: Vec<&'static str>,
    /// Answer to whether a token of a namespace may make it: "yes", "no", "its names", or "without a token".
    in_namespace: String,
}

pub(crate) const ROLES: [&str; 4] = ["viewer", "operator", "publisher", "admin"];

/// Reads the table of calls of the book, which a test compares with the code.
fn calls() -> Vec<Call> {
    let page = repository().join("host/docs/src/reference/access.md");
    let page = fs::read_to_string(page).expect("the page about access has the table");
    let (_, part) = page
        .split_once("<!-- calls and rights")
        .expect("the page about access has the table");
    let (part, _) = part
        .split_once("<!-- end")
        .expect("the page about access has the table");
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let over_http = cells[1].split(" · ").filter(|call| !call.is_empty());
        let over_http = over_http.map(|call| {
            let (method, path) = call
                .trim_matches('`')
                .split_once(' ')
                .expect("the page about access has the table");
            let path = path
                .replace("NAME[@VERSION]", "puppet@0.0.1")
                .replace("NAME", "shop");
            let path = path
                .replace("DIGEST", &"0".repeat(64))
                .replace("ID", &"0".repeat(16))
                // Events have no end, and a version that is none is refused after the check of access.
                .replace("/crawler/events", "/crawler/events?version=none");
            (
                method.parse().expect("the page about access has the table"),
                path,
            )
        });
        let allowed = ROLES.into_iter().zip(&cells[2..6]);
        let allowed = allowed.filter(|(_, cell)| **cell == "yes");
        Call {
            name: cells[0].trim_matches('`').to_owned(),
            over_http: over_http.collect(),
            allowed: allowed.map(|(role, _)| role).collect(),
            in_namespace: cells[6].to_owned(),
        }
    });
    rows.collect()
}

/// A server that asks for tokens, with the one of its administrator.
pub(crate) struct Guarded {
    pub(crate) server: Server,
    pub(crate) admin: String,
}

impl Guarded {
    fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts with further arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let home = Home::new();
        let file = home.path().join("first-token");
        let first = format!("--first-token={}", file.display());
        let usual = ["--require-tokens", first.as_str()];
        let server = Server::start_in(home, &[&usual, arguments].concat());
        let admin = until("the first token", PATIENCE, || {
            let token = fs::read_to_string(&file).ok()?.trim().to_owned();
            (!token.is_empty()).then_some(token)
        });
        let guarded = Self { server, admin };
        until("the first token is known", PATIENCE, || {
            let answer = guarded.ask(&guarded.admin, Method::GET, "/crawler/node", None);
            (answer.status == 200).then_some(())
        });
        guarded
    }

    pub(crate) fn ask(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&str>,
    ) -> http::Answer {
        self.server.http_as(Some(token), method, path, body)
    }

    /// Makes a token, and waits until it is known.
    pub(crate) fn token(&self, body: &Value) -> String {
        let body = body.to_string();
        let path = "/crawler/access/token";
        let issued = self.ask(&self.admin, Method::POST, path, Some(&body));
        assert_eq!(issued.status, 200, "{issued:?}");
        let token = text(&issued.json()["token"]).to_owned();
        until("the token is known", PATIENCE, || {
            let answer = self.ask(&token, Method::GET, "/crawler/access/caller", None);
            (answer.status == 200).then_some(())
        });
        token
    }
}

/// Makes a call with an empty message, and returns how it is answered: a message, the end of a stream, or a status.
fn code(server: &Server, name: &str, token: Option<&str>) -> Code {
    let url = format!("http://{}", server.grpc());
    let answered = block_on(async {
        let channel = Channel::from_shared(url)
            .expect("the call is made")
            .connect()
            .await
            .expect("the call is made");
        let mut client = tonic::client::Grpc::new(channel);
        client.ready().await.expect("the connection is open");
        let mut request = Request::new(futures::stream::iter([()]));
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().expect("the call is made");
            request.metadata_mut().insert("authorization", value);
        }
        let path: PathAndQuery = format!("/CrawlerMaster/{name}")
            .parse()
            .expect("the call is made");
        let codec = tonic_prost::ProstCodec::<(), ()>::default();
        let mut answers = client.streaming(request, path, codec).await?.into_inner();
        answers.message().await
    });
    answered.err().map_or(Code::Ok, |status| status.code())
}

#[test]
fn every_call_is_for_its_roles_only() {
    let calls = calls();
    assert!(calls.len() >= 30, "the table was read");
    let guarded = Guarded::start();
    let token = |role: &str| guarded.token(&json!({"subject": role, "roles": [role]}));
    let tokens = ROLES.map(|role| (role, token(role)));
    let expired =
        guarded.token(&json!({"subject": "late", "roles": ["admin"], "valid_for_ms": 1_000}));
    until("it has expired", PATIENCE, || {
        let answer = guarded.ask(&expired, Method::GET, "/crawler/node", None);
        (answer.status == 401).then_some(())
    });
    // The id of an administrator's token, with another secret.
    let (id_of_admin, _) = guarded.admin.rsplit_once('_').unwrap();
    let wrong = format!("{id_of_admin}_{}", "0".repeat(64));
    let mut n_checked = 0;
    for call in &calls {
        if call.in_namespace == "without a token" {
            // A node proves itself by what is in the message, whatever token is shown; this one is empty.
            for token in [None, Some(guarded.admin.as_str()), Some("nonsense")] {
                let found = code(&guarded.server, &call.name, token);
                assert_ne!(found, Code::Ok, "{} {token:?}", call.name);
            }
            assert!(call.over_http.is_empty(), "{}", call.name);
            continue;
        }
        let body = (!matches!(call.name.as_str(), "PushPlugin")).then_some("{}");
        for token in [None, Some(expired.as_str()), Some(&wrong), Some("nonsense")] {
            let found = code(&guarded.server, &call.name, token);
            assert_eq!(found, Code::Unauthenticated, "{} {token:?}", call.name);
            for (method, path) in &call.over_http {
                let answer = guarded.server.http_as(token, method.clone(), path, body);
                let expected = "401 UNAUTHENTICATED";
                assert!(
                    answer.problem().starts_with(expected),
                    "{method} {path}: {answer:?}"
                );
                n_checked += 1;
            }
        }
        for (role, token) in &tokens {
            let is_allowed = call.allowed.contains(role);
            let found = code(&guarded.server, &call.name, Some(token));
            let is_refused = matches!(found, Code::PermissionDenied | Code::Unauthenticated);
            assert_eq!(
                is_allowed, !is_refused,
                "{} as {role}: {found:?}",
                call.name
            );
            for (method, path) in &call.over_http {
                let answer = guarded.ask(token, method.clone(), path, body);
                let is_refused = matches!(answer.status, 401 | 403);
                assert_eq!(
                    is_allowed, !is_refused,
                    "{method} {path} as {role}: {answer:?}"
                );
                n_checked += 1;
            }
        }
    }
    assert!(n_checked > 200, "{n_checked}");
}

#[test]
fn a_token_of_a_namespace_is_for_its_names_only() {
    let web = sites::chain(2).open();
    let guarded = Guarded::start();
    let server = &guarded.server;
    let all = json!({"subject": "ci", "roles": ["operator", "publisher"], "namespaces": ["team"]});
    let team = guarded.token(&all);
    let admin = |arguments: &[&str]| server.ok_as(&guarded.admin, arguments);
    let puppet = guests::guest("puppet").display().to_string();
    let start = format!("start={}", web.url("/0"));
    for (plugin, resource) in [
        ("--as=team/books@1.0.0", "team/shop"),
        ("--as=other/books@1.0.0", "other/shop"),
    ] {
        admin(&["plugin", "push", &puppet, plugin]);
        let name = &plugin["--as=".len()..plugin.len() - "@1.0.0".len()];
        let of = format!("--plugin={name}");
        admin(&["resource", "add", resource, &of, "--param", &start]);
    }
    // Lists leave out what it is not for.
    let listed = server.ok_as(&team, &["resource", "list", "-o", "json"]);
    assert!(
        listed.contains("team/shop") && !listed.contains("other/shop"),
        "{listed}"
    );
    let listed = server.ok_as(&team, &["plugin", "list", "-o", "json"]);
    assert!(
        listed.contains("team/books") && !listed.contains("other/books"),
        "{listed}"
    );
    // Every call about other names is refused, whether they exist or not.
    let lists = [
        "ListResources",
        "ListSchedules",
        "ListPlugins",
        "ListNodes",
        "ReadNodeEvents",
        "WatchNodes",
        "WatchResources",
        "GetCaller",
    ];
    let passed_over =
        |call: &Call| lists.contains(&call.name.as_str()) || call.name == "PushPlugin";
    for call in calls().iter().filter(|call| !passed_over(call)) {
        for (method, path) in &call.over_http {
            for (namespace, is_own) in [("other", false), ("nobodys", false), ("team", true)] {
                let path = path.replace("shop", &format!("{namespace}%2Fshop"));
                let path = path.replace("puppet@0.0.1", &format!("{namespace}%2Fbooks@0.0.1"));
                let has_name = path.ends_with("/resource");
                let body = match has_name {
                    true => json!({"name": format!("{namespace}/shop")}).to_string(),
                    false => "{}".to_owned(),
                };
                // Deleting its own would leave nothing to ask for.
                if is_own && call.name == "DeleteResource" {
                    continue;
                }
                let answer = guarded.ask(&team, method.clone(), &path, Some(&body));
                let is_refused = answer.status == 403;
                let is_allowed = is_own && call.in_namespace == "its names";
                assert_eq!(is_refused, !is_allowed, "{method} {path}: {answer:?}");
            }
        }
    }
    // A plugin of its own name is pushed; others, and one that tells its name itself, are not.
    let push = |name: &str| server.cli_as(&team, &["plugin", "push", &puppet, name]);
    assert_eq!(push("--as=team/new@1.0.0").code, Some(0));
    let foreign = push("--as=other/new@1.0.0");
    assert_eq!(foreign.code, Some(1), "{}", foreign.stderr);
    assert!(
        foreign.stderr.contains("other/new is outside"),
        "{}",
        foreign.stderr
    );
    let unnamed = server.cli_as(&team, &["plugin", "push", &puppet]);
    assert!(
        unnamed.stderr.contains("names no plugin"),
        "{}",
        unnamed.stderr
    );
    // Nor does a resource of its own run a plugin of others.
    let add = [
        "resource",
        "add",
        "team/spy",
        "--plugin=other/books",
        "--param",
        &start,
    ];
    let refused = server.cli_as(&team, &add);
    assert!(
        refused.stderr.contains("other/books is outside"),
        "{}",
        refused.stderr
    );
    let update = ["resource", "update", "team/shop", "--plugin=other/books"];
    assert_eq!(server.cli_as(&team, &update).code, Some(1));
    // Bytes are found by their digest only through a plugin that it may see.
    let hostile = guests::guest("hostile").display().to_string();
    admin(&["plugin", "push", &hostile, "--as=other/hostile@1.0.0"]);
    let fetch = |plugin: &str| {
        let plugin = guarded.ask(
            &guarded.admin,
            Method::GET,
            &format!("/crawler/plugin/{plugin}"),
            None,
        );
        let digest = text(&plugin.json()["digest"]).to_owned();
        let url = format!("http://{}", server.grpc());
        block_on(async {
            let mut client = CrawlerMasterClient::connect(url).await.unwrap();
            let mut request = Request::new(FetchPluginRequest { digest, offset: 0 });
            let value = format!("Bearer {team}").parse().unwrap();
            request.metadata_mut().insert("authorization", value);
            client
                .fetch_plugin(request)
                .await
                .err()
                .map_or(Code::Ok, |status| status.code())
        })
    };
    assert_eq!(fetch("team%2Fbooks"), Code::Ok);
    assert_eq!(fetch("other%2Fhostile"), Code::PermissionDenied);
    // Nor are they recorded under a name of its own.
    let record = |digest: String| {
        let url = format!("http://{}", server.grpc());
        block_on(async {
            let mut client = CrawlerMasterClient::connect(url).await.unwrap();
            let mut request = Request::new(RecordPluginRequest {
                digest,
                r#as: "team/stolen@1.0.0".to_owned(),
                ..RecordPluginRequest::default()
            });
            let value = format!("Bearer {team}").parse().unwrap();
            request.metadata_mut().insert("authorization", value);
            let recorded = client.record_plugin(request).await;
            recorded.err().map_or(Code::Ok, |status| status.code())
        })
    };
    let plugin = guarded.ask(
        &guarded.admin,
        Method::GET,
        "/crawler/plugin/other%2Fhostile",
        None,
    );
    let hostile = text(&plugin.json()["digest"]).to_owned();
    assert_eq!(record(hostile), Code::PermissionDenied);
    // A position names a resource by its id, and does not lead out of the namespace.
    let resource = |name: &str| {
        let path = format!("/crawler/resource/{name}");
        guarded.ask(&guarded.admin, Method::GET, &path, None).json()
    };
    let finished = |name: &str| {
        until("the end of the crawl", PATIENCE, || {
            (resource(name)["phase"] == "Finished").then_some(())
        });
    };
    finished("other%2Fshop");
    finished("team%2Fshop");
    let items = |token: &str, name: &str, query: &str| {
        let path = format!("/crawler/resource/{name}/items?envelope{query}");
        guarded.ask(token, Method::GET, &path, None)
    };
    let first = items(&guarded.admin, "other%2Fshop", "&limit=1").text;
    let first: Value = serde_json::from_str(first.trim()).unwrap();
    let foreign = format!("&after={}", text(&first["position"]));
    assert_eq!(items(&team, "team%2Fshop", &foreign).status, 403);
    assert_eq!(items(&guarded.admin, "other%2Fshop", &foreign).status, 200);
    let own = items(&team, "team%2Fshop", "&limit=1").text;
    let own: Value = serde_json::from_str(own.trim()).unwrap();
    let own = format!("&after={}", text(&own["position"]));
    assert_eq!(items(&team, "team%2Fshop", &own).status, 200);
    // Logins and proxies of the workers are for the whole cluster.
    let credentials = server.cli_as(
        &team,
        &["resource", "update", "team/shop", "--credentials=shop"],
    );
    assert!(
        credentials.stderr.contains("in no namespace"),
        "{}",
        credentials.stderr
    );
    let near = server.cli_as(
        &team,
        &["resource", "update", "team/shop", "--near=other/shop"],
    );
    assert!(
        near.stderr.contains("other/shop is outside"),
        "{}",
        near.stderr
    );
}

#[test]
fn what_runs_with_a_token_ends_when_it_is_revoked() {
    let guarded = Guarded::start();
    let server = &guarded.server;
    let alice = guarded.token(&json!({"subject": "alice", "roles": ["viewer"]}));
    let mut watch = server.command_as(&alice, &["node", "watch"]);
    watch.answer("a node", PATIENCE, |line| line.contains("master-1"));
    let revoked = server.ok_as(
        &guarded.admin,
        &["access", "token", "revoke", "--subject=alice"],
    );
    assert_eq!(revoked, "revoked all tokens that alice was given\n");
    let unknown = ["access", "token", "revoke", "--subject=alise"];
    let unknown = server.cli_as(&guarded.admin, &unknown);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stdout);
    assert!(
        unknown.stderr.contains("alise has no token"),
        "{}",
        unknown.stderr
    );
    let ended = watch.wait(PATIENCE);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("is not valid"), "{}", ended.stderr);
    let refused = server.cli_as(&alice, &["node", "list"]);
    assert!(
        refused.stderr.contains("is not valid"),
        "{}",
        refused.stderr
    );
    // A token that is made afterwards is valid.
    let new = guarded.token(&json!({"subject": "alice", "roles": ["viewer"]}));
    server.ok_as(&new, &["node", "list"]);
    let listed = server.ok_as(&guarded.admin, &["access", "token", "list"]);
    assert!(listed.contains("alice"), "{listed}");
    let id = new.split('_').nth(1).unwrap().to_owned();
    server.ok_as(&guarded.admin, &["access", "token", "revoke", &id]);
    let again = server.cli_as(&guarded.admin, &["access", "token", "revoke", &id]);
    assert_eq!(again.code, Some(1));
    assert!(
        again.stderr.contains("there is no token"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_login_is_kept_for_its_master() {
    let guarded = Guarded::start();
    let server = &guarded.server;
    let without = server.cli(&["node", "list"]);
    assert_eq!(without.code, Some(1));
    assert!(
        without.stderr.contains("asks for an access token"),
        "{}",
        without.stderr
    );
    let file = server.home.path().join("first-token").display().to_string();
    let url = format!("http://{}", server.grpc());
    let in_words = server.ok(&["login", &url, "--token-file", &file]);
    assert_eq!(in_words, format!("logged in to {url} as admin: admin\n"));
    server.ok(&["node", "list"]);
    assert_eq!(server.ok(&["access", "whoami"]), "admin: admin\n");
    let wrong = server.cli_as(&token_of_nobody(), &["node", "list"]);
    assert!(
        wrong.stderr.contains("not valid"),
        "the environment comes first: {}",
        wrong.stderr
    );
    server.ok(&["logout", &url]);
    assert_eq!(server.cli(&["node", "list"]).code, Some(1));
    // A login to one of two masters stands in nobody's way but in that of calls to both.
    let masters = format!("{url},http://127.0.0.1:1");
    server.ok(&["login", &url, "--token-file", &file]);
    let both = server.cli(&["--master", &masters, "node", "list"]);
    assert!(
        both.stderr.contains("no login to http://127.0.0.1:1"),
        "{}",
        both.stderr
    );
    server.ok(&["--master", &masters, "login", &url, "--token-file", &file]);
    server.ok(&["--master", &masters, "version"]);
    server.ok(&["logout", &url]);
    // After a restart the token is there, and no second one is made.
    let admin = fs::read_to_string(&file).unwrap();
    let home = guarded.server.stop();
    let first = format!("--first-token={file}");
    let server = Server::start_in(home, &["--require-tokens", &first]);
    until("the token is known again", PATIENCE, || {
        (server.cli_as(admin.trim(), &["node", "list"]).code == Some(0)).then_some(())
    });
    assert_eq!(fs::read_to_string(&file).unwrap(), admin);
}

fn token_of_nobody() -> String {
    format!("crawler_{}_{}", "0".repeat(16), "0".repeat(64))
}
