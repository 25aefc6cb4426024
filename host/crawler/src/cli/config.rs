//! `crawler config …`: tells what is wrong with config files, and which settings hold.

use clap::{Command, Subcommand};

pub(super) use self::show::ShowArgs;

mod check;
mod show;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Read config files and files of resources, and print every fault with its line
    #[command(
        after_help = "It calls no master: whether a plugin is there, and whether its params fit, shows `crawler apply --dry-run`.\n\nExamples:\n  crawler config check\n  crawler config check crawler.toml crawls/"
    )]
    Check(check::CheckArgs),
    /// Show the settings that a command would have, and where each comes from
    #[command(
        after_help = "Secrets are not shown, only where they are.\n\nExamples:\n  crawler config show\n  crawler config show worker --config worker.toml --allow-ports 81\n  crawler config show -o json up --http :8081"
    )]
    Show(ShowArgs),
}

pub(super) fn run(command: ConfigCommand, definition: Command) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Check(args) => check::run(&args),
        ConfigCommand::Show(args) => show::run(&args, definition),
    }
}
