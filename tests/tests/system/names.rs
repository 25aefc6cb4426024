//! Names in a namespace, beside those of a resource and a plugin that are called like the namespace.

use crawler_tests::guests;
use crawler_tests::web::Method;

use crate::server::{Server, text};
use crate::sites;

/// Path of the resource `team/shop`.
const SHOP: &str = "/crawler/resource/team%2Fshop";

#[test]
fn a_resource_in_a_namespace_is_read_and_deleted_by_every_call() {
    let web = sites::chain(2).open();
    let server = Server::start();
    server.push("puppet", &["--as=team/books@1.0.0"]);
    let start = format!("start={}", web.url("/0"));
    for name in ["team/shop", "team"] {
        let add = [
            "resource",
            "add",
            name,
            "--plugin=team/books",
            "--param",
            &start,
        ];
        server.ok(&add);
    }
    server.finished("team");
    let shop = server.finished("team%2Fshop");
    assert_eq!(shop["spec"]["name"], "team/shop");
    assert_eq!(shop["spec"]["plugin"], "team/books");
    assert_eq!(shop["plugin_version"], "1.0.0");

    assert_eq!(server.items("team%2Fshop").len(), 2);
    let stats = server.get(&format!("{SHOP}/frontier")).json();
    assert_eq!(stats["counts"]["parsed"], 2);
    server.get(&format!("{SHOP}/logs"));
    let bare = server.http(Method::GET, "/crawler/resource/team/shop", None);
    assert_eq!(bare.status, 404);
    let hint = bare.json()["hint"].clone();
    assert!(text(&hint).contains("written %2F"), "{hint}");

    // The command line calls over gRPC.
    let items = server.ok(&["items", "team/shop"]);
    assert_eq!(items.lines().count(), 2);
    let stats = server.ok(&["frontier", "stats", "team/shop"]);
    assert!(stats.contains("\nparsed       2\n"), "{stats}");
    server.ok(&["resource", "logs", "team/shop"]);

    let deleted = server.http(Method::DELETE, SHOP, None);
    assert_eq!((deleted.status, deleted.text.as_str()), (200, "{}"));
    assert_eq!(server.http(Method::GET, SHOP, None).status, 404);
    assert_eq!(server.items("team").len(), 2);
    let deleted = server.ok(&["resource", "delete", "team"]);
    assert_eq!(deleted, "deleted team\n");
}

#[test]
fn f13_versions_of_a_plugin_are_not_those_of_its_namespace() {
    let server = Server::start();
    for plugin in ["team@1.0.0", "team/books@1.1.0", "team/books/new@1.2.0"] {
        let push_as = format!("--as={plugin}");
        server.push("puppet", &[&push_as]);
    }
    let newest = |name: &str| {
        let plugin = server.get(&format!("/crawler/plugin/{name}")).json();
        text(&plugin["version"]).to_owned()
    };
    assert_eq!(newest("team"), "1.0.0");
    assert_eq!(newest("team%2Fbooks"), "1.1.0");
    assert_eq!(newest("team%2Fbooks%2Fnew"), "1.2.0");

    server.ok(&["plugin", "delete", "team@1.0.0"]);
    let gone = server.http(Method::GET, "/crawler/plugin/team", None);
    assert_eq!(gone.problem(), "404 NOT_FOUND: there is no plugin team");
    let refused = server.cli(&["resource", "add", "a", "--plugin=team"]);
    assert_eq!(refused.code, Some(1));
    let path = "/crawler/plugin/team%2Fbooks@1.1.0";
    let deleted = server.http(Method::DELETE, path, None);
    assert_eq!((deleted.status, deleted.text.as_str()), (200, "{}"));
    assert_eq!(newest("team%2Fbooks%2Fnew"), "1.2.0");
}

#[test]
fn the_bytes_of_a_plugin_come_back_over_http() {
    let server = Server::start();
    server.push("puppet", &["--as=team/puppet@1.0.0"]);
    let pushed = std::fs::read(guests::guest("puppet")).expect("the guest is built");
    for path in ["team%2Fpuppet", "team%2Fpuppet@1.0.0"] {
        let bytes = server.bytes(&format!("/crawler/plugin/{path}/bytes"));
        assert_eq!(bytes, pushed, "{path}");
    }
    let gone = server.http(Method::GET, "/crawler/plugin/team%2Fother/bytes", None);
    assert_eq!(
        gone.problem(),
        "404 NOT_FOUND: there is no plugin team/other"
    );
}
