//! Meanings of keys: where they lead, what they ask before they change something, and what is typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Change, Mode, Model, Opened, Pane, Step, Target};
use crate::cli::top::list::{Row, RowState};
use crawler_model::frontier::HostState;
use crawler_model::id::{NodeId, ResourceName};

/// Number of rows that the keys for a page move by.
const LEAP: usize = 10;
/// Largest number of characters of a filter: names have no more.
const FILTER_MAX: usize = 128;
/// Filters of the list of nodes.
const ROLES: [&str; 2] = ["master", "worker"];

impl Model {
    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Step {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Step::Leave;
        }
        if is_control || key.modifiers.contains(KeyModifiers::ALT) || key.is_release() {
            return Step::Show;
        }
        self.said.clear();
        match std::mem::replace(&mut self.mode, Mode::Usual) {
            Mode::Usual => self.usual_key(key.code),
            Mode::Help => Step::Show,
            Mode::Filter(text) => self.filter_key(text, key.code),
            Mode::Question(change) => self.answer(change, key.code),
        }
    }

    fn usual_key(&mut self, code: KeyCode) -> Step {
        match code {
            KeyCode::Char('q') => return Step::Leave,
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.begin_filter(),
            KeyCode::Char('p') => self.ask_for(Self::pause),
            KeyCode::Char('r') => self.ask_for(Self::restart),
            KeyCode::Char('d') => self.ask_for(Self::drain),
            KeyCode::Up | KeyCode::Char('k') => self.list_mut().up(1),
            KeyCode::Down | KeyCode::Char('j') => self.list_mut().down(1),
            KeyCode::PageUp => self.list_mut().up(LEAP),
            KeyCode::PageDown => self.list_mut().down(LEAP),
            KeyCode::Home | KeyCode::Char('g') => self.list_mut().home(),
            KeyCode::Tab | KeyCode::BackTab => self.focus = self.focus.other(),
            KeyCode::Enter => self.open(),
            KeyCode::Esc | KeyCode::Backspace => self.close(),
            _ => {}
        }
        Step::Show
    }

    fn open(&mut self) {
        if self.focus != Pane::Resources {
            return;
        }
        let Some(row) = self.resources.chosen() else {
            return;
        };
        match target(row) {
            Ok(target) => {
                self.opened = Some(Opened {
                    target,
                    heading: String::new(),
                    numbers: String::new(),
                    state: row.state,
                });
                (self.hosts, self.errors) = Default::default();
                self.focus = Pane::Hosts;
            }
            Err(why) => self.said = why,
        }
    }

    fn close(&mut self) {
        if self.opened.take().is_some() {
            self.focus = Pane::Resources;
        }
    }

    /// Asks whether a change is to be made, or says why there is none.
    fn ask_for(&mut self, change: impl Fn(&Self) -> Result<Change, String>) {
        if self.is_changing {
            self.said = "the change before is under way; try again in a moment".to_owned();
            return;
        }
        match change(self) {
            Ok(change) => self.mode = Mode::Question(change),
            Err(why) => self.said = why,
        }
    }

    fn pause(&self) -> Result<Change, String> {
        let (target, state) = self.meant()?;
        match state {
            RowState::Paused => Ok(Change::Resume(target)),
            // The key could pause it, but not take that back if a master of an earlier version does not tell that it is paused.
            RowState::Over => Err(format!(
                "{} is over; use `crawler resource pause` or `crawler resource resume`",
                target.name
            )),
            RowState::Usual | RowState::TakesCrawls | RowState::Drains => Ok(Change::Pause(target)),
        }
    }

    fn restart(&self) -> Result<Change, String> {
        Ok(Change::Restart(self.meant()?.0))
    }

    /// Returns the resource that a key is about, and its state.
    fn meant(&self) -> Result<(Target, RowState), String> {
        if let Some(opened) = &self.opened {
            return Ok((opened.target.clone(), opened.state));
        }
        let row = self.chosen(Pane::Resources, "this key is for a resource")?;
        Ok((target(row)?, row.state))
    }

    fn drain(&self) -> Result<Change, String> {
        const WHAT: &str = "this key is for a worker";
        let row = self.chosen(Pane::Nodes, WHAT)?;
        let undo = match row.state {
            RowState::TakesCrawls => false,
            RowState::Drains => true,
            RowState::Usual | RowState::Paused | RowState::Over => {
                return Err(format!("{WHAT}, and this is none"));
            }
        };
        let id = row.key.parse::<NodeId>();
        let id = id.map_err(|error| error.to_string())?;
        Ok(Change::Drain { id, undo })
    }

    fn chosen(&self, pane: Pane, what: &str) -> Result<&Row, String> {
        if self.focus != pane {
            return Err(format!("{what}, which is not in this part of the screen"));
        }
        let row = self.list(pane).chosen();
        row.ok_or_else(|| format!("{what}, and none is chosen"))
    }

    fn answer(&mut self, change: Change, code: KeyCode) -> Step {
        if code != KeyCode::Char('y') {
            self.said = "nothing was changed".to_owned();
            return Step::Show;
        }
        self.is_changing = true;
        self.said = "under way".to_owned();
        Step::Change(change)
    }

    fn begin_filter(&mut self) {
        match self.focus {
            Pane::Errors => self.said = "the last errors are shown without a filter".to_owned(),
            Pane::Nodes | Pane::Resources | Pane::Hosts => {
                self.mode = Mode::Filter(self.list(self.focus).ask().filter.clone());
            }
        }
    }

    fn filter_key(&mut self, mut text: String, code: KeyCode) -> Step {
        match code {
            KeyCode::Esc => return Step::Show,
            KeyCode::Enter => {
                match complete(self.focus, &text) {
                    Ok(filter) => self.list_mut().filter(filter),
                    Err(why) => self.said = why,
                }
                return Step::Show;
            }
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(c) if text.chars().count() < FILTER_MAX => text.push(c),
            _ => {}
        }
        self.mode = Mode::Filter(text);
        Step::Show
    }
}

/// Returns the resource of a row.
fn target(row: &Row) -> Result<Target, String> {
    let name = row.key.parse::<ResourceName>();
    let name = name.map_err(|error| error.to_string())?;
    Ok(Target { name, id: row.id })
}

/// Returns the filter of a list that was typed. The list of resources takes any beginning of names, and the others take
/// words, of which the beginning is enough.
fn complete(pane: Pane, text: &str) -> Result<String, String> {
    let states = HostState::ALL.map(HostState::as_str);
    let words: &[&str] = match pane {
        Pane::Nodes => &ROLES,
        Pane::Hosts => &states,
        Pane::Resources | Pane::Errors => return Ok(text.to_owned()),
    };
    let text = text.to_lowercase();
    let mut known = words.iter().filter(|word| word.starts_with(&text));
    match (text.as_str(), known.next()) {
        ("", _) => Ok(String::new()),
        (_, Some(word)) => Ok((*word).to_owned()),
        (_, None) => Err(format!("this list is filtered by {}", words.join(", "))),
    }
}
