//! The options of every command about what it says in its terminal: how much is logged, and colours.

use std::ffi::{OsStr, OsString};

use clap::{ArgAction, Args, ColorChoice};
use crawler_process::telemetry::Colors;

#[derive(Debug, Args)]
pub(super) struct TerminalArgs {
    /// Log more: -v, -vv
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Global options")]
    verbose: u8,
    /// Log less: -q, -qq; also -qqq with up, master and worker
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Global options")]
    quiet: u8,
    /// Colours of messages and of the log: auto has them in a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    color: ColorChoice,
}

impl TerminalArgs {
    /// Returns the filter of the log for a command whose usual level is `info` or `warn`; `None` if the usual
    /// one holds. `debug` and `trace` are for the crawler alone; the libraries that it uses log at `info` at most.
    pub(super) fn log_filter(&self, is_server: bool) -> Option<&'static str> {
        let usual = if is_server { 1 } else { 0 };
        let steps = i16::from(self.verbose) - i16::from(self.quiet);
        match (steps, usual + steps) {
            (0, _) => None,
            (_, ..=-2) => Some("off"),
            (_, -1) => Some("error,async_nats=off"),
            (_, 0) => Some("warn,async_nats=off"),
            (_, 1) => Some("warn,async_nats=off,crawler=info"),
            (_, 2) => Some("info,async_nats=off,slatedb=warn,crawler=debug"),
            (_, 3..) => Some("info,async_nats=off,slatedb=warn,crawler=trace"),
        }
    }

    /// Returns true if both `-v` and `-q` were given, on whatever side of a command.
    pub(super) fn is_contradictory(&self) -> bool {
        self.verbose > 0 && self.quiet > 0
    }

    /// Returns true if `-v` was given.
    pub(super) fn is_verbose(&self) -> bool {
        self.verbose > 0
    }

    pub(super) fn colors(&self) -> Colors {
        match self.color {
            ColorChoice::Auto => Colors::Auto,
            ColorChoice::Always => Colors::Always,
            ColorChoice::Never => Colors::Never,
        }
    }
}

/// Returns the choice that `--color` makes for help and for messages about arguments, which are printed although
/// the arguments do not parse.
pub(super) fn color_choice(args: &[OsString]) -> ColorChoice {
    let mut args = args.iter().map(OsString::as_os_str);
    while let Some(arg) = args.next() {
        let value = match arg.to_str() {
            Some("--") => break,
            Some("--color") => args.next().and_then(OsStr::to_str),
            Some(arg) => arg.strip_prefix("--color="),
            None => None,
        };
        if let Some(choice) = value.and_then(|value| value.parse().ok()) {
            return choice;
        }
    }
    ColorChoice::Auto
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        terminal: TerminalArgs,
    }

    #[track_caller]
    fn check(line: &str, client: Option<&str>, server: Option<&str>) {
        let line = std::iter::once("crawler").chain(line.split_whitespace());
        let terminal = Line::try_parse_from(line).unwrap().terminal;
        assert_eq!(terminal.log_filter(false), client);
        assert_eq!(terminal.log_filter(true), server);
    }

    #[test]
    fn each_v_tells_more_and_each_q_less() {
        check("", None, None);
        check(
            "-v",
            Some("warn,async_nats=off,crawler=info"),
            Some("info,async_nats=off,slatedb=warn,crawler=debug"),
        );
        check(
            "-vv",
            Some("info,async_nats=off,slatedb=warn,crawler=debug"),
            Some("info,async_nats=off,slatedb=warn,crawler=trace"),
        );
        check(
            "--verbose -vvvvv",
            Some("info,async_nats=off,slatedb=warn,crawler=trace"),
            Some("info,async_nats=off,slatedb=warn,crawler=trace"),
        );
        check(
            "-q",
            Some("error,async_nats=off"),
            Some("warn,async_nats=off"),
        );
        check("-qq", Some("off"), Some("error,async_nats=off"));
        check("-qqq", Some("off"), Some("off"));
    }

    #[test]
    fn the_choice_of_colours_holds_for_arguments_that_do_not_parse() {
        let choice = |line: &str| {
            let args: Vec<_> = line.split_whitespace().map(OsString::from).collect();
            color_choice(&args)
        };
        assert_eq!(choice("crawler up"), ColorChoice::Auto);
        assert_eq!(
            choice("crawler --color always up --nope"),
            ColorChoice::Always
        );
        assert_eq!(choice("crawler up --color=never"), ColorChoice::Never);
        assert_eq!(choice("crawler up -- --color=never"), ColorChoice::Auto);
        assert_eq!(choice("crawler up --color"), ColorChoice::Auto);
        let not_text = OsString::from_vec(vec![0xff]);
        let args = ["crawler".into(), not_text, "--color=always".into()];
        assert_eq!(color_choice(&args), ColorChoice::Always);
    }
}
