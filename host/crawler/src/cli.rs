//! The command line: arguments parsed into plain options, and the commands that call a master.
//!
//! Commands that start parts of the crawler themselves (`up`, `run`, `worker`, `demo`, `bench`, `backup`, `sink`, `plugin test`) come out of
//! [`Cli::parse`] as options for `app`; the others run here, through [`run`].

#![expect(clippy::print_stderr, reason = "the command line talks to a person")]

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::backup::{BackupArgs, BackupOptions, RestoreArgs};
use self::bench::BenchArgs;
pub use self::bench::BenchOptions;
pub use self::called_masters::CalledMasters;
use self::called_masters::MastersArgs;
pub use self::devtools::DevtoolsOptions;
use self::doctor::{DoctorArgs, DoctorOptions};
pub use self::failure::Failure;
use self::log::LogArgs;
pub use self::metrics::MetricsOptions;
use self::options::{DemoArgs, RunArgs, UpArgs};
pub use self::options::{DemoOptions, RunOptions, UpOptions};
use self::plugin::PluginCommand;
pub use self::process_options::{
    AloneOptions, ClusterWorkerOptions, MasterOptions, NodeOptions, WorkerOptions,
};
use self::process_options::{MasterArgs, WorkerArgs};
pub use self::report::{is_closed_pipe, print_error, print_note, print_waiting, report};
pub use self::requests::CallOptions;
use self::shell_files::{CompletionsArgs, ManArgs};
use self::sink::{SinkCommand, SinkOptions};
use self::terminal::TerminalArgs;
pub use self::unmet::{UNMET, Unmet, check_all_roots, check_roots};
pub use self::wanted_id::WantedId;
use crate::config::Environment;
use crawler_process::telemetry::{self, Colors};

mod access;
pub(crate) mod apply;
pub mod archive;
pub(crate) mod args;
pub mod backup;
pub mod bench;
pub mod block;
mod cache;
mod called_masters;
mod cert;
mod checks;
mod config;
mod crawl;
pub mod devtools;
pub mod doctor;
pub mod engine;
pub(crate) mod export;
pub mod exposure;
pub mod fail_on;
mod failure;
mod file;
mod frontier;
mod init;
mod items;
pub mod items_file;
mod join_token;
mod log;
mod login;
mod metrics;
mod node;
pub mod options;
pub mod pace;
mod past_events;
pub mod place;
pub mod plugin;
pub mod process_options;
mod profile;
pub mod progress;
mod quarantine;
mod report;
mod requests;
mod resource;
mod shell_files;
pub mod sink;
mod table;
mod terminal;
mod top;
mod unmet;
mod version;
mod waiting;
mod wanted_id;
mod whole_file;

/// Command that the user asked for.
#[derive(Debug)]
pub enum Command {
    /// Starts a master and a worker in this process.
    Up(Box<UpOptions>),
    /// Runs one crawl in this terminal.
    Run(Box<RunOptions>),
    /// Starts a master of a cluster.
    Master(Box<MasterOptions>),
    /// Starts a worker of a cluster, or one alone.
    Worker(Box<WorkerOptions>),
    /// Crawls the bundled book shop.
    Demo(DemoOptions),
    /// Measures a crawl of a made-up web.
    Bench(Box<BenchOptions>),
    /// Checks what a node needs.
    Doctor(Box<DoctorOptions>),
    /// Lists the declared sinks, checks one, or compacts its files.
    Sink(SinkOptions),
    /// Takes, checks or restores a backup.
    Backup(BackupOptions),
    /// Runs a command for authors of rules.
    Devtools(DevtoolsOptions),
    /// Calls a master, or builds a plugin: [`run`] does it.
    Client(ClientCommand),
}

impl Command {
    /// Returns the filter of the log unless `CRAWLER_LOG` gives another. A server logs what it does; the
    /// other commands show it in their output. Lines of a log would spoil a view that fills the terminal. The client of
    /// NATS logs each error that it also returns.
    pub fn default_log(&self) -> &'static str {
        match self {
            _ if self.is_server() => {
                "info,async_nats=off,object_store=warn,slatedb=warn,crawler_api::calls=warn"
            }
            Command::Client(command) if matches!(command.family, Family::Top(_)) => "off",
            _ => "warn,async_nats=off",
        }
    }

    /// Returns true if the command starts a process that goes on until it is stopped.
    pub(crate) fn is_server(&self) -> bool {
        matches!(
            self,
            Command::Up(_) | Command::Master(_) | Command::Worker(_)
        )
    }
}

/// Command that runs in this module.
#[derive(Debug)]
pub struct ClientCommand {
    masters: CalledMasters,
    family: Family,
}

#[derive(Debug, Parser)]
#[command(
    name = "crawler",
    version,
    about = "A crawler whose rules are sandboxed WebAssembly components",
    after_help = "Try it:\n  crawler demo\n\nStart here, the first two lines in a terminal of their own:\n  crawler demo --site-only --port 8000\n  crawler up --allow-networks 127.0.0.0/8\n  crawler plugin push plugins/books\n  crawler resource add books --param start=http://127.0.0.1:8000/catalogue/page-1.html\n  crawler items books --follow\n\nEnvironment:\n  CRAWLER_LOG=crawler=debug        what is logged; a line for each page with crawler_fetch=debug\n  CRAWLER_LOG_FORMAT=json          one flat object a line: ts, level, target, msg and the fields\n  CRAWLER_TOKEN=…                  access token that is shown to the master, before the one of a login\n  NO_COLOR=1                       no colours unless --color asks for them"
)]
struct Args {
    #[command(flatten)]
    masters: MastersArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    command: Typed,
}

#[derive(Debug, Subcommand)]
enum Typed {
    /// Crawl once in this terminal: no server, items to stdout or a file
    Run(Box<RunArgs>),
    /// Start a master and a worker in one process; its folder survives any restart
    Up(UpArgs),
    /// Start a master of a cluster; any number of them, one leads
    Master(MasterArgs),
    /// Start a worker of a cluster, or one alone with the resources of a config file
    Worker(WorkerArgs),
    #[command(flatten)]
    Client(Family),
    /// Fetch a page, and try selectors on it
    Shell(Box<devtools::ShellArgs>),
    /// Crawl the bundled book shop, from the rule's source to items that are compared with the truth
    Demo(DemoArgs),
    /// Measure a crawl of a made-up web, or of a folder: its speed, and the time of each stage of a page
    Bench(Box<BenchArgs>),
    /// List the sinks of items that the config file declares, check them, and compact their files
    #[command(subcommand)]
    Sink(SinkCommand),
    /// Check what a node needs: etcd, data root, clock, ports, certificates, token, tools and limits
    Doctor(DoctorArgs),
    /// Copy the records and the data of a stopped cluster into a folder, or check such a copy
    Backup(BackupArgs),
    /// Restore a backup into an empty store and an empty data root
    Restore(RestoreArgs),
}

#[derive(Debug, Subcommand)]
enum Family {
    /// Make, test, push and list plugins: the rules of crawls
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Add, change, watch and delete resources: named crawls
    #[command(subcommand)]
    Resource(resource::ResourceCommand),
    /// Make plugins and resources as files declare them, and say what was done
    Apply(apply::ApplyArgs),
    /// Write resources as `apply` reads them
    Export(export::ExportArgs),
    /// Write a config file that shows every key and sets none
    Init(init::InitArgs),
    /// Check config files, and show which settings hold
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Look at the URLs of a resource: how many, which, why; try dead ones again
    #[command(subcommand)]
    Frontier(frontier::FrontierCommand),
    /// Print the items of a resource, one JSON object a line
    Items(items::ItemsArgs),
    /// Look at items that are held because they are not like those before; release or drop them
    #[command(subcommand)]
    Quarantine(quarantine::QuarantineCommand),
    /// Print a file that a rule wanted kept, or write it to a file
    File(file::FileArgs),
    /// Check archives of crawls, and make one file of several
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// List masters and workers
    #[command(subcommand)]
    Node(node::NodeCommand),
    /// Show the cluster in the terminal, again and again: nodes, resources, and one resource with its hosts and errors
    Top(top::TopArgs),
    /// Take a profile of a process of this machine: where its processor time goes
    Profile(profile::ProfileArgs),
    /// Give access, and take it back
    #[command(subcommand)]
    Access(access::AccessCommand),
    /// Make certificates for TLS
    #[command(subcommand)]
    Cert(cert::CertCommand),
    /// Keep an access token for a master
    Login(login::LoginArgs),
    /// Forget the access token of a master
    Logout(login::LogoutArgs),
    /// Print a script that lets a shell complete commands and options
    Completions(CompletionsArgs),
    /// Write manual pages of all commands into a folder
    Man(ManArgs),
    /// Print the version, and with --cluster those of all nodes
    #[command(after_help = "Examples:\n  crawler version\n  crawler version --cluster")]
    Version(version::VersionArgs),
}

/// Parsed arguments of the program.
#[derive(Debug)]
pub struct Cli {
    /// Command to carry out.
    pub command: Command,
    terminal: TerminalArgs,
    log: LogArgs,
}

impl Cli {
    /// Parses all arguments, the program's name first. Help and versions are "errors" too: [`report`] prints
    /// each of them on the right stream.
    pub fn parse(
        args: impl IntoIterator<Item = OsString>,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let args: Vec<OsString> = args.into_iter().collect();
        let mut definition = Args::command().color(terminal::color_choice(&args));
        let matches = definition.try_get_matches_from_mut(args)?;
        let args = Args::from_arg_matches(&matches).map_err(|e| e.format(&mut definition))?;
        if args.terminal.is_contradictory() {
            let why = "the argument '--verbose...' cannot be used with '--quiet...'";
            return Err(definition.error(ErrorKind::ArgumentConflict, why).into());
        }
        // A contradiction is of no account to commands that call no master.
        let masters = args.masters.into_masters(environment);
        let command = match args.command {
            Typed::Run(args) => Command::Run(Box::new(args.into_options(environment)?)),
            Typed::Up(args) => Command::Up(Box::new(args.into_options(environment)?)),
            Typed::Master(args) => Command::Master(Box::new(args.into_options(environment)?)),
            Typed::Worker(args) => Command::Worker(Box::new(args.into_options(environment)?)),
            Typed::Shell(args) => {
                let options = args.into_options(environment)?;
                Command::Devtools(DevtoolsOptions::Shell(Box::new(options)))
            }
            Typed::Demo(args) => Command::Demo(args.into_options()),
            Typed::Bench(args) => Command::Bench(Box::new(args.into_options()?)),
            Typed::Doctor(args) => {
                Command::Doctor(Box::new(args.into_options(environment, masters?)?))
            }
            Typed::Sink(command) => Command::Sink(command.into_options()?),
            Typed::Backup(args) => Command::Backup(args.into_options()?),
            Typed::Restore(args) => Command::Backup(args.into_options()?),
            Typed::Client(Family::Plugin(PluginCommand::Devtools(command))) => {
                let is_verbose = args.terminal.is_verbose();
                Command::Devtools(command.into_options(environment, masters?, is_verbose)?)
            }
            Typed::Client(Family::Config(config::ConfigCommand::Show(args))) => {
                args.check(Args::command())?;
                Command::Client(ClientCommand {
                    masters: masters?,
                    family: Family::Config(config::ConfigCommand::Show(args)),
                })
            }
            Typed::Client(family) => Command::Client(ClientCommand {
                masters: masters?,
                family,
            }),
        };
        let (terminal, log) = (args.terminal, args.log);
        Ok(Self {
            command,
            terminal,
            log,
        })
    }

    /// Returns the settings of the log: those of the environment, unless options replace them.
    pub fn log(&self, environment: &Environment) -> telemetry::Settings {
        let mut log = environment.log.clone();
        if let Some(filter) = self.terminal.log_filter(self.command.is_server()) {
            log.filter = Some(filter.to_owned());
        }
        if self.terminal.colors() != Colors::Auto {
            log.colors = self.terminal.colors();
        }
        self.log.add_to(&mut log);
        log
    }
}

/// Carries out a command that needs nothing but a master to call. Dropping the future ends it.
pub async fn run(command: ClientCommand) -> anyhow::Result<()> {
    let ClientCommand { masters, family } = command;
    let connect = masters.connect();
    let result = match family {
        Family::Plugin(command) => plugin::run(command, connect).await,
        Family::Resource(command) => Box::pin(resource::run(command, connect.await?)).await,
        Family::Apply(args) => Box::pin(apply::run(args, connect.await?)).await,
        Family::Export(args) => export::run(args, connect.await?).await,
        Family::Init(args) => init::run(&args),
        Family::Config(command) => config::run(command, Args::command()),
        Family::Frontier(command) => frontier::run(command, connect.await?).await,
        Family::Items(args) => Box::pin(items::run(args, connect.await?)).await,
        Family::Quarantine(command) => quarantine::run(command, connect.await?).await,
        Family::File(args) => file::run(args, connect.await?).await,
        Family::Archive(command) => archive::run(command).await,
        Family::Node(command) => node::run(command, masters.clone()).await,
        Family::Top(args) => Box::pin(top::run(args, connect)).await,
        Family::Profile(args) => Box::pin(profile::run(args, connect)).await,
        Family::Access(command) => access::run(command, connect.await?).await,
        Family::Cert(command) => cert::run(command),
        Family::Login(args) => login::login(args, &masters).await,
        Family::Logout(args) => login::logout(&args),
        Family::Completions(args) => shell_files::completions(&args),
        Family::Man(args) => shell_files::man(&args),
        Family::Version(args) => version::run(args, &masters).await,
    };
    match result {
        // The reader of the output has closed it and wants no more.
        Err(error) if is_closed_pipe(&error) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests;
