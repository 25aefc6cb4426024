//! The `crawler` program: parses its arguments, and leaves the rest to the library.

use std::process::ExitCode;

use crawler::app;
use crawler::bench::{messages, server};
use crawler::cli::{self, Cli};
use crawler::config::Environment;
use crawler_plugin::admission;
use crawler_process::telemetry;

/// Allocator of all that is written in Rust: a crawl makes many small allocations, and frees them on other threads.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Settings of the allocator, which it finds by the name of this variable.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "jemalloc knows the variable by its name")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_SETTINGS: &u8 = &telemetry::profile::heap::SETTINGS.to_bytes_with_nul()[0];

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // Processes that another `crawler` starts get no environment and no log. One compiles its plugins, see
    // `crawler_plugin::admission`, and one serves the web of a benchmark.
    match args.nth(1) {
        Some(command) if command == "__compile" => return admission::child_main(args),
        Some(command) if command == messages::COMMAND => return server::child_main(),
        Some(_) | None => {}
    }
    match start() {
        Ok(code) => code,
        Err(error) => cli::report(&error),
    }
}

fn start() -> anyhow::Result<ExitCode> {
    let environment = Environment::read();
    let cli = Cli::parse(std::env::args_os(), &environment)?;
    let mut log = telemetry::init(&cli.log(&environment), cli.command.default_log())?;
    // A confined process cannot connect to it any more.
    let supervisor = app::Supervisor::connect(&cli.command, &environment);
    // It runs before any other thread starts: each thread is confined by the one that starts it.
    let command = match app::confined(cli.command, log.folder()) {
        Ok(command) => command,
        Err(error) => return Ok(app::failed(&error)),
    };
    log.start()?;
    app::open_more_files();
    Ok(app::run(command, supervisor)?)
}
