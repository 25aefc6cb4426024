//! Calls through any master, and while the lead changes hands.

use std::collections::HashSet;

use crawler_proto as proto;
use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::http::{block_on, text, try_ask};
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, soak, until};
use proto::crawler_master_client::CrawlerMasterClient;

use crate::{one_at_a_time, take_leader, three_masters};

fn body(name: &str) -> String {
    format!(r#"{{"name":"{name}","plugin":"puppet","params":{{"start":"http://127.0.0.1:1/"}}}}"#)
}

/// Adds a resource over gRPC, as another program would, with the id of the request.
fn add_by_grpc(master: &str, name: &str, request_id: &str) -> Result<(), tonic::Status> {
    block_on(async {
        let url = format!("http://{master}");
        let client = CrawlerMasterClient::connect(url).await;
        let mut client = client.map_err(|e| tonic::Status::unavailable(e.to_string()))?;
        let mut call = tonic::Request::new(proto::ResourceSpec {
            name: name.to_owned(),
            plugin: "puppet".to_owned(),
            params: [("start".to_owned(), "http://127.0.0.1:1/".to_owned())].into(),
            ..proto::ResourceSpec::default()
        });
        let id = request_id.parse().expect("it is ASCII");
        call.metadata_mut().insert("request-id", id);
        call.set_timeout(PATIENCE);
        client.add_resource(call).await.map(drop)
    })
}

fn add_by_http(master: &str, name: &str, request_id: &str) -> Result<(), String> {
    let url = format!("http://{master}/crawler/resource");
    let headers = [("Idempotency-Key", request_id)];
    let answer = try_ask(Method::POST, &url, &headers, Some(&body(name)))?;
    match answer.status {
        200 => Ok(()),
        _ => Err(answer.text),
    }
}

#[test]
fn s02_s12_every_master_takes_every_call_and_the_leader_carries_it_out() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let leader = cluster.leader_beside(&[]);
    let leading = masters.iter().find(|m| m.id == leader);
    let leading = leading.expect("it is one of them");
    for (n, master) in masters.iter().enumerate() {
        let name = format!("by-http-{n}");
        let added = master.http(Method::POST, "/crawler/resource", Some(&body(&name)));
        assert_eq!(
            (added.status, added.text.as_str()),
            (200, r#"{"id":"","Address":""}"#)
        );
        master.ok(
            &cluster,
            &["resource", "add", &format!("by-cli-{n}"), "--plugin=puppet"],
        );
        add_by_grpc(&master.grpc, &format!("by-grpc-{n}"), "1").unwrap();
        for name in [name, format!("by-cli-{n}"), format!("by-grpc-{n}")] {
            assert!(
                cluster.record(&format!("resources/{name}")).is_some(),
                "{name}"
            );
            let told = format!("resource added resource={name} ");
            leading
                .process
                .line(&told, PATIENCE, |line| line.contains(&told));
            // Every master reads what another has written.
            for reader in &masters {
                let path = format!("/crawler/resource/{name}");
                assert_eq!(reader.http(Method::GET, &path, None).status, 200);
            }
        }
        master.ok(
            &cluster,
            &[
                "resource",
                "update",
                &format!("by-cli-{n}"),
                "--max-pages=7",
            ],
        );
        master.ok(&cluster, &["resource", "restart", &format!("by-cli-{n}")]);
        let record = cluster.record(&format!("resources/by-cli-{n}"));
        let record = record.expect("it was added");
        assert_eq!(
            (&record["run"], &record["generation"]),
            (&2.into(), &2.into())
        );
        let deleted = master.http(
            Method::DELETE,
            "/crawler/resource",
            Some(&format!(r#"{{"name":"by-http-{n}"}}"#)),
        );
        assert_eq!(deleted.status, 200, "{deleted:?}");
        assert!(cluster.record(&format!("resources/by-http-{n}")).is_none());
    }
    // S10: the request goes through a master that does not lead.
    let other = masters.iter().find(|m| m.id != leader);
    let again = other.expect("there are three").http(
        Method::POST,
        "/crawler/resource",
        Some(&body("by-cli-0")),
    );
    assert_eq!(
        again.problem(),
        "409 ALREADY_EXISTS: resource by-cli-0 exists already"
    );
}

#[test]
fn f10_f11_a_call_that_was_forwarded_to_the_wrong_master_goes_no_further() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let leader = cluster.leader_beside(&[]);
    let follower = masters.iter().find(|m| m.id != leader);
    let follower = follower.expect("there are three");
    let status = block_on(async {
        let url = format!("http://{}", follower.grpc);
        let mut client = CrawlerMasterClient::connect(url).await.unwrap();
        let mut call = tonic::Request::new(proto::ResourceSpec {
            name: "a".to_owned(),
            plugin: "puppet".to_owned(),
            ..proto::ResourceSpec::default()
        });
        let yes = "yes".parse().expect("it is ASCII");
        call.metadata_mut().insert("crawler-forwarded", yes);
        client.add_resource(call).await.unwrap_err()
    });
    assert_eq!(status.code(), tonic::Code::Unavailable);
    let leading = masters.iter().find(|m| m.id == leader);
    let at = &leading.expect("it is one of them").grpc;
    let expected = format!("this master does not lead, and {leader} at {at} does");
    assert!(status.message().starts_with(&expected), "{status:?}");
    assert!(cluster.record("resources/a").is_none());
}

#[test]
fn a_call_sent_again_under_its_id_is_carried_out_once_whichever_master_gets_it() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let send = |master: &Node, method: Method, body: &str, id: &str| {
        let url = format!("http://{}/crawler/resource", master.http);
        try_ask(method, &url, &[("Idempotency-Key", id)], Some(body)).unwrap()
    };
    let restart = |master: &Node, id: &str| {
        let url = format!("http://{}/crawler/resource/a/restart", master.http);
        try_ask(Method::POST, &url, &[("Idempotency-Key", id)], Some("{}")).unwrap()
    };
    let record = || cluster.record("resources/a").expect("it is there");
    for master in &masters {
        assert_eq!(send(master, Method::POST, &body("a"), "add-1").status, 200);
    }
    let first = record();
    for master in &masters {
        assert_eq!(restart(master, "restart-1").status, 200);
    }
    assert_eq!(record()["run"], 2);
    for master in &masters {
        let change = r#"{"name":"a","crawl":{"max_pages":5}}"#;
        assert_eq!(send(master, Method::PATCH, change, "change-1").status, 200);
    }
    assert_eq!(record()["generation"], 2);
    for master in &masters {
        assert_eq!(
            send(master, Method::DELETE, r#"{"name":"a"}"#, "delete-1").status,
            200
        );
    }
    assert_eq!(cluster.keys("deleting/").len(), 1);
    // Another call for the same resource is carried out on its own.
    let other = send(&masters[0], Method::DELETE, r#"{"name":"a"}"#, "delete-2");
    assert_eq!(other.problem(), "404 NOT_FOUND: there is no resource a");
    assert_eq!(
        send(&masters[1], Method::POST, &body("a"), "add-2").status,
        200
    );
    assert_ne!(record()["id"], first["id"]);
    let wrong = send(&masters[1], Method::POST, &body("b"), &"x".repeat(200));
    assert!(
        wrong.text.contains("a request id of 200 bytes"),
        "{}",
        wrong.text
    );
}

#[test]
fn adds_through_every_master_are_answered_once_while_leaders_are_killed() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let interfaces: Vec<(String, String)> = masters
        .iter()
        .map(|m| (m.http.clone(), m.grpc.clone()))
        .collect();
    let n_adds = 60;
    std::thread::scope(|scope| {
        let adders: Vec<_> = (0..6)
            .map(|adder| {
                let interfaces = &interfaces;
                scope.spawn(move || {
                    for n in 0..n_adds {
                        let name = format!("r-{adder}-{n}");
                        // A client that gets no answer asks the next master, under the same id.
                        until(&format!("answer for {name}"), PATIENCE, || {
                            interfaces.iter().cycle().skip(adder + n).take(3).find_map(
                                |(http, grpc)| match adder % 2 {
                                    0 => add_by_http(http, &name, &name).ok(),
                                    _ => add_by_grpc(grpc, &name, &name).ok(),
                                },
                            )
                        });
                    }
                })
            })
            .collect();
        let (mut masters, mut killed) = (masters, Vec::<Node>::new());
        for _ in 0..2 {
            let n_before = cluster.keys("resources/").len();
            until("adds under this leader", PATIENCE, || {
                (cluster.keys("resources/").len() > n_before + 20).then_some(())
            });
            let ids: Vec<&str> = killed.iter().map(|node| node.id.as_str()).collect();
            let mut leading = take_leader(&cluster, &mut masters, &ids);
            leading.process.kill();
            killed.push(leading);
        }
        for adder in adders {
            adder.join().expect("each add was answered");
        }
    });
    let names: HashSet<String> = cluster.keys("resources/").into_iter().collect();
    assert_eq!(names.len(), 6 * n_adds);
    let ids: HashSet<String> = names
        .iter()
        .filter_map(|name| cluster.record(&format!("resources/{name}")))
        .map(|record| record["id"].to_string())
        .collect();
    assert_eq!(ids.len(), names.len());
    assert_eq!(
        cluster.keys("shards/").len(),
        names.len(),
        "none was added twice"
    );
}

#[test]
fn s08_f18_ids_of_adds_through_three_masters_at_once_differ_and_grow() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let n_each = if soak() { 3_334 } else { 100 };
    std::thread::scope(|scope| {
        for (n, master) in masters.iter().enumerate() {
            scope.spawn(move || {
                for k in 0..n_each {
                    add_by_http(&master.http, &format!("r-{n}-{k}"), "1").unwrap();
                }
            });
        }
    });
    let dump = cluster.dump("resources/");
    let records = dump.lines().filter(|line| line.starts_with('{'));
    let records: Vec<serde_json::Value> = records
        .map(|record| serde_json::from_str(record).expect("records are JSON"))
        .collect();
    assert_eq!(records.len(), 3 * n_each);
    let mut ids: Vec<(u64, u64)> = Vec::new();
    for record in &records {
        let id: u64 = text(&record["id"]).parse().expect("ids are numbers");
        let at = record["creation_time"].as_u64().expect("times are numbers");
        ids.push((id, at));
    }
    ids.sort_unstable();
    for pair in ids.windows(2) {
        assert_ne!(pair[0].0, pair[1].0, "two resources have one id");
        // One leader made them one after the other, and read the clock after each.
        assert!(pair[0].1 <= pair[1].1, "{pair:?}");
    }
}

#[test]
fn s09_parallel_adds_and_deletes_leave_everything_consistent() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let _workers = crate::two_workers(&cluster);
    std::thread::scope(|scope| {
        for caller in 0..8 {
            let masters = &masters;
            scope.spawn(move || {
                for n in 0..25 {
                    let name = format!("r-{}", (caller * 7 + n * 3) % 20);
                    let master = &masters[(caller + n) % 3];
                    let (method, body) = match (caller + n) % 2 {
                        0 => (Method::POST, body(&name)),
                        _ => (Method::DELETE, format!(r#"{{"name":"{name}"}}"#)),
                    };
                    let answer = master.http(method, "/crawler/resource", Some(&body));
                    assert!([200, 404, 409].contains(&answer.status), "{answer:?}");
                }
            });
        }
    });
    let names = cluster.keys("resources/");
    let listed = masters[0]
        .http(Method::GET, "/crawler/resource", None)
        .json();
    let listed = listed["resources"]
        .as_array()
        .expect("it is a list")
        .clone();
    let listed: Vec<&str> = listed.iter().map(|r| text(&r["spec"]["name"])).collect();
    assert_eq!(listed, names);
    let ids: HashSet<String> = names
        .iter()
        .filter_map(|name| cluster.record(&format!("resources/{name}")))
        .map(|record| format!("{}/0", text(&record["id"])))
        .collect();
    let shards: HashSet<String> = cluster.keys("shards/").into_iter().collect();
    assert_eq!(shards, ids);
    // F15: the load equals the assignments; crawls of nowhere end soon, and none is left over.
    until("loads as the assignments are", PATIENCE, || {
        let nodes = masters[1].http(Method::GET, "/crawler/node", None).json();
        let nodes = nodes["nodes"].as_array().expect("it is a list").clone();
        let loads: u64 = nodes.iter().filter_map(|node| node["load"].as_u64()).sum();
        let assignments = cluster.keys("assignments/");
        let backed = assignments.iter().all(|key| {
            let shard = key.split_once('/').map_or("", |(_, shard)| shard);
            shards.contains(shard)
        });
        (loads as usize == assignments.len() && backed).then_some(())
    });
}
