//! Progress of a crawl in a terminal: a bar where the number of its pages is known, and else a spinner.
//!
//! Both tell the speed and the time left in the words of [`Pace`], and are hidden unless stderr is a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

use super::pace::Pace;
use crawler_model::crawl::Counts;
use crawler_model::number;

/// Template of a bar.
const BAR: &str = "{bar:40} {pos}/{len} pages  {msg}";
/// Template of a spinner.
const SPINNER: &str = "{spinner} {msg} [{elapsed}]";

/// Creates a bar for a crawl of this many pages.
pub fn bar(n_pages: u64) -> ProgressBar {
    match std::io::stderr().is_terminal() {
        true => ProgressBar::new(n_pages).with_style(style(BAR)),
        false => ProgressBar::hidden(),
    }
}

/// Creates a spinner for a crawl that may find any number of pages.
pub fn spinner() -> ProgressBar {
    match std::io::stderr().is_terminal() {
        true => ProgressBar::new_spinner().with_style(style(SPINNER)),
        false => ProgressBar::hidden(),
    }
}

/// Moves a bar of `n_pages` to where its crawl is. The rate is in pages per second, as far as it is known.
pub fn move_bar(bar: &ProgressBar, n_pages: u64, counts: &Counts, rate: Option<f64>) {
    let n_left = n_pages.saturating_sub(counts.pages());
    bar.set_position(counts.pages());
    bar.set_message(beside_bar(counts, &Pace::to_the_end(n_left, rate)));
}

/// Turns a spinner, and shows the numbers of its crawl.
pub fn turn(spinner: &ProgressBar, counts: &Counts, pace: &Pace) {
    spinner.set_message(with_pace(numbers(counts), pace));
    spinner.tick();
}

/// Returns the numbers of a crawl. URLs wait until they are done.
pub(super) fn numbers(counts: &Counts) -> String {
    let pages = number(counts.pages(), "page");
    let items = number(counts.items, "item");
    let dead = match counts.dead {
        0 => String::new(),
        n => format!(" ({n} dead)"),
    };
    let waiting = match counts.due {
        0 => String::new(),
        n => format!(", {n} waiting"),
    };
    format!("{pages}{dead}, {items}{waiting}")
}

/// Appends speed and time left to a text, as far as they are known.
pub(super) fn with_pace(text: String, pace: &Pace) -> String {
    match pace.to_string() {
        pace if pace.is_empty() => text,
        pace => format!("{text}, {pace}"),
    }
}

/// Returns the text beside a bar, which itself tells the pages.
fn beside_bar(counts: &Counts, pace: &Pace) -> String {
    with_pace(number(counts.items, "item"), pace)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        Counts {
            parsed: 37,
            dead: 3,
            items: 1,
            ..Counts::default()
        }
    }

    #[test]
    fn a_spinner_tells_numbers_speed_and_time_left() {
        let counts = Counts {
            due: 100,
            ..counts()
        };
        let told = |rate| {
            let pace = Pace::of(&counts, 10_000, rate);
            with_pace(numbers(&counts), &pace)
        };
        assert_eq!(told(None), "40 pages (3 dead), 1 item, 100 waiting");
        assert_eq!(
            told(Some(10.0)),
            "40 pages (3 dead), 1 item, 100 waiting, 10.0 pages/s, about 10s left"
        );
        let one = Counts {
            parsed: 1,
            ..Counts::default()
        };
        assert_eq!(numbers(&one), "1 page, 0 items");
    }

    #[test]
    fn a_bar_is_moved_and_tells_speed_and_time_left() {
        let bar = ProgressBar::hidden();
        move_bar(&bar, 140, &counts(), None);
        assert_eq!((bar.position(), bar.message().as_str()), (40, "1 item"));
        move_bar(&bar, 140, &counts(), Some(50.0));
        assert_eq!(bar.message(), "1 item, 50.0 pages/s, about 2s left");
        move_bar(&bar, 40, &counts(), Some(50.0));
        assert_eq!(bar.message(), "1 item, 50.0 pages/s");
    }

    #[test]
    fn both_templates_are_well_formed() {
        for template in [BAR, SPINNER] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
