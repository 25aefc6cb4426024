//! The `crawler` program: parses its arguments, and leaves the rest to the library.

use std::process::ExitCode;

use crawler::app;
use crawler::cli::{self, Cli};
use crawler::config::Environment;
use crawler_plugin::admission;
use crawler_process::telemetry;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // This is the process that compiles plugins for another `crawler`, see `crawler_plugin::admission`. It gets no
    // environment, no runtime and no log.
    if args.nth(1).is_some_and(|command| command == "__compile") {
        return admission::child_main(args);
    }
    match start() {
        Ok(code) => code,
        Err(error) => cli::report(&error),
    }
}

fn start() -> anyhow::Result<ExitCode> {
    let environment = Environment::read();
    let cli = Cli::parse(std::env::args_os(), &environment)?;
    telemetry::init(&cli.log(&environment), cli.command.default_log())?;
    // It runs before any other thread starts: each thread is confined by the one that starts it.
    let command = match app::confined(cli.command) {
        Ok(command) => command,
        Err(error) => return Ok(app::failed(&error)),
    };
    app::open_more_files();
    Ok(app::run(command)?)
}
