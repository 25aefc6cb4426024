//! The state as a frame of text.
//!
//! All texts of the state are safe to show already; this module cuts them to the width of the terminal, and marks the cut.
//! Emphasis is bold, dim or reversed, never a colour, so that the view looks the same without colours.

use std::time::Duration;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::list::List;
use super::state::{Mode, Model, Opened, Pane};

/// Least number of lines between the head and the messages with which two panes are shown at once; with fewer, only the
/// pane that keys are for is shown.
const SPLIT_FROM: u16 = 12;
/// Lines below the panes: messages and keys.
const BELOW: u16 = 2;
/// Mark at the end of a text that is cut.
const CUT: &str = "…";
/// Width of the mark before a row.
const MARK: u16 = 2;
/// Blanks between two columns.
const BETWEEN: u16 = 1;
/// Least width of the first column; columns at the right give way to it.
const LEAST: u16 = 12;

/// Column of a table: its title and its width. The first one of a table takes what is left.
type Column = (&'static str, u16);

const NODES: [Column; 5] = [
    ("NODES", 0),
    ("ROLE", 6),
    ("", 8),
    ("LOAD", 9),
    ("CRAWLS", 22),
];
const RESOURCES: [Column; 7] = [
    ("RESOURCES", 0),
    ("PHASE", 8),
    ("PAGES", 9),
    ("RATE", 9),
    ("NODE", 12),
    ("DEAD", 6),
    ("ITEMS", 8),
];
const HOSTS: [Column; 6] = [
    ("HOSTS", 0),
    ("STATE", 11),
    ("DUE", 5),
    ("DELAY", 9),
    ("WHY", 15),
    ("NOT BEFORE", 20),
];
const ERRORS: [Column; 1] = [("LAST ERRORS", 0)];

/// Keys, in the order of their use.
const KEYS: &str = "q leave  ? help  tab pane  enter open  / filter  p pause  r restart  d drain";
/// Lines of the help.
const HELP: [&str; 17] = [
    "up, k; down, j    the row above, below; at the end of a page, the next page",
    "page up, down     ten rows up, down",
    "home, g           the beginning of the list",
    "tab               the other part of the screen",
    "enter             one resource: its hosts and its last errors",
    "esc, backspace    back to the whole cluster",
    "/                 filter: resources by the beginning of their names,",
    "                  nodes by their role, hosts by their state; empty: all",
    "p                 pause a resource, or resume it",
    "r                 begin a new run of a resource",
    "d                 drain a worker, or let it take crawls again",
    "?                 this help",
    "q, ctrl-c         leave",
    "",
    "p, r and d ask first; only y means yes. RATE is in pages a second, of the",
    "last seconds; - if two looks do not tell it.",
    "Any key closes this help.",
];

/// Draws the state.
pub(super) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut paper = Paper {
        buffer: frame.buffer_mut(),
        area,
    };
    let above = match &model.opened {
        None => title(model, &mut paper),
        Some(opened) => numbers(model, opened, &mut paper),
    };
    let body = area.height.saturating_sub(above + BELOW);
    match &model.mode {
        Mode::Help => {
            for (y, line) in (above..above + body).zip(HELP) {
                paper.write(0, y, area.width, line, Style::new());
            }
        }
        Mode::Usual | Mode::Filter(_) | Mode::Question(_) => {
            for (pane, y, height) in panes(model, above, body) {
                draw_pane(model, pane, y, height, &mut paper);
            }
        }
    }
    let (message, style) = message(model);
    paper.line(area.height.saturating_sub(2), &message, style);
    let keys = Style::new().add_modifier(Modifier::DIM);
    paper.line(area.height.saturating_sub(1), KEYS, keys);
}

/// Draws the head of the whole cluster. Returns its number of lines.
fn title(model: &Model, paper: &mut Paper<'_>) -> u16 {
    let every = humantime::format_duration(model.every);
    let title = format!("{}crawler top, a look every {every}", age(model));
    paper.line(0, &title, bold());
    1
}

/// Returns the time since the last answer in words, if a look is missing; it stands first, because the rest may be cut.
fn age(model: &Model) -> String {
    if model.age <= model.every * 2 {
        return String::new();
    }
    let age = humantime::format_duration(Duration::from_secs(model.age.as_secs()));
    format!("no answer for {age}; ")
}

/// Draws the head of one resource. Returns its number of lines.
fn numbers(model: &Model, opened: &Opened, paper: &mut Paper<'_>) -> u16 {
    let heading = match opened.heading.as_str() {
        "" => opened.target.name.as_str(),
        heading => heading,
    };
    paper.line(0, &format!("{}{heading}", age(model)), bold());
    paper.line(1, &opened.numbers, Style::new());
    2
}

/// Returns the panes that are shown, with their first lines and their heights.
fn panes(model: &Model, above: u16, body: u16) -> Vec<(Pane, u16, u16)> {
    let (first, second, small) = match model.opened {
        None => (Pane::Nodes, Pane::Resources, Pane::Nodes),
        Some(_) => (Pane::Hosts, Pane::Errors, Pane::Errors),
    };
    if body < SPLIT_FROM {
        return vec![(model.focus, above, body)];
    }
    let n_rows = model.list(small).rows().len().max(1);
    let n_small = u16::try_from(n_rows + 1).unwrap_or(u16::MAX).min(body / 3);
    let n_first = match first == small {
        true => n_small,
        false => body - n_small,
    };
    vec![
        (first, above, n_first),
        (second, above + n_first, body - n_first),
    ]
}

fn draw_pane(model: &Model, pane: Pane, y: u16, height: u16, paper: &mut Paper<'_>) {
    let columns: &[Column] = match pane {
        Pane::Nodes => &NODES,
        Pane::Resources => &RESOURCES,
        Pane::Hosts => &HOSTS,
        Pane::Errors => &ERRORS,
    };
    let (list, is_focus) = (model.list(pane), pane == model.focus);
    let widths = widths(columns, paper.area.width);
    let head = match is_focus {
        true => bold().add_modifier(Modifier::REVERSED),
        false => bold(),
    };
    if height == 0 {
        return;
    }
    let mut titles = vec![head_of(columns[0].0, list)];
    titles.extend(columns[1..].iter().map(|(title, _)| (*title).to_owned()));
    paper.row(y, "", &titles, &widths, head);
    if list.rows().is_empty() {
        let note = match list.note() {
            "" => "waiting for the first answer",
            note => note,
        };
        if height > 1 {
            paper.row(y + 1, "", &[note.to_owned()], &[paper.area.width], dim());
        }
    }
    let n_visible = usize::from(height - 1);
    // The chosen row is always among those that are shown.
    let n_above = (list.selected() + 1).saturating_sub(n_visible);
    let visible = list.rows().iter().enumerate().skip(n_above);
    for (y, (place, row)) in (y + 1..y + height).zip(visible) {
        let is_chosen = is_focus && place == list.selected();
        let (mark, style) = match is_chosen {
            true => (">", bold()),
            false => ("", Style::new()),
        };
        paper.row(y, mark, &row.cells, &widths, style);
    }
}

/// Returns the title of a list, with its filter and with arrows to what is before and behind the page.
fn head_of(title: &str, list: &List) -> String {
    let mut head = title.to_owned();
    if !list.ask().filter.is_empty() {
        head = format!("{head} {}", super::looks::line(&list.ask().filter));
    }
    match (list.has_before(), list.has_next()) {
        (false, false) => head,
        (true, false) => head + " ↑",
        (false, true) => head + " ↓",
        (true, true) => head + " ↑↓",
    }
}

/// Returns the widths of the columns for which there is room: of the first one, and of as many others as leave it its
/// least width.
fn widths(columns: &[Column], width: u16) -> Vec<u16> {
    let mut n_shown = columns.len();
    loop {
        let others = columns[1..n_shown].iter();
        let others: Vec<u16> = others.map(|(_, width)| *width).collect();
        let n_taken: u16 = others.iter().map(|width| width + BETWEEN).sum();
        let left = width.saturating_sub(MARK + n_taken);
        if left >= LEAST || n_shown == 1 {
            return [vec![left], others].concat();
        }
        n_shown -= 1;
    }
}

/// Returns the line of messages: what is asked, what is typed, what was done, what is wrong, or what is chosen. The title
/// tells how old the last look is, so a word about a change may hide what is wrong until the next key.
fn message(model: &Model) -> (String, Style) {
    let urgent = bold().add_modifier(Modifier::REVERSED);
    match &model.mode {
        Mode::Question(change) => return (change.question(), urgent),
        Mode::Filter(text) => {
            let text = super::looks::line(text);
            return (
                format!("filter: {text}_   enter: use it, esc: leave it"),
                bold(),
            );
        }
        Mode::Usual | Mode::Help => {}
    }
    if !model.said.is_empty() {
        return (model.said.clone(), bold());
    }
    if !model.trouble.is_empty() {
        return (model.trouble.clone(), urgent);
    }
    let chosen = model.list(model.focus).chosen();
    let detail = chosen.map_or("", |row| row.detail.as_str());
    (detail.to_owned(), Style::new())
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Frame that is written to. What does not fit is cut, and ends with a mark.
struct Paper<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
}

impl Paper<'_> {
    /// Writes text at a place, at most this wide.
    fn write(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) {
        if x < self.area.width && y < self.area.height {
            let width = usize::from(width.min(self.area.width - x));
            let (x, y) = (self.area.x + x, self.area.y + y);
            if Span::raw(text).width() <= width {
                self.buffer.set_stringn(x, y, text, width, style);
            } else if width > 0 {
                let (end, y) = self.buffer.set_stringn(x, y, text, width - 1, style);
                self.buffer.set_stringn(end, y, CUT, 1, style);
            }
        }
    }

    /// Writes a whole line, and gives all of it the style.
    fn line(&mut self, y: u16, text: &str, style: Style) {
        self.fill(y, style);
        self.write(0, y, self.area.width, text, style);
    }

    /// Writes a row of a table, and gives all of it the style.
    fn row(&mut self, y: u16, mark: &str, cells: &[String], widths: &[u16], style: Style) {
        self.fill(y, style);
        self.write(0, y, MARK, mark, style);
        let mut x = MARK;
        for (cell, width) in cells.iter().zip(widths) {
            self.write(x, y, *width, cell, style);
            x = x.saturating_add(width + BETWEEN);
        }
    }

    fn fill(&mut self, y: u16, style: Style) {
        if y < self.area.height {
            let line = Rect::new(self.area.x, self.area.y + y, self.area.width, 1);
            self.buffer.set_style(line, style);
        }
    }
}

#[cfg(test)]
mod tests;
