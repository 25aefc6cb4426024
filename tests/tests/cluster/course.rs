//! A course through the features of a cluster, step by step, with the log lines of each process.

use crawler_tests::guests::guest;

use super::*;

/// Waits for a line of a process that has all of these parts.
#[track_caller]
fn says(node: &Node, parts: &[&str]) {
    let what = format!("{} says {parts:?}", node.id);
    let has_all = |line: &str| parts.iter().all(|part| line.contains(part));
    node.process.line(&what, PATIENCE, has_all);
}

/// Returns the number of crawls of a worker, as a master tells it.
#[track_caller]
fn load(master: &Node, worker: &Node) -> Option<u64> {
    let nodes = master.http(Method::GET, "/crawler/node", None).json();
    let mut nodes = nodes["nodes"].as_array().expect("it is a list").iter();
    let worker = nodes.find(|node| node["id"] == worker.id.as_str());
    worker.expect("it is registered")["load"].as_u64()
}

#[test]
fn f40_a_deletion_through_a_master_that_does_not_lead_is_carried_out() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let web = chains();
    let first = cluster.master("1", &[]);
    cluster.leader_beside(&[]);
    let follower = cluster.master("2", &[]);
    let worker = cluster.worker("1", &[]);
    cluster.registered("worker", 1);
    first.push(&cluster, "puppet");
    for _ in 0..3 {
        add_endless(&first, "books", &web);
        assert_eq!(load(&first, &worker), Some(1));
        let name = Some(r#"{"name":"books"}"#);
        let deleted = follower.http(Method::DELETE, "/crawler/resource", name);
        assert_eq!(deleted.status, 200, "{deleted:?}");
        assert_eq!(load(&first, &worker), Some(0));
        assert_eq!(cluster.record("resources/books"), None);
    }
    assert_eq!(cluster.leader().as_deref(), Some("master-1"));
}

#[test]
fn f37_the_steps_of_the_course_are_told_by_those_who_take_them() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let web = chains();
    // Masters start, one with profiles: the first leads, and the other says so.
    let second = cluster.master("2", &[]);
    cluster.leader_beside(&[]);
    says(&second, &["this master leads"]);
    let third = cluster.master("3", &["--pprof=:0"]);
    says(&third, &["another master leads", "master-2"]);

    // Workers start, one without an id: it gets the first free number.
    let first = cluster.worker_without_id("state-a", &["--pprof=:0"]);
    assert_eq!(first.id, "worker-1");
    says(&second, &["node joined", "worker-1"]);
    let other = cluster.worker("2", &[]);
    says(&second, &["node joined", "worker-2"]);

    // A resource is added through a master that does not lead.
    third.push(&cluster, "puppet");
    let added = add_endless(&third, "books", &web).json();
    let worker = text(&added["id"]).to_owned();
    says(
        &third,
        &["request carried out", "AddResource", "books", "master-2"],
    );
    says(
        &second,
        &["request carried out", "AddResource", "books", "master-3"],
    );
    says(&second, &["resource added", "books", &worker]);
    goes_on(&web, "books", 3);
    let record = cluster.record("resources/books").expect("it is stored");
    let shown = third
        .http(Method::GET, "/crawler/resource/books", None)
        .json();
    // The ids are equal, digit by digit.
    assert_eq!(record["id"], shown["spec"]["id"]);
    assert!(record["id"].is_string(), "{record}");
    // Refused requests are logged too.
    let again = third.http(
        Method::POST,
        "/crawler/resource",
        Some(r#"{"name":"books","plugin":"puppet"}"#),
    );
    assert_eq!(again.status, 409);
    says(&third, &["request refused", "AddResource", "books"]);

    // Ctrl-C ends its worker: the other one goes on with it.
    let (gone, stays) = match worker.as_str() {
        "worker-1" => (first, other),
        _ => (other, first),
    };
    gone.process.interrupt();
    says(&gone, &["crawl ends", "another worker is to have it"]);
    says(&second, &["node left", &gone.id]);
    says(&stays, &["crawl starts", "books"]);
    goes_on(&web, "books", 3);

    // It is the same resource, though it has moved.
    let moved = cluster.record("resources/books").expect("it is stored");
    for field in ["id", "creation_time"] {
        assert_eq!(moved[field], record[field], "{field}");
    }
    assert_eq!(
        moved["assigned_node"],
        format!("{}|{}", stays.id, stays.grpc)
    );

    // A new leader moves nothing.
    second.stop();
    says(&third, &["this master leads"]);
    goes_on(&web, "books", 3);
    assert_eq!(cluster.owners(), [("books".to_owned(), stays.id.clone())]);
    let second = cluster.master("2", &[]);
    says(&second, &["another master leads", "master-3"]);

    // It is deleted through a master that does not lead: nothing of it counts any more.
    let name = Some(r#"{"name":"books"}"#);
    let deleted = second.http(Method::DELETE, "/crawler/resource", name);
    assert_eq!(deleted.status, 200, "{deleted:?}");
    says(
        &second,
        &["request carried out", "DeleteResource", "books", "master-3"],
    );
    says(&stays, &["crawl ends", "the resource was deleted"]);
    assert_eq!(load(&second, &stays), Some(0));

    // It is added again under the name: this is another life, and it runs.
    let again = add_endless(&second, "books", &web).json();
    assert_eq!(text(&again["id"]), stays.id);
    assert_eq!(load(&second, &stays), Some(1));
    goes_on(&web, "books", 3);
    let later = cluster.record("resources/books").expect("it is stored");
    assert_ne!(later["id"], record["id"]);

    // A worker alone takes what its config file says, and leaves the cluster as it is.
    let config = format!(
        "[[plugin]]\npath = {:?}\n[[resource]]\nname = 'alone'\nplugin = 'puppet'\nmax-pages = 3\nparams = {{ start = '{}' }}\n",
        guest("puppet"),
        web.url("/alone/0")
    );
    cluster.home.write("alone.toml", &config);
    let alone = ["worker", "--cluster=false", "--config=alone.toml"];
    let own = ["--data=alone", "--allow-networks=127.0.0.0/8"];
    let ended = cluster.home.run(alone.iter().chain(&own));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let log = web.log();
    assert_eq!(of_chain(&log, "alone").count(), 3);
    assert_eq!(cluster.record("resources/alone"), None);
}

#[test]
fn f37_the_call_of_the_course_needs_no_params_where_a_plugin_has_defaults() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let master = cluster.master("2", &[]);
    cluster.leader_beside(&[]);
    for plugin in ["douban_book_list", "forum_list"] {
        master.push(&cluster, plugin);
    }
    let add = |body| master.http(Method::POST, "/crawler/resource", Some(body));
    let added = add(r#"{"id":"zjx","name":"douban_book_list"}"#);
    assert_eq!(added.status, 200, "{added:?}");
    let shown = master.ok(&cluster, &["plugin", "get", "douban_book_list"]);
    assert!(shown.contains("https://book.douban.com/tag/"), "{shown}");

    // One that has none is asked for, over each door.
    let needed = "plugin forum_list@0.1.0 needs the param start (Address of the first list page)";
    let refused = add(r#"{"name":"forum_list"}"#);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.problem().contains(needed), "{refused:?}");
    let refused = master.cli(&cluster, &["resource", "add", "forum_list"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains(needed), "{}", refused.stderr);
    assert_eq!(cluster.record("resources/forum_list"), None);
    let unknown = [
        "resource",
        "add",
        "other",
        "--plugin=douban_book_list",
        "--param",
        "strat=http://a.test/",
    ];
    let refused = master.cli(&cluster, &unknown);
    for told in [
        "has no param \"strat\"; it has",
        "hint: did you mean \"start\"?",
    ] {
        assert!(refused.stderr.contains(told), "{}", refused.stderr);
    }
}

#[test]
fn a_worker_without_an_id_keeps_its_number_and_finds_another_one_where_it_is_taken() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let _master = cluster.master("1", &[]);
    let asked = cluster.worker("1", &[]);
    let second = cluster.worker_without_id("state-a", &[]);
    let third = cluster.worker_without_id("state-b", &[]);
    assert_eq!(
        (second.id.as_str(), third.id.as_str()),
        ("worker-2", "worker-3")
    );
    // Workers keep their numbers, even if others become free meanwhile.
    asked.stop();
    second.stop();
    third.stop();
    let third = cluster.worker_without_id("state-b", &[]);
    assert_eq!(third.id, "worker-3");
    // Another worker has been started with this number on purpose.
    let _asked = cluster.worker("2", &["--state=state-c"]);
    cluster.registered("worker", 2);
    let mut second = cluster.worker_without_id("state-a", &[]);
    let ended = second.process.wait(PATIENCE);
    assert_ne!(ended.code, Some(0));
    assert!(
        ended
            .stderr
            .contains("another process is registered as worker-2"),
        "{}",
        ended.stderr
    );
    let next = cluster.worker_without_id("state-a", &[]);
    assert_eq!(next.id, "worker-1");
}
