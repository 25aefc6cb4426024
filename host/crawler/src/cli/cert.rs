//! `crawler cert …`: makes certificates.

use clap::Subcommand;

mod dev;

#[derive(Debug, Subcommand)]
pub(super) enum CertCommand {
    /// Make a CA, and certificates for nodes and clients of a cluster under development
    #[command(
        after_help = "Nothing that is there is overwritten. All certificates are valid for 30 days, and all nodes show the same one.\nWhoever has ca.key can make further ones.\n\nExamples:\n  crawler cert dev tls\n  crawler cert dev tls --host node-1.example,10.0.0.1"
    )]
    Dev(dev::DevArgs),
}

pub(super) fn run(command: CertCommand) -> anyhow::Result<()> {
    match command {
        CertCommand::Dev(args) => dev::run(&args),
    }
}
