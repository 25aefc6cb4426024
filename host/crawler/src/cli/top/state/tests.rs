//! Tests of keys and answers: what they make of the state, and what they ask the loop for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;

/// Id of all resources, unless a test needs another one.
const ID: Option<ResourceId> = Some(ResourceId(5));

fn row(key: &str, state: RowState) -> Row {
    Row {
        key: key.to_owned(),
        id: ID,
        cells: vec![key.to_owned()],
        detail: String::new(),
        state,
    }
}

fn page(rows: &[(&str, RowState)]) -> Page {
    Page {
        rows: rows.iter().map(|(key, state)| row(key, *state)).collect(),
        ..Page::default()
    }
}

/// A cluster with a master, two workers and two resources.
fn cluster() -> Look {
    Look::Cluster {
        nodes: page(&[
            ("master-1", RowState::Usual),
            ("worker-1", RowState::TakesCrawls),
            ("worker-2", RowState::Drains),
        ]),
        resources: page(&[("books", RowState::Usual), ("team/news", RowState::Paused)]),
    }
}

fn resource(state: RowState) -> Look {
    Look::Resource {
        id: ID,
        heading: "books: Running".to_owned(),
        numbers: "1 page".to_owned(),
        state,
        hosts: page(&[("a.test", RowState::Usual)]),
        errors: Page::default(),
    }
}

fn model() -> Model {
    let mut model = Model::new(Duration::from_secs(2), 24);
    assert_eq!(model.handle(Event::Looked(cluster())), Step::Show);
    model
}

fn press(model: &mut Model, code: KeyCode) -> Step {
    model.handle(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

/// Presses the keys of these characters, and returns the last step.
fn typed(model: &mut Model, keys: &str) -> Step {
    let mut step = Step::Show;
    for c in keys.chars() {
        step = match c {
            '\n' => press(model, KeyCode::Enter),
            '\t' => press(model, KeyCode::Tab),
            '\u{8}' => press(model, KeyCode::Backspace),
            '\u{1b}' => press(model, KeyCode::Esc),
            c => press(model, KeyCode::Char(c)),
        };
    }
    step
}

fn target(name: &str) -> Target {
    Target {
        name: name.parse().unwrap(),
        id: ID,
    }
}

/// A cluster with a resource `books` that is not the one of before.
fn books_again() -> Look {
    let mut resources = page(&[("books", RowState::Usual)]);
    resources.rows[0].id = Some(ResourceId(6));
    Look::Cluster {
        nodes: Page::default(),
        resources,
    }
}

#[test]
fn q_and_ctrl_c_leave_wherever_the_view_is() {
    assert_eq!(typed(&mut model(), "q"), Step::Leave);
    let ctrl_c = || KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for keys in ["j", "?", "/a", "p", "\n"] {
        let mut model = model();
        typed(&mut model, keys);
        assert_eq!(model.handle(Event::Key(ctrl_c())), Step::Leave, "{keys:?}");
    }
    // In a filter, q is a letter.
    assert_eq!(typed(&mut model(), "/q"), Step::Show);
}

#[test]
fn a_change_is_made_only_after_a_yes() {
    for (keys, question, change) in [
        ("p", "pause books? y/n", Change::Pause(target("books"))),
        (
            "jp",
            "resume team/news? y/n",
            Change::Resume(target("team/news")),
        ),
        (
            "r",
            "begin a new run of books? y/n",
            Change::Restart(target("books")),
        ),
        (
            "\tjd",
            "drain worker-1? y/n",
            Change::Drain {
                id: "worker-1".parse().unwrap(),
                undo: false,
            },
        ),
        (
            "\tjjd",
            "let worker-2 take crawls again? y/n",
            Change::Drain {
                id: "worker-2".parse().unwrap(),
                undo: true,
            },
        ),
    ] {
        let mut asked = model();
        assert_eq!(typed(&mut asked, keys), Step::Show, "{keys:?}");
        assert_eq!(asked.mode, Mode::Question(change.clone()));
        assert_eq!(change.question(), question);
        assert_eq!(typed(&mut asked, "y"), Step::Change(change));
        for other in ["n", "\n", "\u{1b}", "Y", "q"] {
            let mut asked = model();
            typed(&mut asked, keys);
            assert_eq!(typed(&mut asked, other), Step::Show, "{keys:?} {other:?}");
            assert_eq!(asked.said, "nothing was changed");
            assert_eq!(asked.mode, Mode::Usual);
        }
    }
}

#[test]
fn the_question_names_what_was_chosen_when_the_key_was_pressed() {
    let mut model = model();
    typed(&mut model, "p");
    let resources = page(&[("aaa", RowState::Usual)]);
    let nodes = Page::default();
    model.handle(Event::Looked(Look::Cluster { nodes, resources }));
    let change = Change::Pause(target("books"));
    assert_eq!(typed(&mut model, "y"), Step::Change(change));
}

#[test]
fn p_names_the_commands_for_a_resource_that_is_over() {
    let over = "books is over; use `crawler resource pause` or `crawler resource resume`";
    let mut model = model();
    model.handle(Event::Looked(Look::Cluster {
        nodes: Page::default(),
        resources: page(&[("books", RowState::Over)]),
    }));
    assert_eq!(typed(&mut model, "p"), Step::Show);
    assert_eq!((&model.mode, model.said.as_str()), (&Mode::Usual, over));
    typed(&mut model, "\n");
    model.handle(Event::Looked(resource(RowState::Over)));
    typed(&mut model, "p");
    assert_eq!((&model.mode, model.said.as_str()), (&Mode::Usual, over));
    // A new run of it is begun as ever.
    typed(&mut model, "r");
    assert_eq!(model.mode, Mode::Question(Change::Restart(target("books"))));
}

#[test]
fn a_yes_is_not_for_another_resource_of_the_same_name() {
    for keys in ["p", "r"] {
        let mut model = model();
        typed(&mut model, keys);
        model.handle(Event::Looked(books_again()));
        assert_eq!(
            model.said,
            "nothing was changed: resource books was deleted, and another one has its name"
        );
        assert_eq!(typed(&mut model, "y"), Step::Show);
    }
    // A question about something else stays.
    let mut model = model();
    typed(&mut model, "jp");
    model.handle(Event::Looked(books_again()));
    let change = Change::Resume(target("team/news"));
    assert_eq!(typed(&mut model, "y"), Step::Change(change));
}

#[test]
fn an_opened_resource_is_gone_if_another_has_its_name() {
    let mut model = model();
    typed(&mut model, "\nr");
    let mut another = resource(RowState::Usual);
    if let Look::Resource { id, .. } = &mut another {
        *id = Some(ResourceId(6));
    }
    model.handle(Event::Looked(another));
    assert!(matches!(model.ask(), Ask::Cluster { .. }));
    assert_eq!(
        model.said,
        "resource books was deleted, and another one has its name"
    );
    assert_eq!(typed(&mut model, "y"), Step::Show);
}

#[test]
fn one_change_is_under_way_at_a_time() {
    let mut model = model();
    typed(&mut model, "py");
    typed(&mut model, "r");
    assert_eq!(model.mode, Mode::Usual);
    assert!(model.said.contains("under way"), "{}", model.said);
    // Its end is followed by a look.
    let done = Event::Changed("resource books is paused".to_owned());
    assert_eq!(model.handle(done), Step::Look);
    assert_eq!(model.said, "resource books is paused");
    typed(&mut model, "r");
    assert_eq!(model.mode, Mode::Question(Change::Restart(target("books"))));
}

#[test]
fn keys_say_what_they_are_for() {
    let said = |keys: &str| {
        let mut model = model();
        assert_eq!(typed(&mut model, keys), Step::Show);
        assert_eq!(model.mode, Mode::Usual, "{keys:?}");
        model.said
    };
    let elsewhere = "this key is for a worker, which is not in this part of the screen";
    assert_eq!(said("d"), elsewhere);
    assert_eq!(said("\td"), "this key is for a worker, and this is none");
    let elsewhere = "this key is for a resource, which is not in this part of the screen";
    assert_eq!(said("\tp"), elsewhere);
    assert_eq!(said("\tr"), elsewhere);
    let mut empty = Model::new(Duration::from_secs(2), 24);
    typed(&mut empty, "p");
    assert_eq!(empty.said, "this key is for a resource, and none is chosen");
}

#[test]
fn one_resource_is_opened_and_closed() {
    let mut model = model();
    typed(&mut model, "\n");
    let asked = |model: &Model| match model.ask() {
        Ask::Resource { name, .. } => name.to_string(),
        Ask::Cluster { .. } => String::new(),
    };
    assert_eq!(asked(&model), "books");
    model.handle(Event::Looked(resource(RowState::Paused)));
    assert_eq!(model.focus, Pane::Hosts);
    // Its keys are for it, whatever is chosen below.
    typed(&mut model, "\tp");
    assert_eq!(model.mode, Mode::Question(Change::Resume(target("books"))));
    typed(&mut model, "n");
    typed(&mut model, "\u{1b}");
    assert_eq!(asked(&model), "");
    assert_eq!(model.focus, Pane::Resources);
    // What was chosen is chosen still.
    typed(&mut model, "j\n");
    assert_eq!(asked(&model), "team/news");
    // What was asked or typed about it goes with it.
    typed(&mut model, "p");
    model.handle(Event::Looked(Look::Gone));
    assert_eq!(asked(&model), "");
    assert_eq!(model.mode, Mode::Usual);
    assert_eq!(model.said, "resource team/news is not there any more");
}

#[test]
fn resources_are_filtered_by_a_beginning_and_others_by_words() {
    let filter = |keys: &str| {
        let mut model = model();
        typed(&mut model, keys);
        let focus = model.focus;
        (model.list(focus).ask().filter.clone(), model.said)
    };
    let nothing_said = |filter: &str| (filter.to_owned(), String::new());
    assert_eq!(filter("/team/\n"), nothing_said("team/"));
    assert_eq!(filter("/teaX\u{8}m\n"), nothing_said("team"));
    assert_eq!(filter("/team\u{1b}"), nothing_said(""));
    // A filter is changed from what it was.
    assert_eq!(filter("/tea\n/m\n"), nothing_said("team"));
    assert_eq!(filter("\t/W\n"), nothing_said("worker"));
    assert_eq!(filter("\n/back\n"), nothing_said("backing-off"));
    let words = "this list is filtered by ready, waiting, backing-off, given-up, idle";
    assert_eq!(filter("\n/x\n"), (String::new(), words.to_owned()));
    let why = "the last errors are shown without a filter";
    assert_eq!(filter("\n\t/"), (String::new(), why.to_owned()));
    let long = format!("/{}\n", "a".repeat(1_000));
    assert_eq!(filter(&long).0, "a".repeat(128));
}

#[test]
fn a_page_has_as_many_rows_as_the_terminal() {
    let mut model = model();
    let n_rows = |model: &Model| match model.ask() {
        Ask::Cluster { n_rows, .. } | Ask::Resource { n_rows, .. } => n_rows,
    };
    assert_eq!(n_rows(&model), 20);
    for (n_lines, expected) in [(0, 1), (1, 1), (12, 8), (u16::MAX, 200)] {
        assert_eq!(model.handle(Event::Resized(n_lines)), Step::Show);
        assert_eq!(n_rows(&model), expected, "{n_lines}");
    }
}

#[test]
fn a_master_that_is_away_leaves_the_last_look() {
    let mut model = model();
    model.handle(Event::Failed("cannot reach the master".to_owned()));
    assert_eq!(
        model.trouble,
        "cannot reach the master; the last look stays, and the next one is tried"
    );
    assert_eq!(model.resources.rows().len(), 2);
    // Keys go on working.
    typed(&mut model, "jp");
    assert!(matches!(model.mode, Mode::Question(_)));
    model.handle(Event::Looked(cluster()));
    assert_eq!(model.trouble, "");
}

#[test]
fn any_key_closes_the_help() {
    for key in ["?", "q", "\n"] {
        let mut model = model();
        typed(&mut model, "?");
        assert_eq!(model.mode, Mode::Help);
        assert_eq!(typed(&mut model, key), Step::Show);
        assert_eq!(model.mode, Mode::Usual);
    }
}
