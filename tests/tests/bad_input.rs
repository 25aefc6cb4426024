//! Mistakes of users, sites and plugins, against real processes: each error is compared as text, at every door
//! that can carry it, and the process goes on as if nothing had happened.
//!
//! One process serves many cases: a case that leaves something behind would change those after it.

#[path = "bad_input/api.rs"]
mod api;
#[path = "bad_input/command_line.rs"]
mod command_line;
#[path = "bad_input/config.rs"]
mod config;
#[path = "bad_input/folders.rs"]
mod folders;
#[path = "bad_input/frontier.rs"]
mod frontier;
#[path = "bad_input/hostile.rs"]
mod hostile;
#[path = "bad_input/pages.rs"]
mod pages;
#[path = "bad_input/plugins.rs"]
mod plugins;
#[path = "bad_input/reading.rs"]
mod reading;
#[path = "bad_input/server.rs"]
mod server;

/// Outcomes of a table, compared all at once so that one run shows every difference.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare(&mut self, case: &str, found: &str, expected: &str) {
        if found != expected {
            self.0
                .push(format!("{case}\n   found: {found}\nexpected: {expected}"));
        }
    }

    #[track_caller]
    fn assert_none(self) {
        assert!(
            self.0.is_empty(),
            "{} cases differ:\n{}",
            self.0.len(),
            self.0.join("\n")
        );
    }
}
