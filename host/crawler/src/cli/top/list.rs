//! One list of the view: the page of it that is shown, the row that is chosen, and the way to other pages.
//!
//! Masters order each list and hand it out in pages, so a list of any length needs the memory of one page.

use std::collections::VecDeque;

use crawler_model::id::ResourceId;

/// Number of earlier pages to which a list finds back by going up. From further on, its beginning is one key away.
const BEFORE_MAX: usize = 10_000;

/// Row of a list, whose texts are safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Name of the thing as the master knows it.
    pub(super) key: String,
    /// Id of a resource, which another one of the same name does not have; `None` in a row of anything else.
    pub(super) id: Option<ResourceId>,
    /// Texts of the columns.
    pub(super) cells: Vec<String>,
    /// All that is known of the thing, in one line; empty if the cells say it.
    pub(super) detail: String,
    /// State on which keys depend.
    pub(super) state: RowState,
}

/// State of the thing in a row, as far as keys depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowState {
    /// The thing has no state on which a key depends.
    Usual,
    /// The resource is paused.
    Paused,
    /// The run of the resource has finished or failed, and the resource is not known to be paused: a master of an earlier version
    /// does not tell it.
    Over,
    /// The worker takes crawls.
    TakesCrawls,
    /// The worker drains.
    Drains,
}

impl RowState {
    /// Returns the state of a resource. The phase of a run that is over does not tell if the resource is paused, and a master
    /// of an earlier version tells it by the phase alone.
    pub(super) fn of_resource(phase: &str, is_paused: bool) -> Self {
        match phase {
            _ if is_paused => Self::Paused,
            "Paused" => Self::Paused,
            "Finished" | "Failed" => Self::Over,
            _ => Self::Usual,
        }
    }
}

/// Page of a list, as a master has answered it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
    /// Token of the page after it; empty at the end.
    pub(super) next: String,
    /// Words to show if there are no rows.
    pub(super) note: String,
}

/// Question for one page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PageAsk {
    /// Token of the page; empty for the first one.
    pub(super) token: String,
    /// Filter, in the words of the list.
    pub(super) filter: String,
}

/// A list and the place in it.
#[derive(Debug, Default)]
pub(super) struct List {
    page: Page,
    selected: usize,
    ask: PageAsk,
    /// Tokens of the pages before this one.
    before: VecDeque<String>,
    /// Row that is chosen once a page that was asked for is there. If `None`, this is the page.
    landing: Option<Landing>,
}

/// Place of the chosen row in another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Landing {
    First,
    Last,
}

impl List {
    /// Returns the rows of the present page.
    pub(super) fn rows(&self) -> &[Row] {
        &self.page.rows
    }

    /// Returns the words to show if there are no rows.
    pub(super) fn note(&self) -> &str {
        &self.page.note
    }

    /// Returns the place of the chosen row in the page.
    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    /// Returns the chosen row; `None` if the page has none, or if another page was asked for.
    pub(super) fn chosen(&self) -> Option<&Row> {
        match self.landing {
            None => self.page.rows.get(self.selected),
            Some(_) => None,
        }
    }

    /// Returns the question for the page that is wanted.
    pub(super) fn ask(&self) -> &PageAsk {
        &self.ask
    }

    /// Returns true if the list begins before this page.
    pub(super) fn has_before(&self) -> bool {
        !self.ask.token.is_empty()
    }

    /// Returns true if the list goes on behind this page.
    pub(super) fn has_next(&self) -> bool {
        !self.page.next.is_empty()
    }

    /// Takes the answer to the present question. The chosen row stays chosen if it is still there.
    pub(super) fn take(&mut self, page: Page) {
        let key = self.chosen().map(|row| row.key.clone());
        let last = page.rows.len().saturating_sub(1);
        let kept = || {
            page.rows
                .iter()
                .position(|row| Some(&row.key) == key.as_ref())
        };
        self.selected = match self.landing.take() {
            Some(Landing::First) => 0,
            Some(Landing::Last) => last,
            None => kept().unwrap_or(self.selected).min(last),
        };
        self.page = page;
    }

    /// Chooses the row that is `n` further down, and at the end of the page the next page.
    pub(super) fn down(&mut self, n: usize) {
        let last = self.page.rows.len().saturating_sub(1);
        if self.landing.is_some() {
            return;
        }
        if self.selected < last {
            self.selected = (self.selected + n).min(last);
        } else if self.has_next() {
            let token = std::mem::replace(&mut self.ask.token, self.page.next.clone());
            self.before.push_back(token);
            if self.before.len() > BEFORE_MAX {
                self.before.pop_front();
            }
            self.landing = Some(Landing::First);
        }
    }

    /// Chooses the row that is `n` further up, and at the beginning of the page the page before.
    pub(super) fn up(&mut self, n: usize) {
        if self.landing.is_some() {
            return;
        }
        if self.selected > 0 {
            self.selected = self.selected.saturating_sub(n);
        } else if let Some(token) = self.before.pop_back() {
            self.ask.token = token;
            self.landing = Some(Landing::Last);
        }
    }

    /// Chooses the first row of the list.
    pub(super) fn home(&mut self) {
        self.before.clear();
        self.selected = 0;
        // While the first page is waited for, the rows are still those of another one.
        let is_first = self.ask.token.is_empty() && self.landing.is_none();
        self.landing = (!is_first).then_some(Landing::First);
        self.ask.token.clear();
    }

    /// Begins the list anew, with this filter.
    pub(super) fn filter(&mut self, filter: String) {
        *self = Self {
            ask: PageAsk {
                token: String::new(),
                filter,
            },
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(keys: &[&str], next: &str) -> Page {
        let row = |key: &&str| Row {
            key: (*key).to_owned(),
            id: None,
            cells: Vec::new(),
            detail: String::new(),
            state: RowState::Usual,
        };
        Page {
            rows: keys.iter().map(row).collect(),
            next: next.to_owned(),
            note: String::new(),
        }
    }

    fn chosen(list: &List) -> &str {
        list.chosen().map_or("", |row| row.key.as_str())
    }

    #[test]
    fn a_chosen_row_stays_chosen_when_others_come_and_go() {
        let mut list = List::default();
        list.take(page(&["a", "b", "c"], ""));
        list.down(1);
        assert_eq!(chosen(&list), "b");
        list.take(page(&["a", "aa", "b", "c"], ""));
        assert_eq!(chosen(&list), "b");
        // It is gone: the row in its place is chosen, or the last one.
        list.take(page(&["a", "aa", "c"], ""));
        assert_eq!(chosen(&list), "c");
        list.take(page(&["a"], ""));
        assert_eq!(chosen(&list), "a");
        list.take(page(&[], ""));
        assert_eq!(chosen(&list), "");
    }

    #[test]
    fn the_ends_of_a_page_lead_to_its_neighbours() {
        let mut list = List::default();
        list.take(page(&["a", "b"], "b"));
        list.down(10);
        assert_eq!((chosen(&list), list.ask().token.as_str()), ("b", ""));
        list.down(1);
        assert_eq!((chosen(&list), list.ask().token.as_str()), ("", "b"));
        // Until the page is there, keys choose nothing and lead no further.
        list.down(1);
        list.up(1);
        assert_eq!(list.ask().token, "b");
        list.take(page(&["c", "d"], ""));
        assert_eq!(chosen(&list), "c");
        list.down(1);
        list.down(1);
        assert_eq!((chosen(&list), list.ask().token.as_str()), ("d", "b"));
        list.up(10);
        list.up(1);
        assert_eq!(list.ask().token, "");
        list.take(page(&["a", "b"], "b"));
        assert_eq!(chosen(&list), "b");
    }

    #[test]
    fn the_beginning_and_a_filter_forget_the_place() {
        let mut list = List::default();
        list.take(page(&["a", "b"], "b"));
        list.down(1);
        list.down(1);
        list.take(page(&["c", "d"], ""));
        assert!(list.has_before());
        list.home();
        assert!(!list.has_before());
        list.take(page(&["a", "b"], "b"));
        assert_eq!(chosen(&list), "a");
        list.down(1);
        list.home();
        assert_eq!(chosen(&list), "a");
        list.down(1);
        list.down(1);
        list.filter("x".to_owned());
        let asked = PageAsk {
            token: String::new(),
            filter: "x".to_owned(),
        };
        assert_eq!((list.ask(), chosen(&list)), (&asked, ""));
    }

    #[test]
    fn the_beginning_is_no_row_of_another_page() {
        let mut list = List::default();
        list.take(page(&["a", "b"], "b"));
        list.down(1);
        list.down(1);
        list.take(page(&["c", "d"], ""));
        // The first page is on its way already.
        list.up(1);
        list.home();
        assert_eq!((chosen(&list), list.ask().token.as_str()), ("", ""));
        list.take(page(&["a", "b"], "b"));
        assert_eq!(chosen(&list), "a");
    }

    #[test]
    fn the_way_back_has_a_bound() {
        let mut list = List::default();
        for n in 0..=BEFORE_MAX {
            list.take(page(&["a"], &n.to_string()));
            list.down(1);
        }
        assert_eq!(list.before.len(), BEFORE_MAX);
        list.home();
        assert_eq!(list.ask(), &PageAsk::default());
    }
}
