//! Frames of the view as text, in a wide and in a narrow terminal.

use std::collections::BTreeSet;
use std::time::Instant;

use crawler_proto as proto;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;

use super::*;
use crate::cli::top::list::{Page, Row, RowState};
use crate::cli::top::looks::{Answer, look};
use crate::cli::top::rates::Rates;
use crate::cli::top::state::{Event, Look, Step};
use crawler_model::guest_text::steers;

/// Lines of a frame, without the blanks at their ends.
fn frame(model: &Model, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(model, frame)).unwrap();
    let cells = terminal.backend().buffer().content();
    let lines = cells.chunks(width.into()).map(|cells| {
        let line: String = cells.iter().map(Cell::symbol).collect();
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// Checks the lines of a frame; those that are not given, above the last two, are empty.
#[track_caller]
fn check(model: &Model, width: u16, height: u16, above: &str, below: [&str; 2]) {
    let mut expected: Vec<&str> = above.trim_matches('\n').lines().collect();
    expected.resize(usize::from(height) - below.len(), "");
    expected.extend(below);
    let shown = frame(model, width, height);
    assert_eq!(shown, expected, "\n{}", shown.join("\n"));
}

fn page<const N: usize>(rows: &[[&str; N]], next: &str) -> Page {
    let row = |cells: &[&str; N]| Row {
        key: cells[0].to_owned(),
        id: None,
        cells: cells.map(str::to_owned).to_vec(),
        detail: format!("details of {}", cells[0]),
        state: RowState::Usual,
    };
    Page {
        rows: rows.iter().map(row).collect(),
        next: next.to_owned(),
        note: "nothing is here".to_owned(),
    }
}

fn nodes() -> Page {
    let nodes = [
        ["master-1", "master", "leader", "", ""],
        ["worker-1", "worker", "", "2/10", "2 running"],
        [
            "worker-2",
            "worker",
            "draining",
            "1/10",
            "0 running, 1 waiting",
        ],
    ];
    page(&nodes, "")
}

fn cluster() -> Look {
    let resources = [
        ["books", "Running", "1200", "10.0/s", "worker-1", "3", "900"],
        [
            "team/a-name-that-is-rather-long",
            "Paused",
            "7",
            "-",
            "",
            "0",
            "7",
        ],
        [
            "team/news",
            "Running",
            "88",
            "-",
            "worker-1 +1",
            "0",
            "12345",
        ],
    ];
    Look::Cluster {
        nodes: nodes(),
        resources: page(&resources, "team/news"),
    }
}

fn resource() -> Look {
    let at = "2023-11-14T22:13:20Z";
    let hosts = [
        ["a.test", "waiting", "1000+", "1s 500ms", "robots", at],
        [
            "a-very-long-host-name.example",
            "backing-off",
            "4",
            "1s",
            "connection x3",
            at,
        ],
        ["b.test", "idle", "0", "", "", ""],
    ];
    let errors = [[
        "2023-11-14T22:13:20Z warn http://a.test/1 status 503; it is tried again, in a line that is far too long",
    ]];
    Look::Resource {
        id: None,
        heading: "books: run 3, Running".to_owned(),
        numbers: "40 pages, 30 items, 10.0/s, worker-1".to_owned(),
        state: RowState::Usual,
        hosts: page(&hosts, ""),
        errors: page(&errors, ""),
    }
}

fn model(look: Look) -> Model {
    let mut model = Model::new(Duration::from_secs(2), 24);
    model.handle(Event::Looked(look));
    model
}

fn press(model: &mut Model, codes: &[KeyCode]) {
    for code in codes {
        model.handle(Event::Key(KeyEvent::new(*code, KeyModifiers::NONE)));
    }
}

const KEYS_80: &str =
    "q leave  ? help  tab pane  enter open  / filter  p pause  r restart  d drain";
const KEYS_40: &str = "q leave  ? help  tab pane  enter open  …";

#[test]
fn a_cluster_is_its_nodes_and_its_resources() {
    let mut model = model(cluster());
    press(&mut model, &[KeyCode::Down]);
    check(
        &model,
        80,
        24,
        "
crawler top, a look every 2s
  NODES                         ROLE            LOAD      CRAWLS
  master-1                      master leader
  worker-1                      worker          2/10      2 running
  worker-2                      worker draining 1/10      0 running, 1 waiting
  RESOURCES ↓          PHASE    PAGES     RATE      NODE         DEAD   ITEMS
  books                Running  1200      10.0/s    worker-1     3      900
> team/a-name-that-is… Paused   7         -                      0      7
  team/news            Running  88        -         worker-1 +1  0      12345
",
        ["details of team/a-name-that-is-rather-long", KEYS_80],
    );
    check(
        &model,
        40,
        12,
        "
crawler top, a look every 2s
  RESOURCES ↓         PHASE    PAGES
  books               Running  1200
> team/a-name-that-i… Paused   7
  team/news           Running  88
",
        ["details of team/a-name-that-is-rather-l…", KEYS_40],
    );
    // In a small terminal, the other pane is one key away.
    press(&mut model, &[KeyCode::Tab, KeyCode::Down]);
    check(
        &model,
        40,
        12,
        "
crawler top, a look every 2s
  NODES        ROLE            LOAD
  master-1     master leader
> worker-1     worker          2/10
  worker-2     worker draining 1/10
",
        ["details of worker-1", KEYS_40],
    );
}

#[test]
fn a_resource_is_its_hosts_and_its_last_errors() {
    let mut model = model(cluster());
    press(&mut model, &[KeyCode::Enter]);
    model.handle(Event::Looked(resource()));
    let mut expected = "
books: run 3, Running
40 pages, 30 items, 10.0/s, worker-1
  HOSTS         STATE       DUE   DELAY     WHY             NOT BEFORE
> a.test        waiting     1000+ 1s 500ms  robots          2023-11-14T22:13:20Z
  a-very-long-… backing-off 4     1s        connection x3   2023-11-14T22:13:20Z
  b.test        idle        0
"
    .to_owned();
    expected += &"\n".repeat(14);
    expected += "  LAST ERRORS
  2023-11-14T22:13:20Z warn http://a.test/1 status 503; it is tried again, in a…
";
    check(&model, 80, 24, &expected, ["details of a.test", KEYS_80]);
    check(
        &model,
        40,
        12,
        "
books: run 3, Running
40 pages, 30 items, 10.0/s, worker-1
  HOSTS                STATE       DUE
> a.test               waiting     1000+
  a-very-long-host-na… backing-off 4
  b.test               idle        0
",
        ["details of a.test", KEYS_40],
    );
}

#[test]
fn a_number_is_never_cut_without_a_mark() {
    let large = proto::Resource {
        spec: Some(proto::ResourceSpec {
            name: "books".to_owned(),
            plugin: "shop@1.0.0".to_owned(),
            ..proto::ResourceSpec::default()
        }),
        phase: "Running".to_owned(),
        run: 3,
        counts: Some(proto::Counts {
            parsed: 12_345_678_901,
            dead: 1_234_567,
            items: 123_456_789,
            ..proto::Counts::default()
        }),
        shards: vec![proto::ShardStatus {
            owner: "worker-12345 of the north".to_owned(),
            ..proto::ShardStatus::default()
        }],
        ..proto::Resource::default()
    };
    let answer = Answer::Cluster {
        nodes: Ok(proto::ListNodesResponse::default()),
        resources: Ok(proto::ListResourcesResponse {
            resources: vec![large],
            ..proto::ListResourcesResponse::default()
        }),
    };
    let model = model(look(answer, Instant::now(), &mut Rates::default()));
    check(
        &model,
        80,
        24,
        "
crawler top, a look every 2s
  NODES                         ROLE            LOAD      CRAWLS
  no nodes
  RESOURCES            PHASE    PAGES     RATE      NODE         DEAD   ITEMS
> books                Running  12.3G     -         worker-1234… 1.2M   123M
",
        ["books: run 3 of shop@1.0.0, Running", KEYS_80],
    );
}

#[test]
fn messages_stand_above_the_keys() {
    let below = |model: &Model| frame(model, 80, 24)[22].clone();
    let mut model = model(cluster());
    press(&mut model, &[KeyCode::Char('p')]);
    assert_eq!(below(&model), "pause books? y/n");
    press(&mut model, &[KeyCode::Char('n')]);
    assert_eq!(below(&model), "nothing was changed");
    model.handle(Event::Failed("cannot reach the master".to_owned()));
    // The word about the last key stays until the next one.
    assert_eq!(below(&model), "nothing was changed");
    press(&mut model, &[KeyCode::Down]);
    assert_eq!(
        below(&model),
        "cannot reach the master; the last look stays, and the next one is tried"
    );
    let filter = [KeyCode::Char('/'), KeyCode::Char('t')];
    press(&mut model, &filter);
    assert_eq!(below(&model), "filter: t_   enter: use it, esc: leave it");
    press(&mut model, &[KeyCode::Enter]);
    let head = frame(&model, 80, 24)[5].clone();
    assert!(head.starts_with("  RESOURCES t "), "{head}");
}

#[test]
fn the_title_tells_that_looks_are_missing() {
    let title = |model: &Model| frame(model, 80, 24)[0].clone();
    let mut model = model(cluster());
    model.age = Duration::from_secs(4);
    assert_eq!(title(&model), "crawler top, a look every 2s");
    model.age = Duration::from_millis(65_900);
    assert_eq!(
        title(&model),
        "no answer for 1m 5s; crawler top, a look every 2s"
    );
    press(&mut model, &[KeyCode::Enter]);
    model.handle(Event::Looked(resource()));
    assert_eq!(title(&model), "no answer for 1m 5s; books: run 3, Running");
}

#[test]
fn an_empty_list_says_why() {
    let line = |model: &Model, n: usize| frame(model, 80, 24)[n].clone();
    let mut model = Model::new(Duration::from_secs(2), 24);
    assert_eq!(line(&model, 2), "  waiting for the first answer");
    model.handle(Event::Looked(Look::Cluster {
        nodes: nodes(),
        resources: page::<1>(&[], ""),
    }));
    assert_eq!(line(&model, 6), "  nothing is here");
}

#[test]
fn the_chosen_row_is_always_shown() {
    let names: Vec<String> = (0..20).map(|n| format!("r{n:02}")).collect();
    let rows: Vec<[&str; 1]> = names.iter().map(|name| [name.as_str()]).collect();
    let mut model = model(Look::Cluster {
        nodes: nodes(),
        resources: page(&rows, ""),
    });
    for name in &names {
        let shown = frame(&model, 40, 12).join("\n");
        assert!(shown.contains(&format!("> {name}")), "{shown}");
        press(&mut model, &[KeyCode::Down]);
    }
}

/// Number of characters at the beginning of a line of the help in which it names its keys.
const HELP_KEYS: usize = 18;

/// Every key that a usual keyboard has, and its word in the help.
fn keyboard() -> Vec<(KeyCode, String)> {
    let named = [
        (KeyCode::Up, "up"),
        (KeyCode::Down, "down"),
        (KeyCode::Left, "left"),
        (KeyCode::Right, "right"),
        (KeyCode::PageUp, "page"),
        (KeyCode::PageDown, "page"),
        (KeyCode::Home, "home"),
        (KeyCode::End, "end"),
        (KeyCode::Tab, "tab"),
        (KeyCode::BackTab, "tab"),
        (KeyCode::Enter, "enter"),
        (KeyCode::Esc, "esc"),
        (KeyCode::Backspace, "backspace"),
        (KeyCode::Delete, "delete"),
        (KeyCode::Insert, "insert"),
        (KeyCode::F(1), "f1"),
    ];
    let named = named.map(|(code, word)| (code, word.to_owned()));
    let typed = (' '..='~').map(|c| (KeyCode::Char(c), c.to_string()));
    named.into_iter().chain(typed).collect()
}

/// True if a key changes the view, or asks the loop for something.
fn acts(mut model: Model, key: KeyEvent) -> bool {
    let before = format!("{model:?}");
    let step = model.handle(Event::Key(key));
    step != Step::Show || format!("{model:?}") != before
}

#[test]
fn the_help_names_exactly_the_keys_that_act() {
    // The chosen row has others above and below.
    let whole = || {
        let mut model = model(cluster());
        press(&mut model, &[KeyCode::Down]);
        model
    };
    let opened = || {
        let mut model = model(cluster());
        press(&mut model, &[KeyCode::Enter]);
        model.handle(Event::Looked(resource()));
        model
    };
    let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
    let keys = keyboard().into_iter();
    let handled = keys.filter(|(code, _)| acts(whole(), key(*code)) || acts(opened(), key(*code)));
    let mut handled: BTreeSet<String> = handled.map(|(_, word)| word).collect();
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(acts(whole(), ctrl_c));
    handled.insert("ctrl-c".to_owned());
    let keys = HELP.iter().take_while(|line| !line.is_empty());
    let keys = keys.map(|line| line.chars().take(HELP_KEYS).collect::<String>());
    let keys = keys.collect::<Vec<_>>().join(" ");
    let named = keys.split_whitespace();
    let named = named.map(|word| word.trim_end_matches([',', ';']).to_owned());
    let named: BTreeSet<String> = named.collect();
    assert_eq!(handled, named);
}

#[test]
fn the_help_is_shown_whole() {
    let mut model = model(cluster());
    press(&mut model, &[KeyCode::Char('?')]);
    let shown = frame(&model, 80, 24);
    assert_eq!(shown[1], HELP[0]);
    assert_eq!(shown[HELP.len()], HELP[HELP.len() - 1]);
    for line in HELP {
        assert!(line.chars().count() <= 80, "{line}");
    }
    frame(&model, 40, 12);
}

#[test]
fn a_terminal_of_any_size_is_drawn() {
    let mut opened = model(cluster());
    press(&mut opened, &[KeyCode::Enter]);
    opened.handle(Event::Looked(resource()));
    let mut helped = model(cluster());
    press(&mut helped, &[KeyCode::Char('?')]);
    for model in [model(cluster()), opened, helped] {
        for (width, height) in (1..30).flat_map(|w| (1..20).map(move |h| (w * 3, h))) {
            assert_eq!(frame(&model, width, height).len(), usize::from(height));
        }
    }
}

#[test]
fn hostile_text_steers_no_terminal() {
    let evil = "x\u{1b}[2J\u{7}\u{9b}1m\r\n\u{202e}y";
    let nodes = proto::ListNodesResponse {
        nodes: vec![proto::Node {
            id: evil.to_owned(),
            role: "worker".to_owned(),
            ..proto::Node::default()
        }],
        ..proto::ListNodesResponse::default()
    };
    let resources = proto::ListResourcesResponse {
        resources: vec![proto::Resource {
            reason: evil.to_owned(),
            ..proto::Resource::default()
        }],
        ..proto::ListResourcesResponse::default()
    };
    let answer = Answer::Cluster {
        nodes: Ok(nodes),
        resources: Ok(resources),
    };
    let mut model = model(look(answer, Instant::now(), &mut Rates::default()));
    // The filter is what was typed, whatever that is.
    press(&mut model, &[KeyCode::Tab]);
    press(&mut model, &[KeyCode::Char('/'), KeyCode::Char('\u{9b}')]);
    let filter = frame(&model, 120, 24)[22].clone();
    assert!(filter.starts_with("filter: \\u{9b}_"), "{filter}");
    press(&mut model, &[KeyCode::Esc, KeyCode::Tab]);
    let shown = frame(&model, 120, 24);
    assert!(
        shown[2].starts_with("  x\\u{1b}[2J\\u{7}\\u{9b}1m"),
        "{shown:?}"
    );
    assert!(shown[22].contains("x\\u{1b}[2J"), "{shown:?}");
    assert!(!shown.concat().contains(steers), "{shown:?}");
}
