//! The JSON of every answer, as HTTP and `-o json` show it: `answers.json` has each with all fields set, with
//! nothing set, and from a message without any field, as a master of another version may send it.

use std::collections::BTreeMap;

use crawler_proto as proto;
use prost::Message;
use serde::Serialize;
use serde_json::Value;

use super::*;
use crate::frontier;
use crawler_frontier::reader::{ChangePage, HeldPage};
use crawler_master::control::frontier::{HostCursor, HostsPage, UrlCursor, UrlsPage};
use crawler_master::control::items::{ItemPosition, ItemsBefore};
use crawler_master::control::quarantine::{Decided, HoldId};
use crawler_master::control::{ChangesBetween, RunView, RunsDiff, RunsView};
use crawler_master::explain::{Explanation, UrlStatus};
use crawler_model::changes::{Change, ChangeTotals, ItemChange};
use crawler_model::crawl::{Done, ItemKey, ItemRecord, Request};
use crawler_model::drift::{Departs, Departure, GroupName, Hold};
use crawler_model::event::{Event, EventKind};
use crawler_model::frontier::{
    DelaySource, FrontierStats, HostEntry, HostState, UrlEntry, UrlFilter, UrlState,
};
use crawler_model::guest_text::GuestText;
use crawler_model::id::{Digest, Epoch, Generation, Incarnation, ResourceId, Run, Shard};
use crawler_model::node::{Node, NodeChange, Role};
use crawler_model::plugin::{Description, LimitName, LimitOverrides, Param};
use crawler_model::resource::{
    CrawlSettings, Owner, Phase, PinnedPlugin, PlacementSpec, Resource, ResourceSpec, ShardRecord,
};
use crawler_model::runs::{EndedRun, RunOutcome, RunSpec};
use crawler_model::schedule::{RawSchedule, Schedule, ScheduleOutcome, ScheduleSpec, ScheduleView};
use crawler_model::settings::examples;
use crawler_model::statistics::{Kind, LostRoot, PlanMatches, RunStatistics, Statistics, TopHosts};
use crawler_model::status::{LimitUse, LogLine};

/// Answers by their names.
type Answers = BTreeMap<&'static str, Value>;

#[test]
fn the_json_of_every_answer_stays_as_it_is() {
    let expected: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("answers.json")).unwrap();
    let mut found = Answers::new();
    resources(&mut found);
    items(&mut found);
    past_events(&mut found);
    nodes(&mut found);
    plugins(&mut found);
    frontiers(&mut found);
    for (name, json) in &found {
        assert_eq!(Some(json), expected.get(*name), "{name}: {json:#}");
    }
    assert_eq!(found.len(), expected.len());
}

/// Adds an answer. A client reads the same from the message as HTTP shows.
fn add<M>(found: &mut Answers, name: &'static str, answer: M)
where
    M: Message + Serialize + Default,
{
    let json = json(&answer);
    let bytes = answer.encode_to_vec();
    let read = M::decode(&*bytes).unwrap();
    assert_eq!(json, self::json(&read), "{name}");
    found.insert(name, json);
}

/// Adds the answer of a message without any field.
fn add_bare<M: Message + Serialize + Default>(found: &mut Answers, name: &'static str) {
    found.insert(name, json(&M::default()));
}

fn json(answer: &impl Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(answer).unwrap()).unwrap()
}

fn texts<V: Clone>(entry: (&str, V)) -> BTreeMap<String, V> {
    [(entry.0.to_owned(), entry.1)].into()
}

fn resources(found: &mut Answers) {
    add(found, "placed", placed(&resource()));
    add(found, "placed, empty", placed(&empty_resource()));
    add(found, "resource", super::resource(resource()));
    add(found, "resource, empty", super::resource(empty_resource()));
    add_bare::<proto::Resource>(found, "resource, bare");
    let bare = [proto::ShardStatus::default()];
    found.insert("shard, bare", json(&bare));
    let ended = |run: u64, outcome: RunOutcome| EndedRun {
        run: Run(run),
        started_at: 1,
        ended_at: 2,
        outcome,
        pages: 3,
        items: 4,
        dead: 5,
        bytes: 6,
        outcomes: texts(("parsed", 7)),
        dead_by_reason: texts(("timeout", 8)),
        spec: Some(RunSpec::of(&resource().resource)),
    };
    let failed = RunOutcome::Failed {
        reason: "text".into(),
    };
    let view = RunsView {
        present: empty_resource(),
        spec: RunSpec::of(&empty_resource().resource),
        earlier: vec![ended(1, failed.clone()), ended(2, RunOutcome::Stopped)],
    };
    let mut runs = runs(view);
    let present = runs.runs.remove(0);
    assert_eq!(present.run, empty_resource().resource.run.0);
    add(found, "runs", runs);
    add_bare::<proto::ListRunsResponse>(found, "runs, bare");
    let diff = RunsDiff {
        before: RunView::Ended(Box::new(ended(1, failed))),
        after: RunView::Present(Box::new((
            empty_resource(),
            RunSpec::of(&empty_resource().resource),
        ))),
        settings: Some(vec!["delay".into()]),
        changes: ChangesBetween {
            totals: Some(change_totals()),
            n_compared: 1,
            n_uncompared: 2,
        },
    };
    add(found, "runs diff", runs_diff(diff));
    add_bare::<proto::RunsDiff>(found, "runs diff, bare");
    add(found, "schedule", super::schedule(schedule()));
    let view = ScheduleView {
        schedule: Schedule {
            last: None,
            due: None,
            waits: false,
            ..schedule().schedule
        },
        ..schedule()
    };
    add(found, "schedule, empty", super::schedule(view));
    add_bare::<proto::Schedule>(found, "schedule, bare");
    let entry = |schedule: Option<Schedule>| ScheduledResource {
        view: empty_resource(),
        schedule,
    };
    let page = ListPage {
        entries: vec![entry(Some(schedule().schedule)), entry(None)],
        next: Some("books".parse().unwrap()),
    };
    add(found, "schedules", schedules(page));
    add_bare::<proto::ListSchedulesResponse>(found, "schedules, bare");
    add_bare::<proto::ScheduledResource>(found, "scheduled resource, bare");
    let page = ListPage {
        entries: vec![empty_resource()],
        next: Some("books".parse().unwrap()),
    };
    add(found, "resources", super::resources(page));
    let page = ListPage {
        entries: Vec::new(),
        next: None,
    };
    add(found, "resources, empty", super::resources(page));
}

/// Returns a schedule of which every field is set, if one has failed.
fn schedule() -> ScheduleView {
    let raw = RawSchedule {
        cron: "0 3 * * *".into(),
        tz: "Europe/Paris".into(),
        overlap: "queue".into(),
        missed: "skip".into(),
        ..RawSchedule::default()
    };
    let spec = ScheduleSpec::try_from(raw).unwrap();
    // 3 January 1970, at four in the morning in Paris.
    let now = 2 * 24 * 3_600_000 + 3 * 3_600_000;
    let schedule = Schedule::new(ResourceId(3), spec, now - 2 * 3_600_000);
    let failed = ScheduleOutcome::Failed { why: "text".into() };
    ScheduleView {
        name: "books".parse().unwrap(),
        schedule: schedule.decided(failed, now).waiting(),
    }
}

fn items(found: &mut Answers) {
    let item = |text: &str, item: &str| PositionedItem {
        item: ItemRecord {
            key: ItemKey(text.into()),
            url: text.into(),
            rule: text.into(),
            schema: text.into(),
            run: Run(2),
            fetched_at: 1_700_000_000_000,
            item: serde_json::value::RawValue::from_string(item.into()).unwrap(),
            change: None,
        },
        next: ItemPosition {
            resource: ResourceId(3),
            run: Run(2),
            before: ItemsBefore::ByShard([(Shard(0), 7), (Shard(1), 5)].into()),
        },
    };
    let full = item("text", r#"{"price": 1.50, "tags": ["a", null]}"#);
    add(found, "item", super::item(full));
    add(found, "item, empty", super::item(item("", "{}")));
    changes(found);
    add(found, "log line", line_message(log_line()));
    let empty = LogLine {
        at: 0,
        level: "info",
        url: String::new(),
        rule: String::new(),
        message: String::new(),
        run: Run(0),
        shard: Shard(0),
        number: 0,
        more: 0,
    };
    add(found, "log line, empty", line_message(empty));
}

fn changes(found: &mut Answers) {
    let change = |change, fields: &[&str], old: &str, item: &str| ItemChange {
        change,
        key: "978-1".into(),
        kind: "book".into(),
        run: Run(2),
        fields: fields.iter().map(ToString::to_string).collect(),
        old: old.into(),
        item: item.into(),
    };
    let page = ChangePage {
        run: Run(2),
        changes: vec![
            change(Change::Added, &[], "", r#"{"price": 2}"#),
            change(
                Change::Changed,
                &["price"],
                r#"{"price":1}"#,
                r#"{"price": 2}"#,
            ),
            change(Change::Removed, &[], r#"{"price": 1}"#, ""),
        ],
        next: Some(7),
        totals: change_totals(),
    };
    add(found, "changes", crate::changes::changes(page));
    add_bare::<proto::ListChangesResponse>(found, "changes, bare");
    let bare = proto::ListChangesResponse {
        changes: vec![proto::ItemChange::default()],
        ..Default::default()
    };
    found.insert("change, bare", json(&bare.changes));
}

fn change_totals() -> ChangeTotals {
    ChangeTotals {
        added: 1,
        changed: 2,
        unchanged: 3,
        removed: 4,
        repeated: 5,
        lacking_key: 6,
        is_complete: true,
        is_torn: false,
    }
}

fn nodes(found: &mut Answers) {
    let status = WorkerStatus {
        incarnation: Incarnation(1),
        at: 7,
        running: 8,
        waiting: 9,
        pages: 10,
        items: 11,
        bytes: 12,
        in_flight: 13,
        since_start: Some(ProcessTotals {
            pages: 14,
            items: 15,
        }),
        // Only the leader reads them.
        events: Vec::new(),
    };
    let earlier = WorkerStatus {
        since_start: None,
        ..status.clone()
    };
    add(found, "totals of an earlier worker", node_totals(earlier));
    let full = NodeView {
        node: node(),
        leader: true,
        load: 2,
        weight: 6,
        totals: Some(status),
    };
    let empty = NodeView {
        node: Node {
            address: String::new(),
            http: String::new(),
            pprof: String::new(),
            labels: BTreeMap::new(),
            capacity: 0,
            version: String::new(),
            draining: false,
            started_at: 0,
            ..node()
        },
        leader: false,
        load: 0,
        weight: 0,
        totals: None,
    };
    let broken = BrokenRecord {
        key: "/crawler/nodes/worker/x".into(),
        why: "the record does not decode: eof".into(),
    };
    let all = NodesView {
        nodes: vec![full.clone()],
        broken: vec![broken.clone()],
    };
    let nodes = proto::ListNodesResponse {
        nodes: super::nodes(all),
        next_page_token: "1/worker-1".to_owned(),
    };
    add(found, "nodes", nodes);
    add(found, "node", super::node(full));
    add(found, "node, empty", super::node(empty));
    add(found, "node, broken", broken_node(broken));
    add_bare::<proto::Node>(found, "node, bare");
    let event = NodeEvent {
        change: NodeChange::Joined,
        node: node(),
    };
    add(found, "node event", node_event(event));
    add_bare::<proto::NodeEvent>(found, "node event, bare");
    let drained = DrainProgress { load: 2, others: 3 };
    add(found, "drained", super::drained(drained));
    add_bare::<proto::DrainNodeResponse>(found, "drained, bare");
}

fn plugins(found: &mut Answers) {
    let full = PluginRecord {
        name: "books".parse().unwrap(),
        version: "1.2.0".parse().unwrap(),
        digest: Digest::of(b"books"),
        size: 5,
        interface: "0.1.0".into(),
        sources: Some(Digest::of(b"sources")),
        description: Description {
            name: "shop".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
            rules: vec!["page".into()],
            schemas: vec![Schema {
                name: "book".into(),
                json_schema: "{}".into(),
            }],
            plans: Vec::new(),
            hosts: Vec::new(),
            limits: BTreeMap::new(),
            params: Some(params()),
        },
        pushed_at: 1_700_000_000_000,
    };
    let empty = PluginRecord {
        size: 0,
        interface: String::new(),
        sources: None,
        description: Description {
            rules: Vec::new(),
            schemas: Vec::new(),
            params: None,
            ..full.description.clone()
        },
        pushed_at: 0,
        ..full.clone()
    };
    let page = super::plugins(vec![full.clone()], "books@1.2.0".to_owned());
    add(found, "plugins", page);
    add(found, "plugin", plugin(full));
    add(found, "plugin, empty", plugin(empty));
    add_bare::<proto::Plugin>(found, "plugin, bare");
}

fn params() -> Vec<Param> {
    let param = |name: &str, about: &str, default: Option<&str>| Param {
        name: name.into(),
        about: GuestText::of(about),
        default: default.map(str::to_owned),
        required: default.is_none(),
    };
    let optional = Param {
        required: false,
        ..param("login", "Account name", None)
    };
    vec![
        optional,
        param("pages", "", Some("10")),
        param("start", "Address of the \"first\" list", None),
    ]
}

fn frontiers(found: &mut Answers) {
    let stats = FrontierStats {
        run: Run(2),
        seeded: true,
        root_hosts: vec!["a.test:80".into()],
        n_hosts: 3,
        hosts_by_state: [(HostState::BackingOff, 4)].into(),
        n_undelivered: 5,
        n_dead_letters: 6,
        n_suspects: 7,
        n_unclean_stops: 8,
        counts: counts(),
    };
    add(found, "stats", frontier::stats(stats));
    let empty = frontier::stats(FrontierStats::default());
    add(found, "stats, empty", empty);
    add_bare::<proto::FrontierStats>(found, "stats, bare");
    let statistics = crate::statistics_message(statistics());
    let kept = crate::statistics(statistics.clone());
    assert_eq!(kept, self::statistics());
    add(found, "statistics", statistics);
    add_bare::<proto::RunStatistics>(found, "statistics, bare");
    let hosts = HostsPage {
        entries: vec![host()],
        next: Some(HostCursor {
            shard: Shard(1),
            place: Some(vec![1]),
        }),
    };
    add(found, "hosts", frontier::hosts(hosts));
    add_bare::<proto::ListHostsResponse>(found, "hosts, bare");
    let bare = proto::ListHostsResponse {
        hosts: vec![proto::HostEntry::default()],
        ..Default::default()
    };
    found.insert("host, bare", json(&bare.hosts));
    let urls = UrlsPage {
        entries: urls(),
        next: Some(UrlCursor {
            state: UrlFilter::Due,
            shard: Shard(1),
            place: Some(vec![1]),
        }),
    };
    add(found, "urls", frontier::urls(urls));
    add_bare::<proto::ListUrlsResponse>(found, "urls, bare");
    let bare = proto::ListUrlsResponse {
        urls: vec![proto::UrlEntry::default()],
        ..Default::default()
    };
    found.insert("url, bare", json(&bare.urls));
    let explanation = |entry| Explanation {
        status: UrlStatus::Dead,
        text: "it took too long".into(),
        entry,
    };
    let full = frontier::explanation(explanation(self::urls().pop()));
    add(found, "explanation", full);
    let empty = frontier::explanation(explanation(None));
    add(found, "explanation, empty", empty);
    add_bare::<proto::UrlExplanation>(found, "explanation, bare");
    found.insert(
        "redriven",
        json(&proto::RedriveResponse { dead_letters: 3 }),
    );
    add(found, "holds", crate::quarantine::holds(vec![hold()]));
    found.insert("hold, bare", json(&[proto::Hold::default()]));
    let page = HeldPage {
        items: Vec::new(),
        next: Some(7),
    };
    add(found, "held items", crate::quarantine::items(page));
    let decided = Decided {
        n_holds: 1,
        n_items: 60,
    };
    add(found, "decided", crate::quarantine::answered(decided));
}

fn hold() -> (HoldId, Hold) {
    let id = HoldId {
        shard: Shard(1),
        number: 2,
    };
    let hold = Hold {
        number: 2,
        run: Run(3),
        group: GroupName {
            kind: "book".into(),
            host: "b.test:443".into(),
        },
        departure: Departure {
            field: "price".into(),
            departs: Departs::Number,
            before: "size mostly 10 to 58".into(),
            now: "size mostly 0.9 to 4.9".into(),
        },
        plugin: Digest::of(b"plugin"),
        since: 4,
        n_items: 5,
        n_bytes: 6,
        end: 7,
        is_decided: false,
    };
    (id, hold)
}

fn resource() -> ResourceView {
    let mut limits = LimitOverrides::default();
    limits.set("memory", "8MiB").unwrap();
    let spec = ResourceSpec {
        name: "books".parse().unwrap(),
        plugin: "shop@1.2.0".parse().unwrap(),
        params: texts(("start", "http://a.test/".to_owned())),
        limits,
        crawl: examples(),
        placement: PlacementSpec {
            shards: 2,
            weight: 3,
            selector: texts(("gpu", "true".to_owned())),
            near: Some("shop".parse().unwrap()),
            apart: Some("forum".parse().unwrap()),
        },
        labels: texts(("team", "shop".to_owned())),
    };
    let owner = Owner {
        node: "worker-1".parse().unwrap(),
        incarnation: Incarnation(1),
    };
    let waiting = ShardRecord {
        owner: Some(owner),
        epoch: Epoch(4),
        state: ShardState::Assigned,
        waits: Some(Waits {
            condition: "StorageUnavailable".into(),
            why: "the disk is full".into(),
        }),
        counts: counts(),
        ..ShardRecord::new(spec.name.clone())
    };
    let failed = ShardRecord {
        state: ShardState::Failed {
            reason: "the plugin is gone".into(),
        },
        ..waiting.clone()
    };
    let shard = |n, record, is_live| ShardView {
        shard: Shard(n),
        record,
        is_live,
        in_flight: 13,
        hosts_by_state: [(HostState::Waiting, 4)].into(),
        limits_used: [(
            LimitName::Memory,
            LimitUse {
                used: 9,
                limit: 64 << 20,
            },
        )]
        .into(),
        last_errors: vec![log_line()],
    };
    ResourceView {
        resource: Resource {
            id: ResourceId(3),
            assigned_node: "worker-1|127.0.0.1:9090".into(),
            creation_time: 1_700_000_000_000_000_000,
            generation: Generation(5),
            run: Run(2),
            resharded_at: Run(1),
            run_started_at: Some(1),
            pinned: Some(PinnedPlugin {
                version: "1.2.0".parse().unwrap(),
                digest: Digest::of(b"books"),
                interface: "0.1.0".into(),
            }),
            paused: true,
            requests: Vec::new(),
            spec,
        },
        phase: Phase::Pending("it waits".into()),
        shards: vec![shard(0, waiting, true), shard(1, failed, false)],
    }
}

pub(crate) fn empty_resource() -> ResourceView {
    let full = resource();
    let spec = ResourceSpec {
        name: "books".parse().unwrap(),
        plugin: "books".parse().unwrap(),
        params: BTreeMap::new(),
        limits: LimitOverrides::default(),
        crawl: CrawlSettings::default(),
        placement: PlacementSpec::default(),
        labels: BTreeMap::new(),
    };
    let shard = ShardView {
        shard: Shard(0),
        record: ShardRecord::new(spec.name.clone()),
        is_live: false,
        in_flight: 0,
        hosts_by_state: BTreeMap::new(),
        limits_used: BTreeMap::new(),
        last_errors: Vec::new(),
    };
    ResourceView {
        resource: Resource {
            id: ResourceId(0),
            assigned_node: String::new(),
            creation_time: 0,
            generation: Generation(0),
            run: Run(0),
            pinned: None,
            paused: false,
            spec,
            ..full.resource
        },
        phase: Phase::Running,
        shards: vec![shard],
    }
}

fn counts() -> Counts {
    Counts {
        parsed: 1,
        other_done: 2,
        dead: 3,
        retries: 4,
        items: 5,
        bytes: 6,
        due: 7,
        hosts: 8,
        refused_links: texts(("out-of-scope", 9)),
        dead_by_reason: texts(("timeout", 10)),
        outcomes: texts(("gone", 2)),
        began_at: 14,
        ended_at: 15,
        kept_bytes: 16,
        held: 17,
    }
}

fn statistics() -> RunStatistics {
    let mut hosts = TopHosts::default();
    hosts.add("b.test", 2);
    RunStatistics {
        run: Run(2),
        counts: counts(),
        statistics: Statistics {
            statuses: [(200, 1), (0, 2)].into(),
            refused_hosts: texts(("out-of-scope", hosts)),
            dead_examples: texts(("timeout", "http://a.test/".to_owned())),
            lost_roots: vec![LostRoot {
                // Nobody outside needs it.
                request: 0,
                url: "http://a.test/".into(),
                end: "redirected".into(),
                status: 301,
                target: "http://b.test/".into(),
                refusal: "out-of-scope".into(),
            }],
            kinds: texts((
                "book",
                Kind {
                    items: 3,
                    fields: texts(("price", 0)),
                },
            )),
            plans: texts((
                "page",
                PlanMatches {
                    pages: 4,
                    selectors: texts(("title", 0)),
                },
            )),
        },
        end: "nothing is left to fetch".into(),
    }
}

fn past_events(found: &mut Answers) {
    let versions = EventVersions::of_history(ResourceId(1), "store");
    let event = Event {
        shard: Some(Shard(1)),
        worker: Some("worker-2".parse().unwrap()),
        from: Some("worker-1".parse().unwrap()),
        generation: Some(Generation(6)),
        counts: Some(EventCounts {
            pages: 3,
            items: 4,
            dead: 5,
        }),
        times: 8,
        ..Event::of(EventKind::Moved, Run(2))
    };
    let told = ToldEvent {
        at: 1_700_000_000_000,
        event: event.by("alice").because("text"),
        version: Some(7),
        node: Some("worker-3".parse().unwrap()),
    };
    let mut full = past_event(told, versions);
    // It is opaque.
    assert_eq!(versions.parse(&full.version).unwrap(), Some(7));
    full.version = "VERSION".to_owned();
    add(found, "past event", full);
    let told = ToldEvent {
        at: 0,
        event: Event::of(EventKind::Added, Run(0)),
        version: None,
        node: None,
    };
    add(found, "past event, empty", past_event(told, versions));
    add_bare::<proto::PastEvent>(found, "past event, bare");
}

fn log_line() -> LogLine {
    LogLine {
        at: 1_700_000_000_000,
        level: "warn",
        url: "http://a.test/".into(),
        rule: "page".into(),
        message: "it took too long".into(),
        run: Run(2),
        shard: Shard(1),
        number: 7,
        more: 399,
    }
}

fn node() -> Node {
    Node {
        id: "worker-1".parse().unwrap(),
        role: Role::Worker,
        address: "127.0.0.1:9090".into(),
        http: "127.0.0.1:8080".into(),
        pprof: "127.0.0.1:9981".into(),
        incarnation: Incarnation(1),
        labels: texts(("gpu", "true".to_owned())),
        capacity: 3,
        version: "0.1.0".into(),
        interface: "0.1.0".into(),
        draining: true,
        started_at: 1_700_000_000_000,
        call_token: Default::default(),
        shares_turns: true,
        tls: false,
    }
}

fn host() -> HostEntry {
    HostEntry {
        name: "a.test:80".into(),
        state: HostState::GivenUp,
        hash: 1,
        n_due: 3,
        n_in_flight: Some(2),
        not_before: 4,
        delay_ms: 5,
        delay_by: DelaySource::OtherCrawl,
        has_answered: true,
        n_failures: 6,
        reason: "resolve".into(),
    }
}

fn urls() -> Vec<UrlEntry> {
    let states = [
        UrlState::Due {
            at: 5,
            attempt: 2,
            failure: "status-503".into(),
            host: None,
        },
        UrlState::Done(Done::Gone),
        UrlState::Sent { to: Shard(3) },
        UrlState::Dead {
            reason: "timeout".into(),
            detail: "it took longer than 30s".into(),
        },
    ];
    let entry = |state| UrlEntry {
        request: Request {
            method: "POST".into(),
            body: Some("a=1".into()),
            referrer: Some("http://a.test/list".into()),
            ..Request::get("http://a.test/".parse().unwrap(), "page")
        },
        depth: 3,
        run: Run(2),
        state,
        since: 1_700_000_000_000,
    };
    states.map(entry).into()
}
