//! State of the view, and what keys and answers make of it.
//!
//! Nothing here reads a terminal or calls a master: [`Model::handle`] takes an event and returns the step that the loop
//! takes for it.

use std::time::Duration;

use crossterm::event::KeyEvent;

use super::list::{List, Page, PageAsk, Row, RowState};
use crawler_model::id::{NodeId, ResourceId, ResourceName};

mod keys;

/// Lines of a screen that never show rows of a list: its title, the line of messages, the line of keys, and one head.
const FRAME: u16 = 4;
/// Largest number of rows of one page.
const ROWS_MAX: u16 = 200;

/// Part of the screen that keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Nodes,
    Resources,
    Hosts,
    Errors,
}

impl Pane {
    /// Returns the other pane of the same screen.
    fn other(self) -> Self {
        match self {
            Pane::Nodes => Pane::Resources,
            Pane::Resources => Pane::Nodes,
            Pane::Hosts => Pane::Errors,
            Pane::Errors => Pane::Hosts,
        }
    }
}

/// Resource that a key is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) name: ResourceName,
    /// Id as the user saw it. If the resource is deleted, another one may get its name, and has another id.
    pub(super) id: Option<ResourceId>,
}

/// Resource that is shown alone.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) target: Target,
    /// Phase and run, in a line.
    pub(super) heading: String,
    /// Numbers of the run, in a line.
    pub(super) numbers: String,
    state: RowState,
}

/// Meaning of the next key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Keys are those of the help.
    Usual,
    /// The help is shown, and any key closes it.
    Help,
    /// A filter is typed.
    Filter(String),
    /// A change waits for a yes.
    Question(Change),
}

/// Change that a user has asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Pause(Target),
    Resume(Target),
    Restart(Target),
    Drain { id: NodeId, undo: bool },
}

impl Change {
    /// Returns the question before the change.
    pub(super) fn question(&self) -> String {
        match self {
            Change::Pause(target) => format!("pause {}? y/n", target.name),
            Change::Resume(target) => format!("resume {}? y/n", target.name),
            Change::Restart(target) => format!("begin a new run of {}? y/n", target.name),
            Change::Drain { id, undo: false } => format!("drain {id}? y/n"),
            Change::Drain { id, undo: true } => format!("let {id} take crawls again? y/n"),
        }
    }

    /// Returns the resource that is changed, if it is one.
    fn target(&self) -> Option<&Target> {
        match self {
            Change::Pause(target) | Change::Resume(target) | Change::Restart(target) => {
                Some(target)
            }
            Change::Drain { .. } => None,
        }
    }
}

/// Question that the present screen asks a master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    Cluster {
        nodes: PageAsk,
        resources: PageAsk,
        n_rows: u32,
    },
    Resource {
        name: ResourceName,
        hosts: PageAsk,
        n_rows: u32,
    },
}

/// Answer to the present question.
#[derive(Debug)]
pub(super) enum Look {
    Cluster {
        nodes: Page,
        resources: Page,
    },
    Resource {
        id: Option<ResourceId>,
        heading: String,
        numbers: String,
        state: RowState,
        hosts: Page,
        errors: Page,
    },
    /// The resource that was asked for is not there.
    Gone,
}

/// Event that the loop hands over.
#[derive(Debug)]
pub(super) enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal has this many lines.
    Resized(u16),
    /// A master has answered the present question.
    Looked(Look),
    /// No master answers, for this reason.
    Failed(String),
    /// A change has ended, with these words about it.
    Changed(String),
}

/// Step that an event asks the loop for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing beyond showing the state.
    Show,
    /// The present question is asked at once.
    Look,
    /// The change is made.
    Change(Change),
    /// The view ends.
    Leave,
}

/// State of the view.
#[derive(Debug)]
pub(super) struct Model {
    /// Time between two looks.
    pub(super) every: Duration,
    /// Time since the last answer, or since the beginning if there was none.
    pub(super) age: Duration,
    /// Number of lines of the terminal.
    n_lines: u16,
    pub(super) focus: Pane,
    pub(super) nodes: List,
    pub(super) resources: List,
    pub(super) hosts: List,
    pub(super) errors: List,
    /// Resource that is shown alone; `None` for the whole cluster.
    pub(super) opened: Option<Opened>,
    pub(super) mode: Mode,
    /// Words about the last key; empty if there is nothing to say.
    pub(super) said: String,
    /// Reason why the last look failed; empty if it did not.
    pub(super) trouble: String,
    /// A change is under way.
    is_changing: bool,
}

impl Model {
    /// Creates the state before the first look.
    pub(super) fn new(every: Duration, n_lines: u16) -> Self {
        Self {
            every,
            age: Duration::ZERO,
            n_lines,
            focus: Pane::Resources,
            nodes: List::default(),
            resources: List::default(),
            hosts: List::default(),
            errors: List::default(),
            opened: None,
            mode: Mode::Usual,
            said: String::new(),
            trouble: String::new(),
            is_changing: false,
        }
    }

    /// Returns the question that the present screen asks.
    pub(super) fn ask(&self) -> Ask {
        let n_rows = self.n_lines.saturating_sub(FRAME).clamp(1, ROWS_MAX).into();
        match &self.opened {
            None => Ask::Cluster {
                nodes: self.nodes.ask().clone(),
                resources: self.resources.ask().clone(),
                n_rows,
            },
            Some(opened) => Ask::Resource {
                name: opened.target.name.clone(),
                hosts: self.hosts.ask().clone(),
                n_rows,
            },
        }
    }

    /// Returns the list in a pane.
    pub(super) fn list(&self, pane: Pane) -> &List {
        match pane {
            Pane::Nodes => &self.nodes,
            Pane::Resources => &self.resources,
            Pane::Hosts => &self.hosts,
            Pane::Errors => &self.errors,
        }
    }

    fn list_mut(&mut self) -> &mut List {
        match self.focus {
            Pane::Nodes => &mut self.nodes,
            Pane::Resources => &mut self.resources,
            Pane::Hosts => &mut self.hosts,
            Pane::Errors => &mut self.errors,
        }
    }

    /// Takes an event.
    pub(super) fn handle(&mut self, event: Event) -> Step {
        match event {
            Event::Key(key) => return self.key(key),
            Event::Resized(n_lines) => self.n_lines = n_lines,
            Event::Looked(look) => {
                self.trouble.clear();
                self.take(look);
            }
            Event::Failed(why) => {
                self.trouble = format!("{why}; the last look stays, and the next one is tried");
            }
            Event::Changed(words) => {
                self.is_changing = false;
                self.said = words;
                return Step::Look;
            }
        }
        Step::Show
    }

    fn take(&mut self, look: Look) {
        match look {
            Look::Cluster { nodes, resources } => {
                self.drop_question(&resources.rows);
                self.nodes.take(nodes);
                self.resources.take(resources);
            }
            Look::Resource { id, .. } if self.is_another(id) => {
                self.leave_resource("was deleted, and another one has its name");
            }
            Look::Resource {
                id: _,
                heading,
                numbers,
                state,
                hosts,
                errors,
            } => {
                if let Some(opened) = &mut self.opened {
                    (opened.heading, opened.numbers) = (heading, numbers);
                    opened.state = state;
                }
                self.hosts.take(hosts);
                self.errors.take(errors);
            }
            Look::Gone => self.leave_resource("is not there any more"),
        }
    }

    /// Returns true if this is not the id of the resource that is shown alone.
    fn is_another(&self, id: Option<ResourceId>) -> bool {
        let opened = self.opened.as_ref();
        opened.is_some_and(|opened| opened.target.id != id)
    }

    /// Shows the whole cluster again, and says why. What was typed or asked about the resource is dropped.
    fn leave_resource(&mut self, why: &str) {
        if let Some(opened) = self.opened.take() {
            self.said = format!("resource {} {why}", opened.target.name);
        }
        self.focus = Pane::Resources;
        self.mode = Mode::Usual;
    }

    /// Drops the question about a resource if another one has its name by now, as these rows tell: a yes is not for that
    /// one.
    fn drop_question(&mut self, resources: &[Row]) {
        let Mode::Question(change) = &self.mode else {
            return;
        };
        let Some(Target { name, id }) = change.target() else {
            return;
        };
        let is_another = |row: &Row| row.key == name.as_str() && row.id != *id;
        if resources.iter().any(is_another) {
            self.said = format!(
                "nothing was changed: resource {name} was deleted, and another one has its name"
            );
            self.mode = Mode::Usual;
        }
    }
}

#[cfg(test)]
mod tests;
