//! Tests of rows: what they have of an answer, and that nothing in them steers a terminal.

use super::*;
use crawler_api::problem::Problem;

fn worker() -> proto::Node {
    proto::Node {
        id: "worker-1".to_owned(),
        role: "worker".to_owned(),
        address: "127.0.0.1:9090".to_owned(),
        load: 3,
        capacity: 10,
        version: "0.1.0".to_owned(),
        started_at: 1_700_000_000_000,
        totals: Some(proto::NodeTotals {
            running: 2,
            waiting: 1,
            ..proto::NodeTotals::default()
        }),
        ..proto::Node::default()
    }
}

fn shard(owner: &str) -> proto::ShardStatus {
    proto::ShardStatus {
        owner: owner.to_owned(),
        ..proto::ShardStatus::default()
    }
}

fn resource(shards: Vec<proto::ShardStatus>) -> proto::Resource {
    proto::Resource {
        spec: Some(proto::ResourceSpec {
            name: "books".to_owned(),
            plugin: "shop@1.0.0".to_owned(),
            ..proto::ResourceSpec::default()
        }),
        phase: "Running".to_owned(),
        run: 3,
        counts: Some(proto::Counts {
            parsed: 38,
            dead: 2,
            items: 30,
            due: 5,
            in_flight: 1,
            ..proto::Counts::default()
        }),
        shards,
        ..proto::Resource::default()
    }
}

#[test]
fn a_node_has_its_standing_and_its_crawls() {
    let cells = |node: &proto::Node| node_row(node).cells.join("|");
    assert_eq!(
        cells(&worker()),
        "worker-1|worker||3/10|2 running, 1 waiting"
    );
    let mut draining = worker();
    draining.draining = true;
    draining.totals = None;
    assert_eq!(cells(&draining), "worker-1|worker|draining|3/10|");
    assert_eq!(node_row(&draining).state, RowState::Drains);
    let leader = proto::Node {
        id: "master-1".to_owned(),
        role: "master".to_owned(),
        leader: true,
        ..proto::Node::default()
    };
    assert_eq!(cells(&leader), "master-1|master|leader||");
    assert_eq!(node_row(&leader).state, RowState::Usual);
    let broken = proto::Node {
        id: "/crawler/nodes/x".to_owned(),
        reason: "the record does not decode: eof".to_owned(),
        ..proto::Node::default()
    };
    assert_eq!(cells(&broken), "/crawler/nodes/x|?");
    assert_eq!(node_row(&broken).detail, broken.reason);
}

#[test]
fn a_resource_has_its_owners_and_a_dash_for_an_unknown_rate() {
    let cells = |shards, rate| resource_row(&resource(shards), rate).cells.join("|");
    assert_eq!(cells(vec![], None), "books|Running|40|-||2|30");
    let one = vec![shard("worker-1"), shard("")];
    assert_eq!(
        cells(one, Some(1.5)),
        "books|Running|40|1.5/s|worker-1|2|30"
    );
    let three = ["worker-3", "worker-1", "worker-2", "worker-1"].map(shard);
    assert_eq!(
        cells(three.to_vec(), Some(0.0)),
        "books|Running|40|0.0/s|worker-1 +2|2|30"
    );
    let found = resource(vec![shard("worker-1")]);
    assert_eq!(heading(&found), "books: run 3, Running");
    assert_eq!(
        numbers(&found, None),
        "40 pages (2 dead), 30 items, 5 waiting, -, worker-1"
    );
}

#[test]
fn a_paused_resource_is_shown_as_paused_in_any_phase() {
    for (phase, paused, expected, cell) in [
        ("Pending", false, RowState::Usual, "Pending"),
        ("Running", false, RowState::Usual, "Running"),
        ("Paused", true, RowState::Paused, "Paused"),
        // A master of an earlier version does not tell it otherwise.
        ("Paused", false, RowState::Paused, "Paused"),
        ("Finished", true, RowState::Paused, "Paused"),
        ("Failed", true, RowState::Paused, "Paused"),
        ("Finished", false, RowState::Over, "Finished"),
        ("Failed", false, RowState::Over, "Failed"),
    ] {
        let mut found = resource(vec![]);
        found.phase = phase.to_owned();
        found.paused = paused;
        let row = resource_row(&found, None);
        assert_eq!(row.state, expected, "{phase}");
        assert_eq!(row.cells[1], cell, "{phase}");
    }
}

#[test]
fn the_phase_of_a_run_that_is_over_is_told_beside_paused() {
    let mut found = resource(vec![]);
    found.phase = "Finished".to_owned();
    found.paused = true;
    assert_eq!(heading(&found), "books: run 3, Finished, paused");
    let row = resource_row(&found, None);
    assert_eq!(row.detail, "books: run 3 of shop@1.0.0, Finished, paused");
    found.phase = "Paused".to_owned();
    assert_eq!(heading(&found), "books: run 3, Paused");
    assert_eq!(
        resource_row(&found, None).detail,
        "books: run 3 of shop@1.0.0, Paused"
    );
}

#[test]
fn a_new_run_is_for_the_resource_that_was_chosen() {
    let mut found = resource(vec![]);
    found.spec.as_mut().unwrap().id = "17".to_owned();
    let id = Some(ResourceId(17));
    assert_eq!(resource_row(&found, None).id, id);
    let name = "books".parse::<ResourceName>().unwrap();
    let request = restart_request(Target {
        name: name.clone(),
        id,
    });
    let precondition = Precondition {
        id,
        generation: None,
    };
    assert_eq!((request.name, request.precondition), (name, precondition));
}

#[test]
fn a_count_fits_its_column() {
    for (n, expected) in [
        (0, "0"),
        (99_999, "99999"),
        (100_000, "100k"),
        (999_999, "999k"),
        (1_234_567, "1.2M"),
        (12_345_678, "12.3M"),
        (123_456_789, "123M"),
        (9_999_999_999, "9.9G"),
        (u64::MAX, "18.4E"),
    ] {
        assert_eq!(count(n), expected);
    }
}

#[test]
fn a_host_has_its_delay_its_failures_and_why() {
    let host = proto::HostEntry {
        name: "a.test".to_owned(),
        state: "waiting".to_owned(),
        due: 12,
        not_before: 1_700_000_000_000,
        delay_ms: 1_500,
        delay_by: "robots".to_owned(),
        ..proto::HostEntry::default()
    };
    let cells = |host: &proto::HostEntry| host_row(host).cells.join("|");
    assert_eq!(
        cells(&host),
        "a.test|waiting|12|1s 500ms|robots|2023-11-14T22:13:20Z"
    );
    let failed = proto::HostEntry {
        state: "backing-off".to_owned(),
        failures: 3,
        reason: "timeout".to_owned(),
        ..host
    };
    assert_eq!(
        cells(&failed),
        "a.test|backing-off|12|1s 500ms|timeout x3|2023-11-14T22:13:20Z"
    );
    assert_eq!(
        host_row(&failed).detail,
        "backing-off 12 due a.test, delay 1s 500ms (crawl-delay of its robots.txt), \
         not before 2023-11-14T22:13:20Z, 3 failures on end: timeout"
    );
}

#[test]
fn the_latest_error_is_the_first_row() {
    let line = |at, number, message: &str| proto::LogLine {
        at,
        number,
        level: "warn".to_owned(),
        message: message.to_owned(),
        ..proto::LogLine::default()
    };
    let shards = [
        vec![line(1_000, 1, "a"), line(3_000, 2, "c")],
        vec![line(2_000, 1, "b")],
    ];
    let shards = shards.map(|last_errors| proto::ShardStatus {
        last_errors,
        ..proto::ShardStatus::default()
    });
    let page = errors(&resource(shards.to_vec()));
    let told: Vec<&str> = page.rows.iter().map(|row| row.cells[0].as_str()).collect();
    assert_eq!(
        told,
        [
            "1970-01-01T00:00:03Z warn c",
            "1970-01-01T00:00:02Z warn b",
            "1970-01-01T00:00:01Z warn a"
        ]
    );
}

#[test]
fn text_from_elsewhere_steers_no_terminal() {
    let evil = "a\u{1b}]0;t\u{7}\u{9b}2J\r\nb\u{202e}c";
    let mut node = worker();
    (node.id, node.address, node.version) = (evil.into(), evil.into(), evil.into());
    let mut found = resource(vec![shard(evil)]);
    found.reason = evil.to_owned();
    found.shards[0].last_errors = vec![proto::LogLine {
        url: evil.to_owned(),
        message: evil.to_owned(),
        ..proto::LogLine::default()
    }];
    let host = proto::HostEntry {
        name: evil.to_owned(),
        reason: evil.to_owned(),
        failures: 2,
        ..proto::HostEntry::default()
    };
    let mut rows = vec![node_row(&node), resource_row(&found, None), host_row(&host)];
    node.reason = evil.to_owned();
    rows.push(node_row(&node));
    rows.extend(errors(&found).rows);
    let texts = rows
        .into_iter()
        .flat_map(|row| [row.cells, vec![row.detail]].concat());
    let refused = page(Err::<(), _>(evil.to_owned()), "", |()| Default::default());
    let others = [heading(&found), numbers(&found, None), refused.note];
    let mut n_evil = 0;
    for text in texts.chain(others) {
        assert!(
            !text.contains(crawler_model::guest_text::steers),
            "{text:?}"
        );
        n_evil += usize::from(text.contains("\\u{1b}]0;t"));
    }
    assert_eq!(n_evil, 14);
}

#[test]
fn what_the_caller_may_not_see_is_a_note() {
    let refused = |code| {
        let problem = Problem::new(code, "it is not for you", "");
        or_refusal(Err::<(), _>(ClientError::Refused(problem)))
    };
    for code in [
        Code::PermissionDenied,
        Code::Unauthenticated,
        Code::FailedPrecondition,
        Code::InvalidArgument,
        Code::NotFound,
    ] {
        assert!(matches!(refused(code), Ok(Err(_))), "{code:?}");
    }
    // These pass: the last look stays.
    for code in [
        Code::ResourceExhausted,
        Code::Aborted,
        Code::Unavailable,
        Code::Internal,
    ] {
        let kept = matches!(refused(code), Err(ClientError::Refused(_)));
        assert!(kept, "{code:?}");
    }
    let away = ClientError::Unreachable {
        url: "http://a.test".to_owned(),
        why: "refused".to_owned(),
    };
    assert!(or_refusal(Err::<(), _>(away)).is_err());
}
