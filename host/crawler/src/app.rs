//! The composition root: the parts of each mode of the program.
//!
//! This is the only place that names concrete backends together; everything below it knows traits.

use std::io;
use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

use crate::cli::{self, Command, WorkerOptions};

mod access;
mod archives;
mod backup;
mod bench;
mod cluster;
mod confined;
mod connecting_store;
mod data_root;
mod demo;
mod devtools;
mod doctor;
mod graceful_drain;
mod identity;
mod listeners;
mod master_node;
mod membership;
mod metrics;
mod node_certificate;
mod node_tls;
mod open_files;
mod own_nodes;
mod parts;
mod process;
mod registration;
mod run;
mod seeding;
mod shared_turns;
mod sink_check;
mod sink_compact;
mod sinks;
mod standalone;
mod stats_file;
mod stop;
mod supervisor;
mod traces;
mod up;

pub use confined::confined;
pub use open_files::open_more_files;
pub use stop::Interrupted;
use stop::{Signals, unless_stopped};
pub use supervisor::Supervisor;

/// Exit code after Ctrl-C, as shells know it.
const INTERRUPTED: u8 = 130;

/// Number of blocking calls at once.
const BLOCKING_THREADS: usize = 32;

/// Carries a command out. The first Ctrl-C or SIGTERM asks the command to end, the second ends it. The supervisor is told
/// how a server stands.
///
/// # Errors
///
/// The threads of the process cannot be started.
pub fn run(command: Command, supervisor: Supervisor) -> io::Result<ExitCode> {
    // Files and compilers block; beyond this many at once they wait, and need no stack each.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?;
    // On the main thread, the loop of a crawl would be woken across threads for every page.
    let work = runtime.spawn(run_until_signalled(command, supervisor));
    let ended = runtime.block_on(work);
    // Remaining tasks had their time; waiting for a blocked thread would delay the exit.
    runtime.shutdown_background();
    match ended {
        Ok(Ok(())) => Ok(ExitCode::SUCCESS),
        Ok(Err(error)) => Ok(failed(&error)),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(io::Error::other(error)),
        },
    }
}

/// Prints why a command failed, and returns the exit code.
pub fn failed(error: &anyhow::Error) -> ExitCode {
    if error.is::<Interrupted>() {
        return ExitCode::from(INTERRUPTED);
    }
    cli::print_error(error);
    if error.is::<cli::Unmet>() {
        return ExitCode::from(cli::UNMET);
    }
    ExitCode::FAILURE
}

async fn run_until_signalled(command: Command, supervisor: Supervisor) -> anyhow::Result<()> {
    // The handlers are set first: from here on no signal ends the process without its clean-up.
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    let mut work = Box::pin(carry_out(command, &supervisor, stop.clone()));
    tokio::select! {
        result = &mut work => return result,
        () = signals.next() => stop.cancel(),
    }
    tokio::select! {
        result = &mut work => result,
        () = signals.next() => Err(Interrupted.into()),
    }
}

async fn carry_out(
    command: Command,
    supervisor: &Supervisor,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    match command {
        Command::Run(options) => run::run(*options, stop).await,
        Command::Up(options) => Box::pin(up::run(*options, supervisor, stop)).await,
        Command::Master(options) => Box::pin(cluster::run_master(*options, supervisor, stop)).await,
        Command::Worker(options) => match *options {
            WorkerOptions::Cluster(options) => {
                Box::pin(cluster::run_worker(*options, supervisor, stop)).await
            }
            WorkerOptions::Alone(options) => standalone::run(*options, stop).await,
        },
        Command::Demo(options) => demo::run(options, stop).await,
        Command::Bench(options) => Box::pin(bench::run(*options, stop)).await,
        Command::Doctor(options) => unless_stopped(&stop, Box::pin(doctor::run(*options))).await,
        Command::Sink(options) => unless_stopped(&stop, Box::pin(sink_check::run(options))).await,
        Command::Backup(options) => unless_stopped(&stop, Box::pin(backup::run(options))).await,
        Command::Devtools(options) => unless_stopped(&stop, Box::pin(devtools::run(options))).await,
        Command::Client(command) => unless_stopped(&stop, Box::pin(cli::run(command))).await,
    }
}

#[cfg(test)]
mod sim;
