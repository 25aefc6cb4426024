//! Tests of which of the addresses in a resolver's answer are connected to. The answers are chosen by each test.

use std::collections::VecDeque;
use std::time::Duration;

use futures::FutureExt as _;

use super::names::lookup::{LookUp, Resolved};
use super::*;

fn resolver(networks: &[&str], own: &[&str]) -> FilteringResolver {
    let address_policy = AddressPolicy::new(networks.iter().map(|n| n.parse().unwrap()).collect());
    address_policy.set_own_nodes(own.iter().map(|&node| node.to_owned()));
    let settings = NameSettings {
        resolver: Resolver::System,
        ..NameSettings::default()
    };
    FilteringResolver::new(Arc::new(address_policy), BTreeMap::new(), &settings)
}

/// Returns settings with this longest validity of addresses.
fn for_at_most(max_ttl: Duration) -> NameSettings {
    NameSettings {
        min_ttl: Duration::ZERO,
        max_ttl,
        ..NameSettings::default()
    }
}

/// Returns an answer that is valid for a day.
fn known(texts: &[&str]) -> Resolved {
    Resolved {
        addresses: ips(texts),
        ttl: Duration::from_secs(24 * 60 * 60),
    }
}

fn names(look_up: LookUp) -> Names {
    Names::remembering(look_up, &for_at_most(Duration::ZERO), 0)
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|ip| ip.parse().unwrap()).collect()
}

#[track_caller]
fn check(resolver: &FilteringResolver, found: &[&str], admitted: Result<&[&str], &str>) {
    let result = resolver
        .admit("a.test", &ips(found))
        .map_err(|e| e.into_fetch_error().reason());
    assert_eq!(result, admitted.map(ips));
}

#[test]
fn only_public_addresses_of_a_name_are_connected_to() {
    let resolver = resolver(&[], &[]);
    check(&resolver, &["8.8.8.8"], Ok(&["8.8.8.8"]));
    check(&resolver, &["10.0.0.1", "8.8.8.8"], Ok(&["8.8.8.8"]));
    check(&resolver, &["::ffff:10.0.0.1"], Err("address-denied"));
    check(&resolver, &["10.0.0.1", "::1"], Err("address-denied"));
    check(&resolver, &[], Err("resolve"));
}

#[test]
fn a_name_that_leads_to_an_own_node_is_refused_for_its_port_only() {
    let resolver = resolver(&["127.0.0.0/8"], &["127.0.0.1:9091"]);
    check(&resolver, &["127.0.0.1"], Err("own-node"));
    let site = resolver.announce_port(&"http://a.test:8000/".parse().unwrap(), false);
    check(&resolver, &["127.0.0.1"], Ok(&["127.0.0.1"]));
    let node = resolver.announce_port(&"http://a.test:9091/".parse().unwrap(), true);
    check(&resolver, &["127.0.0.1"], Err("own-node"));
    drop(node);
    check(&resolver, &["127.0.0.1"], Ok(&["127.0.0.1"]));
    drop(site);
    assert!(resolver.state().wanted.is_empty());
}

#[test]
fn a_name_is_inside_as_long_as_all_its_addresses_are() {
    let resolver = resolver(&["10.0.0.0/8"], &[]);
    let url = "http://a.test/".parse().unwrap();
    assert!(!resolver.is_inside(&url));
    check(&resolver, &["10.0.0.1"], Ok(&["10.0.0.1"]));
    assert!(resolver.is_inside(&url));
    check(
        &resolver,
        &["10.0.0.1", "8.8.8.8"],
        Ok(&["10.0.0.1", "8.8.8.8"]),
    );
    assert!(!resolver.is_inside(&url));
}

#[tokio::test]
async fn the_systems_answer_is_judged() {
    let error = resolver(&[], &[])
        .resolve("localhost".parse().unwrap())
        .await
        .err()
        .unwrap();
    assert!(error.is::<ResolveError>(), "{error}");
    let mut found = resolver(&["127.0.0.0/8", "::1/128"], &[])
        .resolve("localhost".parse().unwrap())
        .await
        .unwrap();
    assert!(found.any(|address| address.ip().is_loopback()));
}

/// Returns a resolver that never answers.
pub(in super::super) fn silent(address_policy: Arc<AddressPolicy>) -> FilteringResolver {
    let never = |_name| futures::future::pending().boxed();
    FilteringResolver::asking(names(Arc::new(never)), address_policy, BTreeMap::new())
}

/// Returns a resolver with these answers, one after the other; the last one stays.
pub(in super::super) fn by_rote(
    address_policy: Arc<AddressPolicy>,
    answers: &[&[&str]],
) -> (FilteringResolver, Arc<Mutex<usize>>) {
    let answers: Vec<Resolved> = answers.iter().map(|&answer| known(answer)).collect();
    let answers = Mutex::new(VecDeque::from(answers));
    let n_asked = Arc::<Mutex<usize>>::default();
    let asked = n_asked.clone();
    let look_up = move |_name| {
        *asked.lock().unwrap() += 1;
        let mut answers = answers.lock().unwrap();
        let answer = answers.pop_front().unwrap();
        if answers.is_empty() {
            answers.push_back(answer.clone());
        }
        async { Ok(answer) }.boxed()
    };
    let resolver =
        FilteringResolver::asking(names(Arc::new(look_up)), address_policy, BTreeMap::new());
    (resolver, n_asked)
}

/// Checks the judgement on the port of a URL of `a.test`, which is at these addresses; 127.0.0.0/8 is allowed.
#[track_caller]
fn check_port(found: &[&str], url: &str, names_port: bool, expected: &str) {
    let networks = vec!["127.0.0.0/8".parse().unwrap()];
    let address_policy = AddressPolicy::new(networks).allowing_ports(&[8_000]);
    let (resolver, _) = by_rote(Arc::new(address_policy), &[found]);
    let url: Url = url.parse().unwrap();
    let judged = resolver.check_port(&url, names_port, true);
    let judged = judged.now_or_never().expect("nothing is waited for");
    let judged = judged.map_or_else(|error| error.reason(), |()| "ok");
    assert_eq!(judged, expected, "{url} at {found:?}");
}

/// A request on the usual port is not judged by another port while that one is checked.
#[test]
fn a_port_that_is_looked_at_is_not_wanted() {
    let resolver = silent(Arc::default());
    let odd: Url = "http://a.test:25/".parse().unwrap();
    let usual: Url = "http://a.test/".parse().unwrap();
    let mut looked_at = Box::pin(resolver.check_port(&odd, false, true));
    assert!(looked_at.as_mut().now_or_never().is_none());
    let _want = resolver.announce_port(&usual, false);
    let admitted = resolver.admit("a.test", &ips(&["8.8.8.8"]));
    assert_eq!(admitted.unwrap(), ips(&["8.8.8.8"]));
}

#[test]
fn a_port_is_fetched_from_if_it_is_usual_allowed_or_named_and_any_within_allowed_networks() {
    let public = &["8.8.8.8"];
    for (url, expected) in [
        ("http://a.test/", "ok"),
        ("https://a.test/", "ok"),
        ("http://a.test:8080/", "ok"),
        ("https://a.test:8443/", "ok"),
        ("http://a.test:8000/", "ok"),
        ("http://a.test:25/", "port-denied"),
        ("http://a.test:9000/", "port-denied"),
        ("http://a.test:0/", "port-denied"),
        ("http://8.8.8.8:22/", "port-denied"),
        ("http://8.8.8.8/", "ok"),
        ("http://[2606:4700::1111]:9000/", "port-denied"),
        ("http://127.0.0.1:9000/", "ok"),
        ("http://localhost:9000/", "ok"),
    ] {
        check_port(public, url, false, expected);
        check_port(public, url, true, "ok");
    }
    check_port(&["127.0.0.1"], "http://a.test:25/", false, "ok");
    check_port(
        &["127.0.0.1", "8.8.8.8"],
        "http://a.test:25/",
        false,
        "port-denied",
    );
    check_port(&["10.0.0.1"], "http://a.test:25/", false, "address-denied");
}

/// The name may move between the judgement of the port and the connection.
#[test]
fn what_is_connected_to_at_an_odd_port_lies_within_the_allowed_networks() {
    let resolver = resolver(&["127.0.0.0/8"], &[]);
    let odd = resolver.announce_port(&"http://a.test:25/".parse().unwrap(), false);
    check(&resolver, &["127.0.0.1", "8.8.8.8"], Ok(&["127.0.0.1"]));
    check(&resolver, &["8.8.8.8"], Err("port-denied"));
    let named = resolver.announce_port(&"http://a.test:25/".parse().unwrap(), true);
    check(&resolver, &["8.8.8.8"], Err("port-denied"));
    drop(odd);
    check(&resolver, &["8.8.8.8"], Ok(&["8.8.8.8"]));
    drop(named);
}

#[tokio::test]
async fn what_was_found_is_remembered_and_what_was_not_is_asked_for_again() {
    let n_asked = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&n_asked);
    let look_up: LookUp = Arc::new(move |name| {
        let noted = Arc::clone(&noted);
        async move {
            // Other callers wait for this lookup meanwhile.
            tokio::task::yield_now().await;
            let mut n = noted.lock().unwrap();
            *n += 1;
            match name.as_str() {
                "a.test" => Ok(known(&["8.8.8.8"])),
                _ => Err(ResolveError::Unknown {
                    name,
                    why: "gone".to_owned(),
                }),
            }
        }
        .boxed()
    });
    let asked = async |names: &Names, name: &str| {
        tokio::join!(names.addresses(name), names.addresses(name))
            .0
            .is_ok()
    };
    let remembered = Names::remembering(
        Arc::clone(&look_up),
        &for_at_most(Duration::from_secs(60)),
        10,
    );
    let count = || std::mem::take(&mut *n_asked.lock().unwrap());
    assert!(asked(&remembered, "a.test").await);
    assert!(asked(&remembered, "a.test").await);
    assert_eq!(count(), 1);
    assert!(!asked(&remembered, "b.test").await);
    assert!(count() >= 1);
    assert!(!asked(&remembered, "b.test").await);
    assert!(count() >= 1);
    let forgetful = Names::remembering(look_up, &for_at_most(Duration::ZERO), 10);
    assert!(asked(&forgetful, "a.test").await);
    assert_eq!(count(), 2);
}

#[tokio::test]
async fn what_was_found_is_asked_for_again_when_its_time_is_over() {
    let n_asked = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&n_asked);
    let look_up: LookUp = Arc::new(move |_| {
        *noted.lock().unwrap() += 1;
        std::future::ready(Ok(known(&["8.8.8.8"]))).boxed()
    });
    let remembered = Names::remembering(look_up, &for_at_most(Duration::from_millis(50)), 10);
    let until_asked_again = async {
        while *n_asked.lock().unwrap() < 2 {
            remembered.addresses("a.test").await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let deadline = Duration::from_secs(20);
    let asked_again = tokio::time::timeout(deadline, until_asked_again).await;
    asked_again.expect("it is forgotten");
}

#[tokio::test]
async fn the_addresses_of_many_names_are_not_remembered_all() {
    let n_asked = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&n_asked);
    let look_up: LookUp = Arc::new(move |_| {
        *noted.lock().unwrap() += 1;
        std::future::ready(Ok(known(&["8.8.8.8"]))).boxed()
    });
    let remembered = Names::remembering(look_up, &for_at_most(Duration::from_secs(60)), 10);
    for _ in 0..2 {
        for n in 0..1_000 {
            remembered.addresses(&format!("{n}.test")).await.unwrap();
        }
    }
    let n_asked = *n_asked.lock().unwrap();
    assert!(n_asked > 1_500, "{n_asked} of 2000 were asked for");
}
