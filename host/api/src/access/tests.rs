//! Tests of callers: with and without tokens, and nodes that show the secret of the nodes.

use std::time::Duration;

use object_store::memory::InMemory;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::nodes::OwnCluster;
use crate::tls::testing::{Authority, Files};
use crawler_access::Token;
use crawler_access::audit::AuditSettings;
use crawler_access::registry::{self, FirstToken};
use crawler_access::revoked_nodes::{self, RevokedNodes};
use crawler_process::clock::SystemClock;
use crawler_process::task::TaskScope;
use crawler_store::catalog::Catalog;
use crawler_store::keys::Keys;
use crawler_store::twin::StoreTwin;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_token_goes_on_to_the_leader_and_is_not_printed() {
    let shown = Headers {
        authorization: Some(b"Bearer crawler_secret"),
        ..Headers::default()
    };
    let method = Method::named("AddResource");
    let caller = Access::default().caller(method, shown, None).unwrap();
    let sent = caller.authorization().unwrap();
    assert_eq!(sent.expose(), "Bearer crawler_secret");
    assert!(!format!("{caller:?}").contains("crawler_secret"));
}

#[test]
fn a_node_that_joins_shows_no_token_and_gets_no_right() {
    let method = Method::named("JoinCluster");
    let caller = Access::default().caller(method, Headers::default(), None);
    let caller = caller.unwrap();
    assert!(caller.has_own_proof());
    assert!(!caller.grants().covers_all());
    assert_eq!(caller.name(), CANDIDATE);
}

#[test]
fn only_calls_of_certified_nodes_are_not_bounded_by_caller() {
    let authority = Authority::new("of a cluster");
    let der = |uri| authority.issue_to_node(uri).der;
    let (master, worker) = (
        der("crawler://0f/master/master-1"),
        der("crawler://0f/worker/worker-1"),
    );
    let client = authority.issue().der;
    let cluster = OwnCluster::default();
    cluster.tell("0f");
    let access = Access::Open(KnownNodes::new(cluster, None));
    let address = Some(([10, 0, 0, 1], 7).into());
    let bounded = Some(CallerKey::of(None, address));
    for (method, is_handed_on, certificate, expected) in [
        ("AddResource", false, None, &bounded),
        ("AddResource", true, None, &bounded),
        ("AddResource", true, Some(&client), &bounded),
        ("AddResource", true, Some(&worker), &bounded),
        ("AddResource", false, Some(&master), &bounded),
        ("AddResource", true, Some(&master), &None),
        (methods::FOR_NODES, false, None, &bounded),
        (methods::FOR_NODES, false, Some(&client), &bounded),
        (methods::FOR_NODES, false, Some(&worker), &None),
        (methods::FOR_NODES, false, Some(&master), &bounded),
    ] {
        let shown = Headers {
            is_handed_on,
            certificate: certificate.map(Vec::as_slice),
            ..Headers::default()
        };
        let caller = access.caller(Method::named(method), shown, address);
        let key = caller.unwrap().limit_key();
        assert_eq!(key, *expected, "{method} {is_handed_on}");
    }
    assert_eq!(Caller::node(address).limit_key(), None);
}

#[tokio::test]
async fn a_node_that_is_not_valid_is_bounded_as_others_are() {
    let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
    let authority = Authority::new("of a cluster");
    // The certificates were made in 1975.
    for id in ["master-2", "worker-2"] {
        let id = id.parse().unwrap();
        let revoked = revoked_nodes::revoke(&catalog, &id, 1_800_000_000_000).await;
        revoked.unwrap();
    }
    let scope = TaskScope::new();
    let (revoked, follow) = RevokedNodes::new(catalog, scope.stop_signal());
    scope.spawn("revoked nodes", follow);
    let cluster = OwnCluster::default();
    cluster.tell("0f");
    let access = Access::Open(KnownNodes::new(cluster, None).without(revoked));
    let is_bounded = |method: &str, certificate: &[u8]| {
        let shown = Headers {
            is_handed_on: method != methods::FOR_NODES,
            certificate: Some(certificate),
            ..Headers::default()
        };
        let caller = access.caller(Method::named(method), shown, None);
        caller.unwrap().limit_key().is_some()
    };
    for (method, valid, others) in [
        (
            "AddResource",
            "crawler://0f/master/master-1",
            [
                "crawler://0f/master/master-2",
                "crawler://0e/master/master-1",
            ],
        ),
        (
            methods::FOR_NODES,
            "crawler://0f/worker/worker-1",
            [
                "crawler://0f/worker/worker-2",
                "crawler://0e/worker/worker-1",
            ],
        ),
    ] {
        let valid = authority.issue_to_node(valid).der;
        let known = async {
            while is_bounded(method, &valid) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, known).await.expect("known");
        for other in others {
            let shown = authority.issue_to_node(other).der;
            assert!(is_bounded(method, &shown), "{method} {other}");
        }
    }
}

#[test]
fn what_is_not_in_the_table_is_refused_and_nobody_has_rights() {
    let shown = Headers::default();
    let refused = Access::default().caller(None, shown, None).unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    let nobody = Caller::default();
    nobody.check_name("shop").unwrap_err();
    assert!(!nobody.grants().covers_all());
}

/// Listener of a master that asks for tokens, and the secret of the nodes.
struct Guarded {
    access: Access,
    secret: String,
    /// Token of an administrator.
    token: String,
    _scope: TaskScope,
}

impl Guarded {
    async fn new(nodes: KnownNodes) -> Self {
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        let secret = registry::node_secret(&catalog).await.unwrap();
        let token = Token::random();
        let issued = registry::issue_first(&catalog, &token, 0).await;
        assert_eq!(issued.unwrap(), FirstToken::Issued);
        let clock = Arc::new(SystemClock);
        let scope = TaskScope::new();
        let (gate, view) = Gate::new(catalog, clock.clone(), scope.stop_signal());
        scope.spawn("access tokens", view);
        let known = async {
            while gate.node_secret().is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, known).await.expect("known");
        let node = "master-1".parse().unwrap();
        let objects = Arc::new(InMemory::new());
        let stop = CancellationToken::new();
        let (audit, _writes) = AuditLog::new(objects, &node, AuditSettings::default(), clock, stop);
        Self {
            access: Access::Tokens { gate, audit, nodes },
            secret: secret.expose(),
            token: token.expose(),
            _scope: scope,
        }
    }

    /// Fetches a plugin as workers do, over a connection with this certificate.
    fn fetch(&self, certificate: Option<&[u8]>) -> Result<Caller, Problem> {
        let authorization = format!("{} {}", headers::NODE_SCHEME, self.secret);
        let shown = Headers {
            authorization: Some(authorization.as_bytes()),
            certificate,
            ..Headers::default()
        };
        let method = Method::named(methods::FOR_NODES);
        self.access.caller(method, shown, None)
    }
}

#[tokio::test]
async fn the_secret_of_the_nodes_counts_with_a_certificate_only() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let cluster = OwnCluster::default();
    cluster.tell("c1");
    let plain = Guarded::new(KnownNodes::new(cluster.clone(), None)).await;
    assert!(plain.fetch(None).unwrap().is_node);

    let tls = files.node_server(&authority);
    let joined = Guarded::new(KnownNodes::new(cluster, Some(&tls))).await;
    let refused = joined.fetch(None).unwrap_err();
    assert_eq!(refused.code, Code::Unauthenticated, "{refused}");
    let of = |uri: &str| authority.issue_to_node(uri).der;
    let worker = of("crawler://c1/worker/worker-1");
    assert!(joined.fetch(Some(&worker)).unwrap().is_node);
    for other in [
        "crawler://c1/master/master-1",
        "crawler://c2/worker/worker-1",
    ] {
        let refused = joined.fetch(Some(&of(other))).unwrap_err();
        assert_eq!(refused.code, Code::PermissionDenied, "{refused}");
    }
}

#[tokio::test]
async fn a_call_counts_as_handed_on_by_certified_masters_only() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let cluster = OwnCluster::default();
    cluster.tell("c1");
    let tls = files.node_server(&authority);
    let joined = Guarded::new(KnownNodes::new(cluster, Some(&tls))).await;
    let authorization = bearer(&joined.token);
    let address = Some(([10, 0, 0, 1], 7).into());
    let add = |secret: Option<&str>, certificate: Option<&[u8]>| {
        let shown = Headers {
            authorization: Some(authorization.as_bytes()),
            node: secret.map(str::as_bytes),
            certificate,
            ..Headers::default()
        };
        let method = Method::named("AddResource");
        let caller = joined.access.caller(method, shown, address).unwrap();
        assert_eq!(caller.name(), "admin");
        let through = caller.through("master-9".parse().unwrap());
        assert_eq!(caller.is_through_node(), through.is_some());
        assert_eq!(caller.limit_key().is_none(), through.is_some());
        through.map(|master| master.to_string())
    };
    let secret = Some(joined.secret.as_str());
    let of = |uri: &str| authority.issue_to_node(uri).der;
    let (master, worker) = (
        of("crawler://c1/master/master-2"),
        of("crawler://c1/worker/worker-1"),
    );
    // The certificate tells which master it is, and not the call.
    let through = add(secret, Some(&master));
    assert_eq!(through.as_deref(), Some("master-2"));
    // All others are clients with a valid token, whatever they show beside it.
    for certificate in [None, Some(worker.as_slice())] {
        assert_eq!(add(secret, certificate), None);
    }
    for certificate in [None, Some(worker.as_slice()), Some(master.as_slice())] {
        assert_eq!(add(None, certificate), None);
    }
}

#[tokio::test]
async fn a_call_names_its_master_where_no_certificate_does() {
    let plain = Guarded::new(KnownNodes::default()).await;
    let authorization = bearer(&plain.token);
    let through = |access: &Access, secret: Option<&str>| {
        let shown = Headers {
            authorization: Some(authorization.as_bytes()),
            node: secret.map(str::as_bytes),
            ..Headers::default()
        };
        let method = Method::named("AddResource");
        let caller = access.caller(method, shown, None).unwrap();
        let through = caller.through("master-9".parse().unwrap());
        through.map(|master| master.to_string())
    };
    let told = Some("master-9".to_owned());
    assert_eq!(through(&plain.access, Some(&plain.secret)), told);
    assert_eq!(through(&plain.access, Some("another")), None);
    assert_eq!(through(&plain.access, None), None);
    assert_eq!(through(&Access::default(), None), told);
}
