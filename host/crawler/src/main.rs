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

/// Number of blocking calls at once.
const BLOCKING_THREADS: usize = 32;

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
    // Files and compilers block; beyond this many at once they wait, and need no stack each.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?;
    let code = runtime.block_on(app::run(command));
    // Remaining tasks had their time; waiting for a blocked thread would delay the exit.
    runtime.shutdown_background();
    Ok(code)
}
